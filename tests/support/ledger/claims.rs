//! Claims, and who may speak for a record.

use persxfer::core::ledger::lease::Whose;

use super::*;

pub(crate) fn c11_two_claimants_share_everything_and_nothing_twice(scene: &mut Scene<'_>) {
    let hosts = ["a.example", "b.example", "c.example", ""];
    scene.add((0..4_000).map(|n| (format!("k{n:05}"), hosts[n % 4])));
    let mut other = scene.beside();
    let (mut mine, mut theirs) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let here = keys(&scene.claim(ME, 70));
        let mut turn = Turn { now: scene.now, rules: &scene.rules, rng: &mut scene.rng };
        let there = keys(&other.claim(Want { owner: OTHER, count: 130 }, &mut turn).unwrap());
        if here.is_empty() && there.is_empty() {
            break;
        }
        let twice = |of: &BTreeSet<String>, new: &BTreeSet<String>| of.intersection(new).next().is_some();
        assert!(!twice(&mine, &here) && !twice(&theirs, &there), "the same claimant had it already");
        mine.extend(here);
        theirs.extend(there);
    }
    assert!(mine.is_disjoint(&theirs), "both had one");
    assert_eq!(mine.len() + theirs.len(), 4_000);
    assert!(mine.len() > 1_000 && theirs.len() > 1_000);
}

pub(crate) fn c12_a_restart_offers_again_what_the_dead_held_and_touches_nothing_else(scene: &mut Scene<'_>) {
    scene.add(numbered("k", 1_200, "h.example"));
    scene.pass(Delay::from_hours(3));
    let mine = keys(&scene.claim(ME, 500));
    let others = keys(&scene.claim(OTHER, 100));
    let before = scene.all();
    assert_eq!((mine.len(), others.len()), (500, 100));
    // The process dies here, and its successor opens the ledger.
    scene.store = scene.beside();
    let restored = scene.on(|s, t| s.restore(&mut |owner| owner == ME, t));
    assert_eq!(restored, 500);
    for (was, is) in before.iter().zip(scene.all()) {
        if mine.contains(is.key.as_str()) {
            assert_eq!((&is.state, is.due_at, is.failures, is.lost), (&State::Waiting, START, 0, 0));
        } else {
            assert_eq!(&is, was, "no other row is touched");
        }
    }
    let again = keys(&scene.claim(ME, 2_000));
    assert_eq!(again.len(), 1_100);
    assert!(mine.is_subset(&again) && again.is_disjoint(&others));
}

pub(crate) fn c13_ten_restarts_in_a_minute_cost_no_rung(scene: &mut Scene<'_>) {
    scene.add(numbered("k", 50, "h.example"));
    let mut attempts = 0;
    for _ in 0..10 {
        let handed = scene.claim(ME, 8);
        attempts += handed.records.len();
        scene.pass(Delay::from_secs(6));
        // Some are given back in time, the others found held by a dead process.
        let words: Vec<_> =
            handed.records.iter().take(3).map(|(r, token, _)| (r.key.clone(), *token, Word::Released)).collect();
        assert!(scene.on(|s, t| s.settle(&words, t)).iter().all(Result::is_ok));
        scene.on(|s, t| s.restore(&mut |_| true, t));
    }
    assert!(attempts <= 80, "{attempts} attempts: in flight times restarts");
    let all = scene.all();
    assert!(all.iter().all(|r| r.rungs.iter().next().is_none() && r.failures == 0 && r.state == State::Waiting));
    assert!(all.iter().all(|r| r.due_at == START));
}

pub(crate) fn c14_a_holder_that_slept_changes_nothing(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let (_, old) = scene.claim_one(ME);
    scene.pass(scene.rules.terms.longest());
    let (_, new) = scene.claim_one(OTHER);
    let held = scene.get("k");
    let late = |scene: &mut Scene<'_>, whose: Whose| {
        let said = [
            scene.beat("k", old),
            scene.settle("k", old, done()),
            scene.settle("k", old, Word::Failed(failed(Class::Missing))),
            scene.settle("k", old, Word::Released),
        ];
        assert!(said.iter().all(|s| s.as_ref().is_err_and(|lost| lost.now == whose)), "{said:?}");
    };
    late(scene, Whose::Anothers);
    assert_eq!(scene.get("k"), held);
    scene.settle("k", new, done()).expect("the holder");
    late(scene, Whose::Done);
    assert_eq!(scene.get("k").state, State::Done);
    scene.on(|s, _| s.forget(&[named("k")]));
    late(scene, Whose::Forgotten);
}

pub(crate) fn c15_what_is_completed_never_waits_again(scene: &mut Scene<'_>) {
    scene.add(numbered("k", 40, "h.example"));
    let handed = scene.claim(ME, 40);
    scene.pass(scene.rules.terms.longest());
    // All leases are over; the holder says of half that they are done, then somebody claims whatever is due.
    let words: Vec<_> = handed.records.iter().step_by(2).map(|(r, token, _)| (r.key.clone(), *token, done())).collect();
    assert!(scene.on(|s, t| s.settle(&words, t)).iter().all(Result::is_ok));
    let again = keys(&scene.claim(OTHER, 100));
    assert_eq!(again.len(), 20);
    assert!(words.iter().all(|(key, ..)| !again.contains(key.as_str())));
    scene.pass(Delay::from_days(400));
    scene.on(|s, t| s.restore(&mut |_| true, t));
    assert_eq!(scene.claim(OTHER, 100).records.len(), 20);
    assert_eq!(scene.all().iter().filter(|r| r.state == State::Done).count(), 20);
}

pub(crate) fn c16_late_beats_are_in_time_until_the_lease_is_over(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let (terms, (_, token)): (Terms, _) = (scene.rules.terms, scene.claim_one(ME));
    for _ in 0..5 {
        scene.pass(terms.lease.mul_f64(2.0 / 3.0));
        assert!(scene.claim(OTHER, 9).records.is_empty(), "no duplicate");
        scene.beat("k", token).expect("the holder");
    }
    scene.pass(terms.longest());
    assert_eq!(scene.claim(OTHER, 9).records.len(), 1, "one duplicate");
    assert!(scene.beat("k", token).is_err(), "and the first is fenced");
    assert!(scene.claim(ME, 9).records.is_empty());
}

pub(crate) fn c17_one_that_kills_its_holders_rests_and_stops_no_other(scene: &mut Scene<'_>) {
    scene.add(numbered("good", 30, "h.example").chain([("poison".to_owned(), "h.example")]));
    let (mut finished, mut deaths) = (0, 0);
    for _ in 0..60 {
        let handed = scene.claim(ME, 4);
        let deadly = handed.records.iter().any(|(r, ..)| r.key == named("poison"));
        if deadly {
            deaths += 1;
            scene.pass(scene.rules.terms.longest());
            continue;
        }
        let words: Vec<_> = handed.records.iter().map(|(r, token, _)| (r.key.clone(), *token, done())).collect();
        finished += words.len();
        scene.on(|s, t| s.settle(&words, t));
        scene.pass(Delay::from_secs(1));
    }
    let poison = scene.get("poison");
    assert_eq!((finished, deaths), (30, 3), "{poison:?}");
    assert_eq!((poison.class, poison.failures), (Some(Class::Crash), 0));
    assert!(poison.due_at.since(scene.now) > Delay::from_hours(7));
    scene.now = poison.due_at;
    scene.add(numbered("late", 5, "h.example"));
    let mut batches = Vec::new();
    for _ in 0..4 {
        let handed = scene.claim(ME, 4);
        if !handed.records.is_empty() {
            batches.push(handed.records.iter().map(|(r, _, c)| (r.key == named("poison"), *c)).collect::<Vec<_>>());
        }
    }
    let alone: Vec<_> = batches.iter().filter(|b| b.iter().any(|(poison, _)| *poison)).collect();
    assert_eq!(alone, [&vec![(true, Company::Alone)]], "it is worked on alone");
}

pub(crate) fn one_that_is_named_is_handed_out_early_and_once(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let waits = scene.fails("k", Class::Missing);
    let early = |scene: &mut Scene<'_>, key: &str| scene.on(|s, t| s.claim_early(&named(key), ME, t));
    let (record, token, _) = early(scene, "k").expect("nobody works on it");
    assert_eq!(record.lease().map(|lease| lease.due_before), Some(waits.due_at));
    assert!(early(scene, "k").is_none() && early(scene, "unknown").is_none());
    scene.settle("k", token, Word::Released).expect("the holder");
    assert_eq!(scene.get("k").due_at, waits.due_at, "it costs nothing");
}

pub(crate) fn nothing_is_handed_out_before_it_is_due(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let due = scene.fails("k", Class::Unreachable).due_at;
    scene.now = Epoch::from_micros(due.as_micros() - 1);
    let handed = scene.claim(ME, 9);
    assert!(handed.records.is_empty());
    assert_eq!(handed.not_before, Some(due), "and it says when");
    scene.now = due;
    assert_eq!(scene.claim(ME, 9).records.len(), 1);
}
