//! The join: a download that failed for good becomes a record of the ledger, and one that succeeds ends its record.

use super::open;
use crate::cli::foreign;
use crate::cli::trouble::Trouble;
use crate::core::ledger::class::Class;
use crate::core::ledger::fail::Failed;
use crate::core::ledger::record::{Key, Owner, State};
use crate::core::ledger::{Record, Rules};
use crate::core::pers_xfer::record::{Direction, Evidence};
use crate::core::url::MirrorUrl;
use crate::engine::{Ending, Report};
use crate::io::store::open::Place;
use crate::io::store::{Added, Addition, LedgerStore, StoreError, Turn, Word};

/// The ledger beside a run of transfers.
pub(crate) struct Join {
    store: Box<dyn LedgerStore>,
    rules: Rules,
    rng: Box<dyn rand::Rng>,
}

impl Join {
    /// With the ledger at this place.
    pub(crate) fn open(place: &Place, rules: &Rules) -> Result<Self, Trouble> {
        let rules = rules.clone();
        let (store, rng) = (open(place, &rules)?, foreign::chance()?);
        Ok(Self { store, rules, rng })
    }

    /// A transfer has ended. What there is to say of it; an error is only told, for the transfer's own end stands.
    pub(crate) fn ended(&mut self, report: &Report) -> Option<String> {
        if report.direction != Direction::Download {
            return None;
        }
        let told = match &report.ending {
            Ending::Failed { class, .. } => self.failed(report, *class),
            Ending::Complete { evidence } | Ending::Unchanged { evidence } => self.done(report, *evidence),
            Ending::Stopped { .. } | Ending::Local(_) => Ok(None),
        };
        told.unwrap_or_else(|error| Some(format!("{}: not noted in the ledger: {error}", report.name)))
    }

    fn failed(&mut self, report: &Report, class: crate::core::verdict::Class) -> Result<Option<String>, StoreError> {
        let (Some(wanted), Some(class), Some(key)) = (&report.wanted, Class::of(class), key_of(&report.url)) else {
            return Ok(None);
        };
        let failed = Failed { class, asked: None, mirror: None, bytes_done: report.held };
        let addition = Addition {
            key,
            host: report.url.origin().host().to_owned(),
            mirrors: wanted.mirrors.iter().map(|url| url.secret_url().as_str().to_owned()).collect(),
            size: report.total,
            digest: wanted.digests.first().map(ToString::to_string),
            failed: Some(failed),
        };
        let added = self.with(|store, turn| store.add(&[addition], turn))?;
        Ok(Some(match added.first() {
            Some(Added::New) => format!("{}: remembered in the ledger, as {}", report.name, class.word()),
            _ => format!("{}: the ledger knows it already", report.name),
        }))
    }

    /// What the ledger waits for is here.
    fn done(&mut self, report: &Report, evidence: Evidence) -> Result<Option<String>, StoreError> {
        let Some(key) = key_of(&report.url) else { return Ok(None) };
        let waits = |record: &Record| !matches!(record.state, State::Done | State::Leased(_));
        let Some(record) = self.with(|store, _| store.get(&key))?.filter(waits) else { return Ok(None) };
        if record.digest.is_some() && evidence != Evidence::Digest {
            return Ok(None);
        }
        let me = Owner(rand::RngExt::random(&mut *self.rng));
        let Some((_, token, _)) = self.with(|store, turn| store.claim_early(&key, me, turn))? else { return Ok(None) };
        let word = Word::Done { size: report.total, digest: record.digest };
        let told = self.with(|store, turn| store.settle(&[(key, token, word)], turn))?;
        let is_done = told.iter().all(Result::is_ok);
        Ok(is_done.then(|| format!("{}: done in the ledger as well", report.name)))
    }

    fn with<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn LedgerStore, &mut Turn<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut turn = Turn { now: foreign::now().wall, rules: &self.rules, rng: &mut *self.rng };
        ask(&mut *self.store, &mut turn)
    }
}

/// The key under which `ledger add` enters this URL.
fn key_of(url: &MirrorUrl) -> Option<Key> {
    Key::parse(url.without_credentials().secret_url().as_str()).ok()
}
