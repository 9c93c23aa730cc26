//! A record as columns: whole numbers and short texts, the same in every store.
//!
//! Times are microseconds since the Unix epoch, sizes bytes. Mirrors are a line each, the moment until which one is bad
//! before its URL; rungs a word and a number each.

use crate::core::ledger::class::Class;
use crate::core::ledger::record::{Key, Lease, Mirror, Owner, Record, Resting, Rungs, State, Token};
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};
use crate::io::store::BadRow;

/// [`State::Waiting`] as a number.
pub(super) const WAITING: i64 = 0;
/// [`State::Parked`] as a number.
pub(super) const PARKED: i64 = 1;
/// [`State::Leased`] as a number.
pub(super) const LEASED: i64 = 2;
/// [`State::Done`] as a number.
pub(super) const DONE: i64 = 3;

/// A record's columns, but for its host, which has a table of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) mirrors: String,
    pub(super) digest: Option<String>,
    pub(super) size: Option<i64>,
    pub(super) first_seen: i64,
    pub(super) state: i64,
    pub(super) due_at: i64,
    pub(super) owner: Option<i64>,
    pub(super) due_before: Option<i64>,
    pub(super) before: Option<i64>,
    pub(super) wake_at: Option<i64>,
    pub(super) floor_at: Option<i64>,
    pub(super) class: Option<i64>,
    pub(super) rungs: String,
    pub(super) step: i64,
    pub(super) luck: i64,
    pub(super) failures: i64,
    pub(super) lost: i64,
    pub(super) claims: i64,
    pub(super) last_attempt: Option<i64>,
    pub(super) bytes_done: i64,
    pub(super) woken_at: Option<i64>,
}

impl Row {
    /// The columns of a record.
    pub(super) fn of(record: &Record) -> Self {
        let (state, lease) = match &record.state {
            State::Waiting => (WAITING, None),
            State::Parked => (PARKED, None),
            State::Leased(lease) => (LEASED, Some(lease)),
            State::Done => (DONE, None),
        };
        let micros = Epoch::as_micros;
        Self {
            key: record.key.as_str().to_owned(),
            mirrors: lines(&record.mirrors),
            digest: record.digest.clone(),
            size: record.size.map(|size| signed(size.0)),
            first_seen: micros(record.first_seen),
            state,
            due_at: micros(record.due_at),
            owner: lease.map(|lease| lease.owner.0.cast_signed()),
            due_before: lease.map(|lease| micros(lease.due_before)),
            before: lease.map(|lease| if lease.before == Resting::Parked { PARKED } else { WAITING }),
            wake_at: lease.and_then(|lease| lease.wake_at).map(micros),
            floor_at: record.floor_at.map(micros),
            class: record.class.map(|class| class as i64),
            rungs: words(&record.rungs),
            step: signed(record.step.as_micros()),
            luck: record.luck.into(),
            failures: signed(record.failures),
            lost: record.lost.into(),
            claims: signed(record.claims.0),
            last_attempt: record.last_attempt.map(micros),
            bytes_done: signed(record.bytes_done.0),
            woken_at: record.woken_at.map(micros),
        }
    }

    /// The record of these columns.
    pub(super) fn record(self, host: String) -> Result<Record, BadRow> {
        let key = Key::parse(&self.key)?;
        let bad = |column, value: &dyn std::fmt::Display| BadRow::Value {
            key: self.key.clone(),
            column,
            value: value.to_string(),
        };
        let count = |column, value: i64| u64::try_from(value).map_err(|_| bad(column, &value));
        let state = match self.state {
            WAITING => State::Waiting,
            PARKED => State::Parked,
            DONE => State::Done,
            LEASED => State::Leased(Lease {
                owner: Owner(self.owner.ok_or_else(|| bad("owner", &"missing"))?.cast_unsigned()),
                due_before: self.due_before.map(Epoch::from_micros).ok_or_else(|| bad("due_before", &"missing"))?,
                before: if self.before == Some(PARKED) { Resting::Parked } else { Resting::Waiting },
                wake_at: self.wake_at.map(Epoch::from_micros),
            }),
            other => return Err(bad("state", &other)),
        };
        let class = self.class.map(|class| class_of(class).ok_or_else(|| bad("class", &class))).transpose()?;
        let small = |column, value: i64| u32::try_from(value).map_err(|_| bad(column, &value));
        Ok(Record {
            host,
            mirrors: mirrors(&self.mirrors).ok_or_else(|| bad("mirrors", &"what stands there"))?,
            digest: self.digest.clone(),
            size: self.size.map(|size| count("size", size).map(Length)).transpose()?,
            first_seen: Epoch::from_micros(self.first_seen),
            state,
            due_at: Epoch::from_micros(self.due_at),
            floor_at: self.floor_at.map(Epoch::from_micros),
            class,
            rungs: rungs(&self.rungs).ok_or_else(|| bad("rungs", &self.rungs))?,
            step: Delay::from_micros(count("step", self.step)?),
            luck: u16::try_from(self.luck).map_err(|_| bad("luck", &self.luck))?,
            failures: count("failures", self.failures)?,
            lost: small("lost", self.lost)?,
            claims: Token(count("claims", self.claims)?),
            last_attempt: self.last_attempt.map(Epoch::from_micros),
            bytes_done: Length(count("bytes_done", self.bytes_done)?),
            woken_at: self.woken_at.map(Epoch::from_micros),
            key,
        })
    }
}

/// The class of that number.
pub(super) fn class_of(number: i64) -> Option<Class> {
    usize::try_from(number).ok().and_then(|at| Class::ALL.get(at).copied())
}

/// What no column can hold is the most that it can.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn lines(mirrors: &[Mirror]) -> String {
    let line = |m: &Mirror| format!("{} {}\n", m.bad_until.map_or(0, Epoch::as_micros), m.url);
    mirrors.iter().map(line).collect()
}

fn mirrors(lines: &str) -> Option<Vec<Mirror>> {
    let mirror = |line: &str| {
        let (until, url) = line.split_once(' ')?;
        let until: i64 = until.parse().ok()?;
        Some(Mirror { url: url.to_owned(), bad_until: (until != 0).then_some(Epoch::from_micros(until)) })
    };
    lines.lines().map(mirror).collect()
}

fn words(rungs: &Rungs) -> String {
    let word = |(class, rung): (Class, u32)| format!("{}={rung}", class.word());
    rungs.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn rungs(words: &str) -> Option<Rungs> {
    let mut rungs = Rungs::default();
    for word in words.split_whitespace() {
        let (class, rung) = word.split_once('=')?;
        rungs.set(Class::of_word(class)?, rung.parse().ok()?);
    }
    Some(rungs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_went() {
        let key = Key::parse("a key").expect("a key");
        let mut record =
            Record::new(key, "h".into(), vec!["http://h/ä b".into(), "http://i/".into()], Epoch::from_secs(7));
        let there_and_back = |record: &Record| Row::of(record).record("h".into()).expect("readable");
        assert_eq!(there_and_back(&record), record);
        record.mirrors[1].bad_until = Some(Epoch::from_secs(-5));
        record.rungs.set(Class::Crash, 3);
        record.rungs.set(Class::Interrupted, u32::MAX);
        record.class = Some(Class::Denied);
        record.size = Some(Length(9));
        record.digest = Some("sha-256=00".into());
        record.luck = u16::MAX;
        record.woken_at = Some(Epoch::from_secs(1));
        for before in [Resting::Parked, Resting::Waiting] {
            let due_before = Epoch::from_secs(3);
            let lease = Lease { owner: Owner(u64::MAX), due_before, before, wake_at: Some(Epoch::ZERO) };
            record.state = State::Leased(lease);
            assert_eq!(there_and_back(&record), record);
        }
    }

    #[test]
    fn a_value_that_cannot_be_is_named() {
        let record = Record::new(Key::parse("k").expect("a key"), String::new(), Vec::new(), Epoch::ZERO);
        let said = |spoil: &dyn Fn(&mut Row)| {
            let mut row = Row::of(&record);
            spoil(&mut row);
            row.record(String::new()).expect_err("a value that cannot be").to_string()
        };
        assert_eq!(said(&|row| row.state = 9), "the state of \"k\" cannot be 9");
        assert_eq!(said(&|row| row.class = Some(-1)), "the class of \"k\" cannot be -1");
        assert_eq!(said(&|row| row.failures = -2), "the failures of \"k\" cannot be -2");
        assert_eq!(said(&|row| row.state = LEASED), "the owner of \"k\" cannot be missing");
        assert_eq!(said(&|row| row.rungs = "odd=1".into()), "the rungs of \"k\" cannot be odd=1");
        assert_eq!(said(&|row| row.luck = 65_536), "the luck of \"k\" cannot be 65536");
    }
}
