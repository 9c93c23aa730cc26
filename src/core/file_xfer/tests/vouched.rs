//! What servers say of the whole: kept with its version, believed as far as it goes, and where the file is named to be.

use http::{HeaderMap, HeaderValue};

use super::super::vouch::NamedMirrors;
use super::*;
use crate::core::digest::Algorithm;
use crate::core::links::links_of_a_file;

fn sha(byte: u8) -> Expected {
    Expected { algorithm: Algorithm::Sha256, bytes: vec![byte; 32] }
}

fn md5(byte: u8) -> Expected {
    Expected { algorithm: Algorithm::Md5, bytes: vec![byte; 16] }
}

fn saying(mut reply: Reply, digests: &[Expected]) -> Reply {
    if matches!(reply.head.status, 200 | 206) {
        reply.head.repr_digests = digests.to_vec();
    }
    reply
}

fn linking(mut reply: Reply, link: &str) -> Reply {
    let mut headers = HeaderMap::new();
    headers.insert("link", HeaderValue::from_str(link).expect("a header value"));
    reply.head.links = links_of_a_file(&headers);
    reply
}

fn cut(n: u64) -> Ways {
    Ways { limit: Some(n), ..HONEST }
}

#[test]
fn a_200_may_speak_by_its_content_digest_and_contradictions_say_nothing() {
    let mut head = head(200, Validators::default(), 5);
    (head.repr_digests, head.content_digests) = (vec![sha(1)], vec![sha(1), md5(2)]);
    assert_eq!(head.vouched(), [sha(1), md5(2)]);
    head.content_digests = vec![sha(3), md5(2)];
    assert_eq!(head.vouched(), [md5(2)]);
    for (status, coding, vouched) in [(206, None, vec![sha(1)]), (200, Some("gzip"), vec![sha(1)]), (416, None, vec![])]
    {
        let head = AnswerHead { status, coding: coding.map(str::to_owned), ..head.clone() };
        assert_eq!(head.vouched(), vouched, "{status} {coding:?}");
    }
}

#[test]
fn what_is_vouched_for_stays_with_the_version() {
    let (a, b) = (bytes(400 * KIB, 1), bytes(400 * KIB, 2));
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| saying(serve(&a, &strong("a"), &cut(200 * KIB), ask), &[sha(1)]));
    assert_eq!(w.dossier.part.vouched, [sha(1)]);
    // Silence takes nothing away, and neither does a joint with another origin.
    w.session("http://a/f", &mut |ask| serve(&a, &strong("a"), &cut(100 * KIB), ask));
    w.session("http://b/f", &mut |ask| serve(&a, &strong("x"), &cut(100 * KIB), ask));
    assert_eq!(w.dossier.part.vouched, [sha(1)]);
    // Another version has its own.
    w.session("http://a/f", &mut |ask| serve(&b, &strong("b"), &cut(350 * KIB), ask));
    assert_eq!(w.dossier.part.vouched, []);
}

#[test]
fn a_range_may_tell_what_the_first_answer_did_not() {
    let a = bytes(400 * KIB, 1);
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| serve(&a, &strong("a"), &cut(200 * KIB), ask));
    let end = w.session("http://a/f", &mut |ask| saying(serve(&a, &strong("a"), &HONEST, ask), &[sha(1)]));
    assert_eq!(end, Ended::Finished(a, Evidence::Validator));
    assert_eq!(w.dossier.part.vouched, [sha(1)]);
}

#[test]
fn another_digest_under_the_same_tag_is_another_version() {
    let a = bytes(500 * KIB, 1);
    let mut b = a.clone();
    b[10] ^= 1;
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| saying(serve(&a, &strong("v"), &cut(300 * KIB), ask), &[sha(1)]));
    let end = w.session("http://a/f", &mut |ask| saying(serve(&b, &strong("v"), &HONEST, ask), &[sha(2)]));
    assert_eq!(end, Ended::Finished(b, Evidence::Validator));
    assert_eq!((&w.dossier.part.vouched[..], w.dossier.changes), (&[sha(2)][..], 1));
    // Where a digest is law, that decides in the end, and the bytes that join are taken.
    let mut w = World { digest: LastWord::Digest, ..World::new() };
    w.session("http://a/f", &mut |ask| saying(serve(&a, &strong("v"), &cut(300 * KIB), ask), &[sha(1)]));
    w.session("http://a/f", &mut |ask| saying(serve(&a, &strong("v"), &HONEST, ask), &[sha(2)]));
    assert_eq!((w.asks.len(), w.dossier.changes), (2, 0));
}

#[test]
fn a_server_that_digests_the_part_is_seen_through_once() {
    let a = bytes(500 * KIB, 1);
    let mut w = World::new();
    let server = |limit| {
        move |ask: &Ask| {
            let said = ask.range.map_or(1, |range| 2 + (range.from.0 % 100) as u8);
            saying(serve(&bytes(500 * KIB, 1), &strong("v"), &cut(limit), ask), &[sha(said)])
        }
    };
    w.session("http://a/f", &mut server(300 * KIB));
    w.session("http://a/f", &mut server(100 * KIB));
    let froms: Vec<_> = w.asks.iter().map(|ask| ask.range.map(|r| r.from.0 / KIB)).collect();
    assert_eq!(froms, [None, Some(236), None, Some(236)]);
    let end = w.session("http://a/f", &mut server(500 * KIB));
    assert_eq!(end, Ended::Finished(a, Evidence::Validator));
    assert_eq!(w.asks.len(), 5, "it was not remembered");
    assert_eq!(w.dossier.part.vouched, [sha(1)]);
}

/// What a session at `url` heard of mirrors.
fn named(plan: Plan, answers: Vec<Reply>) -> Option<NamedMirrors> {
    let mut machine = FileXfer::new(plan);
    machine.start();
    for reply in answers {
        machine.handle(Event::Answer(Box::new(reply.head)));
    }
    machine.take_named()
}

fn plan(url: &str) -> Plan {
    World::new().plan(url)
}

fn whole(digests: &[Expected], link: &str) -> Reply {
    linking(saying(Reply { head: head(200, strong("v"), 5), body: Vec::new(), cut: false }, digests), link)
}

const LINK: &str = "<http://m.example.com/f>; rel=duplicate";

fn urls(named: Option<NamedMirrors>) -> Vec<String> {
    named.into_iter().flat_map(|n| n.urls).map(|url| url.secret_url().to_string()).collect()
}

#[test]
fn mirrors_count_only_with_a_digest_that_proves_the_whole() {
    assert_eq!(named(plan("http://a/f"), vec![whole(&[], LINK)]), None);
    assert_eq!(named(plan("http://a/f"), vec![whole(&[md5(1)], LINK)]), None);
    let found = named(plan("http://a/f"), vec![whole(&[md5(1), sha(1)], LINK)]).expect("a mirror");
    assert_eq!((found.digest, found.by.as_str()), (sha(1), "http://a"));
    let law = |law| Plan { digest: LastWord::Digest, law, ..plan("http://a/f") };
    assert_eq!(named(law(Some(sha(7))), vec![whole(&[sha(1)], LINK)]).map(|n| n.digest), Some(sha(7)));
    assert_eq!(named(law(None), vec![whole(&[sha(1)], LINK)]), None, "an md5 that is law proves nothing");
    let theirs = Plan { named_by: NamedBy::Server, ..plan("http://a/f") };
    assert_eq!(named(theirs, vec![whole(&[sha(1)], LINK)]), None, "mirrors that were named name none");
}

#[test]
fn no_private_host_from_a_public_one_no_step_down_and_not_itself() {
    let link = "<http://10.0.0.1/f>; rel=duplicate, <http://m.example.com/f>; rel=duplicate, \
                <https://u:p@s.example.com/f>; rel=duplicate, <http://localhost/f>; rel=duplicate, <f>; rel=duplicate";
    let at = |url| urls(named(plan(url), vec![whole(&[sha(1)], link)]));
    assert_eq!(at("http://pub.example.com/f"), ["http://m.example.com/f", "https://s.example.com/f"]);
    assert_eq!(at("https://pub.example.com/f"), ["https://s.example.com/f"]);
    assert_eq!(at("http://192.168.1.1/f").len(), 4);
    // Also where a public redirector leads into a private network.
    let mut hop = Reply { head: head(302, Validators::default(), 0), body: Vec::new(), cut: false };
    hop.head.location = Some("http://10.0.0.2/f".to_owned());
    let inside = named(plan("http://pub.example.com/f"), vec![hop, whole(&[sha(1)], link)]);
    assert_eq!(urls(inside), ["http://m.example.com/f", "https://s.example.com/f"]);
}

#[test]
fn redirects_name_mirrors_where_a_digest_is_law() {
    let mut hop = linking(Reply { head: head(302, Validators::default(), 0), body: Vec::new(), cut: false }, LINK);
    hop.head.location = Some("http://b/f".to_owned());
    hop.head.repr_digests = vec![sha(1)];
    assert_eq!(named(plan("http://a/f"), vec![hop]), None, "what a redirect says of a whole is about itself");
    let mut hop = linking(Reply { head: head(302, Validators::default(), 0), body: Vec::new(), cut: false }, LINK);
    hop.head.location = Some("http://b/f".to_owned());
    let law = Plan { digest: LastWord::Digest, law: Some(sha(7)), ..plan("http://a/f") };
    assert_eq!(urls(named(law, vec![hop])), ["http://m.example.com/f"]);
}

#[test]
fn a_metalink_is_pointed_at() {
    let link = "<f.meta4>; rel=describedby; type=\"application/metalink4+xml\"";
    let mut machine = FileXfer::new(plan("http://a/dir/f"));
    machine.start();
    assert_eq!(machine.metalink(), None);
    machine.handle(Event::Answer(Box::new(whole(&[], link).head)));
    assert_eq!(machine.metalink().map(|url| url.to_string()).as_deref(), Some("http://a/dir/f.meta4"));
}

#[test]
fn a_mirror_that_a_server_named_gets_nothing_and_does_not_lead_inside() {
    let plan = Plan { named_by: NamedBy::Server, ..plan("http://m.example.com/f") };
    let carry = |step: Step| if let Next::Ask(ask) = step.next { Some(ask.carry) } else { None };
    let redirect = |to: &str| {
        let mut reply = head(302, Validators::default(), 0);
        reply.location = Some(to.to_owned());
        Event::Answer(Box::new(reply))
    };
    let mut machine = FileXfer::new(plan.clone());
    assert_eq!(carry(machine.start()), Some(Carry::Never));
    assert_eq!(carry(machine.handle(redirect("http://n.example.com/f"))), Some(Carry::Never));
    let end = machine.handle(redirect("http://127.0.0.1/f")).next;
    assert_eq!(end, Next::Fail(Failure::Redirect(RedirectFault::Inward)));
    // The first origin of the transfer is no exception: a server chose this URL.
    let mut machine = FileXfer::new(Plan { url: MirrorUrl::parse("http://a/other").unwrap(), ..plan });
    assert_eq!(carry(machine.start()), Some(Carry::Never));
}
