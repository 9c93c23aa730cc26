//! A server of the IETF's resumable uploads, written from the draft.

use std::collections::VecDeque;

use super::super::{Answer, Ask, Interim, Method};
use super::sim::{Request, Server, answer, header_map, path};

#[derive(Clone, Debug)]
pub(super) struct IetfServer {
    pub(super) interop: &'static str,
    pub(super) limit_field: Option<&'static str>,
    pub(super) max_append: Option<usize>,
    pub(super) block: usize,
    /// 104 on creation, and in place of the Location in the answer.
    pub(super) only_104: bool,
    /// The application's word on the whole.
    pub(super) application: u16,
    pub(super) instead: VecDeque<(Method, u16)>,
    /// The next PATCHes meet a server that has moved by so much.
    pub(super) shift: i64,
    pub(super) repr_digest: Option<String>,
    pub(super) bytes: Vec<u8>,
    pub(super) length: Option<usize>,
    pub(super) complete: bool,
    pub(super) gone: bool,
    pub(super) created: u32,
    pub(super) knows_nothing: bool,
}

impl IetfServer {
    pub(super) fn new() -> Self {
        Self {
            interop: "8",
            limit_field: None,
            max_append: None,
            block: 1,
            only_104: false,
            application: 200,
            instead: VecDeque::new(),
            shift: 0,
            repr_digest: None,
            bytes: Vec::new(),
            length: None,
            complete: false,
            gone: false,
            created: 0,
            knows_nothing: false,
        }
    }

    fn fields<'a>(&'a self, offset: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut fields = vec![("upload-offset", offset)];
        fields.push(("upload-complete", if self.complete { "?1" } else { "?0" }));
        fields.extend(self.limit_field.map(|l| ("upload-limit", l)));
        fields.extend(self.repr_digest.as_deref().map(|d| ("repr-digest", d)));
        fields
    }

    fn create(&mut self, request: &Request) -> Answer {
        if self.knows_nothing {
            return answer(201, &[], b"");
        }
        self.length = request.ask.field("upload-length").and_then(|n| n.parse().ok());
        (self.bytes, self.complete, self.gone) = (Vec::new(), false, false);
        self.created += 1;
        let mut fields = vec![("upload-complete", "?0")];
        if !self.only_104 {
            fields.push(("location", "/upload/1"));
        }
        fields.extend(self.limit_field.map(|l| ("upload-limit", l)));
        answer(201, &fields, b"")
    }

    fn patch(&mut self, request: &Request) -> Answer {
        assert_eq!(request.ask.field("content-type"), Some("application/partial-upload"));
        let from: i64 = request.ask.field("upload-offset").expect("an offset").parse().expect("a number");
        let here = (self.bytes.len() as i64 + std::mem::take(&mut self.shift)).max(0);
        self.bytes.resize(usize::try_from(here).expect("fits"), 0);
        let offset = here.to_string();
        if from != here {
            return answer(409, &self.fields(&offset), b"");
        }
        if self.max_append.is_some_and(|max| request.ask.body.length().0 > max as u64) {
            return answer(413, &[], b"");
        }
        let keep = if request.cut { request.body.len() / self.block * self.block } else { request.body.len() };
        self.bytes.extend_from_slice(&request.body[..keep]);
        let last = request.ask.field("upload-complete") == Some("?1");
        self.complete = last && !request.cut;
        let offset = self.bytes.len().to_string();
        let status = if self.complete { self.application } else { 204 };
        answer(status, &self.fields(&offset), b"")
    }
}

impl Server for IetfServer {
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        if self.instead.front().is_some_and(|(method, _)| *method == request.ask.method) {
            let (_, code) = self.instead.pop_front().expect("one is there");
            return (code > 0).then(|| answer(code, &[], b""));
        }
        if path(&request.ask.url) != "/upload/1" {
            return Some(self.create(request));
        }
        if self.gone || self.created == 0 {
            return Some(answer(404, &[], b""));
        }
        Some(match request.ask.method {
            Method::Head => {
                let (offset, length) = (self.bytes.len().to_string(), self.length.map(|n| n.to_string()));
                let mut fields = self.fields(&offset);
                fields.extend(length.as_deref().map(|n| ("upload-length", n)));
                answer(204, &fields, b"")
            }
            Method::Delete => {
                self.gone = true;
                answer(204, &[], b"")
            }
            _ => self.patch(request),
        })
    }

    fn informs(&mut self, ask: &Ask) -> Vec<Interim> {
        let first = vec![Interim { status: 100, fields: http::HeaderMap::new() }; 2];
        let elsewhere = [("location", "/upload/other"), ("upload-draft-interop-version", "3")];
        let here = [("location", "/upload/1"), ("upload-draft-interop-version", self.interop)];
        match ask.method {
            Method::Post => {
                let more = [&elsewhere, &here].map(|f| Interim { status: 104, fields: header_map(f) });
                first.into_iter().chain(more).collect()
            }
            _ => first,
        }
    }

    fn stored(&self) -> Option<&[u8]> {
        self.complete.then_some(self.bytes.as_slice())
    }
}
