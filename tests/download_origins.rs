//! Origins that have versions of one size which differ in a few places only: comparing blocks does not find that, and what
//! servers say of their versions keeps the bytes apart.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::sync::Arc;

use support::rig::served::{MODIFIED, MODIFIED_LATER};
use support::{Asked, End, Px, Ran, Reply, Rig, Served, World, digest, ms, noise};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// `data`, with 50 other bytes at each of these places.
fn altered(data: &[u8], places: &[usize]) -> Arc<Vec<u8>> {
    let mut other = data.to_vec();
    for place in places {
        other[*place..place + 50].iter_mut().for_each(|byte| *byte ^= 0x5a);
    }
    Arc::new(other)
}

/// Two versions: the second differs from the first in five places that the seed draws.
fn two_versions(seed: u64, size: usize) -> (Arc<Vec<u8>>, Arc<Vec<u8>>) {
    let data = noise(seed, size);
    let places: Vec<usize> = (0..5).map(|n| (2 * n + 1) * size / 10 + data[n] as usize * 97).collect();
    let other = altered(&data, &places);
    (data, other)
}

/// What a server says of its version.
#[derive(Clone, Copy, Debug)]
enum Says {
    Tag(&'static str),
    Date(&'static str),
    Both(&'static str, &'static str),
    Nothing,
}

fn serving(data: &Arc<Vec<u8>>, says: Says) -> Served {
    let served = Served::new(data);
    match says {
        Says::Tag(tag) => served.etag(tag),
        Says::Date(date) => served.no_etag().modified(date),
        Says::Both(tag, date) => served.etag(tag).modified(date),
        Says::Nothing => served.no_etag(),
    }
}

fn steady(served: Served) -> impl Fn(&Asked) -> Reply + Send + Sync + 'static {
    move |a| served.reply(a).pace(64 * KB, ms(8))
}

fn rig(data: &Arc<Vec<u8>>, says: Says) -> Rig {
    Rig::start(steady(serving(data, says)))
}

/// The same, but of no answer more than this comes, and then nothing more.
fn stuck(data: &Arc<Vec<u8>>, says: Says, after: usize) -> Rig {
    let served = serving(data, says);
    Rig::start(move |a| served.reply(a).cut(after, End::Hang))
}

/// How much of each of so many answers makes about so much in all.
fn each(all: usize, connections: &str) -> usize {
    all / connections.parse::<usize>().unwrap()
}

fn over<'w>(w: &'w World, rigs: &[&Rig], connections: &str) -> Px<'w> {
    let px = w.download(&rigs[0].url("/f")).args(&["-x", connections]);
    rigs[1..].iter().fold(px, |px, rig| px.mirror(&rig.url("/f")))
}

/// The first of these that the file is, if it is one of them.
#[track_caller]
fn is_one_of(w: &World, ran: &Ran, versions: &[&Arc<Vec<u8>>]) -> usize {
    ran.exits(0);
    let held = fs::read(&w.out).unwrap();
    let found = versions.iter().position(|version| ***version == held);
    found.unwrap_or_else(|| panic!("a mix of versions\n{ran}"))
}

fn address(rig: &Rig) -> String {
    rig.url("").replace("http://", "")
}

const CONTRADICTIONS: [(Says, Says); 4] = [
    (Says::Date(MODIFIED), Says::Date(MODIFIED_LATER)),
    (Says::Date(MODIFIED_LATER), Says::Date(MODIFIED)),
    (Says::Tag("\"a\""), Says::Tag("\"b\"")),
    (Says::Both("\"a\"", MODIFIED), Says::Both("\"b\"", MODIFIED_LATER)),
];

#[test]
fn a_mirror_of_another_date_or_tag_is_named_once_and_not_mixed_in() {
    for (n, (ours, theirs)) in CONTRADICTIONS.into_iter().enumerate() {
        for connections in ["2", "6"] {
            let (w, (one, two)) = (World::new(), two_versions(2000 + n as u64, 5 * MB + n * 1237));
            let (a, b) = (rig(&one, ours), rig(&two, theirs));
            let ran = over(&w, &[&a, &b], connections).run();
            assert_eq!(is_one_of(&w, &ran, &[&one, &two]), 0, "{ours:?} {theirs:?}: {ran}");
            assert!(b.count() > 0, "it was never asked: {ran}");
            assert_eq!(ran.stderr.matches("not mixed in").count(), 1, "{ran}");
            ran.says(&[&format!("mirror http://{} has another", address(&b)), "--checksum"]);
        }
    }
}

#[test]
fn with_a_checksum_both_are_used() {
    let (w, data) = (World::new(), noise(2010, 5 * MB));
    let (a, b) = (rig(&data, Says::Date(MODIFIED)), rig(&data, Says::Date(MODIFIED_LATER)));
    let ran = over(&w, &[&a, &b], "2").args(&["--checksum", &digest("sha-256", &data)]).run();
    ran.exits(0);
    w.holds(&data);
    assert!(!ran.stderr.contains("not mixed in"), "{ran}");
    assert!(a.sent() > MB as u64 && b.sent() > MB as u64, "{} {}", a.sent(), b.sent());
}

#[test]
fn mirrors_that_agree_or_are_silent_are_all_used() {
    let trios = [
        [Says::Both("\"a\"", MODIFIED), Says::Both("\"b\"", MODIFIED), Says::Date(MODIFIED)],
        [Says::Tag("\"s\""), Says::Tag("\"s\""), Says::Both("\"s\"", MODIFIED)],
        [Says::Tag("\"s\""), Says::Nothing, Says::Tag("W/\"t\"")],
    ];
    for says in trios {
        let (w, data) = (World::new(), noise(2011, 6 * MB));
        let rigs = says.map(|says| rig(&data, says));
        let ran = over(&w, &rigs.each_ref(), "3").run();
        ran.exits(0);
        w.holds(&data);
        let sent = rigs.each_ref().map(Rig::sent);
        assert!(sent.iter().all(|n| *n > MB as u64), "{says:?}: {sent:?}\n{ran}");
    }
}

/// Sends whoever asks to one of two, in an order that looks like chance.
fn director(to: [&Rig; 2], turn: usize) -> Rig {
    let urls = to.map(|rig| rig.url("/f"));
    Rig::start(move |a| Reply::redirect(302, &urls[(a.n + turn * 31).wrapping_mul(0x9E37_79B9) >> 13 & 1]))
}

#[test]
fn one_url_that_leads_to_two_versions_brings_one_of_them_over_kills_too() {
    for (n, (ours, theirs)) in CONTRADICTIONS.into_iter().enumerate() {
        for (connections, kills) in [("1", 2), ("4", 0), ("4", 2)] {
            let (w, (one, two)) = (World::new(), two_versions(2020 + n as u64, 3 * MB));
            let (a, b) = (rig(&one, ours), rig(&two, theirs));
            let one_name = director([&a, &b], n);
            let sent = |from: u64| a.sent() + b.sent() - from;
            for _ in 0..kills {
                let before = sent(0);
                over(&w, &[&one_name], connections).start().kill_when(|| sent(before) > 1_300_000);
            }
            let ran = over(&w, &[&one_name], connections).run();
            is_one_of(&w, &ran, &[&one, &two]);
        }
    }
}

#[test]
fn a_file_replaced_everywhere_between_two_runs_is_the_new_one_whoever_is_listed_first() {
    for (n, (old, new)) in CONTRADICTIONS.into_iter().enumerate() {
        for (before, after) in [("1", "1"), ("4", "1"), ("1", "4"), ("4", "4")] {
            let (w, (one, two)) = (World::new(), two_versions(2030 + n as u64, 4 * MB));
            let rigs = [0, 1, 2].map(|_| stuck(&one, old, each(2 * MB, before)));
            over(&w, &[&rigs[0]], before).start().kill_when(|| rigs[0].has_sent(3 * MB / 2));
            rigs.iter().for_each(|rig| rig.now(steady(serving(&two, new))));
            let ran = over(&w, &[&rigs[1], &rigs[2], &rigs[0]], after).run();
            assert_eq!(is_one_of(&w, &ran, &[&two, &one]), 0, "{old:?} {new:?} {before} {after}: {ran}");
        }
    }
}

#[test]
fn whose_bytes_are_held_is_asked_before_a_mirror_that_says_nothing() {
    for connections in ["1", "4"] {
        let (w, (one, two)) = (World::new(), two_versions(2040, 4 * MB));
        let teller = stuck(&one, Says::Date(MODIFIED), each(2 * MB, connections));
        let silent = rig(&one, Says::Nothing);
        over(&w, &[&teller], connections).start().kill_when(|| teller.has_sent(3 * MB / 2));
        teller.now(steady(serving(&two, Says::Date(MODIFIED_LATER))));
        silent.now(steady(serving(&two, Says::Nothing)));
        let ran = over(&w, &[&silent, &teller], connections).run();
        assert_eq!(is_one_of(&w, &ran, &[&two, &one]), 0, "{connections}: {ran}");
    }
}

/// What is held behind a gap is of the version that was, also where all before it is the same in the new one.
#[test]
fn segments_of_a_version_that_was_replaced_are_not_kept() {
    for (n, (old, new)) in CONTRADICTIONS.into_iter().enumerate() {
        for connections in ["1", "4"] {
            let (w, one) = (World::new(), noise(2050 + n as u64, 4 * MB));
            let places: Vec<usize> = (8..32).map(|n| n * 128 * KB + 5_000).collect();
            let two = altered(&one, &places);
            let a = stuck(&one, old, 400_000);
            over(&w, &[&a], "4").start().kill_when(|| a.has_sent(1_500_000));
            a.now(steady(serving(&two, new)));
            let ran = over(&w, &[&a], connections).run();
            assert_eq!(is_one_of(&w, &ran, &[&two]), 0, "{old:?} {new:?} {connections}");
        }
    }
}

#[test]
fn a_mirror_in_reserve_takes_over_once_the_first_is_gone() {
    for (n, (ours, theirs)) in CONTRADICTIONS.into_iter().enumerate() {
        for (connections, gone) in [("1", 503), ("4", 503), ("1", 404), ("4", 404)] {
            let (w, (one, two)) = (World::new(), two_versions(2060 + n as u64, 3 * MB));
            let served = serving(&one, ours);
            // However many connections: after so many bytes there is nothing more.
            let first = Rig::start(move |a| match a.n {
                0 => served.reply(a).pace(64 * KB, ms(8)).cut(2 * MB, End::Reset),
                _ => Reply::status(gone),
            });
            let reserve = rig(&two, theirs);
            let ran = over(&w, &[&first, &reserve], connections).run();
            assert_eq!(is_one_of(&w, &ran, &[&two, &one]), 0, "{ours:?} {theirs:?} {connections} {gone}: {ran}");
        }
    }
}

#[test]
fn what_the_first_brought_is_not_lost_while_the_reserve_is_under_way() {
    for connections in ["1", "4"] {
        let (w, (one, two)) = (World::new(), two_versions(2070, 4 * MB));
        let first = stuck(&one, Says::Date(MODIFIED), each(3 * MB, connections));
        let reserve = rig(&two, Says::Date(MODIFIED_LATER));
        over(&w, &[&first, &reserve], connections).start().kill_when(|| first.has_sent(5 * MB / 2));
        let held = fs::metadata(w.part()).unwrap().len();
        first.now(|_| Reply::status(404));
        let before = reserve.sent();
        over(&w, &[&first, &reserve], connections).start().kill_when(|| reserve.sent() > before + MB as u64);
        assert!(fs::metadata(w.part()).unwrap().len() >= held, "what was confirmed was given up");
        first.now(steady(serving(&one, Says::Date(MODIFIED))));
        let before = first.sent();
        let ran = over(&w, &[&first, &reserve], connections).run();
        assert_eq!(is_one_of(&w, &ran, &[&one, &two]), 0, "{connections}: {ran}");
        assert!(first.sent() - before < 2 * MB as u64, "{connections}: {} bytes of it again", first.sent() - before);
    }
}

#[test]
fn a_dead_first_server_costs_nothing_where_the_mirror_agrees_or_is_silent() {
    for theirs in [Says::Nothing, Says::Both("\"other\"", MODIFIED), Says::Tag("W/\"x\"")] {
        for connections in ["1", "4"] {
            let (w, data) = (World::new(), noise(2080, 4 * MB));
            let first = stuck(&data, Says::Both("\"a\"", MODIFIED), each(3 * MB, connections));
            over(&w, &[&first], connections).start().kill_when(|| first.has_sent(11 * MB / 4));
            first.stop();
            let other = rig(&data, theirs);
            let ran = over(&w, &[&first, &other], connections).run();
            ran.exits(0).says(&["overlap"]);
            w.holds(&data);
            assert!(other.sent() < 2 * MB as u64, "{theirs:?} {connections}: {} bytes", other.sent());
        }
    }
}

/// The first that gave bytes leads, however many others agree with each other; once it is gone, and little is held, theirs
/// is the file.
#[test]
fn of_three_the_first_leads_and_the_others_take_over() {
    for gone in [false, true] {
        let (w, (one, two)) = (World::new(), two_versions(2090, 3 * MB));
        let served = serving(&one, Says::Date(MODIFIED_LATER));
        let first = Rig::start(move |a| match a.n {
            0 if gone => served.reply(a).cut(200 * KB, End::Close),
            _ if gone => Reply::status(404),
            _ => served.reply(a).pace(64 * KB, ms(8)),
        });
        let others = [0, 1].map(|_| rig(&two, Says::Date(MODIFIED)));
        let ran = over(&w, &[&first, &others[0], &others[1]], "6").run();
        assert_eq!(is_one_of(&w, &ran, &[&one, &two]), usize::from(gone), "{ran}");
    }
}

/// Beside the version that was, a mirror was the odd one. The file changes, and it is asked again.
#[test]
fn who_was_odd_beside_the_old_version_is_asked_again_when_the_file_has_changed() {
    let (w, one, two) = (World::new(), noise(2100, 3 * MB), noise(2101, 3 * MB));
    let first = stuck(&one, Says::Date(MODIFIED), MB);
    let silent = rig(&two, Says::Nothing);
    over(&w, &[&first, &silent], "2")
        .start()
        .kill_when(|| fs::read_to_string(&w.state).is_ok_and(|state| state.contains("this mirror holds another file")));
    let served = serving(&two, Says::Date(MODIFIED_LATER));
    // It brings more of the new version than was held of the old one, and is never there again.
    let n = first.count();
    first.now(move |a| {
        let whole = a.range().is_none() || a.header("if-range").is_some();
        if whole && a.n <= n + 2 { served.reply(a).cut(2 * MB, End::Reset) } else { Reply::status(503) }
    });
    let ran = over(&w, &[&first, &silent], "2").run();
    assert_eq!(is_one_of(&w, &ran, &[&two]), 0);
    assert!(silent.sent() > 500_000, "{}", silent.sent());
}

#[test]
fn changed_in_the_middle_at_one_of_two_that_agreed() {
    for connections in ["2", "6"] {
        let (w, (one, two)) = (World::new(), two_versions(2110, 6 * MB));
        let both = [0, 1].map(|_| rig(&one, Says::Both("\"a\"", MODIFIED)));
        let run = over(&w, &[&both[0], &both[1]], connections).start();
        support::eventually("both bring bytes", || both.iter().all(|rig| rig.sent() > MB as u64));
        both[1].now(steady(serving(&two, Says::Both("\"b\"", MODIFIED_LATER))));
        let ran = run.end();
        assert_eq!(is_one_of(&w, &ran, &[&one, &two]), 0, "{connections}: {ran}");
    }
}
