//! The cases of the long-term ledger that need a store, for every store the same: each takes a [`Site`], which makes a new
//! ledger and opens it as often as is wanted.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, reason = "a test that cannot be set up has failed")]

pub(crate) mod claims;
pub(crate) mod many;
pub(crate) mod outcomes;
pub(crate) mod wakes;

use std::collections::BTreeSet;

use persxfer::core::ledger::Rules;
use persxfer::core::ledger::class::{Class, Kind};
use persxfer::core::ledger::fail::Failed;
use persxfer::core::ledger::lease::{Company, LeaseLost, Terms};
use persxfer::core::ledger::pace::Bucket;
use persxfer::core::ledger::record::{Fact, Key, Owner, Record, State, Token};
use persxfer::core::ledger::wake::{Seen, Woken};
use persxfer::core::range::Length;
use persxfer::core::time::{Delay, Epoch};
use persxfer::io::store::{Added, Addition, Handed, LedgerStore, Page, Sighting, StoreError, Turn, Want, Whom, Word};
use rand::SeedableRng;
use rand::rngs::StdRng;

pub(crate) const START: Epoch = Epoch::from_secs(1_800_000_000);
pub(crate) const ME: Owner = Owner(11);
pub(crate) const OTHER: Owner = Owner(22);

/// Where a ledger is, new with each test.
pub(crate) trait Site {
    /// Opens it, at this time.
    fn open(&self, turn: &Turn<'_>) -> Box<dyn LedgerStore>;
}

/// A ledger with the world around it.
pub(crate) struct Scene<'a> {
    pub(crate) site: &'a dyn Site,
    pub(crate) store: Box<dyn LedgerStore>,
    pub(crate) rules: Rules,
    pub(crate) now: Epoch,
    pub(crate) rng: StdRng,
}

/// Rules that hold nothing back.
pub(crate) fn free_rules() -> Rules {
    let mut rules = Rules { dispatch: Bucket::new(0.0, 1), wakes: Bucket::new(0.0, 1), ..Rules::default() };
    rules.courtesy.at_once = u32::MAX;
    rules
}

impl<'a> Scene<'a> {
    pub(crate) fn new(site: &'a dyn Site) -> Self {
        Self::with(site, free_rules())
    }

    pub(crate) fn with(site: &'a dyn Site, rules: Rules) -> Self {
        let mut rng = StdRng::seed_from_u64(7);
        let store = site.open(&Turn { now: START, rules: &rules, rng: &mut rng });
        Self { site, store, rules, now: START, rng }
    }

    /// Another process with the same ledger.
    pub(crate) fn beside(&mut self) -> Box<dyn LedgerStore> {
        let (site, turn) = (self.site, Turn { now: self.now, rules: &self.rules, rng: &mut self.rng });
        site.open(&turn)
    }

    pub(crate) fn pass(&mut self, delay: Delay) {
        self.now = self.now + delay;
    }

    /// Does something with the store.
    pub(crate) fn on<T>(
        &mut self,
        work: impl FnOnce(&mut dyn LedgerStore, &mut Turn<'_>) -> Result<T, StoreError>,
    ) -> T {
        let mut turn = Turn { now: self.now, rules: &self.rules, rng: &mut self.rng };
        work(&mut *self.store, &mut turn).expect("the store does it")
    }

    pub(crate) fn add(&mut self, names: impl IntoIterator<Item = (String, &'static str)>) {
        let additions: Vec<_> = names.into_iter().map(|(name, host)| addition(&name, host)).collect();
        let added = self.on(|s, t| s.add(&additions, t));
        assert!(added.iter().all(|a| *a == Added::New));
    }

    pub(crate) fn claim(&mut self, owner: Owner, count: u32) -> Handed {
        self.on(|s, t| s.claim(Want { owner, count }, t))
    }

    /// The only one that is handed out.
    pub(crate) fn claim_one(&mut self, owner: Owner) -> (Record, Token) {
        let mut handed = self.claim(owner, 1).records;
        assert_eq!(handed.len(), 1, "one is due");
        let (record, token, _) = handed.remove(0);
        (record, token)
    }

    pub(crate) fn settle(&mut self, key: &str, token: Token, word: Word) -> Result<(), LeaseLost> {
        self.on(|s, t| s.settle(&[(named(key), token, word)], t)).remove(0)
    }

    pub(crate) fn beat(&mut self, key: &str, token: Token) -> Result<(), LeaseLost> {
        self.on(|s, t| s.beat(&[(named(key), token)], t)).remove(0)
    }

    pub(crate) fn get(&mut self, key: &str) -> Record {
        self.on(|s, _| s.get(&named(key))).expect("it is known")
    }

    pub(crate) fn see(&mut self, whom: Whom, kind: Kind) -> Vec<(Woken, u64)> {
        let seen = Seen { kind, at: self.now };
        let sighting = Sighting { of: whom, seen, source: "a test".to_owned(), facts: Vec::new() };
        self.on(|s, t| s.observe(&[sighting], t))
    }

    /// Waits until it is due, and fails it.
    pub(crate) fn fails(&mut self, key: &str, class: Class) -> Record {
        self.now = self.now.max(self.get(key).due_at);
        let (record, token) = self.claim_one(ME);
        assert_eq!(record.key, named(key));
        self.settle(key, token, Word::Failed(failed(class))).expect("the holder");
        self.get(key)
    }

    pub(crate) fn all(&mut self) -> Vec<Record> {
        let mut all: Vec<Record> = Vec::new();
        loop {
            let after = all.last().map(|r| r.key.clone());
            let page = self.on(|s, _| s.page(Page { after: after.as_ref(), most: 1_000 }));
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }
}

pub(crate) fn named(key: &str) -> Key {
    Key::parse(key).unwrap()
}

pub(crate) fn addition(name: &str, host: &str) -> Addition {
    let mirrors = if host.is_empty() { Vec::new() } else { vec![format!("http://{host}/{name}")] };
    Addition { key: named(name), host: host.to_owned(), mirrors, size: None, digest: None, failed: None }
}

pub(crate) fn failed(class: Class) -> Failed {
    Failed { class, asked: None, mirror: None, bytes_done: Length::ZERO }
}

pub(crate) fn done() -> Word {
    Word::Done { size: None, digest: None }
}

pub(crate) fn keys(handed: &Handed) -> BTreeSet<String> {
    handed.records.iter().map(|(record, ..)| record.key.as_str().to_owned()).collect()
}

pub(crate) fn numbered(
    prefix: &'static str,
    count: usize,
    host: &'static str,
) -> impl Iterator<Item = (String, &'static str)> {
    (0..count).map(move |n| (format!("{prefix}{n:06}"), host))
}

/// One test for each case, on this site.
#[macro_export]
macro_rules! ledger_cases {
    ($site:expr) => {
        $crate::ledger_cases!($site; claims:
            c11_two_claimants_share_everything_and_nothing_twice,
            c12_a_restart_offers_again_what_the_dead_held_and_touches_nothing_else,
            c13_ten_restarts_in_a_minute_cost_no_rung,
            c14_a_holder_that_slept_changes_nothing,
            c15_what_is_completed_never_waits_again,
            c16_late_beats_are_in_time_until_the_lease_is_over,
            c17_one_that_kills_its_holders_rests_and_stops_no_other,
            one_that_is_named_is_handed_out_early_and_once,
            nothing_is_handed_out_before_it_is_due,
        );
        $crate::ledger_cases!($site; outcomes:
            c02_delays_follow_the_class,
            c10_no_record_goes_without_a_word_to_forget_it,
            c21_a_time_that_no_rule_gives_is_cut_when_it_is_opened,
            c22_wrong_bytes_from_one_mirror_leave_the_others,
            c23_a_full_disk_pauses_everybody_and_blames_nobody,
            c24_progress_is_remembered_between_attempts,
            c26_what_was_drawn_is_stored,
            what_was_done_is_kept_with_its_size_and_digest,
            a_page_after_another_shows_each_record_once,
            what_is_exported_comes_in_elsewhere,
            a_file_that_failed_elsewhere_comes_with_its_failure,
        );
        $crate::ledger_cases!($site; wakes:
            c03_what_is_seen_now_outweighs_what_failed_long_ago,
            c05_and_06_one_due_sooner_and_one_seen_before_stay,
            c07_a_wake_under_work_is_honoured_at_its_end,
            c08_many_wakes_are_slowed_and_none_is_forgotten,
            c09_not_before_the_floor,
            c25_a_parked_one_is_woken_by_what_it_waits_for,
            a_new_mirror_and_a_new_digest_wake,
            the_latest_observations_are_kept,
            a_wake_of_a_host_is_of_its_records_alone,
        );
        $crate::ledger_cases!($site; many:
            c18_a_month_of_backlog_is_no_burst_and_the_woken_have_their_share,
            c19_a_host_with_many_due_and_in_trouble_hides_no_other,
            c20_a_clock_that_jumps_makes_no_storm,
            a_gap_is_kept_between_two_attempts_at_a_host,
            no_more_of_a_host_than_it_may_have_at_once,
        );
    };
    ($site:expr; $group:ident: $($case:ident,)*) => {
        $(
            #[test]
            fn $case() {
                let site = $site;
                support::ledger::$group::$case(&mut support::ledger::Scene::new(&site));
            }
        )*
    };
}
