//! Wishes: however many are heard at once, and whatever the transfer does just then, they are obeyed in their order.

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::bench::{Bench, MIB, cut, overs, started, status, url};
use crate::core::file_xfer::End;
use crate::core::machine::Cx;
use crate::core::pers_xfer::record::{MirrorRecord, Record, Standing, Status, error_code};
use crate::core::pers_xfer::sharing::{self, Wanted, Wish};
use crate::core::pers_xfer::{Action, Event, Rules, View};

fn hear(bench: &mut Bench, wanted: &[Wanted]) -> Vec<Action> {
    let (mut out, mut rng) = (Vec::new(), StdRng::seed_from_u64(2));
    let mut cx = Cx { now: bench.now, rng: &mut rng, out: &mut out };
    sharing::obey(&mut bench.machine, wanted, &mut cx);
    out
}

fn running() -> Bench {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    bench.begins_and_fails(status(404));
    bench.feed(Event::Began);
    bench.arrive(MIB);
    bench
}

#[test]
fn abort_then_retry_heard_at_once_begins_a_new_life() {
    let mut waiting = Bench::new(1, Rules::default());
    waiting.wake();
    waiting.begins_and_fails(status(503));
    let actions = hear(&mut waiting, &[Wanted::Abort, Wanted::Retry]);
    assert_eq!((overs(&actions), started(&actions), waiting.record().num_retries), (0, vec![0], 0));

    let mut running = running();
    let actions = hear(&mut running, &[Wanted::Abort, Wanted::Retry]);
    assert_eq!((actions.first(), overs(&actions), started(&actions)), (Some(&Action::Cancel), 0, vec![]));
    running.held += 5;
    let actions = running.end(End::Cancelled);
    assert_eq!((overs(&actions), started(&actions)), (0, vec![1]), "whose bytes are held goes first");
    assert!(running.record().mirrors[0].is_usable(), "the refused mirror may be asked again");
    let record = running.record();
    assert_eq!((record.status.clone(), record.sessions, record.confirmed.0), (Status::Pending, 0, MIB + 5));
}

#[test]
fn a_retry_that_comes_while_the_aborted_session_ends_is_not_lost() {
    let mut bench = running();
    hear(&mut bench, &[Wanted::Abort]);
    bench.secs(1);
    hear(&mut bench, &[Wanted::Retry]);
    assert_eq!(overs(&bench.fails(status(410))), 0, "what the session of the former life met is forgotten with it");
    assert!(matches!(bench.machine.view(), View::Slot { mirror: 1 }));
    assert!(bench.record().mirrors[0].is_usable());
}

#[test]
fn the_last_word_counts() {
    for (wanted, code) in [
        (vec![Wanted::Abort, Wanted::Retry, Wanted::Abort], Some(error_code::ABORTED)),
        (vec![Wanted::Abort, Wanted::Suspend, Wanted::Resume], Some(error_code::ABORTED)),
        (vec![Wanted::Suspend, Wanted::Abort, Wanted::Retry], None),
    ] {
        let mut bench = running();
        let before = overs(&hear(&mut bench, &wanted));
        let after = overs(&bench.end(End::Cancelled));
        assert_eq!((bench.error_code(), before, after), (code, 0, usize::from(code.is_some())), "{wanted:?}");
    }
    let mut bench = running();
    hear(&mut bench, &[Wanted::Abort, Wanted::Retry, Wanted::Suspend]);
    bench.end(End::Cancelled);
    assert_eq!(bench.machine.view(), View::Suspended);
}

#[test]
fn what_is_whole_is_whole_whatever_was_wanted() {
    let mut bench = running();
    hear(&mut bench, &[Wanted::Abort, Wanted::Retry, Wanted::Suspend]);
    assert_eq!(overs(&bench.completes()), 1);
    assert_eq!(bench.record().status, Status::Done);
}

/// What happens around the wishes.
#[derive(Clone, Debug)]
enum Step {
    /// So many of the wishes that were left are heard, all at once.
    Hears(usize),
    /// A session that is wished for begins.
    Begins,
    /// Bytes arrive.
    Arrives,
    /// The process dies; another one takes up what was stored, after what was left in it.
    Dies,
    /// A session that was told to end does so.
    Ends,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        Just(Wanted::Retry),
        Just(Wanted::Suspend),
        Just(Wanted::Resume),
        Just(Wanted::Abort),
        (0_usize..5).prop_map(|n| Wanted::Mirrors(vec![url(n), url(0)])),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1_usize..4).prop_map(Step::Hears),
        2 => Just(Step::Begins),
        2 => Just(Step::Ends),
        1 => Just(Step::Arrives),
        1 => Just(Step::Dies),
    ]
}

/// A transfer that failed a pass, or runs, or waits for a slot, or has not begun.
fn begun(kind: usize) -> Bench {
    let mut bench = Bench::new(2, Rules::default());
    if kind > 0 {
        bench.wake();
    }
    if kind > 1 {
        bench.begins_and_fails(status(404));
        bench.feed(Event::Began);
    }
    if kind > 2 {
        bench.fails(cut());
    }
    bench
}

/// What wishes decide of a record: not how far sessions came meanwhile.
fn decided(record: &Record) -> (Status, Vec<(String, bool)>, u32) {
    let mirror = |m: &MirrorRecord| (m.url.to_string(), m.standing == Standing::Usable);
    (record.status.clone(), record.mirrors.iter().map(mirror).collect(), record.num_retries)
}

fn one_by_one(record: Record, wanted: &[Wanted], bench: &Bench) -> Record {
    let mut rng = StdRng::seed_from_u64(3);
    wanted.iter().fold(record, |r, w| sharing::obeyed(r, std::slice::from_ref(w), bench.now, &mut rng))
}

/// Everything that was left and not heard is in the record when its process dies, and is obeyed by whoever comes next.
fn dies(bench: &mut Bench, unheard: &mut std::vec::IntoIter<Wanted>) {
    let mut left = bench.record().clone();
    let wish = |(n, what)| Wish { serial: n as u64, at: bench.now.wall, what };
    left.wishes = unheard.by_ref().enumerate().map(wish).collect();
    let next = sharing::obeyed(left, &[], bench.now, &mut StdRng::seed_from_u64(4));
    *bench = Bench::of(next, Rules::default(), bench.now);
}

proptest! {
    #[test]
    fn any_grouping_of_wishes_ends_as_one_by_one(
        kind in 0_usize..4,
        all in proptest::collection::vec(wanted(), 0..9),
        steps in proptest::collection::vec(step(), 0..16),
    ) {
        let mut bench = begun(kind);
        let right = one_by_one(bench.record().clone(), &all, &bench);
        let mut unheard = all.clone().into_iter();
        let mut over = false;
        for step in steps {
            let running = matches!(bench.machine.view(), View::Running { .. });
            let actions = match step {
                // Nobody runs what is over: the rest is obeyed by the write that lets go of it.
                Step::Hears(_) if over => vec![],
                Step::Hears(n) => {
                    let now: Vec<Wanted> = unheard.by_ref().take(n).collect();
                    hear(&mut bench, &now)
                }
                Step::Begins if matches!(bench.machine.view(), View::Slot { .. }) => bench.feed(Event::Began),
                Step::Arrives if running => {
                    bench.arrive(1);
                    vec![]
                }
                Step::Ends if running => bench.end(End::Cancelled),
                Step::Dies => {
                    dies(&mut bench, &mut unheard);
                    over = !bench.record().status.is_open();
                    vec![]
                }
                _ => vec![],
            };
            prop_assert!(overs(&actions) <= 1);
            over = over || overs(&actions) == 1;
            prop_assert_eq!(over, matches!(bench.machine.view(), View::Over), "the engine was told");
        }
        dies(&mut bench, &mut unheard);
        prop_assert_eq!(decided(bench.record()), decided(&right));
    }
}
