//! Servers that only know files: names, moves, folders, reading back.

use super::super::*;
use super::dav_server::{Dav, Half, Ranges};
use super::sim::{Came, MIB, Server, Sim, bytes};
use crate::core::digest::Algorithm;

const STORED: Came = Came::End(UpEnd::Stored { confirmed: Proof::Size });

fn dav() -> Dav {
    Dav::new(Ranges::Refused(501), Half::Nothing)
}

fn put_to(to: &str, server: Dav) -> Sim<Dav> {
    Sim::new(server, to, bytes(MIB, 5), || Box::new(Put::default()))
}

fn put(server: Dav) -> Sim<Dav> {
    put_to("http://u:p@up.example/d/f.bin", server)
}

fn failed(sim: &mut Sim<Dav>) -> UpFailure {
    match sim.session() {
        Came::End(UpEnd::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn methods(sim: &Sim<Dav>) -> Vec<Method> {
    sim.log.iter().map(|(method, _)| *method).collect()
}

fn stands_alone(sim: &Sim<Dav>) {
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
    assert_eq!(sim.server.files.len(), 1, "{:?}", sim.server.files.keys());
}

#[test]
fn to_a_temporary_name_and_moved() {
    use Method::{Head, Move, Put};
    let mut sim = put(dav());
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim), [Head, Put, Head, Move, Head]);
    stands_alone(&sim);
}

#[test]
fn a_server_that_cannot_move_gets_it_under_its_name() {
    for code in [403, 404, 405, 409, 412, 501, 502] {
        let mut sim = put(Dav { no_move: Some(code), ..dav() });
        assert_eq!(sim.session(), STORED, "{code}");
        stands_alone(&sim);
    }
    let mut sim = put(Dav { no_move: Some(503), ..dav() });
    assert_eq!(judge(&failed(&mut sim)).scope, UpScope::Transient { floor: None });
    sim.server.no_move = None;
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.sent, MIB, "the whole was there, and only the move was missing");
    stands_alone(&sim);
}

#[test]
fn a_signed_url_is_for_its_own_name_only() {
    let mut sim = put_to("http://up.example/d/f.bin?signature=x", dav());
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim), [Method::Head, Method::Put, Method::Head]);
    for code in [400, 401, 403, 405, 501] {
        let mut sim = put(Dav { only: Some(("/d/f.bin".to_owned(), code)), ..dav() });
        assert_eq!(sim.session(), STORED, "{code}");
        stands_alone(&sim);
    }
}

#[test]
fn a_missing_folder_is_made_once() {
    let mut sim = put(Dav { folders: Some(Vec::new()), ..dav() });
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim)[1..4], [Method::Put, Method::Mkcol, Method::Put]);
    // A folder that is there does not cure the refusal.
    let mut sim = put(Dav { only: Some(("/elsewhere".to_owned(), 409)), ..dav() });
    let failure = failed(&mut sim);
    assert_eq!(judge(&failure).scope, UpScope::RefuseServer, "{failure}");
    assert_eq!(methods(&sim).iter().filter(|m| **m == Method::Mkcol).count(), 1);
}

#[test]
fn a_limit_refuses_the_server() {
    let mut sim = put(Dav { limit: Some(1000), ..dav() });
    assert_eq!(judge(&failed(&mut sim)).scope, UpScope::RefuseServer);
}

#[test]
fn a_server_that_is_not_to_be_asked_is_taken_at_its_word() {
    for code in [403, 405, 501] {
        let mut sim = put(Dav { no_head: Some(code), ..dav() });
        assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Status }), "{code}");
        stands_alone(&sim);
    }
}

#[test]
fn small_files_are_read_back() {
    for no_move in [None, Some(405)] {
        let mut sim = Sim { read_back: Length(MIB), ..put(Dav { no_move, ..dav() }) };
        assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Sha256) }));
        stands_alone(&sim);
        let mut sim = Sim { read_back: Length(MIB), ..put(Dav { no_move, spoil: Some(99), ..dav() }) };
        assert!(matches!(failed(&mut sim), UpFailure::WrongDigest { .. }));
        assert_eq!(sim.sent, 2 * MIB, "twice, and not a third time");
    }
    let mut sim = put(Dav { spoil: Some(99), ..dav() });
    assert_eq!(sim.session(), STORED, "of a large one the size is all that is known, and that is said");
}

#[test]
fn a_move_whose_answer_is_lost_is_not_repeated_blindly() {
    let mut all = 0;
    for seed in 0..40 {
        let mut sim = put(dav());
        sim.server.files.insert("/d/f.bin".to_owned(), (0, vec![7; usize::try_from(MIB).expect("fits")]));
        sim.rng = rand::SeedableRng::seed_from_u64(seed);
        sim.lost_answers = 40;
        if let UpEnd::Stored { .. } = sim.run(30) {
            all += 1;
            stands_alone(&sim);
        }
    }
    assert!(all > 20, "{all}");
}

#[test]
fn an_old_file_of_the_same_size_is_not_ours() {
    for etags in [true, false] {
        let mut sim = put_to("http://up.example/d/f.bin?x=1", Dav { etags, ..dav() });
        sim.server.files.insert("/d/f.bin".to_owned(), (0, vec![7; usize::try_from(MIB).expect("fits")]));
        sim.cuts = vec![MIB / 2].into();
        assert!(matches!(failed(&mut sim), UpFailure::Transfer(_)), "cut, and nothing new stands there");
        assert_eq!(sim.session(), STORED);
        stands_alone(&sim);
    }
}

/// What stood there before was not told, so nothing that stands there now is known to be ours.
#[test]
fn an_old_file_that_was_not_told_of_is_not_ours() {
    let mut sim = put_to("http://up.example/d/f.bin?x=1", Dav { no_head: Some(403), ..dav() });
    sim.server.files.insert("/d/f.bin".to_owned(), (0, vec![7; usize::try_from(MIB).expect("fits")]));
    sim.cuts = vec![MIB / 2].into();
    failed(&mut sim);
    sim.server.no_head = None;
    assert_eq!(sim.session(), STORED);
    stands_alone(&sim);
}

#[test]
fn no_half_file_is_left_by_giving_up() {
    let mut sim = put(Dav { half: Half::Visible, ..dav() });
    sim.cuts = vec![MIB / 2].into();
    failed(&mut sim);
    assert_eq!(sim.server.files.len(), 1);
    let mut xfer = sim.xfer();
    let Next::Ask(ask) = xfer.abandon(sim.now).next else { panic!("a DELETE") };
    assert!(ask.url.secret_url().path().starts_with("/d/f.bin.part-"));
    let request = super::sim::Request { ask, body: Vec::new(), cut: false, now: sim.now };
    sim.server.serve(&request);
    assert_eq!(sim.server.files.len(), 0);
}

#[test]
fn a_server_that_keeps_nothing_is_not_fed_for_ever() {
    for to in ["http://up.example/d/f.bin", "http://up.example/d/f.bin?x=1"] {
        let mut sim = put_to(to, Dav { forgets: true, ..dav() });
        failed(&mut sim);
        assert!(sim.sent <= 4 * MIB, "{to}: {}", sim.sent);
    }
}

#[test]
fn an_empty_file() {
    let mut sim = put(dav());
    (sim.source, sim.stamp.size) = (Vec::new(), Length(0));
    assert_eq!(sim.session(), STORED);
    stands_alone(&sim);
}

#[test]
fn ranges_are_tried_on_a_name_of_no_worth() {
    use Method::{Delete, Get, Head, Move, Put};
    let ranged = |ranges| {
        Sim::new(Dav::new(ranges, Half::Visible), "http://up.example/d/f.bin", bytes(MIB, 5), || {
            Box::new(PutRange::default())
        })
    };
    let mut sim = ranged(Ranges::Appended);
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim), [Put, Put, Get, Delete, Head, Put, Put, Head, Head, Move, Head]);
    stands_alone(&sim);
    for ranges in [Ranges::Ignored, Ranges::Refused(400), Ranges::Refused(404), Ranges::Refused(501)] {
        let mut sim = ranged(ranges);
        sim.cuts = vec![MIB / 2].into();
        assert!(matches!(sim.run(3), UpEnd::Stored { .. }), "{ranges:?}");
        assert!(sim.bodies.iter().all(|b| b.start.0 == 0 && b.end.0 == MIB), "only whole bodies");
        stands_alone(&sim);
    }
}

/// Apache tells no length of an empty file, which is what stands there before the first piece.
#[test]
fn a_piece_that_was_too_large_or_cut_at_once_is_no_broken_range() {
    let server = Dav { hides_empty: true, limit: Some(MIB / 3), ..Dav::new(Ranges::Appended, Half::Nothing) };
    let ranged =
        |server| Sim::new(server, "http://up.example/d/f.bin", bytes(MIB, 5), || Box::new(PutRange::default()));
    let mut sim = ranged(server.clone());
    assert_eq!(sim.session(), STORED);
    stands_alone(&sim);
    let mut sim = ranged(Dav { limit: None, ..server });
    sim.cuts = vec![0, 0].into();
    assert!(matches!(sim.run(5), UpEnd::Stored { .. }));
    let target = &sim.disk.as_ref().map(|kept| kept.target.clone());
    assert!(target.as_ref().is_none_or(|target| target.ranges == RangesHere::Proven), "{target:?}");
    stands_alone(&sim);
}

/// In a later process another word would make another name.
#[test]
fn what_is_begun_anew_keeps_its_temporary_name() {
    let mut sim = put(dav());
    sim.cuts = vec![MIB / 2].into();
    failed(&mut sim);
    let kept = sim.disk.clone().expect("a record");
    let mut anew = kept.clone();
    anew.restart(kept.source.clone(), sim.now);
    assert!(anew.target.temporary.is_some() && anew.target.temporary == kept.target.temporary);
    let mut direct = kept;
    direct.target.direct = true;
    direct.restart(direct.source.clone(), sim.now);
    assert_eq!(direct.target.temporary, None);
}

/// The old version is under its temporary name and cannot be removed: the new one goes to another, and a cut body is not taken for
/// whole because the old one has its size.
#[test]
fn an_older_version_under_a_temporary_name_is_never_moved_into_place() {
    for ranges in [Ranges::Refused(501), Ranges::Appended] {
        for no_delete in [true, false] {
            let server = Dav { no_move: Some(503), no_delete, ..Dav::new(ranges, Half::Nothing) };
            let mut sim = put(server);
            if ranges == Ranges::Appended {
                sim.make = Box::new(|| Box::new(PutRange::default()));
            }
            failed(&mut sim);
            (sim.source, sim.stamp.mtime_ns, sim.token) = (bytes(MIB, 6), 2, "0th3r");
            (sim.server.no_move, sim.cuts) = (None, vec![sim.sent + MIB / 2].into());
            let end = sim.run(5);
            assert!(matches!(end, UpEnd::Stored { .. }), "{ranges:?} {no_delete}: {end:?}");
            assert!(sim.server.stored() == Some(&sim.source[..]), "{ranges:?} {no_delete}");
            let left = sim.server.files.keys().any(|name| name.ends_with(".part-t0k3n"));
            assert_eq!(left, no_delete, "{:?}", sim.server.files.keys());
        }
    }
}

/// A success that left under the name what stood there before, by its tag.
#[test]
fn what_stood_there_before_is_not_the_file() {
    let old = |server: Dav| {
        let mut sim = put(server);
        sim.server.files.insert("/d/f.bin".to_owned(), (99, bytes(MIB, 44)));
        sim
    };
    let direct = || Dav { only: Some(("/d/f.bin".to_owned(), 403)), ..dav() };
    for server in [Dav { moves_not: true, ..dav() }, Dav { forgets: true, ..direct() }] {
        for read_back in [Length::ZERO, ReadBack::Always.up_to()] {
            let mut sim = Sim { read_back, ..old(server.clone()) };
            let failure = failed(&mut sim);
            assert!(matches!(failure, UpFailure::WrongDigest { .. }), "{failure}");
        }
        let mut sim = old(Dav { no_get: Some(403), ..server });
        assert_eq!(failed(&mut sim), UpFailure::Untouched);
        // It was the same file: to be read is all that can show it.
        sim = old(Dav { no_get: None, ..sim.server });
        sim.server.files.insert("/d/f.bin".to_owned(), (99, sim.source.clone()));
        assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Sha256) }));
    }
}

#[test]
fn a_demand_to_verify_is_met_under_the_final_name_or_it_is_a_failure() {
    let always = |server: Dav| Sim { read_back: ReadBack::Always.up_to(), ..put(server) };
    let direct = || Dav { only: Some(("/d/f.bin".to_owned(), 403)), ..dav() };
    for server in [dav(), direct()] {
        let verified = Came::End(UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Sha256) });
        assert_eq!(always(server.clone()).session(), verified);
        for code in [403, 404] {
            let mut sim = always(Dav { no_get: Some(code), ..server.clone() });
            let failure = failed(&mut sim);
            assert_eq!(failure, UpFailure::Unread { code });
            assert_eq!(judge(&failure).scope, UpScope::RefuseServer);
        }
        assert_eq!(failed(&mut always(Dav { no_head: Some(405), ..server })), UpFailure::Unread { code: 405 });
    }
    let failure = failed(&mut always(Dav { spoils_moved: true, ..dav() }));
    assert!(matches!(failure, UpFailure::WrongDigest { .. }), "{failure}");
}
