//! The end of a session whose draft is whole: the digests, the evidence, the final name.

use crate::core::digest::{Algorithm, Expected};
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::{End, Next, Place};
use crate::core::pers_xfer::record::{Evidence, Finished};
use crate::core::range::{Length, RangeSet};
use crate::io::driver::session::Session;
use crate::io::driver::{Mtime, Tell};
use crate::io::part::{Clobber, PartStore, Publish, Slow, adopt_equal};

/// The digests found, by algorithm.
type Found = Vec<(Algorithm, Vec<u8>)>;

impl Session {
    /// Verifies the whole draft and gives it its final name.
    pub(super) async fn finish(&mut self, place: Place, evidence: Evidence) -> End {
        let end = match place {
            Place::Part => self.verify_and_publish(evidence).await,
            Place::Rival => self.judge_rival().await,
        };
        end.unwrap_or_else(|fault| End::Failed(Failure::Local(fault)))
    }

    /// Another version is here whole, and a digest is known: it decides whether this one takes the place of what is held.
    async fn judge_rival(&mut self) -> Result<End, LocalFault> {
        (self.tell)(Tell::Verifying);
        let expected = self.orders.terms.digests.clone();
        let right = self.with_store(move |store| store.rival_has(&expected)).await?;
        let algorithm = self.orders.terms.digests.first().map_or("", |e| e.algorithm.name());
        let step = self.machine.rival_judged(if right { Ok(()) } else { Err(Failure::WrongVersion { algorithm }) });
        step.ops.into_iter().try_for_each(|op| self.apply(op))?;
        match step.next {
            Next::Fail(failure) => Ok(End::Failed(failure)),
            _ => self.verify_and_publish(Evidence::Digest).await,
        }
    }

    async fn verify_and_publish(&mut self, evidence: Evidence) -> Result<End, LocalFault> {
        if self.store.is_none() {
            self.name_and_open()?;
        }
        self.await_description().await;
        let evidence = match self.verify(evidence).await? {
            Ok(evidence) => evidence,
            Err(failure) => return Ok(End::Failed(failure)),
        };
        if evidence < self.orders.terms.require {
            let (required, found) = (self.orders.terms.require.word(), evidence.word());
            return Ok(End::Failed(Failure::Evidence { required, found }));
        }
        self.publish(evidence).await
    }

    /// The evidence there is once the digests have been looked at, or which of them is wrong.
    async fn verify(&mut self, evidence: Evidence) -> Result<Result<Evidence, Failure>, LocalFault> {
        if let Some(failure) = self.wrong_piece().await? {
            return Ok(Err(failure));
        }
        if self.orders.terms.digests.is_empty() {
            let evidence = if self.pieces_are_right { Evidence::Digest } else { evidence };
            return self.verify_as_vouched(evidence).await;
        }
        (self.tell)(Tell::Verifying);
        let found = self.with_store(|store| store.digest(&mut |_| {})).await?;
        if wrong_digest(&self.orders.terms.digests, &found).is_none() {
            return Ok(Ok(Evidence::Digest));
        }
        // Bytes are not called wrong by a running state alone: the file itself has the last word.
        let found = self.with_store(|store| store.digest_again(&mut |_| {})).await?;
        Ok(wrong_digest(&self.orders.terms.digests, &found).map_or(Ok(Evidence::Digest), Err))
    }

    /// Where pieces have digests of their own and were not looked at yet: the first that is wrong.
    async fn wrong_piece(&mut self) -> Result<Option<Failure>, LocalFault> {
        let held = self.store.as_ref().map_or(Length::ZERO, |store| store.held(Place::Part));
        let pieces = self.orders.terms.pieces.clone().filter(|pieces| pieces.check_count(held).is_ok());
        let Some(pieces) = pieces.filter(|_| !self.pieces_are_right) else { return Ok(None) };
        let algorithm = pieces.algorithm().name();
        let wrong = self.with_store(move |store| store.wrong_pieces(&pieces, held, &RangeSet::new())).await?;
        self.pieces_are_right = wrong.is_empty();
        Ok(wrong.first().map(|(piece, _)| Failure::Piece { piece: *piece, algorithm }))
    }

    async fn publish(&mut self, evidence: Evidence) -> Result<End, LocalFault> {
        let mtime = match self.orders.terms.mtime {
            Mtime::Local => None,
            Mtime::Remote => self.machine.last_modified(),
        };
        let (existing, at) = (self.orders.terms.clobber, self.hands.clock.now().wall);
        let how = Publish { existing, mtime, at, evidence };
        let facts = self.with_store(move |store| publish(store, how)).await?;
        self.finished = Some(Finished { server_digest: self.server_digest, ..facts });
        Ok(End::Complete { evidence })
    }

    /// Does something slow with the part files, off the lane's thread; a panic in it goes on here.
    pub(super) async fn with_store<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut PartStore) -> Result<R, LocalFault> + Send + 'static,
    ) -> Result<R, LocalFault> {
        let Some(mut store) = self.store.take() else { return Err(no_store()) };
        if self.orders.terms.spec.slow == Slow::InTurn {
            let result = work(&mut store);
            self.store = Some(store);
            return result;
        }
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&mut store);
            (store, result)
        });
        match done.await {
            Ok((store, result)) => {
                self.store = Some(store);
                result
            }
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// Publishes. A file that stands there with the very same bytes is no conflict: it is ours, from the moment before a crash.
fn publish(store: &mut PartStore, how: Publish) -> Result<Finished, LocalFault> {
    match store.publish(how) {
        Err(LocalFault::NotOurs { .. }) if how.existing == Clobber::Refuse && adopt_equal(store)? => {
            store.publish(Publish { existing: Clobber::Replace, ..how })
        }
        other => other,
    }
}

/// The first digest that is not as demanded.
fn wrong_digest(expected: &[Expected], found: &Found) -> Option<Failure> {
    let found_for =
        |e: &Expected| found.iter().find(|(algorithm, _)| *algorithm == e.algorithm).map(|(_, bytes)| bytes);
    expected.iter().find(|e| found_for(e) != Some(&e.bytes)).map(|e| Failure::Digest {
        algorithm: e.algorithm.name(),
        expected: e.hex(),
        found: found_for(e).map_or_else(|| "unknown".to_owned(), hex::encode),
    })
}

fn no_store() -> LocalFault {
    let detail = "the part files are not open; please report this".to_owned();
    LocalFault::Io { doing: "finish", path: "the download".to_owned(), detail }
}
