//! What is printed of a sync, and which exit status it has.

use super::*;
use crate::cli::foreign::{Counts, SourceReport, SourceState};
use crate::core::failure::LocalFault;
use crate::core::sync::config::Mode;

fn report(outcome: Outcome, state: SourceState, counts: Counts) -> ModuleReport {
    let source = SourceReport { name: "a".into(), url: "http://a.example/".into(), state, doubt: None, counts };
    ModuleReport {
        name: "exitlists".into(),
        mode: Mode::SyncOnly,
        outcome,
        hook: None,
        sources: vec![source],
        pruned: 0,
    }
}

fn good() -> ModuleReport {
    report(
        Outcome::Done,
        SourceState::Read,
        Counts { indexed: 3, fetched: 2, bytes: 2048, copied: 2, ..Counts::default() },
    )
}

#[test]
fn the_exit_status_tells_what_is_left() {
    let busy = Outcome::Busy(LocalFault::InUse { path: "x".into(), holder: "7".into() });
    let hooked = ModuleReport { hook: Some("it ended".into()), ..good() };
    for (reports, exit) in [
        (vec![], Exit::Complete),
        (vec![good()], Exit::Complete),
        (vec![good(), report(Outcome::Done, SourceState::Failed("404".into()), Counts::default())], Exit::Left),
        (vec![report(Outcome::Done, SourceState::Read, Counts { left: 1, ..Counts::default() })], Exit::Left),
        (vec![report(Outcome::Done, SourceState::Read, Counts { failed: 1, ..Counts::default() })], Exit::Left),
        (
            vec![report(Outcome::Done, SourceState::Read, Counts { vanished: 1, rejected: 2, ..Counts::default() })],
            Exit::Complete,
        ),
        (vec![hooked], Exit::Left),
        (vec![report(busy, SourceState::Unasked, Counts::default()), good()], Exit::Local),
        (vec![report(Outcome::Off, SourceState::Unasked, Counts::default())], Exit::Complete),
    ] {
        assert_eq!(exit_of(&reports), exit, "{reports:?}");
    }
}

#[test]
fn a_table_has_a_line_a_source() {
    let failed = report(Outcome::Done, SourceState::Failed("404".into()), Counts::default());
    assert_eq!(
        table::text(&[good(), failed.clone()], Depth::Full),
        "MODULE     SOURCE  INDEXED  FETCHED    BYTES  LEFT  NEW  IDENTICAL  CONFLICTS  REJECTED  DELETED  STATE\n\
         exitlists  a             3        2  2.0 KiB     0    2          0          0         0        0  ok\n\
         exitlists  a             0        0      0 B     0    0          0          0         0        0  failed\n"
    );
    let plan = table::text(&[good()], Depth::Plan);
    assert!(plan.starts_with("MODULE     SOURCE  INDEXED  TO FETCH  TO DELETE  REFUSED  STATE\n"), "{plan}");
    let told: serde_json::Value = serde_json::from_str(&table::json(&[good(), failed], Depth::Full)).expect("JSON");
    assert_eq!((&told["schema"], &told["modules"][0]["sources"][0]["copied"]), (&1.into(), &2.into()));
    assert_eq!(told["modules"][1]["sources"][0]["why"], "404");
}

#[test]
fn relative_paths_are_meant_from_the_configuration() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.properties");
    let text = "SyncFolder=sync\nRecentPath=/r/recent\nSyncExitLists=SyncOnly\nSyncSourcesExitLists=http://a/\nExitListsOutDirectory=o\n";
    std::fs::write(&path, text).expect("written");
    let config = read(&path).expect("understood");
    assert_eq!((config.sync_folder, config.modules[0].out.clone()), (dir.path().join("sync"), dir.path().join("o")));
    assert_eq!(config.recent.as_deref(), Some(Path::new("/r/recent")));
    std::fs::write(&path, "SyncExitLists = Maybe\n").expect("written");
    let trouble = read(&path).expect_err("no such mode");
    assert_eq!(trouble.exit(), Exit::Usage);
    assert!(trouble.to_string().contains("c.properties: line 1: SyncExitLists: \"Maybe\""), "{trouble}");
}
