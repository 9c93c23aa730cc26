//! What both stores do alike around the decisions of the core: the same names, bounds and small steps.

use crate::core::backoff::draw;
use crate::core::ledger::Class;
use crate::core::ledger::class::Kind;
use crate::core::ledger::fail::{Aftermath, Failed};
use crate::core::ledger::host::Courtesy;
use crate::core::ledger::lease::{Claimed, LeaseLost, Whose};
use crate::core::ledger::record::{Fact, Key, Learned, Owner, Record, Token};
use crate::core::ledger::table::{Rule, Step};
use crate::core::time::{Delay, Epoch};
use crate::io::store::{Addition, Turn, Word};

/// The name of the latest time that was seen.
pub(super) const LATEST: &str = "latest";
/// Of when the next record may be handed out.
pub(super) const DISPATCH: &str = "dispatch";
/// Of when a pause ends.
pub(super) const PAUSED: &str = "paused_until";
/// How many pauses there were in a row.
pub(super) const PAUSES: &str = "pauses";
/// When the next wake beyond the allowance has its effect.
pub(super) const WAKES: &str = "wakes";

/// So many ready hosts are looked at for each record that is wanted, before the rest waits for the next claim.
pub(super) const LOOK: u32 = 4;
/// The latest time is not written more often than this.
pub(super) const NOTE: Delay = Delay::from_secs(1);
/// So many observations of a file are kept.
pub(super) const KEPT: u32 = 16;
/// Wakes beyond the allowance come later: this much at most.
pub(super) const FAR: Delay = Delay::from_days(30);
/// So many records are woken in one transaction, where many are.
pub(super) const BATCH: u32 = 2_000;
/// So many bytes of who said something are kept.
const SOURCE: usize = 200;

/// What a holder's last word makes of the record.
pub(super) fn told(
    record: &mut Record,
    token: Token,
    word: &Word,
    turn: &mut Turn<'_>,
) -> Result<Aftermath, LeaseLost> {
    match word {
        Word::Done { size, digest } => {
            record.complete(token, turn.now)?;
            size.map(|size| record.learn(Fact::Size(size)));
            if let (None, Some(digest)) = (&record.digest, digest) {
                record.learn(Fact::Digest(digest.clone()));
            }
            Ok(Aftermath::HostAnswered)
        }
        Word::Failed(failed) => record.fail(token, failed, turn.now, &turn.rules.table, turn.rng),
        Word::Released => record.release(token).map(|()| Aftermath::Alone),
    }
}

/// Nobody holds what is not there.
pub(super) fn forgotten(key: &Key, token: Token) -> LeaseLost {
    LeaseLost { key: key.as_str().to_owned(), token, now: Whose::Forgotten }
}

/// Until when everybody pauses after so many pauses in a row; none where the rules know none.
pub(super) fn pause_until(pauses: i64, turn: &Turn<'_>) -> Option<Epoch> {
    let steps = u32::try_from(pauses).unwrap_or(0);
    let Rule { step, limit, .. } = *turn.rules.table.rule(Class::LocalFault);
    let Step::Pause(first) = step else { return None };
    let wait: Delay = draw::doubled(first, steps).min(limit);
    Some(turn.now + wait)
}

/// What an addition says of its file.
pub(super) fn facts(addition: &Addition) -> impl Iterator<Item = Fact> + '_ {
    let mirrors = addition.mirrors.iter().cloned().map(Fact::Mirror);
    mirrors.chain(addition.size.map(Fact::Size)).chain(addition.digest.clone().map(Fact::Digest))
}

/// The record of a file that is new.
pub(super) fn entered(addition: &Addition, turn: &mut Turn<'_>) -> Record {
    let mut record = Record::new(addition.key.clone(), addition.host.clone(), Vec::new(), turn.now);
    facts(addition).for_each(|fact| _ = record.learn(fact));
    if let Some(failed) = &addition.failed {
        failed_elsewhere(&mut record, failed, turn);
    }
    record
}

/// It comes with a failure: as if it had been claimed and had failed here.
fn failed_elsewhere(record: &mut Record, failed: &Failed, turn: &mut Turn<'_>) {
    let claimed = record.claim_early(Owner(0), turn.rules.terms, turn.now);
    if let Claimed::Yes { token, .. } = claimed {
        // The claim has just been made.
        let _ = record.fail(token, failed, turn.now, &turn.rules.table, turn.rng);
    }
}

/// What kind of news it was, if it was.
pub(super) fn learned(record: &mut Record, fact: Fact) -> Option<Kind> {
    let kind = match fact {
        Fact::Mirror(_) => Kind::Mirror,
        Fact::Size(_) => Kind::Listed,
        Fact::Digest(_) => Kind::Digest,
    };
    (record.learn(fact) == Learned::Something).then_some(kind)
}

/// As much as is kept of who said something.
pub(super) fn source(text: &str) -> String {
    let cut = |bytes: &mut usize, c: char| {
        *bytes += c.len_utf8();
        (*bytes <= SOURCE).then_some(c)
    };
    text.chars().scan(0, cut).collect()
}

/// The condition under which a kind wakes records of all classes that it can wake.
pub(super) fn woken_by(kind: Kind, turn: &Turn<'_>) -> String {
    let classes: Vec<String> = Class::ALL
        .into_iter()
        .filter(|class| turn.rules.table.rule(*class).wakes.holds(kind))
        .map(|class| (class as i64).to_string())
        .collect();
    format!("(i.class IS NULL OR i.class IN ({}))", classes.join(","))
}

/// Records without a host share none.
pub(super) fn courtesy(host: &str, courtesy: Courtesy) -> Courtesy {
    if host.is_empty() { Courtesy { gap: Delay::ZERO, at_once: u32::MAX } } else { courtesy }
}

/// One more of those.
pub(super) fn count<T: PartialEq>(told: &mut Vec<(T, u64)>, one: T) {
    match told.iter_mut().find(|(known, _)| *known == one) {
        Some((_, n)) => *n += 1,
        None => told.push((one, 1)),
    }
}
