//! `[ledger]`: the rules of the long memory, by class.

use crate::cli::config::value::{Table, Value, Why};
use crate::core::ledger::Rules;
use crate::core::ledger::class::Class;
use crate::core::ledger::pace::Bucket;
use crate::core::ledger::table::{Rule, Step};

/// The last rung of the ladder.
const LAST_RUNG: i64 = 6;

/// What the table says, and else what is built in.
pub(super) fn rules(table: &Table<'_>) -> Result<Rules, Why> {
    let mut rules = Rules::default();
    if let Some(lease) = table.read("lease", Value::duration)? {
        rules.terms.lease = lease;
    }
    if let Some(at_once) = table.read("max_per_host", |value| value.number(1..=i64::from(u16::MAX)))? {
        rules.courtesy.at_once = at_once;
    }
    if let Some(gap) = table.read("gap", Value::duration)? {
        rules.courtesy.gap = gap;
    }
    if let Some(rate) = table.read("claims_per_sec", rate)? {
        rules.dispatch = Bucket::new(f64::from(rate), rate.saturating_mul(4));
    }
    if let Some(rate) = table.read("wakes_per_sec", rate)? {
        rules.wakes = Bucket::new(f64::from(rate), rate.saturating_mul(10));
    }
    if let Some(rest) = table.read("bad_mirror", Value::duration)? {
        rules.table.bad_mirror = rest;
    }
    if let Some(classes) = table.read("class", Value::table)? {
        for (word, value) in classes.entries() {
            let class = Class::of_word(&word).ok_or_else(|| value.fault(&no_class()))?;
            let own = value.table()?;
            change(rules.table.rule_mut(class), &own)?;
            own.done()?;
        }
    }
    Ok(rules)
}

fn no_class() -> String {
    let words: Vec<&str> = Class::ALL.into_iter().map(Class::word).collect();
    format!("it is no class of failures; there are {}", words.join(", "))
}

/// What a class waits: a rung, or a time, by what kind of wait it is.
fn change(rule: &mut Rule, table: &Table<'_>) -> Result<(), Why> {
    let rung = table.read("rung", |value| value.number::<u32>(1..=LAST_RUNG))?;
    let first = table.get("first");
    rule.step = match (rule.step, rung, &first) {
        (step, None, None) => step,
        (Step::Ladder(_), Some(rung), None) => Step::Ladder(rung),
        (Step::Ladder(_), _, Some(first)) => {
            return Err(first.fault("this class climbs the ladder; say from which rung, 1 to 6"));
        }
        (Step::Doubling(_, last), None, Some(first)) => Step::Doubling(first.duration()?.min(last), last),
        (Step::Asked(_), None, Some(first)) => Step::Asked(first.duration()?),
        (Step::Park(_), None, Some(first)) => Step::Park(first.duration()?),
        (Step::Pause(_), None, Some(first)) => Step::Pause(first.duration()?),
        (_, Some(_), _) => {
            let rung = table.get("rung");
            let why = "this class does not climb the ladder from its first failure; say how long it waits: first";
            return Err(rung.map_or_else(|| why.to_owned(), |value| value.fault(why)));
        }
    };
    if let Some(limit) = table.read("limit", Value::duration)? {
        rule.limit = limit;
    }
    if let Some(gap) = table.read("gap", Value::duration)? {
        rule.gap = gap;
    }
    Ok(())
}

fn rate(value: &Value<'_>) -> Result<u32, Why> {
    value.number(1..=1_000_000)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::config::parse;
    use crate::core::time::Delay;

    fn read(text: &str) -> Result<Rules, String> {
        parse(text, Path::new("/etc/c.toml")).map(|prefs| prefs.ledger)
    }

    #[test]
    fn what_is_not_said_is_built_in() {
        assert_eq!(read(""), Ok(Rules::default()));
        assert_eq!(read("[ledger]"), Ok(Rules::default()));
    }

    #[test]
    fn each_class_by_its_kind_of_wait() {
        let rules = read(
            "[ledger]\nlease = \"2m\"\nmax_per_host = 4\ngap = \"5s\"\nbad_mirror = \"2h\"\n\
             [ledger.class.missing]\nrung = 1\nlimit = \"7d\"\ngap = \"1m\"\n\
             [ledger.class.interrupted]\nfirst = \"10s\"\n[ledger.class.denied]\nfirst = \"7d\"\n",
        )
        .expect("rules");
        assert_eq!((rules.terms.lease, rules.courtesy.at_once), (Delay::from_mins(2), 4));
        assert_eq!((rules.courtesy.gap, rules.table.bad_mirror), (Delay::from_secs(5), Delay::from_hours(2)));
        let missing = rules.table.rule(Class::Missing);
        assert_eq!(
            (missing.step, missing.limit, missing.gap),
            (Step::Ladder(1), Delay::from_days(7), Delay::from_mins(1))
        );
        let interrupted = rules.table.rule(Class::Interrupted).step;
        assert_eq!(interrupted, Step::Doubling(Delay::from_secs(10), Delay::from_mins(30)));
        assert_eq!(rules.table.rule(Class::Denied).step, Step::Park(Delay::from_days(7)));
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_line() {
        for (text, told) in [
            ("[ledger.class.lost]\nfirst = \"1m\"", "line 1: ledger.class.lost: it is no class of failures"),
            (
                "[ledger.class.missing]\nfirst = \"1m\"",
                "line 2: ledger.class.missing.first: this class climbs the ladder",
            ),
            ("[ledger.class.denied]\nrung = 2", "line 2: ledger.class.denied.rung: this class does not climb"),
            ("[ledger.class.missing]\nrung = 9", "line 2: ledger.class.missing.rung"),
            ("[ledger]\nlease = \"0s\"", "line 2: ledger.lease: it must be longer than nothing"),
            ("[ledger]\nrungs = 3", "line 2: \"rungs\" is no key in [ledger]"),
        ] {
            let said = read(text).expect_err(text);
            assert!(said.contains(told), "{said}");
        }
    }
}
