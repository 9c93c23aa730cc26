//! The machine driven over simulated servers and files: no network, no disk, thousands of sessions a second.

use proptest::prelude::*;

use super::dossier::{Dossier, Draft};
use super::*;
use crate::core::failure::{BadAnswer, Cut, RedirectFault};
use crate::core::time::Epoch;
use crate::core::validator::{ETag, Validators};

const KIB: u64 = 1 << 10;

/// What a simulated server sends back.
struct Reply {
    head: AnswerHead,
    body: Vec<u8>,
    /// The connection breaks after the body, short of its framed end.
    cut: bool,
}

/// The two part files.
#[derive(Default)]
struct Files {
    part: Vec<u8>,
    rival: Vec<u8>,
}

/// How a simulated session ended.
#[derive(Debug, PartialEq)]
enum Ended {
    Finished(Vec<u8>, Evidence),
    Unchanged,
    Failed(Failure),
}

/// A transfer over several sessions.
struct World {
    files: Files,
    dossier: Dossier,
    asks: Vec<Ask>,
    digest: LastWord,
    company: Company,
    revalidate: Option<Draft>,
}

impl World {
    fn new() -> Self {
        Self {
            files: Files::default(),
            dossier: Dossier::default(),
            asks: Vec::new(),
            digest: LastWord::Joints,
            company: Company::Alone,
            revalidate: None,
        }
    }

    fn plan(&self, url: &str) -> Plan {
        let back = |draft: &Draft| draft.held.as_end().back(OVERLAP);
        Plan {
            url: MirrorUrl::parse(url).unwrap(),
            first_origin: MirrorUrl::parse("http://a/f").unwrap().origin(),
            dossier: self.dossier.clone(),
            proof: Proof { part: back(&self.dossier.part), rival: self.dossier.rival.as_ref().map(back).unwrap_or_default() },
            probe: None,
            digest: self.digest,
            company: self.company,
            freshness: Freshness::CacheAllowed,
            revalidate: self.revalidate.clone(),
            stored_codings: &[],
            max_filesize: None,
        }
    }

    /// One session; the server sees each request with its number.
    fn session(&mut self, url: &str, server: &mut dyn FnMut(&Ask) -> Reply) -> Ended {
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
                    Event::Answer(head)
                }
                Next::Receive(receive) => {
                    let open = open.as_mut().expect("an open answer");
                    self.receive(receive, open)
                }
                Next::Finish { place, evidence } => {
                    assert_eq!(place, Place::Part);
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

    fn apply(&mut self, op: FileOp) {
        match op {
            FileOp::Cut(Place::Part, to) => self.files.part.truncate(to.0 as usize),
            FileOp::Cut(Place::Rival, to) => self.files.rival.truncate(to.0 as usize),
            FileOp::Fork(at) => self.files.rival = self.files.part[..at.0 as usize].to_vec(),
            FileOp::Promote => self.files.part = std::mem::take(&mut self.files.rival),
            FileOp::DropRival => self.files.rival.clear(),
        }
    }

    fn receive(&mut self, plan: Receive, (reply, read, joined): &mut (Reply, usize, bool)) -> Event {
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
            if plan.end.is_some_and(|end| at >= end.0) {
                return Event::Ended(Offset(at));
            }
            let Some(byte) = reply.body.get(*read) else {
                let broken = Failure::Cut(Cut::Broken { detail: "cut".to_owned() });
                return if reply.cut { Event::Broke(Offset(at), broken) } else { Event::Ended(Offset(at)) };
            };
            if at < plan.compare_until.0 {
                if file[at as usize] != *byte {
                    *joined = true;
                    return Event::Differs(Offset(at));
                }
            } else {
                assert_eq!(file.len() as u64, at, "appended without a gap");
                file.push(*byte);
            }
            *read += 1;
            at += 1;
        }
    }

    /// Sessions until the file is there or `most` have failed.
    fn until_done(&mut self, url: &str, most: usize, server: &mut dyn FnMut(&Ask) -> Reply) -> Ended {
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

fn bytes(n: u64, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    (0..n).map(|_| next()).collect()
}

fn strong(tag: &str) -> Validators {
    Validators { etag: Some(ETag { weak: false, opaque: format!("\"{tag}\"") }), ..Validators::default() }
}

fn weak(tag: &str) -> Validators {
    Validators { etag: Some(ETag { weak: true, opaque: format!("\"{tag}\"") }), ..Validators::default() }
}

fn head(status: u16, validators: Validators, length: u64) -> AnswerHead {
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
    }
}

fn bare(status: u16) -> Reply {
    Reply { head: head(status, Validators::default(), 0), body: Vec::new(), cut: false }
}

/// How a simulated server behaves.
#[derive(Clone, Debug)]
struct Ways {
    ranges: bool,
    if_range: bool,
    limit: Option<u64>,
}

const HONEST: Ways = Ways { ranges: true, if_range: true, limit: None };

/// A server of one version that behaves so.
fn serve(data: &[u8], validators: &Validators, ways: &Ways, ask: &Ask) -> Reply {
    let matches = ask.if_range.is_none() || ask.if_range == validators.if_range(super::dossier::IfRange::Best);
    let range = ask.range.filter(|_| ways.ranges && (matches || !ways.if_range));
    let total = data.len() as u64;
    let mut reply = match range {
        Some(r) if r.from.0 >= total => {
            let content_range = Some(format!("bytes */{total}"));
            Reply { head: AnswerHead { content_range, ..head(416, validators.clone(), 0) }, body: Vec::new(), cut: false }
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

#[test]
fn one_whole_answer() {
    let data = bytes(300 * KIB, 1);
    let mut w = World::new();
    let end = w.session("http://a/f", &mut |ask| serve(&data, &strong("v1"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
    assert_eq!(w.asks[0].range, None);
}

#[test]
fn without_a_validator_only_the_length_speaks() {
    let data = bytes(10, 1);
    let end = World::new().session("http://a/f", &mut |ask| serve(&data, &Validators::default(), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Length));
}

#[test]
fn a_cut_body_is_resumed_by_a_conditional_range_with_overlap() {
    let data = bytes(500 * KIB, 2);
    let mut w = World::new();
    let cut = Ways { limit: Some(200 * KIB), ..HONEST };
    let first = w.session("http://a/f", &mut |ask| serve(&data, &strong("v1"), &cut, ask));
    let short = Failure::Cut(Cut::Short { got: Length(200 * KIB), want: Length(500 * KIB) });
    assert_eq!(first, Ended::Failed(short));
    let end = w.session("http://a/f", &mut |ask| serve(&data, &strong("v1"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
    assert_eq!(w.asks[1].range, Some(Wanted { from: Offset(136 * KIB), to: None }));
    assert_eq!(w.asks[1].if_range.as_deref(), Some("\"v1\""));
}

#[test]
fn weak_tags_are_never_sent_and_the_joint_is_compared() {
    let (a, b) = (bytes(400 * KIB, 3), bytes(400 * KIB, 4));
    let mut w = World::new();
    let cut = Ways { if_range: false, limit: Some(150 * KIB), ..HONEST };
    w.session("http://a/f", &mut |ask| serve(&a, &weak("w"), &cut, ask));
    let open = Ways { if_range: false, ..HONEST };
    let end = w.session("http://a/f", &mut |ask| serve(&b, &weak("w"), &open, ask));
    assert_eq!(end, Ended::Finished(b, Evidence::Length));
    assert!(w.asks.iter().all(|a| a.if_range.is_none()));
}

#[test]
fn a_new_version_costs_the_old_bytes_only_when_it_is_longer_or_whole() {
    let (a, b) = (bytes(400 * KIB, 5), bytes(410 * KIB, 6));
    let mut w = World::new();
    let cut = |n| Ways { limit: Some(n), ..HONEST };
    w.session("http://a/f", &mut |ask| serve(&a, &strong("a"), &cut(300 * KIB), ask));
    w.session("http://a/f", &mut |ask| serve(&b, &strong("b"), &cut(100 * KIB), ask));
    assert_eq!((w.files.part.len() as u64, w.files.rival.len() as u64), (300 * KIB, 100 * KIB));
    // The old version is back: its bytes are still there.
    let end = w.session("http://a/f", &mut |ask| serve(&a, &strong("a"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(a, Evidence::Validator));
}

#[test]
fn the_rival_goes_on_where_it_stood() {
    let (a, b) = (bytes(400 * KIB, 5), bytes(410 * KIB, 6));
    let mut w = World::new();
    let cut = |n| Ways { limit: Some(n), ..HONEST };
    w.session("http://a/f", &mut |ask| serve(&a, &strong("a"), &cut(300 * KIB), ask));
    w.session("http://a/f", &mut |ask| serve(&b, &strong("b"), &cut(100 * KIB), ask));
    let end = w.session("http://a/f", &mut |ask| serve(&b, &strong("b"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(b, Evidence::Validator));
    assert_eq!(w.asks.last().and_then(|a| a.range), Some(Wanted { from: Offset(36 * KIB), to: None }));
}

#[test]
fn ever_changing_files_end() {
    let mut n = 0;
    let mut w = World::new();
    let end = w.until_done("http://a/f", 40, &mut |ask| {
        n += 1;
        let data = bytes(300 * KIB + n, 100 + n);
        serve(&data, &strong(&n.to_string()), &Ways { limit: Some(200 * KIB), ..HONEST }, ask)
    });
    assert_eq!(end, Ended::Failed(Failure::KeepsChanging { times: MAX_CHANGES + 1 }));
}

#[test]
fn tags_that_differ_over_the_same_bytes_are_found_out() {
    let data = bytes(400 * KIB, 7);
    let mut n = 0;
    let mut w = World::new();
    let end = w.until_done("http://a/f", 4, &mut |ask| {
        n += 1;
        let limit = ask.range.is_none().then_some(250 * KIB).or(ask.if_range.is_some().then_some(250 * KIB));
        serve(&data, &strong(&n.to_string()), &Ways { limit, ..HONEST }, ask)
    });
    assert_eq!(end, Ended::Finished(data, Evidence::Overlap));
}

#[test]
fn our_own_damaged_tail_is_cut_and_fetched_again() {
    let data = bytes(3 << 20, 8);
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &Ways { limit: Some(2 << 20), ..HONEST }, ask));
    let n = w.files.part.len();
    w.files.part[n - 500_000..].fill(0x55);
    let end = w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
    assert!(w.asks.iter().skip(1).all(|a| a.range.is_some()), "no whole fetch was needed");
}

#[test]
fn an_odd_mirror_is_named_and_nothing_is_lost() {
    let (a, b) = (bytes(400 * KIB, 9), bytes(400 * KIB, 10));
    let mut w = World::new();
    w.company = Company::Others;
    w.session("http://a/f", &mut |ask| serve(&a, &strong("a"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    let end = w.session("http://b/f", &mut |ask| serve(&b, &strong("b"), &HONEST, ask));
    assert!(matches!(end, Ended::Failed(Failure::OddMirror { .. })), "{end:?}");
    assert_eq!(w.files.part[..], a[..200 << 10]);
}

#[test]
fn another_mirror_joins_after_comparison() {
    let data = bytes(400 * KIB, 9);
    let mut w = World::new();
    w.company = Company::Others;
    w.session("http://a/f", &mut |ask| serve(&data, &strong("a"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    let end = w.session("http://b/f", &mut |ask| serve(&data, &strong("b"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Overlap));
    assert_eq!(w.asks[1].carry, Carry::Headers);
}

#[test]
fn a_login_page_is_not_the_file() {
    let data = bytes(400 * KIB, 11);
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| serve(&data, &strong("a"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    let mut page = head(200, Validators::default(), 600);
    page.content_type = Some("text/html".to_owned());
    let end = w.session("http://a/f", &mut |_| Reply { head: page.clone(), body: vec![b'x'; 600], cut: false });
    assert_eq!(end, Ended::Failed(Failure::BadAnswer(BadAnswer::HtmlPage)));
    assert_eq!(w.files.part.len() as u64, 200 * KIB);
}

#[test]
fn a_range_from_elsewhere_is_not_used() {
    let data = bytes(400 * KIB, 12);
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| serve(&data, &strong("a"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    let end = w.session("http://a/f", &mut |ask| {
        let mut reply = serve(&data, &strong("a"), &HONEST, ask);
        if ask.range.is_some() {
            reply.head.content_range = Some(format!("bytes {}-{}/{}", 300 * KIB, 400 * KIB - 1, 400 * KIB));
            reply.head.framing = Framing::Length(Length(100 * KIB));
        }
        reply
    });
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
}

#[test]
fn a_total_of_416_decides() {
    let data = bytes(400 * KIB, 13);
    for (total, asks) in [(200 * KIB, 1), (100 * KIB, 2), (400 * KIB, 2)] {
        let mut w = World::new();
        w.session("http://a/f", &mut |ask| serve(&data, &strong("a"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
        w.dossier.part.total = None;
        let before = w.asks.len();
        let end = w.session("http://a/f", &mut |ask| match ask.range {
            Some(_) => {
                let content_range = Some(format!("bytes */{total}"));
                Reply { head: AnswerHead { content_range, ..head(416, strong("a"), 0) }, body: Vec::new(), cut: false }
            }
            None => serve(&data[..total as usize], &strong("a"), &HONEST, ask),
        });
        assert_eq!(end, Ended::Finished(data[..total as usize].to_vec(), Evidence::Validator), "{total}");
        assert_eq!(w.asks.len() - before, asks);
    }
}

#[test]
fn redirects_lose_credentials_and_loops_end() {
    let to = |location: &str| Reply {
        head: AnswerHead { location: Some(location.to_owned()), ..head(302, Validators::default(), 0) },
        body: Vec::new(),
        cut: false,
    };
    let mut w = World::new();
    let data = bytes(10, 1);
    let end = w.session("http://a/f", &mut |ask| match ask.url.origin().as_str() {
        "http://a" => to("http://b/g"),
        _ => serve(&data, &strong("v"), &HONEST, ask),
    });
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
    assert_eq!((w.asks[0].carry, w.asks[1].carry), (Carry::Everything, Carry::Nothing));
    let looped = World::new().session("http://a/f", &mut |_| to("/again"));
    assert_eq!(looped, Ended::Failed(Failure::Redirect(RedirectFault::Loop)));
    let chain = World::new().session("http://a/0", &mut |ask| {
        let n: u32 = ask.url.secret_url().path()[1..].parse().unwrap();
        to(&format!("/{}", n + 1))
    });
    assert_eq!(chain, Ended::Failed(Failure::Redirect(RedirectFault::TooMany { limit: MAX_REDIRECTS })));
    let scheme = World::new().session("http://a/f", &mut |_| to("file:///secret"));
    assert!(matches!(scheme, Ended::Failed(Failure::Redirect(RedirectFault::Scheme { .. }))), "{scheme:?}");
}

#[test]
fn nothing_without_framing_is_proven() {
    let data = bytes(100 * KIB, 14);
    let close = |n: usize| {
        let mut reply = serve(&data, &Validators::default(), &HONEST, &plain_ask());
        reply.head.framing = Framing::Close;
        reply.body.truncate(n);
        reply
    };
    let end = World::new().session("http://a/f", &mut |_| close(100 << 10));
    assert_eq!(end, Ended::Finished(data.clone(), Evidence::None));
    // Once the size is known, an end before it is a cut.
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &Ways { limit: Some(30 * KIB), ..HONEST }, ask));
    let end = w.session("http://a/f", &mut |_| close(60 << 10));
    assert!(matches!(end, Ended::Failed(Failure::Cut(Cut::Short { .. }))), "{end:?}");
    assert_eq!(w.session("http://a/f", &mut |_| close(100 << 10)), Ended::Finished(data.clone(), Evidence::Length));
}

fn plain_ask() -> Ask {
    Ask {
        url: MirrorUrl::parse("http://a/f").unwrap(),
        carry: Carry::Everything,
        range: None,
        if_range: None,
        unless: None,
        freshness: Freshness::CacheAllowed,
    }
}

#[test]
fn a_finished_file_is_only_asked_about() {
    let data = bytes(10 * KIB, 15);
    let mut w = World::new();
    let origin = MirrorUrl::parse("http://a/f").unwrap().origin();
    w.revalidate = Some(Draft {
        held: Length(10 * KIB),
        total: Some(Length(10 * KIB)),
        validators: vec![(origin, strong("v"))],
        ..Draft::default()
    });
    assert_eq!(w.session("http://a/f", &mut |_| bare(304)), Ended::Unchanged);
    assert_eq!(w.asks[0].unless, Some(Unless::Match("\"v\"".to_owned())));
    assert_eq!(w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &HONEST, ask)), Ended::Unchanged);
    let end = w.session("http://a/f", &mut |ask| serve(&data, &strong("w"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
}

/// A server that draws its behaviour for each request.
#[derive(Clone, Debug)]
struct Whim {
    version: usize,
    tag: u8,
    ranges: u8,
    limit: Option<u64>,
    status: u16,
}

fn whim() -> impl Strategy<Value = Whim> {
    let limit = prop_oneof![Just(None), (0..400 * KIB).prop_map(Some)];
    let status = prop_oneof![8 => Just(200u16), 1 => Just(503), 1 => Just(404)];
    (0..3usize, 0..5u8, 0..6u8, limit, status).prop_map(|(version, tag, ranges, limit, status)| Whim {
        version,
        tag,
        ranges,
        limit,
        status,
    })
}

fn whimsical(versions: &[Vec<u8>], whim: &Whim, n: usize, ask: &Ask) -> Reply {
    if whim.status != 200 {
        return bare(whim.status);
    }
    let validators = match whim.tag {
        0 => Validators::default(),
        1 => weak("same"),
        2 => strong(&format!("edge-{n}")),
        3 => Validators { last_modified: Some(Epoch::from_secs(1_000_000)), ..Validators::default() },
        _ => strong(&format!("v{}", whim.version)),
    };
    let ways = Ways { ranges: whim.ranges != 0, if_range: whim.ranges != 1, limit: whim.limit };
    let mut reply = serve(&versions[whim.version], &validators, &ways, ask);
    match (whim.ranges, reply.head.status) {
        (2, 206) => reply.head.content_range = None,
        (3, 206) => reply.head.content_range = Some(format!("bytes 0-{}/*", reply.body.len().max(1) - 1)),
        (4, 206) => reply.head.content_type = Some("multipart/byteranges".to_owned()),
        _ => {}
    }
    reply
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever servers do with validators, ranges, cuts and versions: what is finished is one version, whole.
    #[test]
    fn what_is_finished_is_one_version(whims in prop::collection::vec(whim(), 1..40)) {
        let versions = [bytes(300 * KIB, 21), bytes(300 * KIB, 22), bytes(350 * KIB, 23)];
        let mut w = World::new();
        let mut n = 0;
        let hosts = ["http://a/f", "http://b/f"];
        for turn in 0..whims.len() {
            w.company = if turn % 3 == 0 { Company::Others } else { Company::Alone };
            let end = w.session(hosts[turn % 2], &mut |ask| {
                n += 1;
                whimsical(&versions, &whims[n % whims.len()], n, ask)
            });
            if let Ended::Finished(data, _) = end {
                prop_assert!(versions.contains(&data), "{} bytes of no version", data.len());
                w.dossier = Dossier::default();
                w.files = Files::default();
            }
        }
    }
}
