//! Lies: one answer of a liar, drawn from the bank: what is served, what is wrong with it, and how it ends.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Liar, Proof, Sizes, Tags};
use crate::support::rig::served::{MODIFIED, MODIFIED_LATER};
use crate::support::{Asked, End, Reply, Served, gzip, ms, noise};

/// What a page says that comes in place of the file.
const PAGE: &str = "<!DOCTYPE html><title>Sign in</title><form>Name: <input></form>";

/// One answer that is being drawn.
pub(super) struct Turn<'a> {
    pub(super) liar: &'a Liar,
    pub(super) mirror: usize,
    pub(super) asked: &'a Asked,
    pub(super) rng: StdRng,
    pub(super) version: usize,
}

/// What is wrong with an answer, besides how it ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lie {
    // Ranges.
    Ignored,
    Earlier,
    Sooner,
    Later,
    Mislabelled,
    LengthOfAnother,
    NoContentRange,
    OddContentRange,
    TwoContentRanges,
    FalseTotal,
    Multipart,
    Unasked206,
    PartOf200,
    Refused416,
    False416,
    // Framing and codings.
    Beyond,
    Chunked,
    ChunkedAndLength,
    OpenChunks,
    UntilClose,
    CutUntilClose,
    StarTotal,
    TwoLengths,
    NotHttp,
    Silence,
    Coded,
    // Statuses, pages, redirects.
    Busy,
    AskedToWait,
    Refused,
    OddSuccess,
    Page,
    PlainPage,
    ToMirror,
    ToPage,
    Loop,
    Nowhere,
    // Validators.
    NoTag,
    TwoTags,
    // Only where a digest is known.
    Corrupt,
    Swapped,
    Shortened,
    Shifted,
    Huge,
}

/// Those that leave traces whatever is known.
const ALWAYS: [Lie; 25] = [
    Lie::Ignored,
    Lie::Earlier,
    Lie::Sooner,
    Lie::Later,
    Lie::Mislabelled,
    Lie::LengthOfAnother,
    Lie::NoContentRange,
    Lie::OddContentRange,
    Lie::TwoContentRanges,
    Lie::Multipart,
    Lie::Unasked206,
    Lie::PartOf200,
    Lie::Refused416,
    Lie::Beyond,
    Lie::TwoLengths,
    Lie::NotHttp,
    Lie::Silence,
    Lie::Coded,
    Lie::Busy,
    Lie::AskedToWait,
    Lie::Refused,
    Lie::OddSuccess,
    Lie::Page,
    Lie::Loop,
    Lie::Nowhere,
];
const WHERE_SIZES_ARE_TOLD: [Lie; 3] = [Lie::FalseTotal, Lie::False416, Lie::PlainPage];
const WHERE_SIZES_ARE_HIDDEN: [Lie; 6] =
    [Lie::Chunked, Lie::ChunkedAndLength, Lie::OpenChunks, Lie::UntilClose, Lie::CutUntilClose, Lie::StarTotal];
/// Not where tags alone tell versions apart.
const WHERE_VERSIONS_DIFFER: [Lie; 4] = [Lie::ToMirror, Lie::ToPage, Lie::NoTag, Lie::TwoTags];
const UNDER_A_DIGEST: [Lie; 5] = [Lie::Corrupt, Lie::Swapped, Lie::Shortened, Lie::Shifted, Lie::Huge];

impl Turn<'_> {
    /// Nothing but right.
    pub(super) fn repentant(&mut self) -> (String, Reply) {
        let reply = Served::new(self.liar.plan.truth()).etag("\"truth\"").reply(self.asked);
        ("honest".to_owned(), reply)
    }

    pub(super) fn answer(&mut self) -> (String, Reply) {
        let plan = &self.liar.plan;
        self.version = plan.homes[self.mirror];
        if self.asked.target == "/page" {
            return ("a page".to_owned(), Reply::page(200, PAGE));
        }
        let under_a_digest = plan.proof == Proof::Digest;
        let honest = self.rng.random_bool(if under_a_digest { 0.1 } else { 0.35 });
        let drifts = self.rng.random_bool(if plan.tags == Tags::TrueOfNear { 0.5 } else { 0.2 });
        if drifts && !(honest && under_a_digest) {
            self.version = self.rng.random_range(0..plan.versions.len());
        }
        if honest {
            let reply = self.right();
            return if under_a_digest { ("right".to_owned(), reply) } else { self.ended("right", reply) };
        }
        let lie = self.lie();
        let reply = self.told(lie);
        self.ended(&format!("{lie:?}"), reply)
    }

    fn lie(&mut self) -> Lie {
        let plan = &self.liar.plan;
        let mut lies = ALWAYS.to_vec();
        lies.extend(match plan.sizes {
            Sizes::Told => WHERE_SIZES_ARE_TOLD.as_slice(),
            Sizes::Hidden => WHERE_SIZES_ARE_HIDDEN.as_slice(),
        });
        if plan.tags != Tags::TrueOfNear {
            lies.extend(WHERE_VERSIONS_DIFFER);
        }
        if plan.proof == Proof::Digest {
            lies.extend(UNDER_A_DIGEST);
        }
        lies[self.rng.random_range(0..lies.len())]
    }

    pub(super) fn data(&self) -> &Arc<Vec<u8>> {
        &self.liar.plan.versions[self.version]
    }

    /// The version at hand, as RFC 9110 has it but for validators and If-Range.
    fn served(&mut self) -> Served {
        let served = Served::new(self.data());
        let served = match self.liar.plan.tags {
            Tags::True | Tags::TrueOfNear => served.etag(&format!("\"v{}\"", self.version)),
            Tags::Same => served,
            Tags::Weak => served.etag("W/\"w\""),
            Tags::None => served.no_etag(),
            Tags::Flipping => served.etag(&format!("\"{}-{}\"", self.mirror, self.asked.n)),
            Tags::Dates if self.version > 0 => served.no_etag().modified(MODIFIED_LATER),
            Tags::Dates | Tags::SameDate => served.no_etag().modified(MODIFIED),
        };
        if self.rng.random_bool(0.5) { served.blind() } else { served }
    }

    /// The range that is asked for, and is there.
    pub(super) fn range(&self) -> Option<Range<usize>> {
        let (size, (first, last)) = (self.data().len(), self.asked.range()?);
        (first < size).then(|| first..last.map_or(size, |last| size.min(last + 1)))
    }

    /// A 206 that calls itself `label` and holds `part`.
    pub(super) fn partial(&mut self, part: Range<usize>, label: &str) -> Reply {
        let head = self.served().blind().no_ranges().reply(self.asked).with_status(206);
        head.header("Content-Range", label).body(self.data(), part)
    }

    pub(super) fn whole(&mut self) -> Reply {
        self.served().no_ranges().reply(self.asked)
    }

    pub(super) fn right(&mut self) -> Reply {
        self.served().reply(self.asked)
    }

    fn told(&mut self, lie: Lie) -> Reply {
        match lie {
            Lie::Ignored => self.whole(),
            Lie::Earlier | Lie::Sooner | Lie::Later | Lie::Mislabelled | Lie::LengthOfAnother => self.other_range(lie),
            Lie::NoContentRange | Lie::OddContentRange | Lie::TwoContentRanges | Lie::FalseTotal => {
                self.other_label(lie)
            }
            Lie::StarTotal | Lie::Multipart | Lie::Unasked206 | Lie::PartOf200 => self.odd_range(lie),
            Lie::Refused416 | Lie::False416 => self.unsatisfiable(lie),
            Lie::Beyond | Lie::Chunked | Lie::ChunkedAndLength | Lie::OpenChunks => self.framed(lie),
            Lie::UntilClose | Lie::CutUntilClose | Lie::TwoLengths | Lie::Silence => self.framed(lie),
            Lie::NotHttp => Reply::raw(*b"220 smtp.example.org ESMTP ready\r\n"),
            Lie::Coded => self.coded(),
            Lie::Busy | Lie::AskedToWait | Lie::Refused | Lie::OddSuccess => self.refusal(lie),
            Lie::Page | Lie::PlainPage | Lie::ToPage => self.page(lie),
            Lie::ToMirror | Lie::Loop | Lie::Nowhere => self.redirect(lie),
            Lie::NoTag => self.right().instead("ETag", None).instead("Last-Modified", None),
            Lie::TwoTags => self.right().header("ETag", "\"another\""),
            Lie::Corrupt | Lie::Swapped | Lie::Shortened | Lie::Shifted | Lie::Huge => self.wrong(lie),
        }
    }

    fn unsatisfiable(&mut self, lie: Lie) -> Reply {
        let size = self.data().len();
        let from = self.asked.from();
        let total = match lie {
            Lie::False416 => [0, from, from / 2, size + 1, from + 65_536][self.rng.random_range(0..5)].to_string(),
            _ if self.rng.random_bool(0.3) => "*".to_owned(),
            _ => size.to_string(),
        };
        let reply = Reply::page(416, PAGE);
        if self.rng.random_bool(0.2) { reply } else { reply.header("Content-Range", &format!("bytes */{total}")) }
    }

    fn framed(&mut self, lie: Lie) -> Reply {
        let reply = self.right();
        let n = reply.len();
        match lie {
            Lie::Beyond => {
                let body = [reply.bytes(), &noise(7, 5_000)].concat();
                let all = Arc::new(body);
                let end = if self.rng.random_bool(0.5) { End::Close } else { End::Keep };
                reply.header("Content-Length", &n.to_string()).body(&all, 0..all.len()).then(end)
            }
            Lie::Chunked => reply.chunked(),
            Lie::OpenChunks => reply.chunked_without_end(),
            Lie::ChunkedAndLength => {
                // The length is right: one who goes by it and one who goes by the chunks must both come out right.
                reply.header("Content-Length", &n.to_string()).chunked().then(End::Close)
            }
            Lie::UntilClose => reply.http10(),
            Lie::CutUntilClose => {
                self.liar.cut_unseen.store(true, Ordering::SeqCst);
                let at = self.cut_at(n);
                reply.http10().cut(at, End::Close)
            }
            Lie::TwoLengths => {
                let reply = reply.header("Content-Length", &n.to_string());
                reply.header("Content-Length", &(n / 2).to_string()).then(End::Close)
            }
            _ => Reply::raw(Vec::new()),
        }
    }

    fn coded(&mut self) -> Reply {
        let reply = self.right();
        let coded = gzip(reply.bytes());
        reply.header("Content-Encoding", "gzip").body(&coded, 0..coded.len())
    }

    fn refusal(&mut self, lie: Lie) -> Reply {
        let pick = |rng: &mut StdRng, of: &[u16]| of[rng.random_range(0..of.len())];
        let status = match lie {
            Lie::Busy => pick(&mut self.rng, &[408, 425, 429, 500, 502, 503, 504, 520, 524, 599]),
            Lie::AskedToWait => pick(&mut self.rng, &[429, 503]),
            Lie::Refused => pick(&mut self.rng, &[400, 401, 403, 404, 410, 414, 421, 451, 501]),
            _ => pick(&mut self.rng, &[201, 202, 204, 226, 299, 300, 304, 305]),
        };
        if [204, 304].contains(&status) {
            return Reply::status(status);
        }
        // The body looks like the file, or like its rest, with everything that belongs to it.
        let reply = self.right().with_status(status);
        match lie {
            Lie::AskedToWait => {
                let wait = ["0", "0", "0", "1", "soon", "-5", "Mon, 02 Nov 1998 10:00:00 GMT"];
                reply.header("Retry-After", wait[self.rng.random_range(0..wait.len())])
            }
            _ => reply,
        }
    }

    /// A page in place of the file: nobody can tell where nothing is known.
    fn page(&mut self, lie: Lie) -> Reply {
        let anything_goes = self.liar.plan.proof == Proof::Digest;
        if !anything_goes && !self.liar.known.load(Ordering::SeqCst) {
            return self.right();
        }
        match lie {
            Lie::Page => Reply::page(200, &PAGE.repeat(self.rng.random_range(1..200))),
            Lie::ToPage => Reply::redirect(302, "/page"),
            _ => Reply::page(200, "{\"error\":\"quota\"}").instead("Content-Type", Some("application/json")),
        }
    }

    fn redirect(&mut self, lie: Lie) -> Reply {
        let urls = self.liar.urls.get().expect("the mirrors are told");
        let status = [301, 302, 303, 307, 308][self.rng.random_range(0..5)];
        match lie {
            Lie::ToMirror => Reply::redirect(status, &urls[self.rng.random_range(0..urls.len())]),
            Lie::Loop => Reply::redirect(status, &self.asked.target),
            _ => Reply::status(status),
        }
    }

    /// Bytes that only a digest can tell from the right ones.
    fn wrong(&mut self, lie: Lie) -> Reply {
        let reply = self.right();
        let (n, mut bytes) = (reply.len(), reply.bytes().to_vec());
        match lie {
            Lie::Corrupt if n > 0 => {
                let at = self.rng.random_range(0..n);
                bytes[at] ^= 1;
            }
            Lie::Swapped => bytes = noise(self.liar.plan.seed ^ 0x55, n).to_vec(),
            Lie::Shortened => bytes.truncate(n / 2),
            Lie::Shifted if n > 0 => bytes.rotate_left(1),
            Lie::Huge => {
                // More than there is, or more than any disk holds; not so much that a disk is filled by reserving it.
                let size = [3 * n as u64, 1 << 50, u64::MAX / 2, u64::MAX][self.rng.random_range(0..4)];
                return reply.header("Content-Length", &size.to_string()).then(End::Close);
            }
            _ => {}
        }
        let bytes = Arc::new(bytes);
        reply.body(&bytes, 0..bytes.len())
    }

    /// Not after so few bytes that others agree with them by chance.
    fn cut_at(&mut self, n: usize) -> usize {
        if n < 64 || self.rng.random_bool(0.1) { 0 } else { self.rng.random_range(32..n) }
    }

    /// How the answer ends, and at what pace: the second fault.
    fn ended(&mut self, what: &str, reply: Reply) -> (String, Reply) {
        let n = reply.len();
        if reply.ends_by_closing() || n == 0 {
            return (what.to_owned(), reply);
        }
        // What is not cut early on is over before anything can be joined wrongly.
        if self.asked.from() == 0 && self.asked.n < 4 && n > 80_000 && self.rng.random_bool(0.8) {
            let at = self.rng.random_range(70_000..n);
            return (format!("{what}, cut at {at} of {n}"), reply.cut(at, End::Close));
        }
        if !self.rng.random_bool(f64::from(self.liar.plan.rough) / 100.0) {
            return (what.to_owned(), reply);
        }
        match self.rng.random_range(0..10) {
            0..4 => {
                let at = self.cut_at(n);
                (format!("{what}, cut at {at} of {n}"), reply.cut(at, End::Close))
            }
            4..7 => {
                let at = self.cut_at(n);
                (format!("{what}, reset at {at} of {n}"), reply.cut(at, End::Reset))
            }
            7 => {
                let at = self.cut_at(n);
                (format!("{what}, hanging at {at} of {n}"), reply.cut(at, End::Hang))
            }
            8 => (format!("{what}, in drops"), reply.pace(n.div_ceil(40), ms(2))),
            _ if self.rng.random_bool(0.5) => (format!("{what}, closed"), reply.then(End::Close)),
            _ => (format!("{what}, late"), reply.late(ms(30))),
        }
    }
}
