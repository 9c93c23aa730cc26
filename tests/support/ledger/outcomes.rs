//! What outcomes leave, and what is kept for ever.

use super::*;

pub(crate) fn c02_delays_follow_the_class(scene: &mut Scene<'_>) {
    let (hour, day) = (Delay::from_hours(1), Delay::from_days(1));
    let rows = [
        (Class::Unreachable, hour.mul_f64(0.5)),
        (Class::Interrupted, Delay::from_mins(1)),
        (Class::Missing, hour.mul_f64(8.0)),
        (Class::Gone, day.mul_f64(30.0)),
        (Class::Unsupported, day.mul_f64(7.0)),
        (Class::Throttled, Delay::from_mins(5)),
        (Class::Denied, day.mul_f64(30.0)),
    ];
    for (class, wanted) in rows {
        let key = class.word();
        scene.add([(key.to_owned(), class.word())]);
        let record = scene.fails(key, class);
        let wait = record.due_at.since(scene.now);
        assert!(wait >= wanted && wait <= wanted.mul_f64(1.25), "{key}: {wait}");
        assert_eq!(
            (record.class, record.failures, record.rungs.of(class)),
            (Some(class), 1, u32::from(class != Class::Throttled))
        );
    }
    assert_eq!(scene.get("denied").state, State::Parked);
}

pub(crate) fn c10_no_record_goes_without_a_word_to_forget_it(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example"), ("other".to_owned(), "i.example")]);
    let other = scene.fails_first("other");
    for n in 0..1_000 {
        // Whatever class, none gives up.
        let class = [Class::Gone, Class::Missing, Class::Unreachable, Class::Denied, Class::Corrupt][n % 5];
        scene.fails_named("k", class);
    }
    let record = scene.get("k");
    assert_eq!((record.first_seen, record.failures), (START, 1_000));
    assert_eq!(scene.all().len(), 2);
    assert_eq!(scene.on(|s, _| s.forget(&[named("k"), named("unknown")])), 1);
    assert_eq!(scene.all().iter().map(|r| r.key.clone()).collect::<Vec<_>>(), [other.key]);
}

impl Scene<'_> {
    /// Fails the one of this name, whatever else is due.
    pub(crate) fn fails_named(&mut self, key: &str, class: Class) -> Record {
        self.now = self.now.max(self.get(key).due_at);
        let (_, token, _) = self.on(|s, t| s.claim_early(&named(key), ME, t)).expect("nobody works on it");
        self.settle(key, token, Word::Failed(failed(class))).expect("the holder");
        self.get(key)
    }

    fn fails_first(&mut self, key: &str) -> Record {
        self.fails_named(key, Class::Gone)
    }
}

pub(crate) fn c21_a_time_that_no_rule_gives_is_cut_when_it_is_opened(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example"), ("fine".to_owned(), "i.example")]);
    let fine = scene.fails_named("fine", Class::Missing);
    // A clock that runs ten years ahead: all that fails by it is due in ten years.
    let right = scene.now;
    scene.pass(Delay::from_days(3_650));
    let wrong = scene.fails_named("k", Class::Missing);
    assert!(wrong.due_at.since(right) > Delay::from_days(3_600));
    scene.now = right;
    scene.store = scene.beside();
    let longest = scene.rules.table.longest();
    assert!(scene.get("k").due_at <= scene.now + longest);
    assert_eq!(scene.get("fine").due_at, fine.due_at);
    scene.pass(longest);
    assert_eq!(keys(&scene.claim(ME, 9)).len(), 2);
}

pub(crate) fn c22_wrong_bytes_from_one_mirror_leave_the_others(scene: &mut Scene<'_>) {
    let mirrors = vec!["http://a.example/f".to_owned(), "http://b.example/f".to_owned()];
    let two = Addition { mirrors: mirrors.clone(), ..addition("k", "a.example") };
    scene.on(|s, t| s.add(&[two], t));
    let wrong = |scene: &mut Scene<'_>, url: &str| {
        let (record, token) = scene.claim_one(ME);
        assert!(record.usable(scene.now).any(|usable| usable == url));
        let wrong = Failed { mirror: Some(url.to_owned()), ..failed(Class::Corrupt) };
        scene.settle("k", token, Word::Failed(wrong)).expect("the holder");
    };
    wrong(scene, &mirrors[0]);
    let record = scene.get("k");
    assert_eq!(record.due_at, scene.now, "the other at once");
    assert_eq!(record.usable(scene.now).collect::<Vec<_>>(), [&mirrors[1]]);
    wrong(scene, &mirrors[1]);
    let wait = scene.get("k").due_at.since(scene.now);
    assert!(wait >= Delay::from_days(7) && wait < Delay::from_days(9), "{wait}");
}

pub(crate) fn c23_a_full_disk_pauses_everybody_and_blames_nobody(scene: &mut Scene<'_>) {
    scene.add(numbered("k", 5, "h.example"));
    let before = scene.all();
    let (record, token) = scene.claim_one(ME);
    let key = record.key.as_str().to_owned();
    scene.settle(&key, token, Word::Failed(failed(Class::LocalFault))).expect("the holder");
    let unblamed = |r: &Record| (r.failures, r.rungs, r.due_at, r.class, r.state.clone());
    let all = scene.all();
    assert!(all.iter().map(unblamed).eq(before.iter().map(unblamed)));
    let handed = scene.claim(OTHER, 9);
    assert!(handed.records.is_empty() && handed.not_before == Some(scene.now + Delay::from_mins(5)));
    scene.pass(Delay::from_mins(5));
    assert_eq!(scene.claim(OTHER, 1).records.len(), 1, "looked at again");

    // Twice in a row is twice as long, and room on the disk ends it at once.
    let (record, token) = scene.claim_one(ME);
    scene.settle(record.key.as_str(), token, Word::Failed(failed(Class::LocalFault))).expect("the holder");
    scene.pass(Delay::from_mins(9));
    assert!(scene.claim(OTHER, 9).records.is_empty());
    scene.see(Whom::All, Kind::Space);
    assert_eq!(scene.claim(OTHER, 9).records.len(), 4);
}

pub(crate) fn c24_progress_is_remembered_between_attempts(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let broken = |scene: &mut Scene<'_>, bytes: u64| {
        scene.now = scene.now.max(scene.get("k").due_at);
        let (_, token) = scene.claim_one(ME);
        let broken = Failed { bytes_done: Length(bytes), ..failed(Class::Interrupted) };
        scene.settle("k", token, Word::Failed(broken)).expect("the holder");
        scene.get("k").due_at.since(scene.now).as_secs() / 60
    };
    assert_eq!([broken(scene, 1), broken(scene, 2), broken(scene, 3)], [1, 2, 4]);
    assert_eq!(broken(scene, (1 << 20) + 3), 1, "a mebibyte more");
    assert_eq!(scene.get("k").bytes_done, Length((1 << 20) + 3));
}

pub(crate) fn c26_what_was_drawn_is_stored(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    let record = scene.fails("k", Class::Missing);
    for _ in 0..2 {
        scene.store = scene.beside();
        assert_eq!(scene.get("k"), record);
    }
}

pub(crate) fn what_was_done_is_kept_with_its_size_and_digest(scene: &mut Scene<'_>) {
    scene.add([("k".to_owned(), "h.example")]);
    scene.fails("k", Class::Interrupted);
    scene.pass(Delay::from_days(1));
    let (_, token) = scene.claim_one(ME);
    let word = Word::Done { size: Some(Length(12)), digest: Some("sha-256=aa".to_owned()) };
    scene.settle("k", token, word).expect("the holder");
    let record = scene.get("k");
    assert_eq!((record.size, record.digest.as_deref()), (Some(Length(12)), Some("sha-256=aa")));
    assert_eq!((record.failures, record.class, &record.state), (1, None, &State::Done));
    let stats = {
        let now = scene.now;
        scene.on(|s, _| s.stats(now))
    };
    assert_eq!((stats.done, stats.waiting, stats.leased, stats.hosts), (1, 0, 0, 1));
}

pub(crate) fn a_page_after_another_shows_each_record_once(scene: &mut Scene<'_>) {
    scene.add(numbered("k", 257, "h.example"));
    let (mut names, mut after) = (Vec::new(), None::<Key>);
    loop {
        let page = scene.on(|s, _| s.page(Page { after: after.as_ref(), most: 50 }));
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        names.extend(page.iter().map(|r| r.key.as_str().to_owned()));
    }
    assert!(names.len() == 257 && names.is_sorted_by(|a, b| a < b));
}

pub(crate) fn what_is_exported_comes_in_elsewhere(scene: &mut Scene<'_>) {
    scene.add(numbered("k", 9, "h.example"));
    scene.fails_named("k000003", Class::Corrupt);
    scene.on(|s, t| s.claim_early(&named("k000004"), OTHER, t)).expect("free");
    let all = scene.all();
    scene.on(|s, _| s.forget(&all.iter().map(|r| r.key.clone()).collect::<Vec<_>>()));
    assert_eq!(scene.on(|s, t| s.import(&all, t)), 9);
    assert_eq!(scene.all(), all);
    assert_eq!(scene.on(|s, t| s.import(&all, t)), 0, "what is known is left alone");
}

pub(crate) fn a_file_that_failed_elsewhere_comes_with_its_failure(scene: &mut Scene<'_>) {
    let given_up = Addition { failed: Some(failed(Class::Gone)), ..addition("k", "h.example") };
    scene.on(|s, t| s.add(&[given_up], t));
    let record = scene.get("k");
    assert_eq!((record.class, record.failures, &record.state), (Some(Class::Gone), 1, &State::Waiting));
    assert!(record.due_at.since(scene.now) >= Delay::from_days(30));
}
