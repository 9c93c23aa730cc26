//! The long-term ledger in a PostgreSQL database: the cases that need a store, and what is of this store alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test that cannot be set up has failed"
)]
#![cfg(feature = "postgres")]

#[path = "support/ledger/mod.rs"]
mod ledger;
#[path = "support/postgres.rs"]
mod postgres;
mod support {
    pub(crate) use super::ledger;
}

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};
use std::time::Duration;

use ledger::{ME, START, Scene, Site, done, free_rules, named, numbered};
use persxfer::core::ledger::Rules;
use persxfer::core::ledger::record::Owner;
use persxfer::core::time::Epoch;
use persxfer::io::store::postgres::{Clocks, Postgres};
use persxfer::io::store::{LedgerStore, StoreError, Turn, Want, open};
use postgres::{Ends, Server};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// A database that holds nothing else.
struct Base {
    server: Server,
    url: String,
}

impl Base {
    fn new() -> Self {
        let server = Server::start();
        let url = server.database("fleet");
        Self { server, url }
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql("fleet", sql)
    }
}

impl Site for Base {
    fn open(&self, turn: &Turn<'_>) -> Box<dyn LedgerStore> {
        Box::new(Postgres::open(&self.url, Clocks::Given, turn).unwrap())
    }
}

ledger_cases!(Base::new());

fn opened(url: &str) -> Result<Postgres, StoreError> {
    let mut rng = StdRng::seed_from_u64(1);
    Postgres::open(url, Clocks::Given, &Turn { now: START, rules: &Rules::default(), rng: &mut rng })
}

#[test]
fn c28_a_claim_goes_by_the_indexes() {
    let base = Base::new();
    Scene::new(&base).add(numbered("k", 1, "h.example"));
    base.sql(
        "SET search_path = persxfer;
         INSERT INTO host (name, ready_at) SELECT 'h' || n, n FROM generate_series(1, 5000) n;
         INSERT INTO item (key, host, state, due_at, rungs, step, luck, failures, lost, claims, first_seen, bytes_done, mirrors,
         woken_at) SELECT 'n' || n, 2 + n % 5000, CASE WHEN n % 10 = 0 THEN 2 ELSE 0 END, n, '', 0, 0, 0, 0, 0, 0, 0, '',
         CASE WHEN n % 100 = 1 THEN n END FROM generate_series(1, 40000) n;
         ANALYZE host; ANALYZE item;",
    );
    for (sql, index) in [
        ("SELECT * FROM host WHERE ready_at <= 99 AND name <> '' ORDER BY ready_at LIMIT 9 FOR UPDATE SKIP LOCKED", "host_ready"),
        (
            "SELECT i.* FROM unnest('{7,8,9}'::bigint[], '{2,2,2}'::bigint[]) WITH ORDINALITY AS w (host, most, nth)
             CROSS JOIN LATERAL (SELECT * FROM item WHERE item.host = w.host AND item.state < 3 AND item.due_at <= 30000
             ORDER BY item.due_at LIMIT w.most FOR UPDATE SKIP LOCKED) AS i",
            "item_due",
        ),
        (
            "SELECT * FROM item i WHERE i.woken_at IS NOT NULL AND i.state < 2 AND i.due_at <= 9000 ORDER BY i.due_at LIMIT 9
             FOR UPDATE OF i SKIP LOCKED",
            "item_woken",
        ),
        ("SELECT host, count(*) FROM item WHERE host = ANY('{7,8}') AND state = 2 AND due_at > 9 GROUP BY host", "item_leased"),
        (
            "SELECT w.host, (SELECT min(due_at) FROM item WHERE item.host = w.host AND item.state < 3)
             FROM unnest('{7,8}'::bigint[]) AS w (host)",
            "item_due",
        ),
        ("SELECT * FROM item WHERE key = ANY('{n7,n8}') ORDER BY key FOR UPDATE", "item_key_key"),
    ] {
        let plan = base.sql(&format!("SET search_path = persxfer; EXPLAIN {sql}"));
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{sql}:\n{plan}");
    }
}

/// Claims until nothing has come for a while; what was claimed, by its host.
fn claims_all(url: &str, owner: Owner, rules: &Rules) -> Vec<(String, String)> {
    let mut rng = StdRng::seed_from_u64(owner.0);
    let mut turn = Turn { now: START, rules, rng: &mut rng };
    let mut store = Postgres::open(url, Clocks::Given, &turn).unwrap();
    let (mut all, mut nothing) = (Vec::new(), 0);
    while nothing < 20 {
        let handed = store.claim(Want { owner, count: 7 }, &mut turn).unwrap();
        nothing = if handed.records.is_empty() { nothing + 1 } else { 0 };
        all.extend(handed.records.into_iter().map(|(r, ..)| (r.host, r.key.as_str().to_owned())));
        if nothing > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    all
}

fn in_parallel<T: Send>(work: impl Fn(Owner) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (1..=4).map(|n| scope.spawn(move || work(Owner(n)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn claimants_in_parallel_share_everything_and_nothing_twice() {
    let base = Base::new();
    let hosts: Vec<String> = (0..40).map(|n| format!("h{n}.example")).chain([String::new()]).collect();
    let additions: Vec<_> = (0..2_050).map(|n| ledger::addition(&format!("k{n:05}"), &hosts[n % 41])).collect();
    Scene::new(&base).on(|s, t| s.add(&additions, t));
    let shares = in_parallel(|owner| claims_all(&base.url, owner, &free_rules()));
    let all: BTreeSet<_> = shares.iter().flatten().collect();
    assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), 2_050, "nothing twice");
    assert_eq!(all.len(), 2_050, "and everything once");
    assert!(shares.iter().all(|share| !share.is_empty()), "{:?}", shares.iter().map(Vec::len).collect::<Vec<_>>());
}

#[test]
fn claimants_in_parallel_have_together_what_a_host_may_have() {
    let base = Base::new();
    let mut scene = Scene::new(&base);
    let hosts: Vec<String> = (0..15).map(|n| format!("h{n}.example")).collect();
    let additions: Vec<_> = (0..600).map(|n| ledger::addition(&format!("k{n:05}"), &hosts[n % 15])).collect();
    scene.on(|s, t| s.add(&additions, t));
    scene.add(numbered("nobodys", 200, ""));
    let mut rules = free_rules();
    rules.courtesy.at_once = 2;
    let mut held = BTreeMap::<String, usize>::new();
    for (host, _) in in_parallel(|owner| claims_all(&base.url, owner, &rules)).into_iter().flatten() {
        *held.entry(host).or_default() += 1;
    }
    assert_eq!(held.remove(""), Some(200), "records without a host share none");
    assert!(held.len() == 15 && held.values().all(|n| *n == 2), "{held:?}");
}

#[test]
fn all_that_many_do_at_once_is_done_once() {
    let base = Base::new();
    let rules = free_rules();
    let keys: Vec<String> = (0..1_200).map(|n| format!("k{n:05}")).collect();
    let settled: usize = in_parallel(|owner| {
        let mut rng = StdRng::seed_from_u64(owner.0);
        let mut turn = Turn { now: START, rules: &rules, rng: &mut rng };
        let mut store = Postgres::open(&base.url, Clocks::Given, &turn).unwrap();
        // All enter the same, each in another order.
        let host = |n: usize| if n.is_multiple_of(3) { String::new() } else { format!("h{}", n % 7) };
        let mut additions: Vec<_> = keys.iter().enumerate().map(|(n, key)| ledger::addition(key, &host(n))).collect();
        additions.rotate_left(300 * owner.0 as usize % 1_200);
        for part in additions.chunks(100) {
            store.add(part, &mut turn).unwrap();
        }
        let (mut settled, mut nothing) = (0, 0);
        while nothing < 20 {
            let handed = store.claim(Want { owner, count: 30 }, &mut turn).unwrap().records;
            nothing = if handed.is_empty() { nothing + 1 } else { 0 };
            let words: Vec<_> = handed.into_iter().map(|(r, token, _)| (r.key, token, done())).rev().collect();
            assert!(store.settle(&words, &mut turn).unwrap().iter().all(Result::is_ok));
            settled += words.len();
        }
        settled
    })
    .into_iter()
    .sum();
    assert_eq!(settled, 1_200);
    let stats = Scene::new(&base).on(|s, t| s.stats(t.now));
    assert_eq!((stats.done, stats.waiting, stats.leased), (1_200, 0, 0));
}

#[test]
fn a_server_that_stops_between_two_calls_costs_nothing() {
    let mut base = Base::new();
    let mut store = opened(&base.url).unwrap();
    let (rules, mut rng) = (free_rules(), StdRng::seed_from_u64(3));
    let mut turn = Turn { now: START, rules: &rules, rng: &mut rng };
    let want = Want { owner: ME, count: 100 };
    for (n, ends) in [Ends::Stopped, Ends::Crashed].into_iter().enumerate() {
        let additions: Vec<_> = (0..20).map(|k| ledger::addition(&format!("{n}.{k}"), "h.example")).collect();
        store.add(&additions, &mut turn).unwrap();
        base.server.end(ends);
        for _ in 0..2 {
            let said = store.claim(want, &mut turn).unwrap_err();
            assert!(matches!(said, StoreError::Open { .. } | StoreError::Other { .. }), "{said}");
            assert!(said.to_string().contains("fleet?host="), "it says where: {said}");
        }
        assert!(base.server.revive(), "{}", base.server.log());
        let handed = store.claim(want, &mut turn).unwrap().records;
        assert_eq!(handed.len(), 20, "the next call connects again, and nothing was lost");
        let words: Vec<_> = handed.into_iter().map(|(r, token, _)| (r.key, token, done())).collect();
        assert!(store.settle(&words, &mut turn).unwrap().iter().all(Result::is_ok));
        // It comes back before anybody asks for anything: nobody notices.
        base.server.end(ends);
        assert!(base.server.revive(), "{}", base.server.log());
        assert_eq!(store.stats(START).unwrap().done, 20 * (n as u64 + 1));
    }
}

#[test]
fn a_connection_that_ends_within_a_claim_leaves_nothing_half_written() {
    let base = Base::new();
    let mut store = opened(&base.url).unwrap();
    let (rules, mut rng) = (free_rules(), StdRng::seed_from_u64(3));
    let mut turn = Turn { now: START, rules: &rules, rng: &mut rng };
    let additions: Vec<_> = (0..20).map(|k| ledger::addition(&format!("k{k}"), "h.example")).collect();
    store.add(&additions, &mut turn).unwrap();
    // The host is written last, after the records; it takes its time.
    base.sql(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END';
         CREATE TRIGGER slow BEFORE UPDATE ON persxfer.host FOR EACH ROW EXECUTE FUNCTION public.slow()",
    );
    let want = Want { owner: ME, count: 100 };
    let said = std::thread::scope(|scope| {
        let claim = scope.spawn(|| {
            let mut rng = StdRng::seed_from_u64(4);
            store.claim(want, &mut Turn { now: START, rules: &rules, rng: &mut rng })
        });
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        while base.sql(end) != "1" {
            assert!(!claim.is_finished(), "it waits for the host");
            std::thread::sleep(Duration::from_millis(20));
        }
        claim.join().unwrap().unwrap_err()
    });
    assert!(said.to_string().contains("cannot claim"), "{said}");
    base.sql("DROP TRIGGER slow ON persxfer.host");
    assert_eq!(base.sql("SELECT sum(claims), max(state) FROM persxfer.item"), "0|0", "nothing of it is there");
    assert_eq!(store.claim(want, &mut turn).unwrap().records.len(), 20, "and the next call connects again");
}

#[test]
fn what_is_no_ledger_is_left_as_it_is() {
    let server = Server::start();
    let url = server.database("other");
    server.sql("other", "CREATE SCHEMA persxfer; CREATE TABLE persxfer.item (x int)");
    let said = opened(&url).unwrap_err();
    assert!(matches!(said, StoreError::Foreign { .. }), "{said}");
    let tables = "SELECT string_agg(relname, ',') FROM pg_class WHERE relnamespace = 'persxfer'::regnamespace";
    assert_eq!(server.sql("other", tables), "item");
    server.sql("other", "DROP TABLE persxfer.item; CREATE TABLE persxfer.ledger (application bigint, format bigint)");
    assert!(matches!(opened(&url).unwrap_err(), StoreError::Foreign { .. }), "a table of that name proves nothing");

    let url = server.database("newer");
    drop(opened(&url).unwrap());
    server.sql("newer", "UPDATE persxfer.ledger SET format = 99");
    let said = opened(&url).unwrap_err();
    assert!(matches!(said, StoreError::Newer { found: 99, known: 1, .. }), "{said}");

    let said = opened(&server.local("nowhere", "postgres")).unwrap_err();
    assert!(matches!(said, StoreError::Open { .. }) && said.to_string().contains("does not exist"), "{said}");

    server.sql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let said = opened(&server.local("latin", "postgres")).unwrap_err().to_string();
    assert!(said.contains("LATIN1"), "{said}");
}

#[test]
fn a_user_needs_a_schema_and_no_more() {
    let server = Server::start();
    server.database("fleet");
    server.sql("fleet", "CREATE ROLE crawler LOGIN; CREATE ROLE reader LOGIN");
    let as_crawler = server.local("fleet", "crawler");
    let said = opened(&as_crawler).unwrap_err();
    assert!(matches!(said, StoreError::ReadOnly { .. }) && said.to_string().contains("permission denied"), "{said}");
    server.sql("fleet", "CREATE SCHEMA persxfer AUTHORIZATION crawler");
    let mut store = opened(&as_crawler).unwrap();
    let (rules, mut rng) = (free_rules(), StdRng::seed_from_u64(3));
    let mut turn = Turn { now: START, rules: &rules, rng: &mut rng };
    store.add(&[ledger::addition("k", "h.example")], &mut turn).unwrap();
    server.sql("fleet", "ALTER ROLE reader SET default_transaction_read_only = on");
    server.sql(
        "fleet",
        "GRANT USAGE ON SCHEMA persxfer TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA persxfer TO reader",
    );
    let mut reader = opened(&server.local("fleet", "reader")).unwrap();
    assert!(reader.get(&named("k")).unwrap().is_some(), "who may only read, reads");
    let said = reader.claim(Want { owner: ME, count: 1 }, &mut turn).unwrap_err();
    assert!(matches!(said, StoreError::ReadOnly { .. }), "{said}");
}

#[test]
fn a_password_is_not_shown() {
    let base = Base::new();
    base.sql("CREATE ROLE crawler LOGIN PASSWORD 'opensesame'; CREATE SCHEMA persxfer AUTHORIZATION crawler");
    let store = opened(&base.server.tcp("fleet", "crawler:opensesame")).unwrap();
    let shown = [store.place(), format!("{store:?}")];
    assert!(shown.iter().all(|text| text.contains("crawler@127.0.0.1") && !text.contains("opensesame")), "{shown:?}");
    let url = base.server.tcp("fleet", "crawler:opensaysme");
    let said = opened(&url).unwrap_err();
    let ran = persxfer(&url, &["stats"]);
    for said in [said.to_string(), format!("{said:?}"), ran.err] {
        assert!(said.contains("password authentication failed") && !said.contains("opensaysme"), "{said}");
    }
}

#[test]
fn a_machine_whose_clock_is_wrong_does_not_tell_a_fleet_what_is_due() {
    let base = Base::new();
    let mut rng = StdRng::seed_from_u64(1);
    let turn = Turn { now: Epoch::from_secs(1_000_000_000), rules: &Rules::default(), rng: &mut rng };
    let said = open::open(&base.url, &turn).err().expect("it is refused").to_string();
    assert!(said.contains("clock") && said.contains("behind"), "{said}");
    assert_eq!(base.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'persxfer'"), "0", "nothing was made");
}

#[test]
fn a_damaged_value_is_named() {
    let base = Base::new();
    let mut scene = Scene::new(&base);
    scene.add(numbered("k", 3, "h.example"));
    base.sql("UPDATE persxfer.item SET class = 77 WHERE key = 'k000001'");
    let said = scene.store.get(&named("k000001")).unwrap_err().to_string();
    assert!(said.contains("the class of \"k000001\" cannot be 77"), "{said}");
    assert!(scene.store.get(&named("k000000")).is_ok());
    let said = scene.store.backup("copy".as_ref()).unwrap_err().to_string();
    assert!(said.contains("pg_dump"), "{said}");
}

struct Ran {
    status: i32,
    out: String,
    err: String,
}

fn persxfer(url: &str, words: &[&str]) -> Ran {
    let home = tempfile::TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_persxfer"));
    command.arg("ledger").args(words).env("PERSXFER_LEDGER", url).env("HOME", home.path()).current_dir(home.path());
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(!home.path().join("postgresql:").exists(), "a URL is no path");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { status: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}

#[test]
fn the_program_takes_a_url_for_its_ledger() {
    let base = Base::new();
    let ok = |words: &[&str]| {
        let ran = persxfer(&base.url, words);
        assert_eq!(ran.status, 0, "{words:?}: {}", ran.err);
        ran.out
    };
    ok(&["add", "http://h.example/a", "http://i.example/b"]);
    let mut tokens = Vec::new();
    for line in ok(&["claim", "-n", "9", "--as", "crawler"]).lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        tokens.push((line["key"].as_str().unwrap().to_owned(), line["token"].to_string()));
    }
    assert_eq!(tokens.len(), 2);
    ok(&["complete", &tokens[0].0, &tokens[0].1]);
    ok(&["fail", &tokens[1].0, &tokens[1].1, "--class", "missing"]);
    assert_eq!(persxfer(&base.url, &["complete", &tokens[0].0, &tokens[0].1]).status, 4, "the lease is over");
    let stats: serde_json::Value = serde_json::from_str(&ok(&["stats", "--json"])).unwrap();
    assert_eq!((&stats["done"], &stats["waiting"]), (&1.into(), &1.into()), "{stats}");
    assert_eq!(base.sql("SELECT count(*) FROM persxfer.item"), "2");
    // The option says the same as the variable, and comes first.
    let ran = persxfer("postgres://h/d?sslmode=require", &["--ledger", &base.url, "stats"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let ran = persxfer("postgres://u:secret@h/d?sslmode=require", &["stats"]);
    assert!(ran.status != 0 && ran.err.contains("TLS") && !ran.err.contains("secret"), "{}", ran.err);
}
