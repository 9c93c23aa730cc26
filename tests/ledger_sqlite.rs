//! The long-term ledger in an SQLite file: the cases that need a store, and what is of this store alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test that cannot be set up has failed"
)]

#[path = "support/ledger/mod.rs"]
mod ledger;
mod support {
    pub(crate) use super::ledger;
}

use std::path::PathBuf;

use ledger::{Scene, Site, named, numbered};
use persxfer::core::ledger::Rules;
use persxfer::core::time::Epoch;
use persxfer::io::store::sqlite::Sqlite;
use persxfer::io::store::{LedgerStore, StoreError, Turn};
use rand::SeedableRng;
use tempfile::TempDir;

struct File(TempDir);

impl File {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("ledger.db")
    }
}

impl Site for File {
    fn open(&self, turn: &Turn<'_>) -> Box<dyn LedgerStore> {
        Box::new(Sqlite::open(&self.path(), turn).unwrap())
    }
}

ledger_cases!(File::new());

fn opened(path: &std::path::Path) -> Result<Sqlite, StoreError> {
    let mut rng = rand::rngs::StdRng::seed_from_u64(1);
    Sqlite::open(path, &Turn { now: Epoch::from_secs(1_800_000_000), rules: &Rules::default(), rng: &mut rng })
}

#[test]
fn c28_a_claim_goes_by_the_indexes() {
    let file = File::new();
    let mut scene = Scene::new(&file);
    scene.add(numbered("k", 100, "h.example"));
    let c = rusqlite::Connection::open(file.path()).unwrap();
    let plan = |sql: &str| {
        let mut statement = c.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        lines.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    for (sql, index) in [
        ("SELECT * FROM host WHERE ready_at <= 9 ORDER BY ready_at LIMIT 9", "host_ready"),
        (
            "SELECT * FROM item i WHERE i.host = 1 AND i.state < 3 AND i.due_at <= 9 ORDER BY i.due_at LIMIT 2",
            "item_due",
        ),
        (
            "SELECT * FROM item i WHERE i.woken_at IS NOT NULL AND i.state < 2 AND i.due_at <= 9 ORDER BY i.due_at LIMIT 9",
            "item_woken",
        ),
        ("SELECT count(*) FROM item WHERE host = 1 AND state = 2 AND due_at > 9", "item_leased"),
        ("SELECT min(due_at) FROM item WHERE host = 1 AND state < 3", "item_due"),
        ("SELECT * FROM item WHERE key = 'k'", "sqlite_autoindex_item"),
    ] {
        let plan = plan(sql);
        assert!(plan.contains(index) && !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}

#[test]
fn c29_a_reader_that_stays_open_stops_no_claim() {
    let file = File::new();
    let mut scene = Scene::new(&file);
    scene.add(numbered("k", 2_000, "h.example"));
    let reader = rusqlite::Connection::open(file.path()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM item;").unwrap();
    let count =
        |c: &rusqlite::Connection| c.query_row("SELECT sum(claims) FROM item", [], |r| r.get::<_, i64>(0)).unwrap();
    let log = || std::fs::metadata(file.path().with_extension("db-wal")).unwrap().len();
    for _ in 0..200 {
        let handed = scene.claim(ledger::ME, 50);
        assert_eq!(handed.records.len(), 50, "claims go on");
        let words: Vec<_> = handed
            .records
            .iter()
            .map(|(r, token, _)| (r.key.clone(), *token, persxfer::io::store::Word::Released))
            .collect();
        scene.on(|s, t| s.settle(&words, t));
    }
    assert_eq!(count(&reader), 0, "it sees what it saw");
    reader.execute_batch("COMMIT").unwrap();
    drop(reader);
    // Once the reader is gone the log is written out, and used from its start again.
    scene.claim(ledger::ME, 50);
    let grown = log();
    for _ in 0..5 {
        scene.claim(ledger::ME, 50);
    }
    assert!(log() <= grown, "{} after {grown}", log());
}

#[test]
fn c30_a_backup_under_load_opens_and_its_leases_are_foreign() {
    let file = File::new();
    let mut scene = Scene::new(&file);
    scene.add(numbered("k", 3_000, "h.example"));
    scene.claim(ledger::ME, 500);
    let to = file.0.path().join("copy.db");
    let other = file.path();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let load = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let (mut store, rules) = (opened(&other).unwrap(), ledger::free_rules());
            let mut rng = rand::rngs::StdRng::seed_from_u64(2);
            let mut claimed = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let mut turn = Turn { now: ledger::START, rules: &rules, rng: &mut rng };
                let want = persxfer::io::store::Want { owner: ledger::OTHER, count: 5 };
                claimed += store.claim(want, &mut turn).unwrap().records.len();
            }
            claimed
        }
    });
    scene.on(|s, _| s.backup(&to));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(load.join().unwrap() > 0, "there was load");
    let mut copy = opened(&to).unwrap();
    let stats = copy.stats(ledger::START).unwrap();
    assert!(stats.leased >= 500 && stats.waiting + stats.leased == 3_000, "{stats:?}");
    assert!(copy.get(&named("k000000")).unwrap().unwrap().lease().is_some(), "nobody has taken them over");
    assert!(matches!(scene.store.backup(&to), Err(StoreError::Open { .. })), "an existing file is not written over");
}

#[test]
fn what_is_no_ledger_is_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("db");
    let kept = |bytes: &[u8]| assert_eq!(std::fs::read(&path).unwrap(), bytes);

    std::fs::write(&path, b"no database at all, but a text of some length").unwrap();
    assert!(matches!(opened(&path), Err(StoreError::Foreign { .. })));
    kept(b"no database at all, but a text of some length");

    std::fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE item (x)").unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(opened(&path), Err(StoreError::Foreign { .. })));
    kept(&before);

    std::fs::remove_file(&path).unwrap();
    drop(opened(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let said = opened(&path).unwrap_err();
    assert!(matches!(said, StoreError::Newer { found: 99, .. }), "{said}");

    for odd in [folder.path().to_owned(), folder.path().join("no/such/folder")] {
        assert!(matches!(opened(&odd), Err(StoreError::Open { .. })));
    }
}

#[test]
fn a_damaged_file_is_told_and_a_wrong_value_named() {
    let file = File::new();
    let mut scene = Scene::new(&file);
    scene.add(numbered("k", 3, "h.example"));
    let c = rusqlite::Connection::open(file.path()).unwrap();
    c.execute("UPDATE item SET class = 77 WHERE key = 'k000001'", []).unwrap();
    let said = scene.store.get(&named("k000001")).unwrap_err().to_string();
    assert!(said.contains("the class of \"k000001\" cannot be 77"), "{said}");
    assert!(scene.store.get(&named("k000000")).is_ok());
}

#[test]
fn a_time_that_was_damaged_is_cut_when_it_is_opened() {
    let file = File::new();
    let mut scene = Scene::new(&file);
    scene.add(numbered("k", 3, "h.example"));
    let c = rusqlite::Connection::open(file.path()).unwrap();
    c.execute("UPDATE item SET due_at = 9223372036854775807 WHERE key = 'k000001'", []).unwrap();
    scene.store = scene.beside();
    let due = scene.get("k000001").due_at;
    assert!(due <= scene.now + scene.rules.table.longest());
    scene.pass(scene.rules.table.longest());
    assert_eq!(scene.claim(ledger::ME, 9).records.len(), 3);
}

#[test]
fn its_file_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let file = File::new();
    let mut scene = Scene::new(&file);
    scene.add(numbered("k", 3, "h.example"));
    for name in ["ledger.db", "ledger.db-wal"] {
        let mode = std::fs::metadata(file.0.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
