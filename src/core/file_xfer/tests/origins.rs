//! Several origins whose versions differ in a few places only: what they say of them decides whether bytes are mixed.

use proptest::prelude::*;

use super::sim::{Ended, HONEST, KIB, Reply, Ways, World, bytes, serve, strong, weak};
use super::*;
use crate::core::time::Epoch;
use crate::core::validator::Validators;

const SIZE: u64 = 1 << 20;

/// The file, and versions of it that differ from it in one place each.
fn versions(places: &[u64]) -> Vec<Vec<u8>> {
    let first = bytes(SIZE, 1);
    let mut all = vec![first.clone()];
    for (n, place) in places.iter().enumerate() {
        let (at, mut other) = (*place as usize, first.clone());
        other[at..at + 50].copy_from_slice(&bytes(50, 7 + n as u64));
        all.push(other);
    }
    all
}

fn dated(version: usize) -> Validators {
    Validators {
        last_modified: Some(Epoch::from_secs(1_700_000_000 - 86_400 * version as i64)),
        ..Validators::default()
    }
}

fn cut_at(limit: u64) -> Ways {
    Ways { limit: Some(limit), ..HONEST }
}

/// A transfer of which `a` has brought this much.
fn begun(data: &[u8], validators: &Validators, held: u64) -> World {
    let mut w = World::new();
    w.company = Company::Others;
    w.session("http://a/f", &mut |ask| serve(data, validators, &cut_at(held), ask));
    assert_eq!(w.dossier.part.held, Length(held));
    w
}

#[test]
fn what_contradicts_is_put_together_beside_what_is_held() {
    for (ours, theirs) in [(dated(0), dated(1)), (dated(1), dated(0)), (strong("a"), strong("b"))] {
        let all = versions(&[100_000]);
        let mut w = begun(&all[0], &ours, 600 * KIB);
        // The 64 KiB that are compared are equal, and so is all behind them.
        let end = w.session("http://b/f", &mut |ask| serve(&all[1], &theirs, &cut_at(300 * KIB), ask));
        assert!(matches!(end, Ended::Failed(Failure::Cut(_))), "{end:?}");
        assert_eq!(w.files.part[..], all[0][..600 << 10], "not a byte that is held was lost");
        assert_eq!(w.files.rival[..], all[1][..300 << 10]);
        // Whose it was is back: it goes on where it was.
        let asked = w.asks.len();
        let end = w.session("http://a/f", &mut |ask| serve(&all[0], &ours, &HONEST, ask));
        assert!(matches!(&end, Ended::Finished(file, _) if *file == all[0]));
        assert!(w.asks[asked..].iter().all(|ask| ask.range.is_some()), "no whole fetch was needed");
    }
}

#[test]
fn the_second_version_replaces_the_first_when_it_is_whole_or_longer() {
    let all = versions(&[100_000]);
    let mut w = begun(&all[0], &dated(0), 600 * KIB);
    w.session("http://b/f", &mut |ask| serve(&all[1], &dated(1), &cut_at(700 * KIB), ask));
    assert!(w.dossier.rival.is_none());
    assert_eq!(w.files.part[..], all[1][..700 << 10]);
    let end = w.session("http://b/f", &mut |ask| serve(&all[1], &dated(1), &HONEST, ask));
    assert!(matches!(end, Ended::Finished(file, _) if file == all[1]));

    let mut w = begun(&all[0], &dated(0), 600 * KIB);
    let end = w.session("http://b/f", &mut |ask| serve(&all[1], &dated(1), &HONEST, ask));
    assert!(matches!(end, Ended::Finished(file, _) if file == all[1]));
}

#[test]
fn who_contradicts_and_has_the_same_bytes_costs_nothing_but_the_reading() {
    let data = bytes(SIZE, 1);
    let mut w = begun(&data, &dated(0), 600 * KIB);
    let end = w.session("http://b/f", &mut |ask| serve(&data, &dated(1), &HONEST, ask));
    assert!(matches!(end, Ended::Finished(file, _) if file == data));
    assert_eq!(w.dossier.changes, 0);
}

#[test]
fn agreeing_and_silent_origins_bring_the_rest_only() {
    let data = bytes(SIZE, 1);
    let tagged = |tag: &str| Validators { etag: strong(tag).etag, ..dated(0) };
    let pairs = [
        (tagged("a"), tagged("b")),
        (strong("a"), strong("a")),
        (strong("a"), weak("b")),
        (strong("a"), dated(0)),
        (dated(0), Validators::default()),
        (Validators::default(), strong("a")),
    ];
    for (ours, theirs) in pairs {
        let mut w = begun(&data, &ours, 600 * KIB);
        let end = w.session("http://b/f", &mut |ask| serve(&data, &theirs, &HONEST, ask));
        assert!(matches!(&end, Ended::Finished(file, Evidence::Overlap) if *file == data), "{ours:?} {theirs:?}");
        assert!(w.asks[1..].iter().all(|ask| ask.range.is_some()), "{ours:?} {theirs:?}");
    }
}

#[test]
fn where_a_digest_judges_all_may_be_mixed() {
    let data = bytes(SIZE, 1);
    let mut w = begun(&data, &dated(0), 600 * KIB);
    w.digest = LastWord::Digest;
    let end = w.session("http://b/f", &mut |ask| serve(&data, &dated(1), &HONEST, ask));
    assert!(matches!(end, Ended::Finished(file, _) if file == data));
    assert!(w.asks[1..].iter().all(|ask| ask.range.is_some()));
}

#[test]
fn what_the_first_origin_said_is_not_forgotten_when_others_went_on() {
    let all = versions(&[1_000_000]);
    let mut w = begun(&all[0], &dated(0), 200 * KIB);
    // A silent one goes on; the third contradicts the first, not the second.
    w.session("http://b/f", &mut |ask| serve(&all[0], &Validators::default(), &cut_at(300 * KIB), ask));
    assert_eq!(w.dossier.part.held.0, 200 * KIB - OVERLAP.0 + 300 * KIB);
    let end = w.session("http://c/f", &mut |ask| serve(&all[1], &dated(1), &HONEST, ask));
    assert!(matches!(end, Ended::Finished(file, _) if file == all[1]));
    assert!(w.asks.last().is_some_and(|ask| ask.range.is_none()));
}

#[test]
fn a_redirector_that_leads_to_another_version_is_asked_again() {
    let all = versions(&[100_000]);
    let home = |ask: &Ask| serve(&all[0], &dated(0), &HONEST, ask);
    let mut w = begun(&all[0], &dated(0), 600 * KIB);
    let mut turn = 0;
    let end = w.session("http://r/f", &mut |ask| match ask.url.to_string().as_str() {
        "http://r/f" => {
            turn += 1;
            let mut reply = super::bare(302);
            reply.head.location = Some(if turn < 2 { "http://b/f" } else { "http://a/f" }.to_owned());
            reply
        }
        "http://a/f" => home(ask),
        _ => serve(&all[1], &dated(1), &HONEST, ask),
    });
    assert!(matches!(end, Ended::Finished(file, _) if file == all[0]));
    assert!(w.asks[1..].iter().all(|ask| ask.range.is_some()), "the second time it led home");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whoever is asked in whatever order, cut wherever, and changed between two sessions: one of the versions comes.
    #[test]
    fn where_dates_are_told_no_two_versions_are_mixed(
        places in prop::collection::vec(0..SIZE - 50, 1..3),
        sessions in prop::collection::vec((0_usize..3, 0_usize..3, prop::option::of(0..SIZE), any::<bool>()), 1..12),
        tags in any::<bool>(),
    ) {
        let all = versions(&places);
        let mut w = World::new();
        w.company = Company::Others;
        let mut done = None;
        for (mirror, version, limit, ranges) in sessions {
            let version = version % all.len();
            let mut told = dated(version);
            // Each server writes its tags in its own way.
            told.etag = if tags { strong(&format!("{mirror}-{version}")).etag } else { None };
            let ways = Ways { limit, ranges, if_range: true };
            let url = ["http://a/f", "http://b/f", "http://c/f"][mirror];
            match w.session(url, &mut |ask| serve(&all[version], &told, &ways, ask)) {
                Ended::Finished(file, _) => { done = Some(file); break; }
                _ => prop_assert!(all.iter().any(|v| v.starts_with(&w.files.part)), "a mix is held"),
            }
        }
        if let Some(file) = done {
            prop_assert!(all.contains(&file), "a mix");
        }
    }

    /// The same where there are only tags, and nobody changes.
    #[test]
    fn where_tags_are_told_no_two_versions_are_mixed(
        place in 0..SIZE - 50,
        sessions in prop::collection::vec((0_usize..3, prop::option::of(0..SIZE), any::<bool>()), 1..12),
    ) {
        let all = versions(&[place]);
        let mut w = World::new();
        w.company = Company::Others;
        for (mirror, limit, ranges) in sessions {
            let version = mirror % 2;
            let (ways, told) = (Ways { limit, ranges, if_range: true }, strong(&format!("v{version}")));
            let url = ["http://a/f", "http://b/f", "http://c/f"][mirror];
            let mut server = |ask: &Ask| -> Reply { serve(&all[version], &told, &ways, ask) };
            if let Ended::Finished(file, _) = w.session(url, &mut server) {
                prop_assert!(all.contains(&file), "a mix");
                break;
            }
        }
    }
}

#[test]
fn how_long_another_version_is_the_one_before_it_does_not_tell() {
    let (old, mut new) = (bytes(SIZE, 1), bytes(SIZE, 1));
    // Equal as far as anything is held of it, other behind that, and longer.
    new.truncate(700 << 10);
    new.extend(bytes(SIZE, 9));
    for cut in [None, Some(800 * KIB)] {
        let mut w = begun(&old, &strong("v0"), 600 * KIB);
        let end = w.session("http://a/f", &mut |_| {
            // No range is answered; the whole comes in chunks, so that its length is not told.
            let mut reply = serve(&new, &strong("v1"), &Ways { ranges: false, limit: cut, ..HONEST }, &plain_ask());
            reply.head.framing = Framing::Marked;
            reply
        });
        match cut {
            None => assert!(matches!(end, Ended::Finished(file, _) if file == new)),
            Some(_) => {
                assert!(matches!(end, Ended::Failed(_)));
                assert_eq!(w.dossier.part.total, None, "nothing tells it yet");
                let end = w.session("http://a/f", &mut |ask| serve(&new, &strong("v1"), &HONEST, ask));
                assert!(matches!(end, Ended::Finished(file, _) if file == new));
            }
        }
    }
}
