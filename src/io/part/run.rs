//! A run of the digests over one file: from the bytes as they come, or by reading what is there already.
//!
//! A state from an earlier session is taken up only after everything before it has been read and has the block sums
//! that were told with it; else the run begins at the start of the file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::digest::Algorithm;
use crate::core::failure::LocalFault;
use crate::io::part::digests::{ByAlgorithm, Digests};
use crate::io::part::fault::fault;
use crate::io::part::record::Proof;
use crate::io::part::sums::Sums;

/// Bytes read at once: 1 MiB.
const CHUNK: u64 = 1 << 20;

/// Where the digests of a file stand, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The sums of all before; their length is the position.
    pub(super) sums: Sums,
    /// The digests' states there.
    pub(super) states: ByAlgorithm,
}

impl From<Proof> for Snapshot {
    fn from(proof: Proof) -> Self {
        Self { sums: proof.sums, states: proof.states }
    }
}

/// The run, at some position of the file.
#[derive(Debug)]
pub(super) struct Run {
    file: Arc<File>,
    path: PathBuf,
    algorithms: Vec<Algorithm>,
    phase: Phase,
    /// The sums of what was read in this phase; their length is the position.
    sums: Sums,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Phase {
    /// Are the bytes still those that the snapshot is about?
    Verifying(Snapshot, Digests),
    /// On with the digests.
    Hashing(Digests),
}

impl Run {
    /// From the start of the file.
    pub(super) fn new(file: Arc<File>, path: PathBuf, algorithms: Vec<Algorithm>) -> Self {
        let phase = Phase::Hashing(Digests::new(&algorithms));
        Self { file, path, algorithms, phase, sums: Sums::default(), buffer: Vec::new() }
    }

    /// From where an earlier session left off, if that proves right.
    pub(super) fn resume(mut self, snapshot: Snapshot) -> Self {
        if let Some(digests) = Digests::from_states(&self.algorithms, &snapshot.states) {
            self.phase = Phase::Verifying(snapshot, digests);
        }
        self
    }

    /// From where an earlier session left off, unproved: for sums alone, which shall tell what was written and not what
    /// the disk made of it since.
    pub(super) fn trust(mut self, snapshot: Snapshot) -> Self {
        if self.algorithms.is_empty() {
            self.sums = snapshot.sums;
        }
        self
    }

    /// The same file and algorithms, from the start.
    pub(super) fn afresh(&self) -> Self {
        Self::new(Arc::clone(&self.file), self.path.clone(), self.algorithms.clone())
    }

    /// Up to where the digests are right; `None` while an earlier state is being verified.
    pub(super) const fn hashed(&self) -> Option<u64> {
        match self.phase {
            Phase::Verifying(..) => None,
            Phase::Hashing(_) => Some(self.sums.length),
        }
    }

    /// Takes the bytes that follow those hashed so far. While verifying, bytes are only read.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if let Phase::Hashing(digests) = &mut self.phase {
            digests.update(bytes);
            self.sums.update(bytes);
        }
    }

    /// Reads on, at most 1 MiB and not beyond `limit`.
    pub(super) fn step(&mut self, limit: u64) -> Result<(), LocalFault> {
        let end = match &self.phase {
            Phase::Verifying(snapshot, _) if snapshot.sums.length > limit => {
                self.restart();
                return Ok(());
            }
            Phase::Verifying(snapshot, _) => snapshot.sums.length,
            Phase::Hashing(_) => limit,
        };
        let n = end.saturating_sub(self.sums.length).min(CHUNK) as usize;
        self.read(n)?;
        match &mut self.phase {
            Phase::Verifying(..) => self.sums.update(&self.buffer[..n]),
            Phase::Hashing(digests) => {
                digests.update(&self.buffer[..n]);
                self.sums.update(&self.buffer[..n]);
            }
        }
        self.conclude();
        Ok(())
    }

    /// Reads on until everything before `limit` is hashed.
    pub(super) fn catch_up(&mut self, limit: u64, on_step: &mut dyn FnMut(u64)) -> Result<(), LocalFault> {
        while self.hashed().is_none_or(|at| at < limit) {
            self.step(limit)?;
            on_step(self.sums.length);
        }
        Ok(())
    }

    /// For the journal; `None` while verifying, when the journal knows already.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        match &self.phase {
            Phase::Verifying(..) => None,
            Phase::Hashing(digests) => Some(Snapshot { sums: self.sums.clone(), states: digests.states() }),
        }
    }

    /// The digests of what was hashed.
    pub(super) fn finish(&self) -> ByAlgorithm {
        match &self.phase {
            Phase::Verifying(_, digests) | Phase::Hashing(digests) => digests.finish(),
        }
    }

    fn read(&mut self, n: usize) -> Result<(), LocalFault> {
        self.buffer.resize(self.buffer.len().max(n), 0);
        let read = self.file.read_exact_at(&mut self.buffer[..n], self.sums.length);
        read.map_err(|e| fault("read", &self.path, &e))
    }

    /// At the end of verifying: take the state up, or begin at the start.
    fn conclude(&mut self) {
        let Phase::Verifying(snapshot, digests) = &self.phase else { return };
        if self.sums.length < snapshot.sums.length {
            return;
        }
        if self.sums == snapshot.sums {
            self.phase = Phase::Hashing(digests.clone());
        } else {
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.phase = Phase::Hashing(Digests::new(&self.algorithms));
        self.sums = Sums::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::part::Slow;
    use crate::io::part::hasher::Hasher;
    use bytes::Bytes;

    const SHA: [Algorithm; 1] = [Algorithm::Sha256];

    fn run_over(bytes: &[u8]) -> Run {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("written");
        Run::new(Arc::new(file), "part".into(), SHA.to_vec())
    }

    fn snapshot_of(bytes: &[u8]) -> Snapshot {
        let mut run = run_over(b"");
        run.feed(bytes);
        run.snapshot().expect("a snapshot")
    }

    fn digest(bytes: &[u8]) -> ByAlgorithm {
        let mut digests = Digests::new(&SHA);
        digests.update(bytes);
        digests.finish()
    }

    /// A state whose sums are right is used, not made anew: this one is of other bytes, and it shows.
    #[test]
    fn a_state_is_taken_up_where_the_sums_agree() {
        let bytes = vec![1; 3 << 20];
        let mut snapshot = snapshot_of(&bytes[..2 << 20]);
        snapshot.states = snapshot_of(b"other").states;
        let mut run = run_over(&bytes).resume(snapshot);
        assert_eq!((run.hashed(), run.snapshot()), (None, None));
        run.catch_up(3 << 20, &mut |_| ()).expect("read");
        assert_eq!(run.finish(), digest(&[b"other", &bytes[2 << 20..]].concat()));
    }

    #[test]
    fn a_state_is_refused_where_the_sums_differ_or_reach_beyond() {
        let bytes = vec![1; 3 << 20];
        let mut other = bytes.clone();
        other[5] = 2;
        for snapshot in [snapshot_of(&other[..2 << 20]), snapshot_of(&[&bytes[..], b"more"].concat())] {
            let mut run = run_over(&bytes).resume(snapshot);
            run.catch_up(3 << 20, &mut |_| ()).expect("read");
            assert_eq!(run.finish(), digest(&bytes));
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let fault = run_over(b"short").catch_up(6, &mut |_| ()).expect_err("one byte is missing");
        assert!(matches!(fault, LocalFault::Io { doing: "read", .. }), "{fault}");
    }

    /// As the store feeds it: bytes that the file has just taken.
    fn feed(hasher: &mut Hasher, bytes: &[u8], from: usize) {
        for (i, stride) in bytes[from..].chunks(1 << 20).enumerate() {
            let pieces = stride.chunks(50_000).map(Bytes::copy_from_slice).collect();
            hasher.feed((from + (i << 20)) as u64, pieces);
        }
    }

    #[test]
    fn a_hasher_far_behind_reads_and_then_is_fed() {
        let bytes: Vec<u8> = (0..40_u32 << 20).map(|i| (i >> 9) as u8).collect();
        let snapshot = snapshot_of(&bytes[..9 << 20]);
        for run in [run_over(&bytes), run_over(&bytes).resume(snapshot)] {
            let mut hasher = Hasher::new(run, Slow::Beside);
            feed(&mut hasher, &bytes, 20 << 20);
            let run = hasher.come_home();
            run.catch_up(bytes.len() as u64, &mut |_| ()).expect("read");
            assert_eq!(run.finish(), digest(&bytes));
        }
    }

    #[test]
    fn a_hasher_reads_what_it_jumps_over() {
        let bytes: Vec<u8> = (0..30_u32 << 20).map(|i| (i >> 8) as u8).collect();
        for jumps in [&[][..], &[(5, 6)], &[(3, 12), (13, 14), (14, 22)], &[(1, 29)]] {
            let mut hasher = Hasher::new(run_over(&bytes), Slow::Beside);
            let mut at = 0_usize;
            for (start, end) in jumps.iter().map(|(start, end)| (start << 20, end << 20)) {
                feed(&mut hasher, &bytes[..start], at);
                hasher.jump(start as u64, end as u64);
                at = end;
            }
            feed(&mut hasher, &bytes, at);
            let run = hasher.come_home();
            run.catch_up(bytes.len() as u64, &mut |_| ()).expect("read");
            assert_eq!(run.finish(), digest(&bytes), "{jumps:?}");
        }
    }

    #[test]
    fn a_thread_that_failed_blocks_nobody_and_hides_nothing() {
        // The file is empty, so that a thread which must read fails at once.
        let mut hasher = Hasher::new(run_over(b""), Slow::Beside);
        feed(&mut hasher, &vec![3; 60 << 20], 1 << 20);
        let fault = hasher.come_home().catch_up(1, &mut |_| ()).expect_err("nothing to read");
        assert!(matches!(fault, LocalFault::Io { .. }));
    }
}
