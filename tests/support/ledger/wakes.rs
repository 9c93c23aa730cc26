//! Fresh activity, and what is remembered of it.

use super::*;

const SPREAD: Delay = Delay::from_secs(30);

fn key(name: &str) -> Whom {
    Whom::Key(named(name))
}

/// A record that failed so often that it waits for a month, and a day of that has passed.
fn pessimist(scene: &mut Scene<'_>, name: &str, class: Class) {
    scene.add([(name.to_owned(), "h.example")]);
    (0..7).for_each(|_| _ = scene.fails_named(name, class));
    scene.pass(Delay::from_days(1));
    assert!(scene.get(name).due_at.since(scene.now) >= Delay::from_days(6));
}

pub(crate) fn c03_what_is_seen_now_outweighs_what_failed_long_ago(scene: &mut Scene<'_>) {
    pessimist(scene, "k", Class::Missing);
    assert_eq!(scene.see(key("k"), Kind::Listed), [(Woken::Sooner, 1)]);
    assert!(scene.get("k").due_at.since(scene.now) <= SPREAD);
    scene.pass(SPREAD);
    let (_, token) = scene.claim_one(ME);
    scene.settle("k", token, Word::Failed(failed(Class::Missing))).expect("the holder");
    let wait = scene.get("k").due_at.since(scene.now);
    assert!(wait >= Delay::from_hours(8) && wait < Delay::from_hours(10), "{wait}");
}

pub(crate) fn c05_and_06_one_due_sooner_and_one_seen_before_stay(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let before = scene.fails_named("k", Class::Missing);
    let seen = Seen { kind: Kind::Listed, at: before.last_attempt.unwrap() };
    let old = Sighting { of: key("k"), seen, source: String::new(), facts: Vec::new() };
    assert_eq!(scene.on(|s, t| s.observe(&[old], t)), [(Woken::Old, 1)]);
    assert_eq!(scene.get("k"), before);
    scene.now = Epoch::from_micros(before.due_at.as_micros() - 1);
    let told = scene.see(key("k"), Kind::Listed);
    assert!(told == [(Woken::Anyway, 1)] || before.luck == 0, "{told:?}");
    assert_eq!(scene.get("k").due_at, before.due_at);
}

pub(crate) fn c07_a_wake_under_work_is_honoured_at_its_end(scene: &mut Scene<'_>) {
    pessimist(scene, "k", Class::Missing);
    let claimed = |scene: &mut Scene<'_>| scene.on(|s, t| s.claim_early(&named("k"), ME, t)).expect("free").1;
    let token = claimed(scene);
    assert_eq!(scene.see(key("k"), Kind::Listed), [(Woken::Later, 1)]);
    assert!(scene.claim(OTHER, 9).records.is_empty(), "it is not run twice");
    scene.settle("k", token, Word::Failed(failed(Class::Missing))).expect("the holder");
    let wait = scene.get("k").due_at.since(scene.now);
    assert!(wait <= scene.rules.table.rule(Class::Missing).gap.saturating_add(SPREAD), "{wait}");
    scene.pass(wait);
    let token = claimed(scene);
    scene.see(key("k"), Kind::Listed);
    scene.settle("k", token, done()).expect("the holder");
    scene.pass(Delay::from_days(40));
    assert!(scene.claim(OTHER, 9).records.is_empty(), "and lost when it was done");
}

pub(crate) fn c08_many_wakes_are_slowed_and_none_is_forgotten(scene: &mut Scene<'_>) {
    let rate = 20.0;
    scene.rules.wakes = Bucket::new(rate, 10);
    let failed = Some(failed(Class::Unreachable));
    let additions: Vec<_> = numbered("k", 3_000, "h.example")
        .map(|(n, h)| Addition { failed: failed.clone(), ..addition(&n, h) })
        .collect();
    scene.on(|s, t| s.add(&additions, t));
    scene.pass(Delay::from_mins(10));
    let woken = scene.see(Whom::All, Kind::NetworkBack);
    let sooner = woken.iter().find(|(w, _)| *w == Woken::Sooner).map_or(0, |(_, n)| *n);
    let mut due: Vec<Epoch> = scene.all().iter().map(|r| r.due_at).collect();
    due.sort_unstable();
    // What the allowance has not brought on within the twenty minutes that were left is due anyway.
    assert!(sooner > 2_900 || due.last().is_some_and(|last| last.since(scene.now) < Delay::from_mins(30)), "{woken:?}");
    let within = |secs: u64| due.partition_point(|at| *at <= scene.now + Delay::from_secs(secs));
    for secs in [31, 60, 100] {
        let most = (secs as f64).mul_add(rate, 11.0);
        assert!(within(secs) as f64 <= most, "{} within {secs} s", within(secs));
    }
    assert_eq!(scene.all().len(), 3_000);
}

pub(crate) fn c09_not_before_the_floor(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let (_, token) = scene.claim_one(ME);
    let asked = Failed { asked: Some(Delay::from_hours(1)), ..failed(Class::Throttled) };
    scene.settle("k", token, Word::Failed(asked)).expect("the holder");
    let floor = scene.now + Delay::from_hours(1);
    scene.pass(Delay::from_mins(20));
    scene.see(key("k"), Kind::User);
    scene.see(key("k"), Kind::Mirror);
    assert!(scene.get("k").due_at >= floor);
    // Its host waits as a whole.
    scene.add([("l".to_owned(), "h.example"), ("m".to_owned(), "i.example")]);
    assert_eq!(keys(&scene.claim(ME, 9)), BTreeSet::from(["m".to_owned()]));
}

pub(crate) fn c25_a_parked_one_is_woken_by_what_it_waits_for(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example"), ("l".to_owned(), "h.example")]);
    let parked = scene.fails_named("k", Class::Denied);
    scene.fails_named("l", Class::Denied);
    assert_eq!((&parked.state, parked.class), (&State::Parked, Some(Class::Denied)));
    scene.pass(Delay::from_hours(1));
    assert_eq!(scene.see(key("k"), Kind::Announce), [(Woken::Foreign, 1)]);
    assert_eq!(scene.see(Whom::All, Kind::NetworkBack), []);
    assert_eq!(scene.get("k").due_at, parked.due_at);
    assert_eq!(scene.see(key("k"), Kind::Credential), [(Woken::Sooner, 1)]);
    scene.pass(SPREAD);
    assert_eq!(keys(&scene.claim(ME, 9)), BTreeSet::from(["k".to_owned()]));
    scene.now = scene.get("l").due_at;
    assert!(keys(&scene.claim(ME, 9)).contains("l"), "the probe always comes");
}

pub(crate) fn a_new_mirror_and_a_new_digest_wake(scene: &mut Scene<'_>) {
    pessimist(scene, "k", Class::Corrupt);
    let told = |scene: &mut Scene<'_>, fact: Fact| {
        let seen = Seen { kind: Kind::Announce, at: scene.now };
        let sighting = Sighting { of: key("k"), seen, source: "an index".to_owned(), facts: vec![fact] };
        scene.on(|s, t| s.observe(&[sighting], t))
    };
    let known = Fact::Mirror("http://h.example/k".to_owned());
    assert_eq!(told(scene, known), [(Woken::Foreign, 1)], "it is no news");
    assert_eq!(told(scene, Fact::Mirror("http://new.example/k".to_owned())), [(Woken::Sooner, 1)]);
    assert_eq!(scene.get("k").mirrors.len(), 2);
    pessimist(scene, "l", Class::Corrupt);
    let digest = Addition { digest: Some("sha-256=bb".to_owned()), ..addition("l", "h.example") };
    assert_eq!(scene.on(|s, t| s.add(std::slice::from_ref(&digest), t)), [Added::Richer]);
    assert_eq!(scene.on(|s, t| s.add(&[digest], t)), [Added::Known]);
    let record = scene.get("l");
    assert!(record.due_at.since(scene.now) <= SPREAD && record.usable(scene.now).count() == 1);
}

pub(crate) fn the_latest_observations_are_kept(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    for n in 0..40 {
        scene.pass(Delay::from_secs(1));
        let seen = Seen { kind: Kind::Announce, at: scene.now };
        let source = format!("{n}{}", "ä".repeat(400));
        let sighting = Sighting { of: key("k"), seen, source, facts: Vec::new() };
        scene.on(|s, t| s.observe(&[sighting], t));
    }
    let kept = scene.on(|s, _| s.observations(&named("k")));
    assert_eq!(kept.len(), 16);
    assert!(kept[0].source.starts_with("39") && kept[15].source.starts_with("24"), "{kept:?}");
    assert!(kept.iter().all(|o| o.source.len() <= 200 && o.kind == Kind::Announce));
    assert!(scene.on(|s, _| s.observations(&named("unknown"))).is_empty());
}

pub(crate) fn a_wake_of_a_host_is_of_its_records_alone(scene: &mut Scene<'_>) {
    let failed = Some(failed(Class::Unreachable));
    let both = [addition("h", "h.example"), addition("i", "i.example")];
    let both: Vec<_> = both.into_iter().map(|a| Addition { failed: failed.clone(), ..a }).collect();
    scene.on(|s, t| s.add(&both, t));
    scene.pass(Delay::from_mins(10));
    let (h, i) = (scene.get("h"), scene.get("i"));
    assert_eq!(scene.see(Whom::Host("h.example".to_owned()), Kind::HostUp), [(Woken::Sooner, 1)]);
    assert!(scene.get("h").due_at < h.due_at);
    assert_eq!(scene.get("i"), i);
}
