//! Whole uploads, by each protocol, over lines that break: what is stored is the file, or the end says that it is not.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::*;
use super::boinc_server::{Front, Handler};
use super::dav_server::{Dav, Half, Ranges};
use super::ietf_server::IetfServer;
use super::s3::s3;
use super::s3_server::{S3Server, Tags};
use super::s3_urls::by_urls;
use super::sim::{Came, KIB, MIB, Server, Sim, bytes};
use super::tus_server::TusServer;

/// Of a file that is sent nearly once.
const SIZE: u64 = 16 * MIB;

/// Of one that is sent again and again.
const SMALL: u64 = 2 * MIB;

fn tus(size: u64, server: TusServer) -> Sim<TusServer> {
    Sim::new(server, "http://up.example/files", bytes(size, 1), || Box::new(Tus::default()))
}

fn boinc(size: u64, front: Front) -> Sim<Handler> {
    let make = || -> Box<dyn UploadProtocol> { Box::new(Boinc::new(Length(1 << 40), Some("ab\n.".to_owned()))) };
    Sim::new(Handler::new(front), "http://up.example/cgi/file_upload_handler", bytes(size, 2), make)
}

fn ietf(size: u64) -> Sim<IetfServer> {
    Sim::new(IetfServer::new(), "http://up.example/new", bytes(size, 3), || Box::new(Ietf::default()))
}

fn put_range(size: u64, server: Dav) -> Sim<Dav> {
    Sim::new(server, "http://up.example/d/f.bin", bytes(size, 4), || Box::new(PutRange::default()))
}

fn put(server: Dav) -> Sim<Dav> {
    Sim::new(server, "http://up.example/d/f.bin", bytes(MIB, 5), || Box::new(Put::default()))
}

/// Ten places, in the order in which they are met.
fn ten_cuts(seed: u64, size: u64) -> Vec<u64> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut all: Vec<u64> = (0..10).map(|_| rng.random_range(0..size)).collect();
    all.sort_unstable();
    all
}

fn is_stored<S: Server>(sim: &Sim<S>) {
    assert!(sim.server.stored() == Some(&sim.source[..]), "another file is stored");
}

/// Ten cuts, with answers lost and the client killed on top where asked for.
fn ends_well<S: Server>(mut sim: Sim<S>, seed: u64, lost: u32, kills: u32) -> Sim<S> {
    sim.cuts = ten_cuts(seed, sim.stamp.size.0).into();
    (sim.lost_answers, sim.kills) = (lost, kills);
    sim.rng = StdRng::seed_from_u64(seed);
    let end = sim.run(400);
    assert!(matches!(end, UpEnd::Stored { .. }), "seed {seed}: {end:?}");
    is_stored(&sim);
    assert_eq!(sim.disk, None, "the record goes with success");
    sim
}

fn sends_little_more<S: Server>(sim: &Sim<S>) {
    let most = SIZE + SIZE / 10;
    assert!(sim.sent <= most, "{} bytes sent of {SIZE}: {:?}", sim.sent, sim.bodies);
}

#[test]
fn servers_that_keep_what_came_get_it_once() {
    for seed in 0..5 {
        for kills in [0, 20] {
            sends_little_more(&ends_well(tus(SIZE, TusServer { block: 64 * KIB, ..TusServer::new() }), seed, 0, kills));
            sends_little_more(&ends_well(ietf(SIZE), seed, 0, kills));
            sends_little_more(&ends_well(put_range(SIZE, Dav::new(Ranges::Appended, Half::Visible)), seed, 0, kills));
        }
    }
}

/// BOINC's handler behind Apache keeps blocks of 256 KiB, of which ten cuts cost half each on average, and all of them at
/// most a tenth of a file of this size.
#[test]
fn boinc_behind_apache_gets_it_nearly_once() {
    for seed in 0..5 {
        let sim = ends_well(boinc(SIZE, Front::Apache), seed, 0, 0);
        let most = SIZE + 10 * 256 * KIB;
        assert!(sim.sent <= most, "{} bytes sent of {SIZE}", sim.sent);
    }
}

#[test]
fn lost_answers_and_kills_spoil_nothing() {
    for seed in 0..10 {
        ends_well(tus(SMALL, TusServer { block: 64 * KIB, ..TusServer::new() }), seed, 15, 30);
        ends_well(tus(SMALL, TusServer { silent: true, ..TusServer::new() }), seed, 15, 30);
        ends_well(boinc(SMALL, Front::Apache), seed, 15, 30);
        ends_well(ietf(SMALL), seed, 15, 30);
        ends_well(put_range(SMALL, Dav::new(Ranges::Appended, Half::Nothing)), seed, 15, 10);
        ends_well(put_range(SMALL, Dav::new(Ranges::Refused(501), Half::Nothing)), seed, 15, 10);
    }
}

/// Of a part that broke off a store keeps nothing: ten cuts cost at most ten parts.
#[test]
fn parts_of_a_store_are_sent_again_and_nothing_else() {
    for seed in 0..3 {
        for kills in [0, 20] {
            let sim = ends_well(by_urls(SIZE), seed, 0, kills);
            let most = SIZE + 10 * MIB / 4;
            assert!(sim.sent <= most, "{} bytes sent of {SIZE}", sim.sent);
        }
    }
}

#[test]
fn lost_answers_of_stores_spoil_nothing() {
    for seed in 0..6 {
        ends_well(by_urls(SMALL), seed, 15, 30);
        ends_well(s3(SMALL, S3Server::new()), seed, 15, 30);
    }
    for (seed, tags) in [(1, Tags::Md5), (2, Tags::Opaque), (3, Tags::Kms), (4, Tags::Unlisted), (5, Tags::Md5)] {
        let page = 1 + usize::try_from(seed).expect("fits");
        ends_well(s3(12 * MIB, S3Server { tags, page, ..S3Server::new() }), seed, 8, 15);
    }
}

#[test]
fn checked_chunks_and_short_takers() {
    for seed in 0..6 {
        let extensions = Some("creation,checksum,creation-with-upload");
        ends_well(tus(SMALL, TusServer { extensions, spoil: 1, ..TusServer::new() }), seed, 5, 0);
        ends_well(tus(SMALL, TusServer { takes: Some(300_000), ..TusServer::new() }), seed, 5, 0);
    }
}

/// A front end that keeps bodies back until they are whole: the client gets through by segments.
#[test]
fn a_buffering_proxy_is_got_through_by_segments() {
    for (seed, every) in [(1, 3 * MIB), (2, 5 * MIB), (3, 700 * KIB)] {
        let mut sim = tus(SIZE, TusServer { buffered: true, ..TusServer::new() });
        sim.cuts = (1..2000).map(|n| n * every).collect();
        sim.rng = StdRng::seed_from_u64(seed);
        let end = sim.run(4000);
        assert!(matches!(end, UpEnd::Stored { .. }), "cut every {every}: {end:?}");
        is_stored(&sim);
        for front in [Front::Nginx, Front::Lighttpd] {
            let mut sim = boinc(SIZE, front);
            sim.cuts = (1..2000).map(|n| n * every).collect();
            assert!(matches!(sim.run(4000), UpEnd::Stored { .. }));
            is_stored(&sim);
        }
    }
}

#[test]
fn a_limit_on_bodies_is_learned() {
    let mut sim = tus(SIZE, TusServer { limit: Some(MIB + 5), ..TusServer::new() });
    assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Size }));
    is_stored(&sim);
    let largest = sim.bodies.iter().skip(6).map(|b| b.length().0).max();
    assert!(largest <= Some(MIB + 5), "what was refused is not tried again and again: {largest:?}");
    let mut sim = tus(SIZE, TusServer { limit: Some(1000), ..TusServer::new() });
    let Came::End(UpEnd::Failed(failure)) = sim.session() else { panic!("nothing smaller is left") };
    assert_eq!(judge(&failure).scope, UpScope::RefuseServer);
}

/// Whatever a server does with Content-Range, and wherever the line breaks.
#[test]
fn a_slice_never_ends_as_the_file() {
    let ways = [Ranges::Ignored, Ranges::Fickle, Ranges::Refused(400), Ranges::Refused(404), Ranges::Appended];
    for ranges in ways {
        for half in [Half::Visible, Half::Nothing] {
            for no_move in [None, Some(405)] {
                for seed in 0..4 {
                    let mut sim = put_range(SMALL, Dav { no_move, ..Dav::new(ranges, half) });
                    sim.cuts = ten_cuts(seed, 2 * SMALL).into();
                    sim.rng = StdRng::seed_from_u64(seed);
                    (sim.lost_answers, sim.kills) = (5, 10);
                    if let UpEnd::Stored { .. } = sim.run(100) {
                        is_stored(&sim);
                    }
                }
            }
        }
    }
}

/// Two servers behind one name, of which one ignores ranges: the slice is seen as soon as its size is asked.
#[test]
fn a_slice_in_place_of_the_file_is_seen_at_once() {
    let mut sim = put_range(SIZE, Dav::new(Ranges::Fickle, Half::Visible));
    sim.cuts = vec![MIB].into();
    assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Size }));
    is_stored(&sim);
    let starts: Vec<u64> = sim.bodies.iter().map(|b| b.start.0).collect();
    assert_eq!(starts, [0, MIB, 0], "the last one is the whole");
}

/// The same, and the slice was cut just where its size looks like progress that leaves little; that little is appended as it should
/// be. The size is right then, and only reading it all back shows the hole in the story.
#[test]
fn a_slice_that_looks_like_progress_is_found_by_reading_back() {
    let mut sim = put_range(SIZE, Dav::new(Ranges::Fickle, Half::Visible));
    sim.cuts = vec![70 * KIB, SIZE - 1].into();
    let end = sim.session();
    let starts: Vec<u64> = sim.bodies.iter().map(|b| b.start.0).collect();
    assert_eq!(starts, [0, 70 * KIB, SIZE - 1 - 70 * KIB, 0]);
    assert!(matches!(end, Came::End(UpEnd::Stored { .. })), "{end:?}");
    is_stored(&sim);
}

/// Less than was confirmed is no place to go on from.
#[test]
fn a_file_that_shrank_is_sent_in_one_piece() {
    let mut sim = put_range(SMALL, Dav::new(Ranges::Appended, Half::Visible));
    sim.cuts = vec![MIB, MIB + 10].into();
    assert!(matches!(sim.session(), Came::End(UpEnd::Failed(_))));
    sim.disk.as_mut().expect("a record").confirmed = crate::core::range::Offset(MIB);
    for (_, bytes) in sim.server.files.values_mut() {
        bytes.truncate(1000);
    }
    assert!(matches!(sim.session(), Came::End(UpEnd::Stored { .. })));
    assert_eq!(sim.bodies.last().map(|b| (b.start.0, b.end.0)), Some((0, SMALL)));
    is_stored(&sim);
}

#[test]
fn a_whole_put_starts_over_and_ends_right() {
    for half in [Half::Visible, Half::Nothing] {
        for no_move in [None, Some(501)] {
            for seed in 0..6 {
                let mut sim = put(Dav { no_move, ..Dav::new(Ranges::Ignored, half) });
                sim.cuts = vec![100 * KIB, 900 * KIB, 2 * MIB].into();
                sim.rng = StdRng::seed_from_u64(seed);
                (sim.lost_answers, sim.kills) = (10, 20);
                let end = sim.run(100);
                assert!(matches!(end, UpEnd::Stored { .. }), "{end:?}");
                is_stored(&sim);
            }
        }
    }
}
