//! A tus 1.0 server, with the ways of those that were tried (facts of uploads, section 2).

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::{Answer, Method};
use super::sim::{Request, Server, answer, digest_of, path};
use crate::core::digest::Algorithm;
use crate::core::time::{Delay, Epoch};

#[derive(Clone, Debug)]
pub(super) struct TusServer {
    /// Its extensions; `None` answers OPTIONS with 405.
    pub(super) extensions: Option<&'static str>,
    pub(super) max: Option<u64>,
    /// A cut body is kept in whole blocks of this size.
    pub(super) block: u64,
    /// Something before it keeps bodies until they are whole.
    pub(super) buffered: bool,
    /// A body beyond this is refused with 413.
    pub(super) limit: Option<u64>,
    /// A whole body is answered after so many bytes of it.
    pub(super) takes: Option<usize>,
    /// How long an upload lives from its creation.
    pub(super) lives: Option<Delay>,
    /// Statuses that the next requests get in place of answers, by method.
    pub(super) instead: VecDeque<(Method, u16)>,
    pub(super) location: fn(&str) -> String,
    pub(super) uploads: Vec<Upload>,
    /// PATCH answers do not name the offset.
    pub(super) silent: bool,
    /// A byte of the next body is changed on the way.
    pub(super) spoil: u32,
    pub(super) metadata: String,
    /// Nobody may read what it stored.
    pub(super) hides: bool,
    /// It stored so much more than it counted, as the next who want to read it find.
    pub(super) uncounted: VecDeque<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) length: usize,
    pub(super) bytes: Vec<u8>,
    born: Epoch,
    pub(super) gone: Option<u16>,
}

impl TusServer {
    pub(super) fn new() -> Self {
        Self {
            extensions: Some("creation,expiration,termination"),
            max: None,
            block: 1,
            buffered: false,
            limit: None,
            takes: None,
            lives: None,
            instead: VecDeque::new(),
            location: |path| format!("http://up.example{path}"),
            uploads: Vec::new(),
            silent: false,
            spoil: 0,
            metadata: String::new(),
            hides: false,
            uncounted: VecDeque::new(),
        }
    }

    fn expires(&self, upload: &Upload) -> Option<Epoch> {
        self.lives.map(|lives| upload.born + lives)
    }

    fn create(&mut self, request: &Request) -> Answer {
        let length = request.ask.field("upload-length").expect("a length").parse().expect("a number");
        self.metadata = request.ask.field("upload-metadata").unwrap_or_default().to_owned();
        if self.max.is_some_and(|max| length as u64 > max) {
            return answer(413, &[], b"");
        }
        let bytes = request.body.clone();
        self.uploads.push(Upload { length, bytes, born: request.now, gone: None });
        let location = (self.location)(&format!("/files/{}", self.uploads.len() - 1));
        let offset = request.body.len().to_string();
        let mut fields = vec![("location", location.as_str())];
        if !request.body.is_empty() {
            fields.push(("upload-offset", &offset));
        }
        answer(201, &fields, b"")
    }

    fn patch(&mut self, request: &Request, index: usize) -> Answer {
        let mut body = request.body.clone();
        if self.spoil > 0 && !body.is_empty() {
            self.spoil -= 1;
            body[0] ^= 1;
        }
        if self.limit.is_some_and(|limit| request.ask.body.length().0 > limit) {
            return answer(413, &[], b"");
        }
        let checked = request.ask.field("upload-checksum").map(str::to_owned);
        let from: usize = request.ask.field("upload-offset").expect("an offset").parse().expect("a number");
        let upload = &mut self.uploads[index];
        if from != upload.bytes.len() {
            return answer(409, &[], b"");
        }
        let block = usize::try_from(self.block).expect("fits");
        let take = match request.cut {
            true if self.buffered || checked.is_some() => 0,
            true => body.len() / block * block,
            false => self.takes.map_or(body.len(), |n| n.min(body.len())),
        };
        if let (false, Some(sum)) = (request.cut, checked) {
            let (name, value) = sum.split_once(' ').expect("two words");
            let digest = digest_of(Algorithm::from_name(name).expect("known"), &body);
            if STANDARD.encode(&digest.bytes) != value {
                return answer(460, &[], b"");
            }
        }
        upload.bytes.extend_from_slice(&body[..take]);
        let offset = upload.bytes.len().to_string();
        if self.silent { answer(204, &[], b"") } else { answer(204, &[("upload-offset", &offset)], b"") }
    }

    fn head(&self, index: usize) -> Answer {
        let upload = &self.uploads[index];
        let (offset, length) = (upload.bytes.len().to_string(), upload.length.to_string());
        let expires = self.expires(upload).and_then(crate::core::validator::http_date);
        let mut fields = vec![("upload-offset", offset.as_str()), ("upload-length", &length)];
        fields.extend(expires.as_deref().map(|at| ("upload-expires", at)));
        answer(200, &fields, b"")
    }

    fn options(&self) -> Answer {
        let Some(extensions) = self.extensions else { return answer(405, &[], b"") };
        let max = self.max.map(|n| n.to_string());
        let mut fields = vec![("tus-version", "1.0.0"), ("tus-extension", extensions)];
        fields.push(("tus-checksum-algorithm", "md5,sha1"));
        fields.extend(max.as_deref().map(|n| ("tus-max-size", n)));
        answer(204, &fields, b"")
    }
}

impl Server for TusServer {
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        assert_eq!(request.ask.field("tus-resumable"), Some("1.0.0"));
        if self.instead.front().is_some_and(|(method, _)| *method == request.ask.method) {
            let (_, code) = self.instead.pop_front().expect("one is there");
            return (code > 0).then(|| answer(code, &[], b""));
        }
        let name = path(&request.ask.url);
        let index = name.strip_prefix("/files/").and_then(|n| n.parse::<usize>().ok());
        let Some(index) = index else {
            return Some(match request.ask.method {
                Method::Options => self.options(),
                _ => self.create(request),
            });
        };
        let Some(upload) = self.uploads.get(index) else { return Some(answer(404, &[], b"")) };
        if let Some(code) = upload.gone {
            return Some(answer(code, &[], b""));
        }
        if self.expires(upload).is_some_and(|at| at < request.now) {
            return Some(answer(410, &[], b""));
        }
        Some(match request.ask.method {
            Method::Head => self.head(index),
            Method::Get if self.hides => answer(405, &[], b""),
            Method::Get => {
                let total = upload.bytes.len() + self.uncounted.pop_front().unwrap_or(0);
                answer(206, &[("content-range", format!("bytes 0-0/{total}").as_str())], b"x")
            }
            Method::Delete => {
                self.uploads[index].gone = Some(404);
                answer(204, &[], b"")
            }
            _ => self.patch(request, index),
        })
    }

    fn stored(&self) -> Option<&[u8]> {
        self.uploads.iter().find(|u| u.gone.is_none() && u.bytes.len() == u.length).map(|u| u.bytes.as_slice())
    }
}
