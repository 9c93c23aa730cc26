//! What the hosts of a simulation do with uploads: each is a server of plain files (PUT, MOVE) and one of tus 1.0.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::HeaderName;
use persxfer::core::digest::{Algorithm, Expected};
use persxfer::core::failure::{Cut, Failure};
use persxfer::core::range::Length;
use persxfer::core::time::Delay;
use persxfer::core::upload::{Answer, Keep, Method};
use persxfer::core::url::MirrorUrl;
use persxfer::io::effects::failpoints::is_dead;
use persxfer::io::transport::{Heard, OutBody, Outflow, Outgoing};
use rand::RngExt;

use super::host::Mood;
use super::net::{CONNECT_TIMEOUT, LONG, Net, Visit};

/// What one host has stored.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// Files by their paths; the number tells versions apart.
    files: BTreeMap<String, (u64, Vec<u8>)>,
    count: u64,
    sessions: BTreeMap<String, Begun>,
}

/// A tus upload.
#[derive(Debug)]
struct Begun {
    length: usize,
    bytes: Vec<u8>,
}

impl Store {
    /// Does it hold this, whole, as the file of that number?
    pub(crate) fn has(&self, file: usize, bytes: &[u8]) -> bool {
        let put = self.files.get(&format!("/up{file}")).is_some_and(|(_, stored)| stored == bytes);
        let own = format!("/up{file}/");
        let begun = self.sessions.iter().filter(|(path, _)| path.starts_with(&own));
        put || begun.into_iter().any(|(_, begun)| begun.length == begun.bytes.len() && begun.bytes == bytes)
    }

    /// Of the most that it holds of that file, whole or not, so many bytes.
    pub(crate) fn most_of(&self, file: usize) -> usize {
        let own = format!("/up{file}");
        let files = self.files.iter().filter(|(path, _)| path.starts_with(&own)).map(|(_, (_, bytes))| bytes.len());
        let begun = self.sessions.iter().filter(|(path, _)| path.starts_with(&own)).map(|(_, begun)| begun.bytes.len());
        files.chain(begun).max().unwrap_or(0)
    }
}

/// `http://h3.sim/up7`: where file 7 goes on host 3.
pub(crate) fn url(host: usize, file: usize) -> MirrorUrl {
    MirrorUrl::parse(&format!("http://h{host}.sim/up{file}")).expect("a URL")
}

fn file_of(path: &str) -> usize {
    let digits = path.trim_start_matches("/up");
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().expect("one of our files")
}

/// One request with its body.
struct Request {
    visit: Visit,
    path: String,
    out: Outgoing,
    body: Arc<Outflow>,
    /// Something happens to the body, or to the answer, at this place of the body.
    fate: Option<(usize, Fate)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Breaks,
    FallsSilent,
}

impl Net {
    /// A request comes to a host.
    pub(super) async fn take(self, out: Outgoing, body: Arc<Outflow>) -> Heard {
        if is_dead() {
            tokio::time::sleep(LONG).await;
        }
        let host = out.url.host().trim_start_matches('h').trim_end_matches(".sim").parse().expect("one of our hosts");
        let path = out.url.secret_url().path().to_owned();
        let visit = self.visit(host, file_of(&path));
        let (mood, round_trip) = self.mood_of(host);
        let broke = |failure| Heard::Broke { sent: body.sent(), failure };
        match mood {
            Mood::Refuses => {
                tokio::time::sleep(round_trip).await;
                return broke(Failure::Connect { detail: "connection refused".to_owned() });
            }
            Mood::Hangs => {
                tokio::time::sleep(CONNECT_TIMEOUT).await;
                return broke(Failure::Connect { detail: "no connection within 30 s".to_owned() });
            }
            Mood::Mute => {
                tokio::time::sleep(out.patience.as_std()).await;
                return broke(Failure::NoAnswer { waited: out.patience });
            }
            _ => tokio::time::sleep(round_trip * 2).await,
        }
        let length = usize::try_from(out.body.length().0).expect("small");
        let fate = (mood == Mood::Flaky).then(|| self.draw_fate(length)).flatten();
        let request = Request { visit, path, out, body, fate };
        match mood {
            Mood::Busy(seconds) => request.answer(503, &[], seconds),
            Mood::Broken | Mood::Portal => request.answer(500, &[], None),
            Mood::Missing => request.answer(404, &[], None),
            _ => request.serve().await,
        }
    }

    /// It may end anywhere in the body, or behind it, before the answer.
    fn draw_fate(&self, length: usize) -> Option<(usize, Fate)> {
        let rng = &mut self.lock().rng;
        rng.random_bool(0.6).then(|| {
            let fate = if rng.random_bool(0.7) { Fate::Breaks } else { Fate::FallsSilent };
            // Often when all has been sent: whether it arrived is what is to be found out.
            (if rng.random_bool(0.3) { length } else { rng.random_range(0..=length) }, fate)
        })
    }
}

impl Request {
    async fn serve(self) -> Heard {
        let is_tus = self.out.headers.contains_key("tus-resumable");
        let result = if is_tus { self.tus().await } else { self.files().await };
        result.unwrap_or_else(|failure| Heard::Broke { sent: self.body.sent(), failure })
    }

    async fn tus(&self) -> Result<Heard, Failure> {
        let number = |name: &str| self.field(name).and_then(|text| text.parse::<usize>().ok());
        match self.out.method {
            Method::Options => {
                self.ends_here().await?;
                Ok(self.answer(204, &[("tus-version", "1.0.0"), ("tus-extension", "creation,termination")], None))
            }
            Method::Post => {
                let place = {
                    let mut outside = self.visit.outside();
                    let store = &mut outside.stores[self.visit.host];
                    store.count += 1;
                    let place = format!("/up{}/{}", self.visit.file, store.count);
                    let begun = Begun { length: number("upload-length").expect("a length"), bytes: Vec::new() };
                    store.sessions.insert(place.clone(), begun);
                    place
                };
                self.ends_here().await?;
                let url = format!("http://h{}.sim{place}", self.visit.host);
                Ok(self.answer(201, &[("location", &url)], None))
            }
            Method::Head => {
                self.ends_here().await?;
                let known = self.visit.outside().stores[self.visit.host]
                    .sessions
                    .get(&self.path)
                    .map(|begun| (begun.bytes.len().to_string(), begun.length.to_string()));
                Ok(match known {
                    Some((offset, length)) => {
                        self.answer(200, &[("upload-offset", &offset), ("upload-length", &length)], None)
                    }
                    None => self.answer(404, &[], None),
                })
            }
            Method::Patch => {
                let held = self.visit.outside().stores[self.visit.host].sessions.get(&self.path).map(|b| b.bytes.len());
                let Some(held) = held else { return Ok(self.answer(404, &[], None)) };
                if number("upload-offset") != Some(held) {
                    return Ok(self.answer(409, &[], None));
                }
                // What comes is kept at once, however the request ends.
                self.receive(|piece| {
                    let mut outside = self.visit.outside();
                    let begun = outside.stores[self.visit.host].sessions.get_mut(&self.path);
                    begun.expect("sessions stay").bytes.extend_from_slice(piece);
                })
                .await?;
                let held = held + self.length();
                Ok(self.answer(204, &[("upload-offset", &held.to_string())], None))
            }
            Method::Get => Ok(self.answer(405, &[], None)),
            Method::Delete => {
                let known = self.visit.outside().stores[self.visit.host].sessions.remove(&self.path).is_some();
                self.ends_here().await?;
                Ok(self.answer(if known { 204 } else { 404 }, &[], None))
            }
            _ => Ok(self.answer(405, &[], None)),
        }
    }

    async fn files(&self) -> Result<Heard, Failure> {
        match self.out.method {
            Method::Put => {
                let mut bytes = Vec::new();
                // A file is there when all of it is.
                self.receive_all(|piece| bytes.extend_from_slice(piece)).await?;
                if self.fate.is_some_and(|(at, fate)| at == self.length() && fate == Fate::FallsSilent) {
                    self.meets_its_fate().await?;
                }
                self.store(&self.path, bytes);
                self.ends_here().await?;
                Ok(self.answer(201, &[], None))
            }
            Method::Head | Method::Get => {
                self.ends_here().await?;
                let found = self.visit.outside().stores[self.visit.host].files.get(&self.path).cloned();
                let Some((version, bytes)) = found else { return Ok(self.answer(404, &[], None)) };
                let (length, tag) = (bytes.len().to_string(), format!("\"{version}\""));
                let fields = [("content-length", length.as_str()), ("etag", &tag)];
                let body = if self.out.method == Method::Get { bytes } else { Vec::new() };
                Ok(self.answer_with(200, &fields, None, body))
            }
            Method::Move => {
                let to = self.field("destination").and_then(|url| MirrorUrl::parse(&url).ok()).expect("a destination");
                let moved = self.visit.outside().stores[self.visit.host].files.remove(&self.path);
                let known = moved.is_some();
                if let Some((_, bytes)) = moved {
                    self.store(to.secret_url().path(), bytes);
                }
                self.ends_here().await?;
                Ok(self.answer(if known { 201 } else { 404 }, &[], None))
            }
            Method::Delete => {
                let known = self.visit.outside().stores[self.visit.host].files.remove(&self.path).is_some();
                self.ends_here().await?;
                Ok(self.answer(if known { 204 } else { 404 }, &[], None))
            }
            _ => Ok(self.answer(405, &[], None)),
        }
    }

    fn store(&self, path: &str, bytes: Vec<u8>) {
        let mut outside = self.visit.outside();
        let store = &mut outside.stores[self.visit.host];
        store.count += 1;
        store.files.insert(path.to_owned(), (store.count, bytes));
    }

    /// The whole body, and then what may happen behind it.
    async fn receive(&self, take: impl FnMut(&[u8])) -> Result<(), Failure> {
        self.receive_all(take).await?;
        self.ends_here().await
    }

    async fn receive_all(&self, mut take: impl FnMut(&[u8])) -> Result<(), Failure> {
        let (mut at, length) = (0, self.length());
        while at < length {
            let (most, rate) = self.visit.pace();
            let mut n = most.min(length - at);
            if let Some((fatal, _)) = self.fate {
                n = n.min(fatal - at);
                if n == 0 {
                    self.meets_its_fate().await?;
                }
            }
            tokio::time::sleep(Duration::from_secs_f64(n as f64 / rate as f64)).await;
            if !self.body.put(Length(n as u64)) {
                // Nobody sends any more, and the request is about to be dropped.
                tokio::time::sleep(LONG).await;
            }
            take(&self.bytes(at, n));
            at += n;
            if !self.visit.serves() {
                return Err(broken());
            }
        }
        Ok(())
    }

    /// Behind the body, before the answer.
    async fn ends_here(&self) -> Result<(), Failure> {
        if self.fate.is_some_and(|(at, _)| at == self.length()) { self.meets_its_fate().await } else { Ok(()) }
    }

    async fn meets_its_fate(&self) -> Result<(), Failure> {
        if let Some((_, Fate::FallsSilent)) = self.fate {
            let waited: Delay = self.out.patience;
            tokio::time::sleep(waited.as_std()).await;
            return Err(Failure::NoAnswer { waited });
        }
        Err(broken())
    }

    fn length(&self) -> usize {
        usize::try_from(self.out.body.length().0).expect("small")
    }

    /// So many bytes of the body from here on.
    fn bytes(&self, at: usize, n: usize) -> Vec<u8> {
        match &self.out.body {
            OutBody::Nothing => Vec::new(),
            OutBody::Bytes(bytes) => bytes[at..at + n].to_vec(),
            OutBody::Source { before, file, range } => {
                assert!(before.is_empty(), "neither server here wants a frame");
                let mut bytes = vec![0; n];
                file.read_exact_at(&mut bytes, range.start.0 + at as u64).expect("the source is there");
                bytes
            }
        }
    }

    fn field(&self, name: &str) -> Option<String> {
        self.out.headers.get(name).map(|value| value.to_str().expect("text").to_owned())
    }

    fn answer(&self, status: u16, fields: &[(&'static str, &str)], retry_after: Option<u32>) -> Heard {
        self.answer_with(status, fields, retry_after, Vec::new())
    }

    fn answer_with(
        &self,
        status: u16,
        fields: &[(&'static str, &str)],
        retry_after: Option<u32>,
        body: Vec<u8>,
    ) -> Heard {
        let mut head = HeaderMap::new();
        for (name, value) in fields {
            head.insert(HeaderName::from_static(name), value.parse().expect("a field"));
        }
        if self.out.headers.contains_key("tus-resumable") {
            head.insert("tus-resumable", "1.0.0".parse().expect("a field"));
        }
        let length = Length(body.len() as u64);
        let digest = match self.out.keep {
            Keep::Digest(algorithm) => Some(digest_of(algorithm, &body)),
            Keep::Small => None,
        };
        Heard::Answer(Box::new(Answer {
            status,
            fields: head,
            body: if digest.is_some() { Vec::new() } else { body },
            length,
            digest,
            retry_after: retry_after.map(|seconds| Delay::from_secs(seconds.into())),
            sent: self.body.sent(),
        }))
    }
}

fn digest_of(algorithm: Algorithm, bytes: &[u8]) -> Expected {
    let bytes = match algorithm {
        Algorithm::Blake3 => blake3::hash(bytes).as_bytes().to_vec(),
        Algorithm::Sha256 => <sha2::Sha256 as sha2::Digest>::digest(bytes).to_vec(),
        other => panic!("{other:?} is not asked for here"),
    };
    Expected { algorithm, bytes }
}

fn broken() -> Failure {
    Failure::Cut(Cut::Broken { detail: "reset by the server".to_owned() })
}
