//! The network of a simulation: hosts answer GETs as they are at that time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderName, IF_RANGE, LAST_MODIFIED, RANGE,
    RETRY_AFTER,
};
use persxfer::core::failure::{Cut, Failure};
use persxfer::core::file_xfer::Framing;
use persxfer::core::range::Length;
use persxfer::core::time::Delay;
use persxfer::core::url::MirrorUrl;
use persxfer::io::effects::failpoints::is_dead;
use persxfer::io::transport::{Answer, Heard, Network, Outflow, Outgoing, Pieces, Soon};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

use super::host::{Host, Mood, Names, T, Truth};
use super::store::Store;
use super::watch::Watch;

/// As the program's own.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const LONG: Duration = Duration::from_secs(400 * 86_400);
/// 2026-01-01, well after every Last-Modified.
const DAWN: u64 = 1_767_225_600;
const PAGE: &[u8] = b"<!DOCTYPE html><html><body>Please log in</body></html>";

/// Everything outside the machine.
pub(crate) struct Outside {
    pub(crate) hosts: Vec<Host>,
    pub(crate) files: Vec<Truth>,
    /// What each host has stored of uploads.
    pub(crate) stores: Vec<Store>,
    pub(crate) watch: Watch,
    pub(super) rng: StdRng,
    /// When this life of the program began, by true time and by that of its event loop.
    began: (T, Option<Instant>),
}

/// A handle on it.
#[derive(Clone)]
pub(crate) struct Net(Arc<Mutex<Outside>>);

/// A request under way, and its answer's body; it counts at its host until it is dropped.
pub(super) struct Visit {
    net: Net,
    pub(super) host: usize,
    pub(super) file: usize,
}

struct BodyOf {
    visit: Visit,
    bytes: Bytes,
    sent: usize,
    /// It breaks off, or falls silent, after so many bytes.
    fate: Option<(usize, Fate)>,
}

#[derive(Clone, Copy)]
enum Fate {
    Breaks,
    FallsSilent,
}

impl Net {
    pub(crate) fn new(seed: u64, hosts: Vec<Host>, files: Vec<Truth>) -> Self {
        let watch = Watch::new(hosts.len(), files.len());
        let rng = StdRng::seed_from_u64(seed ^ 0x6e65_7477_6f72_6b21);
        let stores = hosts.iter().map(|_| Store::default()).collect();
        Self(Arc::new(Mutex::new(Outside { hosts, files, stores, watch, rng, began: (T::ZERO, None) })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Outside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program begins at this true time; to be called on its event loop.
    pub(crate) fn begin_life(&self, t: T) {
        self.lock().began = (t, Some(Instant::now()));
    }

    /// True time; to be called on the event loop.
    pub(crate) fn t(&self) -> T {
        self.lock().t()
    }

    /// A request about a file comes to a host.
    pub(super) fn visit(&self, host: usize, file: usize) -> Visit {
        let mut outside = self.lock();
        let t = outside.t();
        outside.watch.asked(t, host, file);
        Visit { net: self.clone(), host, file }
    }

    /// How a host is now, and how far away.
    pub(super) fn mood_of(&self, host: usize) -> (Mood, Duration) {
        let outside = self.lock();
        let host = &outside.hosts[host];
        (host.mood(outside.t()), host.round_trip)
    }
}

impl Outside {
    /// When the life of the program that is the latest began.
    pub(crate) fn life_began(&self) -> T {
        self.began.0
    }

    pub(crate) fn t(&self) -> T {
        self.began.0 + self.began.1.map_or(T::ZERO, |began| began.elapsed())
    }
}

/// `http://h3.sim/7`: file 7 on host 3.
pub(crate) fn url(host: usize, file: usize) -> MirrorUrl {
    MirrorUrl::parse(&format!("http://h{host}.sim/{file}")).expect("a URL")
}

fn places(url: &MirrorUrl) -> (usize, usize) {
    let host = url.host().trim_start_matches('h').trim_end_matches(".sim").parse().expect("one of our hosts");
    let file = url.secret_url().path().trim_start_matches('/').parse().expect("one of our files");
    (host, file)
}

impl Network for Net {
    fn get(&self, url: &MirrorUrl, headers: HeaderMap, first_byte: Delay) -> Soon<'static, Result<Answer, Failure>> {
        let (host, file) = places(url);
        let (net, first_byte) = (self.clone(), first_byte.as_std());
        Box::pin(async move {
            if is_dead() {
                tokio::time::sleep(LONG).await;
            }
            let visit = net.visit(host, file);
            let (mood, round_trip) = net.mood_of(host);
            match mood {
                Mood::Refuses => {
                    tokio::time::sleep(round_trip).await;
                    Err(Failure::Connect { detail: "connection refused".to_owned() })
                }
                Mood::Hangs => {
                    tokio::time::sleep(CONNECT_TIMEOUT).await;
                    Err(Failure::Connect { detail: "no connection within 30 s".to_owned() })
                }
                Mood::Mute => {
                    tokio::time::sleep(first_byte).await;
                    Err(Failure::NoAnswer { waited: Delay::from(first_byte) })
                }
                _ => {
                    tokio::time::sleep(round_trip * 2).await;
                    Ok(visit.answer(mood, &headers))
                }
            }
        })
    }

    fn send(&self, request: Outgoing, body: Arc<Outflow>) -> Soon<'static, Heard> {
        Box::pin(self.clone().take(request, body))
    }
}

impl Visit {
    pub(super) fn outside(&self) -> MutexGuard<'_, Outside> {
        self.net.lock()
    }

    /// Does its host serve now?
    pub(super) fn serves(&self) -> bool {
        self.net.mood_of(self.host).0.serves()
    }

    /// How long the next piece may be, and how fast it goes.
    pub(super) fn pace(&self) -> (usize, u64) {
        let mut outside = self.net.lock();
        let rate = outside.hosts[self.host].rate;
        (outside.rng.random_range(1..48 << 10), rate)
    }

    fn answer(self, mood: Mood, asked: &HeaderMap) -> Answer {
        let status = match mood {
            Mood::Busy(retry_after) => return self.says(503, retry_after),
            Mood::Broken => return self.says(500, None),
            Mood::Missing => return self.says(404, None),
            Mood::Portal => return self.page(),
            _ => 200,
        };
        let net = self.net.clone();
        let mut outside = net.lock();
        let t = outside.t();
        let Outside { hosts, files, rng, .. } = &mut *outside;
        let (host, file, truth) = (&hosts[self.host], self.file, &files[self.file]);
        let version = truth.version(t);
        let content = if host.lies { &truth.lie } else { &truth.versions[version].1 };
        let mut head = host_head(host, file, version, t);
        let range = asked.get(RANGE).and_then(|v| range_of(v.to_str().ok()?, content.len()));
        let fits = asked.get(IF_RANGE).is_none_or(|tag| [ETAG, LAST_MODIFIED].iter().any(|h| head.get(h) == Some(tag)));
        let (status, bytes) = match range.filter(|_| host.ranges && fits) {
            Some(None) => {
                put(&mut head, CONTENT_RANGE, &format!("bytes */{}", content.len()));
                (416, Bytes::new())
            }
            Some(Some((from, to))) => {
                put(&mut head, CONTENT_RANGE, &format!("bytes {from}-{}/{}", to - 1, content.len()));
                (206, Bytes::copy_from_slice(&content[from..to]))
            }
            None => (status, Bytes::copy_from_slice(content)),
        };
        put(&mut head, CONTENT_LENGTH, &bytes.len().to_string());
        let fate = (mood == Mood::Flaky && rng.random_bool(0.6) && !bytes.is_empty()).then(|| {
            let fate = if rng.random_bool(0.7) { Fate::Breaks } else { Fate::FallsSilent };
            (rng.random_range(0..bytes.len()), fate)
        });
        drop(outside);
        let length = Length(bytes.len() as u64);
        let body = BodyOf { visit: self, bytes, sent: 0, fate };
        Answer::scripted(status, head, Framing::Length(length), Box::new(body))
    }

    fn says(self, status: u16, retry_after: Option<u32>) -> Answer {
        let mut head = HeaderMap::new();
        put(&mut head, CONTENT_LENGTH, "0");
        if let Some(seconds) = retry_after {
            put(&mut head, RETRY_AFTER, &seconds.to_string());
        }
        let body = BodyOf { visit: self, bytes: Bytes::new(), sent: 0, fate: None };
        Answer::scripted(status, head, Framing::Length(Length::ZERO), Box::new(body))
    }

    fn page(self) -> Answer {
        let mut head = HeaderMap::new();
        put(&mut head, CONTENT_LENGTH, &PAGE.len().to_string());
        put(&mut head, CONTENT_TYPE, "text/html");
        let body = BodyOf { visit: self, bytes: Bytes::from_static(PAGE), sent: 0, fate: None };
        Answer::scripted(200, head, Framing::Length(Length(PAGE.len() as u64)), Box::new(body))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let (host, file) = (self.host, self.file);
        self.net.lock().watch.left(host, file);
    }
}

impl Pieces for BodyOf {
    fn next(&mut self) -> Soon<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(async move {
            if is_dead() {
                tokio::time::sleep(LONG).await;
            }
            if self.sent == self.bytes.len() {
                return Ok(None);
            }
            let (most, rate) = self.visit.pace();
            let mut length = most.min(self.bytes.len() - self.sent);
            if let Some((at, fate)) = self.fate {
                length = length.min(at - self.sent);
                match fate {
                    _ if length > 0 => {}
                    Fate::Breaks => return Err(broken()),
                    Fate::FallsSilent => tokio::time::sleep(LONG).await,
                }
            }
            tokio::time::sleep(Duration::from_secs_f64(length as f64 / rate as f64)).await;
            if !self.visit.serves() && !self.bytes.is_empty() && self.bytes != PAGE {
                return Err(broken());
            }
            let from = self.sent;
            self.sent += length;
            Ok(Some(self.bytes.slice(from..self.sent)))
        })
    }
}

fn broken() -> Failure {
    Failure::Cut(Cut::Broken { detail: "reset by the server".to_owned() })
}

fn host_head(host: &Host, file: usize, version: usize, t: T) -> HeaderMap {
    let mut head = HeaderMap::new();
    put(&mut head, CONTENT_TYPE, "application/octet-stream");
    let dawn = std::time::UNIX_EPOCH + Duration::from_secs(DAWN);
    put(&mut head, DATE, &httpdate::fmt_http_date(dawn + t));
    let lie = if host.lies { "lie-" } else { "" };
    match host.names {
        Names::Strong => put(&mut head, ETAG, &format!("\"{lie}{file}-{version}\"")),
        Names::Weak => put(&mut head, ETAG, &format!("W/\"{lie}{file}-{version}\"")),
        Names::Date => {
            let changed = dawn - Duration::from_secs(DAWN / 50 - 3_600 * version as u64);
            put(&mut head, LAST_MODIFIED, &httpdate::fmt_http_date(changed));
        }
        Names::Nothing => {}
    }
    if host.ranges {
        put(&mut head, ACCEPT_RANGES, "bytes");
    }
    head
}

fn put(head: &mut HeaderMap, name: HeaderName, value: &str) {
    head.insert(name, value.parse().expect("a field"));
}

/// `Some(None)` for a range that this length cannot satisfy.
fn range_of(text: &str, length: usize) -> Option<Option<(usize, usize)>> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let from: usize = from.parse().ok()?;
    let to = if to.is_empty() { length } else { to.parse::<usize>().ok()?.saturating_add(1).min(length) };
    Some((from < to).then_some((from, to)))
}
