//! Checks: each piece that has a digest of its own is looked at as soon as it is whole. A wrong one is fetched again, and
//! whoever brought it is marked down.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::digest::Pieces;
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::Freshness;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::io::driver::fan::Fan;
use crate::io::driver::{Beside, Terms};

/// What is known of the pieces.
#[derive(Debug)]
pub(super) struct Checks {
    pieces: Arc<Pieces>,
    total: Length,
    /// The pieces that were right.
    right: RangeSet,
}

impl Checks {
    /// Digests of pieces count where there are as many as the file has pieces.
    pub(super) fn of(terms: &Terms, total: Length) -> Option<Self> {
        let pieces = terms.pieces.clone().filter(|pieces| pieces.check_count(total).is_ok())?;
        Some(Self { pieces, total, right: RangeSet::new() })
    }

    /// Was the piece that this byte is of found right?
    pub(super) fn is_right(&self, at: Offset) -> bool {
        self.right.contains(at)
    }

    /// The pieces that a run of new bytes touches.
    fn touched(&self, run: ByteRange) -> std::ops::Range<usize> {
        let (first, last) = (self.pieces.of(run.start), self.pieces.of(run.end.back(Length(1))));
        first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
    }
}

fn touches(bytes: &RangeSet, range: ByteRange) -> bool {
    bytes.iter().any(|run| run.start < range.end && range.start < run.end)
}

impl Fan<'_> {
    /// Bytes were written: the pieces that are whole by them are looked at.
    pub(super) fn check_pieces(&mut self, run: ByteRange) -> Result<(), LocalFault> {
        let Some(checks) = &self.checks else { return Ok(()) };
        for n in checks.touched(run) {
            self.check_piece(n)?;
        }
        Ok(())
    }

    fn check_piece(&mut self, n: usize) -> Result<(), LocalFault> {
        let (Some(checks), Some(store)) = (&mut self.checks, &mut self.session.store) else { return Ok(()) };
        let (Some(range), Some(wanted)) = (checks.pieces.range(n, checks.total), checks.pieces.digest(n)) else {
            return Ok(());
        };
        if checks.right.covers(range) || !store.segments().covers(range) {
            return Ok(());
        }
        if store.piece_is(range, checks.pieces.algorithm(), wanted)? {
            checks.right.insert(range);
            return Ok(());
        }
        self.piece_is_wrong(n, range)
    }

    /// Its bytes go, and are asked for again; whoever brought them all is known for it.
    fn piece_is_wrong(&mut self, piece: usize, range: ByteRange) -> Result<(), LocalFault> {
        let Some(algorithm) = self.checks.as_ref().map(|checks| checks.pieces.algorithm().name()) else {
            return Ok(());
        };
        let culprit = self.brought.iter().find(|(_, bytes)| bytes.covers(range)).map(|(seat, _)| *seat);
        let culprit = culprit.filter(|seat| !self.may_be_a_caches(*seat, range));
        let failure = Failure::Piece { piece, algorithm };
        match culprit {
            Some(seat) => self.tell_beside(seat, |url| Beside::Failed { url, failure, origin: None }),
            None => tracing::debug!(%failure, "bytes of several origins, or of a cache that is doubted already"),
        }
        self.doubt(range);
        self.lose(range, culprit)
    }

    /// Had it been asked for before its seat was doubted? That is held against nobody where there is nobody better.
    fn may_be_a_caches(&self, seat: usize, range: ByteRange) -> bool {
        let all_are_doubted = self.doubted.len() == self.session.orders.fan.seats.len();
        all_are_doubted && self.doubted.get(&seat).is_some_and(|before| touches(before, range))
    }

    /// Who brought part of a wrong piece is asked past all caches from now on; what was asked for until then may have come
    /// from a cache, and is held against nobody any more.
    fn doubt(&mut self, range: ByteRange) {
        let news = |(seat, bytes): &(&usize, &RangeSet)| touches(bytes, range) && !self.doubted.contains_key(seat);
        let news: BTreeMap<usize, RangeSet> =
            self.brought.iter().filter(news).map(|(seat, bytes)| (*seat, bytes.clone())).collect();
        self.doubted.extend(news);
    }

    /// A seat wrote this. Where it was doubted after that had been asked for, a cache may have sent it.
    pub(super) fn note_brought(&mut self, seat: usize, asked: Freshness, run: ByteRange) {
        self.brought.entry(seat).or_default().insert(run);
        if let Some(before) = self.doubted.get_mut(&seat).filter(|_| asked == Freshness::CacheAllowed) {
            before.insert(run);
        }
    }

    /// Every byte is here: pieces that an earlier session brought are looked at too. True where all are right.
    pub(super) async fn check_the_rest(&mut self) -> Result<bool, LocalFault> {
        let Some(checks) = &self.checks else { return Ok(true) };
        let (pieces, total, right) = (Arc::clone(&checks.pieces), checks.total, checks.right.clone());
        let wrong = self.session.with_store(move |store| store.wrong_pieces(&pieces, total, &right)).await?;
        for (n, range) in &wrong {
            self.piece_is_wrong(*n, *range)?;
        }
        if wrong.is_empty() {
            self.session.pieces_are_right = true;
        }
        Ok(wrong.is_empty())
    }
}
