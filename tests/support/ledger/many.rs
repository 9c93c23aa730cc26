//! Many records: what is handed out of a backlog, to whom, and how fast.

use persxfer::core::ledger::host::Courtesy;

use super::*;

pub(crate) fn c18_a_month_of_backlog_is_no_burst_and_the_woken_have_their_share(scene: &mut Scene<'_>) {
    scene.rules.dispatch = Bucket::new(10.0, 40);
    scene.rules.courtesy = Courtesy { gap: Delay::from_secs(5), at_once: 4 };
    let hosts = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", ""];
    scene.add((0..3_300).map(|n| (format!("k{n:05}"), hosts[n % hosts.len()])));
    scene.add(numbered("nobodys", 1_000, ""));
    scene.pass(Delay::from_days(30));
    let fresh = Addition { failed: Some(failed(Class::Unreachable)), ..addition("fresh", "z") };
    scene.on(|s, t| s.add(&[fresh], t));
    scene.pass(Delay::from_mins(10));
    scene.see(Whom::Key(named("fresh")), Kind::Announce);
    let (start, mut handed, mut by_host) = (scene.now, Vec::new(), std::collections::BTreeMap::<_, Vec<Epoch>>::new());
    while scene.now < start + Delay::from_secs(60) {
        for (record, token, _) in scene.claim(ME, 25).records {
            handed.push((record.key.as_str().to_owned(), scene.now));
            by_host.entry(record.host.clone()).or_default().push(scene.now);
            scene.settle(record.key.as_str(), token, done()).expect("the holder");
        }
        scene.pass(Delay::from_millis(500));
    }
    assert!(handed.len() <= 40 + 600, "{} in the first minute", handed.len());
    assert!(handed.len() >= 600, "and no fewer than it may: {}", handed.len());
    for (host, times) in by_host.iter().filter(|(host, _)| !host.is_empty()) {
        let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
        assert!(gaps.min().is_none_or(|gap| gap >= Delay::from_secs(5)), "{host}: {times:?}");
    }
    let fresh = handed.iter().find(|(key, _)| key == "fresh").expect("served").1;
    assert!(fresh.since(start) <= Delay::from_secs(31), "within its spread, and at once when it is due");
}

pub(crate) fn c19_a_host_with_many_due_and_in_trouble_hides_no_other(scene: &mut Scene<'_>) {
    scene.rules.courtesy = Courtesy { gap: Delay::ZERO, at_once: 2 };
    scene.add(numbered("big", 5_000, "big.example"));
    let others: Vec<String> = (0..100).map(|n| format!("h{n}.example")).collect();
    let additions: Vec<_> = (0..300).map(|n| addition(&format!("small{n:04}"), &others[n % others.len()])).collect();
    scene.on(|s, t| s.add(&additions, t));
    // The big one is down.
    for _ in 0..3 {
        let (_, token, _) = scene.on(|s, t| s.claim_early(&named("big000000"), ME, t)).expect("free");
        scene.settle("big000000", token, Word::Failed(failed(Class::Unreachable))).expect("the holder");
    }
    let mut done_of_small = 0;
    for round in 0..4 {
        let handed = scene.claim(ME, 100);
        assert!(round > 1 || handed.records.len() == 100, "round {round}: all that are wanted");
        for (record, token, _) in handed.records {
            assert!(record.key.as_str().starts_with("small"), "{:?}", record.key);
            done_of_small += 1;
            scene.settle(record.key.as_str(), token, done()).expect("the holder");
        }
    }
    assert_eq!(done_of_small, 300);
    let nothing = scene.claim(ME, 100);
    assert!(nothing.records.is_empty());
    let back = nothing.not_before.expect("the big one comes back");
    assert!(back > scene.now && back <= scene.now + Delay::from_hours(6));
    scene.now = back;
    assert_eq!(scene.claim(ME, 100).records.len(), 2, "as many as it may have at once");
}

pub(crate) fn c20_a_clock_that_jumps_makes_no_storm(scene: &mut Scene<'_>) {
    let (day, terms) = (Delay::from_days(1), scene.rules.terms);
    scene.add(numbered("k", 60, "h.example"));
    scene.pass(day);
    let held = keys(&scene.claim(ME, 20));
    // The clock is set back by a day: what is leased stays so, and not for a day longer.
    scene.now = scene.now - day;
    let others = keys(&scene.claim(OTHER, 20));
    assert!(others.is_disjoint(&held), "no lease ends by it");
    let leases = scene.all().into_iter().filter(|r| held.contains(r.key.as_str()));
    assert!(leases.map(|r| r.due_at).all(|until| until > scene.now && until <= scene.now + terms.longest()));
    scene.pass(terms.longest());
    assert_eq!(scene.claim(OTHER, 100).records.len(), 60, "none waits for the day that was taken back");

    // Ahead by a year: all leases are over, and what is handed out is what the allowance has.
    scene.rules.dispatch = Bucket::new(1.0, 7);
    scene.pass(day.mul_f64(365.0));
    let handed: usize = (0..20).map(|_| scene.claim(ME, 100).records.len()).sum();
    assert_eq!(handed, 7);
}

pub(crate) fn a_gap_is_kept_between_two_attempts_at_a_host(scene: &mut Scene<'_>) {
    scene.rules.courtesy = Courtesy { gap: Delay::from_secs(10), at_once: 9 };
    scene.add(numbered("k", 5, "h.example").chain(numbered("l", 5, "i.example")));
    assert_eq!(scene.claim(ME, 9).records.len(), 2, "one of each");
    let nothing = scene.claim(ME, 9);
    assert!(nothing.records.is_empty());
    assert_eq!(nothing.not_before, Some(scene.now + Delay::from_secs(10)));
    scene.pass(Delay::from_secs(10));
    assert_eq!(scene.claim(ME, 9).records.len(), 2);
}

pub(crate) fn no_more_of_a_host_than_it_may_have_at_once(scene: &mut Scene<'_>) {
    scene.rules.courtesy = Courtesy { gap: Delay::ZERO, at_once: 3 };
    scene.add(numbered("k", 9, "h.example").chain(numbered("nobodys", 50, "")));
    let handed = scene.claim(ME, 60);
    let (of_host, nobodys): (Vec<_>, Vec<_>) = handed.records.iter().partition(|(r, ..)| r.host == "h.example");
    assert_eq!((of_host.len(), nobodys.len()), (3, 50), "records without a host share none");
    assert!(scene.claim(OTHER, 60).records.is_empty());
    let (record, token, _) = of_host[0];
    scene.settle(record.key.as_str(), *token, done()).expect("the holder");
    assert_eq!(scene.claim(OTHER, 60).records.len(), 1, "one ended, one more");
    scene.pass(scene.rules.terms.longest());
    assert_eq!(
        scene.claim(OTHER, 60).records.iter().filter(|(r, ..)| r.host == "h.example").count(),
        3,
        "leases ended"
    );
}
