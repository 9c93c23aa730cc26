//! The machine of a link over simulated servers.

use proptest::prelude::*;

use super::*;
use crate::core::failure::RedirectFault;
use crate::core::file_xfer::Carry;
use crate::core::file_xfer::tests::sim::{HONEST, KIB, Reply, Ways, bare, bytes, serve, strong, weak};
use crate::core::range::Length;

const SIZE: u64 = 400 * KIB;

/// How a link ended.
#[derive(Debug, PartialEq)]
enum Ended {
    /// It brought these bytes, from this position on, joined so.
    Took(u64, Vec<u8>, Joints),
    Not(LinkEnd),
}

struct Bench {
    /// What the part file holds.
    held: Vec<u8>,
    plan: LinkPlan,
    asks: Vec<Ask>,
}

fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).expect("a URL")
}

impl Bench {
    /// A version that the origin `http://a` began, with these validators; `held` bytes of it are here.
    fn new(data: &[u8], validators: &Validators, mirror: &str) -> Self {
        let held = data[..128 * KIB as usize].to_vec();
        let version = Draft {
            held: Length(held.len() as u64),
            total: Some(Length(data.len() as u64)),
            validators: vec![(url("http://a/f").origin(), validators.clone())],
            content_type: Some("application/octet-stream".to_owned()),
            ..Draft::default()
        };
        let plan = LinkPlan {
            url: url(mirror),
            first_origin: url("http://a/f").origin(),
            beyond: Length::ZERO,
            range: ByteRange::new(Offset(200 * KIB), Offset(300 * KIB)),
            named_by: NamedBy::User,
            reach: Reach::Ranged,
            overlap: Length::ZERO,
            proof: Some(ByteRange::new(Offset(64 * KIB), Offset(128 * KIB))),
            version,
            notes: Vec::new(),
            digest: LastWord::Joints,
            judge: LastWord::Joints,
            freshness: Freshness::CacheAllowed,
        };
        Self { held, plan, asks: Vec::new() }
    }

    fn run(&mut self, server: &mut dyn FnMut(&Ask) -> Reply) -> Ended {
        let mut link = Link::new(self.plan.clone());
        let mut step = link.start();
        let mut body = Vec::new();
        for _ in 0..30 {
            let event = match step {
                LinkStep::Ask(ask) => {
                    let reply = server(&ask);
                    self.asks.push(ask);
                    body = reply.body;
                    LinkEvent::Answer(Box::new(reply.head))
                }
                LinkStep::Compare { at, until } => {
                    let held = &self.held[at.0 as usize..until.0 as usize];
                    let differs = held.iter().zip(&body).position(|(a, b)| a != b);
                    differs.map_or(LinkEvent::Equal, |n| LinkEvent::Differs(at + Length(n as u64)))
                }
                LinkStep::Take { at, end, joint } => {
                    let length = (end - at).0.min(body.len() as u64) as usize;
                    self.plan.notes = link.notes().to_vec();
                    return Ended::Took(at.0, body[..length].to_vec(), joint);
                }
                LinkStep::End(end) => {
                    self.plan.notes = link.notes().to_vec();
                    return Ended::Not(end);
                }
            };
            step = link.handle(event);
        }
        panic!("a link without end");
    }
}

fn part(data: &[u8]) -> Vec<u8> {
    data[200 * KIB as usize..300 * KIB as usize].to_vec()
}

#[test]
fn a_strong_validator_of_its_own_speaks_for_an_origin_where_a_digest_has_the_last_word() {
    let data = bytes(SIZE, 1);
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    bench.plan.proof = None;
    assert!(!bench.plan.can_be_proven(), "a tag may be kept over a change");
    bench.plan.digest = LastWord::Digest;
    assert!(bench.plan.can_be_proven());
    let end = bench.run(&mut |ask| serve(&data, &strong("v"), &HONEST, ask));
    assert_eq!(end, Ended::Took(200 * KIB, part(&data), Joints::Validator));
    assert_eq!(bench.asks.len(), 1, "no block need be compared");
    assert_eq!(bench.asks[0].if_range.as_deref(), Some("\"v\""));
}

#[test]
fn any_other_origin_first_returns_a_block_that_is_held() {
    let data = bytes(SIZE, 2);
    for validators in [strong("v"), weak("v"), Validators::default()] {
        let mut bench = Bench::new(&data, &strong("v"), "http://b/f");
        let end = bench.run(&mut |ask| serve(&data, &validators, &HONEST, ask));
        assert_eq!(end, Ended::Took(200 * KIB, part(&data), Joints::Overlap));
        assert_eq!(bench.asks[0].range.map(|r| r.from), Some(Offset(64 * KIB)));
        assert_eq!(bench.asks[0].if_range, None, "a tag is of its own origin only");
        assert_eq!(bench.asks[1].range.map(|r| r.from), Some(Offset(200 * KIB)));
    }
    // The origin that began the version proves itself each time, too.
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    let end = bench.run(&mut |ask| serve(&data, &strong("v"), &HONEST, ask));
    assert_eq!(end, Ended::Took(200 * KIB, part(&data), Joints::Validator));
    assert_eq!(bench.asks.len(), 2);
}

#[test]
fn bytes_right_before_the_range_are_asked_for_too_and_compared_in_the_same_answer() {
    let data = bytes(SIZE, 12);
    let mut bench = Bench::new(&data, &Validators::default(), "http://b/f");
    (bench.plan.proof, bench.plan.overlap) = (None, Length(64 * KIB));
    bench.plan.range.start = Offset(128 * KIB);
    let end = bench.run(&mut |ask| serve(&data, &Validators::default(), &HONEST, ask));
    let all = data[64 * KIB as usize..300 * KIB as usize].to_vec();
    assert_eq!(end, Ended::Took(64 * KIB, all, Joints::Overlap));
    assert_eq!(bench.asks.len(), 1);
}

#[test]
fn another_file_is_never_taken() {
    let (data, other) = (bytes(SIZE, 3), bytes(SIZE, 4));
    let longer = [data.clone(), vec![0]].concat();
    for file in [&other, &longer] {
        let mut bench = Bench::new(&data, &strong("v"), "http://b/f");
        let end = bench.run(&mut |ask| serve(file, &strong("v"), &HONEST, ask));
        assert!(matches!(end, Ended::Not(LinkEnd::OtherVersion(Failure::OddMirror { .. }))), "{end:?}");
        // Of the origin that began the version, it is a change.
        let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
        let end = bench.run(&mut |ask| serve(file, &strong("w"), &HONEST, ask));
        assert!(matches!(end, Ended::Not(LinkEnd::Changed(Failure::ChangedMeanwhile { .. }))), "{end:?}");
    }
}

#[test]
fn another_tag_over_equal_bytes_counts_only_where_a_digest_decides() {
    let data = bytes(SIZE, 5);
    let bare = Ways { if_range: false, ..HONEST };
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    let end = bench.run(&mut |ask| serve(&data, &strong("w"), &bare, ask));
    assert!(matches!(end, Ended::Not(LinkEnd::Changed(_))), "{end:?}");
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    bench.plan.digest = LastWord::Digest;
    let end = bench.run(&mut |ask| serve(&data, &strong("w"), &bare, ask));
    assert_eq!(end, Ended::Took(200 * KIB, part(&data), Joints::Overlap));
}

#[test]
fn ranges_that_are_ignored_are_noted() {
    let data = bytes(SIZE, 6);
    let deaf = Ways { ranges: false, ..HONEST };
    for (mirror, validators) in [("http://a/f", strong("v")), ("http://b/f", strong("v")), ("http://a/f", weak("v"))] {
        let mut bench = Bench::new(&data, &validators, mirror);
        let end = bench.run(&mut |ask| serve(&data, &validators, &deaf, ask));
        assert_eq!(end, Ended::Not(LinkEnd::RangesIgnored));
        assert_eq!(bench.plan.notes.last().map(|n| n.ranges), Some(Ranges::Broken));
    }
}

#[test]
fn a_broken_if_range_is_stepped_down() {
    let data = bytes(SIZE, 7);
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    let end = bench.run(&mut |ask| {
        let ways = Ways { ranges: ask.if_range.is_none(), if_range: false, ..HONEST };
        serve(&data, &strong("v"), &ways, ask)
    });
    assert_eq!(end, Ended::Took(200 * KIB, part(&data), Joints::Validator));
}

#[test]
fn pages_refusals_and_nonsense_end_it() {
    let data = bytes(SIZE, 8);
    let with = |change: &dyn Fn(&mut AnswerHead)| {
        let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
        bench.run(&mut |ask| {
            let mut reply = serve(&data, &strong("v"), &HONEST, ask);
            change(&mut reply.head);
            reply
        })
    };
    let range = |text: &'static str| move |head: &mut AnswerHead| head.content_range = Some(text.to_owned());
    let changes: [&dyn Fn(&mut AnswerHead); 10] = [
        &|head| head.content_type = Some("text/html".to_owned()),
        &|head| head.content_type = Some("multipart/byteranges".to_owned()),
        &|head| head.coding = Some("gzip".to_owned()),
        &|head| head.content_range = None,
        &range("bytes 0-102399/409600"),
        &range("bytes 204801-307200/409600"),
        &range("bytes 204800-307199/409601"),
        &range("bytes */409600"),
        &|head| head.status = 503,
        &|head| head.status = 204,
    ];
    for (n, change) in changes.iter().enumerate() {
        assert!(matches!(with(change), Ended::Not(_)), "change {n}");
    }
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    let end = bench.run(&mut |_| bare(404));
    assert!(matches!(end, Ended::Not(LinkEnd::Failed(Failure::Status { code: 404, .. }))));
}

#[test]
fn a_server_may_begin_earlier_or_end_sooner() {
    let data = bytes(SIZE, 9);
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    bench.plan.proof = None;
    let end = bench.run(&mut |ask| {
        let wanted = ask.range.map(|r| Wanted { from: r.from.back(Length(KIB)), to: Some(r.from + Length(KIB)) });
        serve(&data, &strong("v"), &HONEST, &Ask { range: wanted, ..ask.clone() })
    });
    let from = 199 * KIB as usize;
    assert_eq!(end, Ended::Took(199 * KIB, data[from..from + 2 * KIB as usize].to_vec(), Joints::Validator));
}

#[test]
fn redirects_lead_to_another_origin_which_proves_itself() {
    let data = bytes(SIZE, 10);
    let redirect =
        |to: &str| Reply { head: AnswerHead { location: Some(to.to_owned()), ..bare(302).head }, ..bare(302) };
    let mut bench = Bench::new(&data, &strong("v"), "http://a/f");
    let end = bench.run(&mut |ask| match ask.url.origin() == url("http://a/f").origin() {
        true => redirect("http://c/g"),
        false => serve(&data, &strong("v"), &HONEST, ask),
    });
    assert_eq!(end, Ended::Took(200 * KIB, part(&data), Joints::Overlap));
    let (there, rest): (Vec<_>, Vec<_>) = bench.asks.iter().partition(|ask| ask.url.to_string().contains("//c/"));
    assert!(there.iter().all(|ask| ask.carry == Carry::Nothing) && !there.is_empty());
    assert!(rest.iter().all(|ask| ask.carry == Carry::Everything));
    let end = bench.run(&mut |_| redirect("http://a/f"));
    assert_eq!(end, Ended::Not(LinkEnd::Failed(Failure::Redirect(RedirectFault::Loop))));
}

#[test]
fn without_a_block_only_a_validator_will_do() {
    let data = bytes(SIZE, 11);
    let mut bench = Bench::new(&data, &weak("v"), "http://a/f");
    bench.plan.proof = None;
    let end = bench.run(&mut |ask| serve(&data, &weak("v"), &HONEST, ask));
    assert_eq!(end, Ended::Not(LinkEnd::Failed(Failure::BadAnswer(BadAnswer::Unproven))));
    // A digest of the whole finds out: nobody need wait for a block to compare.
    let mut bench = Bench::new(&data, &weak("v"), "http://b/f");
    (bench.plan.proof, bench.plan.digest) = (None, LastWord::Digest);
    assert!(bench.plan.can_be_proven());
    let end = bench.run(&mut |ask| serve(&data, &weak("w"), &HONEST, ask));
    assert_eq!(end, Ended::Took(200 * KIB, part(&data), Joints::Length));
    let longer = [data.clone(), vec![0]].concat();
    let end = bench.run(&mut |ask| serve(&longer, &weak("w"), &HONEST, ask));
    assert!(matches!(end, Ended::Not(LinkEnd::OtherVersion(_))), "{end:?}");
}

proptest! {
    /// Whatever a server says, what is taken has been asked for and is of a version that was vouched for.
    #[test]
    fn what_is_taken_was_proven(
        seed in 1_u64..1000,
        same in any::<bool>(),
        tags in (0_u8..3, 0_u8..3),
        at_a in any::<bool>(),
        ranges in any::<bool>(),
        if_range in any::<bool>(),
        digest in any::<bool>(),
    ) {
        let data = bytes(SIZE, seed);
        let theirs = if same { data.clone() } else { bytes(SIZE, seed + 1) };
        let tag = |n| match n { 0 => strong("v"), 1 => strong("w"), _ => weak("v") };
        let mut bench = Bench::new(&data, &tag(tags.0), if at_a { "http://a/f" } else { "http://b/f" });
        bench.plan.digest = if digest { LastWord::Digest } else { LastWord::Joints };
        let end = bench.run(&mut |ask| serve(&theirs, &tag(tags.1), &Ways { ranges, if_range, limit: None }, ask));
        if let Ended::Took(at, bytes, joint) = end {
            prop_assert_eq!(at, 200 * KIB);
            prop_assert_eq!(bytes, part(&theirs));
            prop_assert!(same);
            prop_assert!(joint == Joints::Overlap || at_a && tags.0 == tags.1 && tags.0 < 2);
        }
    }
}

#[test]
fn what_contradicts_the_version_is_kept_apart_unless_a_digest_judges() {
    let data = bytes(SIZE, 12);
    for reach in [Reach::Ranged, Reach::Through] {
        for ranges in [true, false] {
            let mut bench = Bench::new(&data, &strong("v"), "http://b/f");
            bench.plan.reach = reach;
            let ways = Ways { ranges, ..HONEST };
            let end = bench.run(&mut |ask| serve(&data, &strong("w"), &ways, ask));
            assert!(
                matches!(&end, Ended::Not(LinkEnd::Apart(apart)) if apart.with == url("http://a/f").origin()),
                "{end:?}"
            );
            assert_eq!(bench.asks.len(), 1, "its head is enough");
        }
    }
    let mut bench = Bench::new(&data, &strong("v"), "http://b/f");
    bench.plan.judge = LastWord::Digest;
    let end = bench.run(&mut |ask| serve(&data, &strong("w"), &HONEST, ask));
    assert!(matches!(end, Ended::Took(..)), "{end:?}");
}
