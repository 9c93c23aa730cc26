//! Answers that say they are the file, and are not.

use super::super::*;
use super::sim::{Ended, HONEST, KIB, Reply, Ways, World, bytes, head, serve, strong, weak};
use crate::core::failure::{BadAnswer, Failure};
use crate::core::validator::Validators;

/// A world that holds the first 200 of 400 KiB under this validator.
fn half(data: &[u8], validators: &Validators) -> World {
    let mut w = World::new();
    w.session("http://a/f", &mut |ask| serve(data, validators, &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    w
}

fn whole(body: &[u8], validators: Validators) -> Reply {
    Reply { head: head(200, validators, body.len() as u64), body: body.to_vec(), cut: false }
}

#[test]
fn a_200_that_names_a_part_is_not_the_file() {
    let data = bytes(400 * KIB, 31);
    let mut w = half(&data, &strong("a"));
    let end = w.session("http://a/f", &mut |ask| match ask.range {
        Some(range) => {
            let mut reply = whole(&data[range.from.0 as usize..], strong("a"));
            reply.head.content_range = Some(format!("bytes {}-{}/{}", range.from, 400 * KIB - 1, 400 * KIB));
            reply
        }
        None => serve(&data, &strong("a"), &HONEST, ask),
    });
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
}

#[test]
fn one_tag_names_one_length() {
    let data = bytes(400 * KIB, 32);
    let mut w = half(&data, &strong("a"));
    let end = w.session("http://a/f", &mut |_| whole(b"sixteen bytes ok", strong("a")));
    let (known, told) = (Length(400 * KIB), Length(16));
    assert_eq!(end, Ended::Failed(Failure::BadAnswer(BadAnswer::SameTagOtherLength { known, told })));
    assert_eq!(w.files.part.len() as u64, 200 * KIB);
}

#[test]
fn less_without_a_validator_is_never_believed() {
    let data = bytes(400 * KIB, 33);
    let pages = [&b""[..], b"maintenance\n", &data[..100 << 10]];
    for (page, framing) in pages.into_iter().flat_map(|p| [(p, true), (p, false)]) {
        let mut w = half(&data, &strong("a"));
        for _ in 0..5 {
            let end = w.session("http://a/f", &mut |_| {
                let mut reply = whole(page, Validators::default());
                if !framing {
                    reply.head.framing = Framing::Marked;
                }
                reply
            });
            assert!(matches!(end, Ended::Failed(Failure::BadAnswer(BadAnswer::Shrunk { .. }))), "{end:?}");
            assert_eq!(w.files.part.len() as u64, 200 * KIB, "nothing is lost");
        }
    }
}

#[test]
fn a_shorter_version_with_a_tag_of_its_own_is_taken() {
    let (data, new) = (bytes(400 * KIB, 34), bytes(50 * KIB, 35));
    let mut w = half(&data, &strong("a"));
    let end = w.session("http://a/f", &mut |ask| serve(&new, &strong("b"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(new, Evidence::Validator));
}

#[test]
fn a_mirror_that_has_less_is_odd_even_where_it_is_equal() {
    let data = bytes(400 * KIB, 36);
    let mut w = half(&data, &strong("a"));
    w.company = Company::Others;
    let end = w.session("http://b/f", &mut |_| whole(&data[..100 << 10], strong("b")));
    assert!(matches!(end, Ended::Failed(Failure::OddMirror { .. })), "{end:?}");
    assert_eq!(w.files.part.len() as u64, 200 * KIB);
}

#[test]
fn the_digest_judges_a_rival_before_it_costs_what_is_held() {
    let (data, other) = (bytes(400 * KIB, 37), bytes(400 * KIB, 38));
    for right in [true, false] {
        let mut w = half(&data, &strong("a"));
        (w.digest, w.company) = (LastWord::Digest, Company::Others);
        let wrong = Failure::WrongVersion { algorithm: "sha-256" };
        w.rival_is = if right { Ok(()) } else { Err(wrong.clone()) };
        let end = w.session("http://b/f", &mut |ask| serve(&other, &strong("b"), &HONEST, ask));
        if right {
            assert_eq!(end, Ended::Finished(other.clone(), Evidence::Digest));
        } else {
            assert_eq!(end, Ended::Failed(wrong));
            assert_eq!(w.files.part.len() as u64, 200 * KIB);
            assert!(w.files.rival.is_empty());
        }
    }
}

#[test]
fn equal_blocks_of_one_byte_prove_nothing() {
    let zeros = vec![0; 400 << 10];
    let mut w = half(&zeros, &Validators::default());
    w.weight = Weight::Constant;
    let end = w.session("http://a/f", &mut |ask| serve(&zeros, &Validators::default(), &HONEST, ask));
    assert_eq!(end, Ended::Finished(zeros, Evidence::Length));
}

#[test]
fn a_digest_outweighs_a_length_that_was_told_once() {
    let data = bytes(400 * KIB, 39);
    for validators in [strong("a"), Validators::default(), weak("w")] {
        // The head of a file of an exabyte, and nothing of it; or a part of something else that is as large.
        for junk in [0, 100 * KIB] {
            let mut w = World::new();
            w.digest = LastWord::Digest;
            let body = bytes(junk, 40);
            w.session("http://a/f", &mut |_| Reply {
                head: head(200, validators.clone(), 1 << 60),
                body: body.clone(),
                cut: true,
            });
            let end = w.session("http://a/f", &mut |ask| serve(&data, &validators, &HONEST, ask));
            let Ended::Finished(got, _) = end else { panic!("{end:?}") };
            assert!(got == data);
        }
    }
}

#[test]
fn a_page_that_the_digest_refuses_is_still_called_what_it_is_and_costs_nothing() {
    let data = bytes(400 * KIB, 41);
    let mut w = half(&data, &strong("a"));
    (w.digest, w.rival_is) = (LastWord::Digest, Err(Failure::WrongVersion { algorithm: "sha-256" }));
    for page in [&b"maintenance"[..], &data[..100 << 10]] {
        let end = w.session("http://a/f", &mut |_| whole(page, Validators::default()));
        assert!(matches!(end, Ended::Failed(Failure::BadAnswer(BadAnswer::Shrunk { .. }))), "{end:?}");
        assert_eq!(w.files.part.len() as u64, 200 * KIB);
    }
}
