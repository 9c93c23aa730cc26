//! Simulated servers, and a driver of the machine over files in memory.

use super::super::dossier::{Dossier, Draft, IfRange};
use super::super::*;
use crate::core::failure::Cut;
use crate::core::validator::{ETag, Validators};

pub(in crate::core::file_xfer) const KIB: u64 = 1 << 10;

/// What a simulated server sends back.
pub(in crate::core::file_xfer) struct Reply {
    pub(in crate::core::file_xfer) head: AnswerHead,
    pub(in crate::core::file_xfer) body: Vec<u8>,
    /// The connection breaks after the body, short of its framed end.
    pub(in crate::core::file_xfer) cut: bool,
}

/// The two part files.
#[derive(Default)]
pub(in crate::core::file_xfer) struct Files {
    pub(in crate::core::file_xfer) part: Vec<u8>,
    pub(in crate::core::file_xfer) rival: Vec<u8>,
}

/// How a simulated session ended.
#[derive(Debug, PartialEq)]
pub(in crate::core::file_xfer) enum Ended {
    Finished(Vec<u8>, Evidence),
    Unchanged,
    Failed(Failure),
}

/// A transfer over several sessions.
pub(in crate::core::file_xfer) struct World {
    pub(in crate::core::file_xfer) files: Files,
    pub(in crate::core::file_xfer) dossier: Dossier,
    pub(in crate::core::file_xfer) asks: Vec<Ask>,
    pub(in crate::core::file_xfer) digest: LastWord,
    pub(in crate::core::file_xfer) company: Company,
    pub(in crate::core::file_xfer) revalidate: Option<Draft>,
    pub(in crate::core::file_xfer) weight: Weight,
    pub(in crate::core::file_xfer) expected: Option<Length>,
    pub(in crate::core::file_xfer) metalink: MetalinkIs,
    /// What the digest says of a rival.
    pub(in crate::core::file_xfer) rival_is: Result<(), Failure>,
}

impl World {
    pub(in crate::core::file_xfer) fn new() -> Self {
        Self {
            files: Files::default(),
            dossier: Dossier::default(),
            asks: Vec::new(),
            digest: LastWord::Joints,
            company: Company::Alone,
            revalidate: None,
            weight: Weight::Informative,
            expected: None,
            metalink: MetalinkIs::InItsPlace,
            rival_is: Ok(()),
        }
    }

    pub(in crate::core::file_xfer) fn plan(&self, url: &str) -> Plan {
        let back = |draft: &Draft| draft.held.as_end().back(OVERLAP);
        Plan {
            url: MirrorUrl::parse(url).unwrap(),
            named_by: NamedBy::User,
            first_origin: MirrorUrl::parse("http://a/f").unwrap().origin(),
            dossier: self.dossier.clone(),
            proof: Proof {
                part: back(&self.dossier.part),
                rival: self.dossier.rival.as_ref().map(back).unwrap_or_default(),
                weight: self.weight,
            },
            until: None,
            probe: None,
            probe_weight: Weight::Constant,
            digest: self.digest,
            judge: self.digest,
            law: None,
            company: self.company,
            freshness: Freshness::CacheAllowed,
            revalidate: self.revalidate.clone(),
            stored_codings: &[],
            max_filesize: None,
            expected: self.expected,
            metalink: self.metalink,
        }
    }

    /// One session; the server sees each request with its number.
    pub(in crate::core::file_xfer) fn session(&mut self, url: &str, server: &mut dyn FnMut(&Ask) -> Reply) -> Ended {
        let mut machine = FileXfer::new(self.plan(url));
        let mut step = machine.start();
        let mut open: Option<(Reply, usize, bool)> = None;
        for _ in 0..1000 {
            step.ops.iter().for_each(|op| self.apply(*op));
            let event = match step.next {
                Next::Ask(ask) => {
                    let reply = server(&ask);
                    self.asks.push(ask);
                    let head = reply.head.clone();
                    open = Some((reply, 0, false));
                    Event::Answer(Box::new(head))
                }
                Next::Receive(receive) => {
                    let open = open.as_mut().expect("an open answer");
                    self.receive(receive, open)
                }
                Next::Finish { place: Place::Rival, .. } => {
                    step = machine.rival_judged(self.rival_is.clone());
                    continue;
                }
                Next::Finish { evidence, .. } => {
                    self.dossier = machine.dossier().clone();
                    return Ended::Finished(std::mem::take(&mut self.files.part), evidence);
                }
                Next::Unchanged => return Ended::Unchanged,
                Next::Fail(failure) => {
                    self.dossier = machine.dossier().clone();
                    assert_eq!(self.dossier.part.held.0, self.files.part.len() as u64, "held as the file has it");
                    return Ended::Failed(failure);
                }
            };
            step = machine.handle(event);
        }
        panic!("a session without end");
    }

    pub(in crate::core::file_xfer) fn apply(&mut self, op: FileOp) {
        match op {
            FileOp::Cut(Place::Part, to) => self.files.part.truncate(to.0 as usize),
            FileOp::Cut(Place::Rival, to) => self.files.rival.truncate(to.0 as usize),
            FileOp::Fork(at) => self.files.rival = self.files.part[..at.0 as usize].to_vec(),
            FileOp::Promote => self.files.part = std::mem::take(&mut self.files.rival),
            FileOp::DropRival => self.files.rival.clear(),
        }
    }

    pub(in crate::core::file_xfer) fn receive(
        &mut self,
        plan: Receive,
        (reply, read, joined): &mut (Reply, usize, bool),
    ) -> Event {
        let file = match plan.place {
            Place::Part => &mut self.files.part,
            Place::Rival => &mut self.files.rival,
        };
        let mut at = plan.at.0;
        loop {
            if at == plan.compare_until.0 && at > 0 && !*joined {
                *joined = true;
                return Event::Joined;
            }
            let rest = &reply.body[*read..];
            let room = plan.end.map_or(u64::MAX, |end| end.0.saturating_sub(at));
            let until_joined = if at < plan.compare_until.0 { plan.compare_until.0 - at } else { u64::MAX };
            let run = &rest[..rest.len().min(room.min(until_joined).try_into().unwrap_or(usize::MAX))];
            if run.is_empty() {
                let broken = Failure::Cut(Cut::Broken { detail: "cut".to_owned() });
                let cut = room > 0 && reply.cut;
                return if cut { Event::Broke(Offset(at), broken) } else { Event::Ended(Offset(at)) };
            }
            if at < plan.compare_until.0 {
                let held = &file[at as usize..at as usize + run.len()];
                if let Some(equal) = held.iter().zip(run).position(|(a, b)| a != b) {
                    *joined = true;
                    *read += equal;
                    return Event::Differs(Offset(at + equal as u64));
                }
            } else {
                assert_eq!(file.len() as u64, at, "appended without a gap");
                file.extend_from_slice(run);
            }
            *read += run.len();
            at += run.len() as u64;
        }
    }

    /// Sessions until the file is there or `most` have failed.
    pub(in crate::core::file_xfer) fn until_done(
        &mut self,
        url: &str,
        most: usize,
        server: &mut dyn FnMut(&Ask) -> Reply,
    ) -> Ended {
        let mut last = self.session(url, server);
        for _ in 1..most {
            if !matches!(last, Ended::Failed(_)) {
                break;
            }
            last = self.session(url, server);
        }
        last
    }
}

pub(in crate::core::file_xfer) fn bytes(n: u64, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..n).map(|_| next()).collect()
}

pub(in crate::core::file_xfer) fn strong(tag: &str) -> Validators {
    Validators { etag: Some(ETag { weak: false, opaque: format!("\"{tag}\"") }), ..Validators::default() }
}

pub(in crate::core::file_xfer) fn weak(tag: &str) -> Validators {
    Validators { etag: Some(ETag { weak: true, opaque: format!("\"{tag}\"") }), ..Validators::default() }
}

pub(in crate::core::file_xfer) fn head(status: u16, validators: Validators, length: u64) -> AnswerHead {
    AnswerHead {
        status,
        validators,
        content_range: None,
        framing: Framing::Length(Length(length)),
        content_type: Some("application/octet-stream".to_owned()),
        coding: None,
        location: None,
        retry_after: None,
        disposition: None,
        repr_digests: Vec::new(),
        content_digests: Vec::new(),
        links: Vec::new(),
    }
}

pub(in crate::core::file_xfer) fn bare(status: u16) -> Reply {
    Reply { head: head(status, Validators::default(), 0), body: Vec::new(), cut: false }
}

/// How a simulated server behaves.
#[derive(Clone, Debug)]
pub(in crate::core::file_xfer) struct Ways {
    pub(in crate::core::file_xfer) ranges: bool,
    pub(in crate::core::file_xfer) if_range: bool,
    pub(in crate::core::file_xfer) limit: Option<u64>,
}

pub(in crate::core::file_xfer) const HONEST: Ways = Ways { ranges: true, if_range: true, limit: None };

/// A server of one version that behaves so.
pub(in crate::core::file_xfer) fn serve(data: &[u8], validators: &Validators, ways: &Ways, ask: &Ask) -> Reply {
    let matches = ask.if_range.is_none() || ask.if_range == validators.if_range(IfRange::Best);
    let range = ask.range.filter(|_| ways.ranges && (matches || !ways.if_range));
    let total = data.len() as u64;
    let mut reply = match range {
        Some(r) if r.from.0 >= total => {
            let content_range = Some(format!("bytes */{total}"));
            Reply {
                head: AnswerHead { content_range, ..head(416, validators.clone(), 0) },
                body: Vec::new(),
                cut: false,
            }
        }
        Some(r) => {
            let end = r.to.map_or(total, |t| t.0.min(total));
            let content_range = Some(format!("bytes {}-{}/{total}", r.from, end - 1));
            let body = data[r.from.0 as usize..end as usize].to_vec();
            let head = AnswerHead { content_range, ..head(206, validators.clone(), body.len() as u64) };
            Reply { head, body, cut: false }
        }
        None => Reply { head: head(200, validators.clone(), total), body: data.to_vec(), cut: false },
    };
    if let Some(limit) = ways.limit.filter(|l| (*l as usize) < reply.body.len()) {
        reply.body.truncate(limit as usize);
        reply.cut = true;
    }
    reply
}
