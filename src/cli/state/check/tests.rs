//! What is called damage, and what comes of a repair, over a fake state file.

use crate::cli::foreign::{Inspection, JournalState, PartState};
use crate::cli::state::tests::{Fake, fake, ran};
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::pers_xfer::sharing::OwnerId;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};

const MB: u64 = 1 << 20;

fn range(start: u64, end: u64) -> ByteRange {
    ByteRange::new(Offset(start * MB), Offset(end * MB))
}

fn set(ranges: &[(u64, u64)]) -> RangeSet {
    ranges.iter().map(|(start, end)| range(*start, *end)).collect()
}

/// A sound part file of 3 MiB.
fn sound() -> Inspection {
    Inspection {
        part: PartState::Regular,
        length: Length(3 * MB),
        held: set(&[(0, 3)]),
        verified: set(&[(0, 2)]),
        damaged: vec![],
        journal: JournalState::Sound,
        holder: None,
    }
}

/// A transfer whose record counts on 3 MiB, and what is found of them.
fn book(found: Inspection) -> Fake {
    let book = fake();
    book.records.borrow_mut()[0].dossier.part.held = Length(3 * MB);
    book.found.replace(Some(found));
    book
}

fn with(book: Fake, change: impl FnOnce(&mut Record)) -> Fake {
    change(&mut book.records.borrow_mut()[0]);
    book
}

#[track_caller]
fn told(book: &Fake, exit: u8, words: &str) {
    let (out, _, ended) = ran(book, &["check"]);
    assert_eq!(ended, Ok(exit), "{out}");
    assert!(out.contains(words), "{words:?} is not in\n{out}");
}

#[test]
fn a_sound_file_is_told_in_a_line() {
    let segments = Inspection { held: set(&[(0, 1), (2, 3)]), ..sound() };
    let book = with(book(segments), |record| record.dossier.part.held = Length(MB));
    told(
        &book,
        0,
        "waiting.bin.persxfer-part: holds 2.0 MiB in 2 segments, 2.0 MiB read and compared with their block sums",
    );
}

#[test]
fn what_has_no_sums_is_told_as_not_checked_and_is_no_damage() {
    let young = || Inspection { verified: set(&[]), held: set(&[(0, 1), (2, 3)]), ..sound() };
    let book = with(book(young()), |record| record.dossier.part.held = Length(MB));
    let words =
        "has no block sums yet for bytes 0-1048575, 2097152-3145727 (2.0 MiB): not checked; `--repair` keeps them";
    told(&book, 0, words);
    told(&book, 0, ", no damage found, 2.0 MiB not checked\n");
    for more in [&[][..], &["--repair"][..]] {
        let (out, _, exit) = ran(&book, &[&["check", "--json"], more].concat());
        assert_eq!(exit, Ok(0), "{out}");
        let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!((&told["faults"], &told["files"][0]["unchecked"]), (&0.into(), &(2 * MB).into()));
        let finding = &told["findings"][0];
        assert_eq!((&finding["kind"], &finding["grade"]), (&"unchecked".into(), &"note".into()));
        assert_eq!(finding["ranges"], serde_json::json!([[0, MB], [2 * MB, 3 * MB]]));
    }
    let whole = Inspection { verified: set(&[(0, 3)]), ..sound() };
    told(&self::book(whole), 0, ", no damage\n");
}

#[test]
fn damage_is_told_with_its_place_and_what_to_do() {
    let wrong = Inspection { damaged: vec![range(1, 2)], ..sound() };
    told(&book(wrong.clone()), 3, "is damaged: bytes 1048576-2097151 (1.0 MiB) are not what was written");
    told(&book(wrong), 3, "; `persxfer state check --repair` has");
    let many = (0..40).map(|i| ByteRange::new(Offset(i * 100), Offset(i * 100 + 10))).collect();
    told(&book(Inspection { damaged: many, ..sound() }), 3, "700-709 and 32 more (400 B)");
    let cut = Inspection { length: Length(MB), held: set(&[(0, 1)]), damaged: vec![range(1, 3)], ..sound() };
    told(
        &book(cut),
        3,
        "holds 1.0 MiB of the 3.0 MiB that are recorded: bytes 1048576-3145727 (2.0 MiB) are missing; the next",
    );
    let short = Inspection { length: Length(MB), held: set(&[(0, 1)]), ..sound() };
    told(&book(short.clone()), 3, "holds 1.0 MiB of the 3.0 MiB that are recorded; the next session");
    let gone = Inspection { part: PartState::Missing, length: Length::ZERO, held: set(&[]), ..sound() };
    told(&book(gone.clone()), 3, "is gone, with the 3.0 MiB that are recorded");
    told(&book(Inspection { part: PartState::Strange, ..gone.clone() }), 3, "is no regular file, and was not opened");
    told(&book(Inspection { part: PartState::Folder, ..gone }), 3, "move it away");
    let lost = |journal| Inspection { held: set(&[]), verified: set(&[]), journal, ..sound() };
    told(&book(lost(JournalState::Missing)), 3, "has lost its journal, so that nothing of the 3.0 MiB in it counts");
    told(&book(lost(JournalState::Unreadable)), 3, "has a journal that cannot be read");
}

#[test]
fn what_a_kill_leaves_is_no_damage() {
    told(&book(Inspection { journal: JournalState::Torn, ..sound() }), 0, "whose last words are torn, as after a kill");
    let short = Inspection { length: Length(2 * MB), held: set(&[(0, 2)]), ..sound() };
    let killed = with(book(short), |record| record.owner = Some(OwnerId(7)));
    told(&killed, 0, "holds 2.0 MiB of the 3.0 MiB that are recorded");
    let early = Inspection { held: set(&[]), journal: JournalState::Missing, ..sound() };
    let early = with(book(early), |record| {
        record.dossier.part.held = Length::ZERO;
        record.dossier.part.total = Some(Length(9));
    });
    told(&early, 0, "has lost its journal");
    let failed = with(
        book(Inspection { part: PartState::Missing, length: Length::ZERO, held: set(&[]), ..sound() }),
        |record| record.status = Status::Failed { code: -119, message: "wrong".into() },
    );
    told(&failed, 0, "no damage");
}

#[test]
fn a_file_that_has_its_final_name_is_no_damage() {
    let published = Inspection { part: PartState::Published, length: Length::ZERO, held: set(&[]), ..sound() };
    told(&book(published), 0, "has its final name already");
}

#[test]
fn a_repair_is_told_and_the_record_says_no_more_than_is_left() {
    let book = Fake { left: set(&[(0, 1), (2, 3)]), ..book(Inspection { damaged: vec![range(1, 2)], ..sound() }) };
    let (out, _, exit) = ran(&book, &["check", "--repair"]);
    assert_eq!(exit, Ok(0), "{out}");
    assert!(out.contains("repaired: 2.0 MiB are still held") && out.ends_with("1 fault repaired\n"), "{out}");
    let part = book.records.borrow()[0].dossier.part.clone();
    assert_eq!((part.held, part.beyond), (Length(MB), Length(MB)));
    assert_eq!(ran(&book, &["check"]).2, Ok(0));
}

#[test]
fn what_a_process_works_on_is_never_repaired() {
    let wrong = || Inspection { damaged: vec![range(1, 2)], ..sound() };
    let held = Fake { held: Some(XferId(0x11)), ..book(wrong()) };
    told(&held, 0, "process 4711 works on it; that may be changing them");
    let (out, _, exit) = ran(&held, &["check", "--repair"]);
    assert_eq!(exit, Ok(5), "{out}");
    assert!(out.contains("not repaired: stop that process first"), "{out}");
    let raced = Fake { refuses: true, ..book(wrong()) };
    let (out, _, exit) = ran(&raced, &["check", "--repair"]);
    assert_eq!(exit, Ok(5), "{out}");
    assert!(out.contains("not repaired") && out.contains("4711"), "{out}");
    assert_eq!(raced.records.borrow()[0].dossier.part.held, Length(3 * MB));
}

#[test]
fn as_json() {
    let book = book(Inspection { damaged: vec![range(1, 2)], ..sound() });
    let (out, _, exit) = ran(&book, &["check", "--json"]);
    assert_eq!(exit, Ok(3));
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&told["schema"], &told["transfers"], &told["readable"]), (&1.into(), &4.into(), &true.into()));
    assert_eq!((&told["faults"], &told["repaired"]), (&1.into(), &0.into()));
    let (file, finding) = (&told["files"][0], &told["findings"][0]);
    assert_eq!((&file["held"], &file["segments"], &file["verified"]), (&(3 * MB).into(), &1.into(), &(2 * MB).into()));
    assert_eq!((&file["journal"], &file["in_use_by"]), (&"sound".into(), &().into()));
    assert_eq!((&finding["kind"], &finding["grade"]), (&"block".into(), &"damage".into()));
    assert_eq!(finding["ranges"], serde_json::json!([[MB, 2 * MB]]));
    let documented = include_str!("../../../../docs/events.md");
    for keys in [&told, file, finding].into_iter().filter_map(|of| of.as_object()) {
        keys.keys().for_each(|key| assert!(documented.contains(&format!("`{key}`")), "docs/events.md lacks `{key}`"));
    }
}
