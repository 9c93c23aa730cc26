//! Downloads by a metalink with digests of pieces: a wrong piece is found when it comes, fetched again alone, and whoever
//! brought it is named.

#![allow(clippy::expect_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::sync::Arc;

use support::{Asked, Px, Rig, Served, World, digest, eventually, ms, noise};

const MB: usize = 1 << 20;
const PIECE: usize = 256 << 10;

fn hex(algorithm: &str, data: &[u8]) -> String {
    digest(algorithm, data).split_once('=').map(|(_, hex)| hex.to_owned()).expect("ALGORITHM=HEX")
}

/// Does a metalink give the digest of the whole, too?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Told,
    Untold,
}

/// `download -M` of a file with digests of its pieces.
fn by_pieces<'w>(w: &'w World, data: &[u8], algorithm: &str, whole: Whole, rigs: &[&Rig]) -> Px<'w> {
    let pieces: String = data.chunks(PIECE).map(|p| format!("<hash>{}</hash>", hex(algorithm, p))).collect();
    let sum = match whole {
        Whole::Told => format!("<hash type=\"sha-256\">{}</hash>", hex("sha-256", data)),
        Whole::Untold => String::new(),
    };
    let url = |(n, rig): (usize, &&Rig)| format!("<url priority=\"{}\">{}</url>", n + 1, rig.url("/f"));
    let urls: String = rigs.iter().enumerate().map(url).collect();
    let text = format!(
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"f\"><size>{}</size>{sum}\
         <pieces type=\"{algorithm}\" length=\"{PIECE}\">{pieces}</pieces>{urls}</file></metalink>",
        data.len()
    );
    let path = w.path("list.meta4");
    fs::write(&path, text).expect("written");
    let px = w.px(["download", "--min-delay", "20ms", "--max-delay", "100ms", "-M"]).arg(path);
    px.arg("-o").arg(&w.out).args(&["--give-up", "10s"])
}

/// A server with one byte changed in each of these pieces, at a pace.
fn corrupt(data: &Arc<Vec<u8>>, pieces: &[usize]) -> Rig {
    let mut wrong = data.to_vec();
    pieces.iter().for_each(|n| wrong[n * PIECE + 999] ^= 4);
    paced(&Arc::new(wrong))
}

fn paced(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a: &Asked| served.reply(a).pace(64 << 10, ms(4)))
}

/// Requests that began in this piece, at or behind its first byte less what is asked for again before it.
fn asked_within(rig: &Rig, piece: usize) -> usize {
    let within = |a: &Asked| {
        a.range().is_some_and(|(from, last)| {
            from + (64 << 10) >= piece * PIECE && last.is_some_and(|last| last < (piece + 1) * PIECE + (64 << 10))
        })
    };
    rig.asked().iter().filter(|a| within(a)).count()
}

#[test]
fn one_wrong_piece_is_fetched_again_alone_from_the_other_mirror() {
    for (algorithm, whole) in [("sha-1", Whole::Told), ("sha-256", Whole::Told), ("sha-256", Whole::Untold)] {
        let (w, data) = (World::new(), noise(1400, 3 * MB + 77));
        // The liar has the first place, and all of the file but one byte.
        let (liar, good) = (corrupt(&data, &[2]), paced(&data));
        let ran = by_pieces(&w, &data, algorithm, whole, &[&liar, &good]).args(&["-x", "2"]).run();
        ran.exits(0).says(&["digest"]);
        w.holds(&data);
        ran.says(&["piece 2 has the wrong"]);
        let address = liar.url("").replace("http://", "");
        let named = |line: &str| line.contains("piece 2") && line.contains(&address);
        assert!(ran.stderr.lines().any(named), "the liar is not named: {ran}");
        let sent = liar.sent() + good.sent();
        assert!(sent < (data.len() + 4 * PIECE) as u64, "{algorithm}: {sent} bytes for {}", data.len());
        assert!(asked_within(&good, 2) >= 1, "{:?}", good.asked());
    }
}

#[test]
fn after_a_few_wrong_pieces_a_mirror_is_not_asked_again() {
    let (w, data) = (World::new(), noise(1401, 4 * MB));
    let (liar, good) = (corrupt(&data, &[0, 1, 2, 3, 4, 5, 6, 7]), paced(&data));
    by_pieces(&w, &data, "sha-256", Whole::Told, &[&liar, &good]).args(&["-x", "2"]).run().exits(0).says(&["digest"]);
    w.holds(&data);
    let ranges = |rig: &Rig| rig.asked().iter().map(|a| format!("{:?} ", a.range())).collect::<String>();
    assert!(
        liar.sent() < 2 * MB as u64 + (MB as u64) / 2,
        "{} bytes of a liar: {} good {}",
        liar.sent(),
        ranges(&liar),
        ranges(&good)
    );
}

#[test]
fn a_piece_that_is_wrong_everywhere_ends_it_with_nothing_under_the_final_name() {
    for whole in [Whole::Told, Whole::Untold] {
        let (w, data) = (World::new(), noise(1402, 2 * MB));
        let (a, b) = (corrupt(&data, &[3]), corrupt(&data, &[3]));
        let ran = by_pieces(&w, &data, "sha-256", whole, &[&a, &b]).args(&["-x", "2"]).run();
        ran.exits(3);
        w.holds_nothing();
        let asked = a.count() + b.count();
        assert!(asked < 60, "{asked} requests, {} bytes", a.sent() + b.sent());
        assert!(a.sent() + b.sent() < 6 * data.len() as u64, "{} bytes", a.sent() + b.sent());
    }
}

#[test]
fn a_piece_that_is_wrong_once_costs_itself_only_with_one_mirror_too() {
    let (w, data) = (World::new(), noise(1403, 2 * MB));
    let mut wrong = data.to_vec();
    wrong[5 * PIECE + 1] ^= 1;
    let (first, then) = (Served::new(&Arc::new(wrong)), Served::new(&data));
    let rig = Rig::start(move |a| if a.n == 0 { first.reply(a) } else { then.reply(a) });
    by_pieces(&w, &data, "sha-1", Whole::Told, &[&rig]).run().exits(0).says(&["digest"]);
    w.holds(&data);
    assert!(rig.sent() < (data.len() + 2 * PIECE) as u64, "{} bytes", rig.sent());
}

#[test]
fn what_a_killed_run_brought_is_looked_at_piece_by_piece() {
    for whole in [Whole::Told, Whole::Untold] {
        let (w, data) = (World::new(), noise(1404, 6 * MB));
        let mut wrong = data.to_vec();
        wrong[4 * PIECE + 7] ^= 1;
        let served = Served::new(&Arc::new(wrong));
        let rig = Rig::start(move |a| served.reply(a).pace(32 << 10, ms(40)));
        let px = || by_pieces(&w, &data, "sha-256", whole, &[&rig]).args(&["-x", "3"]);
        px().start().kill_when(|| rig.sent() > 4 * MB as u64);
        w.holds_nothing();
        let (before, right) = (rig.sent(), Served::new(&data));
        rig.now(move |a| right.reply(a));
        px().run().exits(0).says(&["digest"]);
        w.holds(&data);
        let more = rig.sent() - before;
        assert!(
            more < 3 * MB as u64 + 600_000,
            "{more} bytes after {before} {:?}",
            rig.asked().iter().map(support::Asked::range).collect::<Vec<_>>()
        );
        eventually("nothing is left beside it", || w.leftovers().is_empty());
    }
}
