//! What a server says of its file, carried out: its digest runs while bytes flow and is compared at the end, and the
//! mirrors it names are told.

use crate::core::digest::{Algorithm, Expected};
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::dossier::Dossier;
use crate::core::file_xfer::vouch::proof_among;
use crate::core::pers_xfer::record::Evidence;
use crate::io::driver::session::Session;
use crate::io::driver::{Orders, Tell, Terms};

/// At a mirror that a server named, the digest that it was named with is law, where no other is. Gives its algorithm.
pub(super) fn adopt_law(orders: &mut Orders) -> Option<Algorithm> {
    let named_with = orders.named_with.clone().filter(|_| orders.terms.digests.is_empty())?;
    let algorithm = named_with.algorithm;
    orders.terms.digests = vec![named_with];
    Some(algorithm)
}

/// The strongest digest that is law, where it proves the whole.
pub(super) fn law(terms: &Terms) -> Option<Expected> {
    proof_among(&terms.digests).cloned()
}

/// The digests that are to run: those that are law, and else the strongest that is vouched for.
pub(super) fn algorithms(terms: &Terms, dossier: &Dossier) -> Vec<Algorithm> {
    if !terms.digests.is_empty() {
        return terms.digests.iter().map(|digest| digest.algorithm).collect();
    }
    let drafts = std::iter::once(&dossier.part).chain(&dossier.rival);
    let mut wanted: Vec<Algorithm> = drafts.filter_map(|draft| draft.vouched()).map(|d| d.algorithm).collect();
    wanted.dedup();
    wanted
}

impl Session {
    /// An answer is about to be read: from now on the digest runs by which the draft will be checked.
    pub(super) fn heed_what_is_said(&mut self) {
        self.look_for_description();
        let wanted = algorithms(&self.orders.terms, self.machine.dossier());
        if let Some(store) = &mut self.store {
            store.want(&wanted);
        }
    }

    /// Tells of mirrors that were named.
    pub(super) fn tell_named(&mut self) {
        if let Some(named) = self.machine.take_named() {
            (self.tell)(Tell::Duplicates(named));
        }
    }

    /// The evidence there is once the bytes have been compared with the digest that the server names, if any, or the
    /// failure. A weak algorithm finds damage and proves nothing.
    pub(super) async fn verify_as_vouched(
        &mut self,
        evidence: Evidence,
    ) -> Result<Result<Evidence, Failure>, LocalFault> {
        let Some(named) = self.machine.vouched().cloned() else { return Ok(Ok(evidence)) };
        (self.tell)(Tell::Verifying);
        let (algorithm, all) = (named.algorithm, self.machine.all_vouched().to_vec());
        let found = self.with_store(move |store| {
            store.want(&[algorithm]);
            store.digest(&mut |_| {})
        });
        let found = found.await?;
        let mut right = confirmed(&all, &found, algorithm);
        let mut wrong = Vec::new();
        if right.is_none() {
            // Bytes are not called wrong by a running state alone: the file itself has the last word. Where servers name
            // several digests, so has whatever it agrees with.
            let algorithms: Vec<Algorithm> = all.iter().map(|d| d.algorithm).collect();
            let found = self.with_store(move |store| {
                store.want(&algorithms);
                store.digest_again(&mut |_| {})
            });
            let found = found.await?;
            wrong = of(&found, algorithm).unwrap_or_default();
            let proving = all.iter().map(|d| d.algorithm).filter(|by| *by == algorithm || by.proves());
            right = proving.into_iter().find_map(|by| confirmed(&all, &found, by));
        }
        let Some(algorithm) = right else {
            let (name, found) = (algorithm.name(), hex::encode(wrong));
            return Ok(Err(Failure::Vouched { algorithm: name, named: named.hex(), found }));
        };
        if !algorithm.proves() {
            return Ok(Ok(evidence));
        }
        self.server_digest = Some(algorithm);
        Ok(Ok(Evidence::Digest))
    }
}

/// This algorithm, if the file has a digest by it that a server names.
fn confirmed(named: &[Expected], found: &[(Algorithm, Vec<u8>)], by: Algorithm) -> Option<Algorithm> {
    let found = of(found, by)?;
    named.iter().any(|one| one.algorithm == by && one.bytes == found).then_some(by)
}

fn of(found: &[(Algorithm, Vec<u8>)], algorithm: Algorithm) -> Option<Vec<u8>> {
    found.iter().find(|(by, _)| *by == algorithm).map(|(_, bytes)| bytes.clone())
}
