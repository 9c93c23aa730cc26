//! The end of a session whose draft is whole: the digests, the evidence, the final name.

use crate::core::digest::Expected;
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::{End, Place};
use crate::core::pers_xfer::record::{Evidence, Finished};
use crate::core::range::Length;
use crate::io::driver::session::Session;
use crate::io::driver::{Mtime, Tell};
use crate::io::part::{Facts, PartStore, Publish};

impl Session {
    /// Verifies the whole draft and gives it its final name.
    pub(super) async fn finish(&mut self, evidence: Evidence) -> Result<End, LocalFault> {
        if self.store.is_none() {
            self.name_and_open()?;
        }
        let Some(store) = self.store.take() else { return Ok(End::Cancelled) };
        let (store, end) = self.verified(store, evidence).await?;
        let (evidence, failure) = end;
        if let Some(failure) = failure {
            self.store = Some(store);
            return Ok(End::Failed(failure));
        }
        self.publish(store, evidence).await
    }

    /// The evidence there is, and why it does not do, if it does not.
    async fn verified(
        &mut self,
        mut store: PartStore,
        evidence: Evidence,
    ) -> Result<(PartStore, (Evidence, Option<Failure>)), LocalFault> {
        let required = self.orders.terms.require;
        let weak = |found: Evidence| (found < required).then(|| too_weak(found, required));
        if self.orders.terms.digests.is_empty() {
            return Ok((store, (evidence, weak(evidence))));
        }
        (self.tell)(Tell::Verifying);
        let total = store.held(Place::Part);
        let (store, found) = blocking(move || {
            let found = store.digest(total);
            (store, found)
        })
        .await;
        let wrong = wrong_digest(&self.orders.terms.digests, &found?);
        Ok((store, (Evidence::Digest, wrong.or_else(|| weak(Evidence::Digest)))))
    }

    async fn publish(&mut self, mut store: PartStore, evidence: Evidence) -> Result<End, LocalFault> {
        let mtime = match self.orders.terms.mtime {
            Mtime::Local => None,
            Mtime::Remote => self.machine.last_modified(),
        };
        let how = Publish { clobber: self.orders.terms.clobber, mtime };
        let (store, published) = blocking(move || {
            let published = store.publish(how);
            (store, published)
        })
        .await;
        match published {
            Ok(Facts { size, mtime_ns, inode }) => {
                let at = self.hands.clock.now().wall;
                self.finished = Some(Finished { at, evidence, size, mtime_ns, inode });
                Ok(End::Complete { evidence })
            }
            Err(fault) => {
                self.store = Some(store);
                Err(fault)
            }
        }
    }
}

fn too_weak(found: Evidence, required: Evidence) -> Failure {
    Failure::Evidence { required: required.word(), found: found.word() }
}

/// The first digest that is not as demanded.
fn wrong_digest(expected: &[Expected], found: &[Expected]) -> Option<Failure> {
    let found_for = |e: &Expected| found.iter().find(|f| f.algorithm == e.algorithm);
    expected.iter().find(|e| found_for(e) != Some(e)).map(|e| Failure::Digest {
        algorithm: e.algorithm.name(),
        expected: e.to_hex(),
        found: found_for(e).map_or_else(|| "unknown".to_owned(), Expected::to_hex),
    })
}

/// Runs something slow off the lane's thread; a panic in it goes on here.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
