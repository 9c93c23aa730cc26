//! The machine driven over simulated servers and files: no network, no disk, thousands of sessions a second.

mod demands;
mod doubts;
mod origins;
pub(super) mod sim;
mod vouched;
mod whims;

use sim::{Ended, HONEST, KIB, Reply, Ways, World, bare, bytes, head, serve, strong, weak};

use super::dossier::Draft;
use super::*;
use crate::core::failure::{BadAnswer, Cut, RedirectFault};
use crate::core::validator::Validators;

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
    let end = w.until_done("http://a/f", MAX_CHANGES as usize + 2, &mut |ask| {
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
    let end = w.session("http://b/f", &mut |ask| serve(&b, &weak("b"), &HONEST, ask));
    assert!(matches!(end, Ended::Failed(Failure::OddMirror { .. })), "{end:?}");
    assert_eq!(w.files.part[..], a[..200 << 10]);
}

#[test]
fn another_mirror_joins_after_comparison() {
    let data = bytes(400 * KIB, 9);
    let mut w = World::new();
    w.company = Company::Others;
    w.session("http://a/f", &mut |ask| serve(&data, &strong("a"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    let end = w.session("http://b/f", &mut |ask| serve(&data, &weak("b"), &HONEST, ask));
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
    // The overlap lies before each of these totals but one, so that they contradict the request; the whole is asked for.
    for (total, asks) in [(200 * KIB, 2), (100 * KIB, 2), (400 * KIB, 2)] {
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
