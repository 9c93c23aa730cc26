//! What must never happen, noted when it does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use persxfer::core::pers_xfer::record::XferId;
use persxfer::engine::{Ending, Notice, WaitReason};

use super::host::T;

/// Clocks and doubles round.
const ROUNDING: Duration = Duration::from_millis(2);
/// A time that is stored may have moved so much from the one that was told.
const STORING: Duration = Duration::from_secs(2);

/// What has been seen.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Requests under way, a host.
    at_host: Vec<Vec<usize>>,
    /// Of so many files at a host are allowed.
    pub(crate) most_at_host: usize,
    /// Before then, this file is not to be asked for.
    not_before: Vec<Option<T>>,
    /// When the wait after a failure is over, of one that was told and not begun since: no process may cut it short.
    due: Vec<Option<T>>,
    files: BTreeMap<XferId, usize>,
    /// Requests, a file.
    pub(crate) requests: Vec<usize>,
    /// Bytes held when last told, and when that was.
    pub(crate) held: Vec<u64>,
    /// How often each was said to have failed for good, or to be complete.
    pub(crate) ends: Vec<usize>,
    /// When it last made progress, or was first asked for.
    pub(crate) progress: Vec<Option<T>>,
    /// When it was said to have failed for good, or to be complete.
    pub(crate) ended: Vec<Option<T>>,
    /// Rules that were broken.
    pub(crate) broken: Vec<String>,
}

impl Watch {
    pub(crate) fn new(hosts: usize, files: usize) -> Self {
        Self {
            at_host: vec![Vec::new(); hosts],
            most_at_host: usize::MAX,
            not_before: vec![None; files],
            due: vec![None; files],
            requests: vec![0; files],
            held: vec![0; files],
            ends: vec![0; files],
            progress: vec![None; files],
            ended: vec![None; files],
            ..Self::default()
        }
    }

    /// A request goes out.
    pub(crate) fn asked(&mut self, t: T, host: usize, file: usize) {
        self.at_host[host].push(file);
        self.requests[file] += 1;
        self.progress[file].get_or_insert(t);
        let files: BTreeSet<usize> = self.at_host[host].iter().copied().collect();
        if files.len() > self.most_at_host {
            self.broken.push(format!("{t:?}: requests at once to host {host}: of files {:?}", self.at_host[host]));
        }
        self.check_time(t, file);
    }

    fn check_time(&mut self, t: T, file: usize) {
        let bound = self.not_before[file].max(self.due[file]);
        if let Some(at) = bound.filter(|at| t + ROUNDING < *at) {
            self.broken.push(format!("{t:?}: file {file} is asked for before its time, {at:?}"));
        }
    }

    /// It is over.
    pub(crate) fn left(&mut self, host: usize, file: usize) {
        let at = self.at_host[host].iter().position(|of| *of == file).expect("it was there");
        self.at_host[host].swap_remove(at);
    }

    /// A stored time binds later processes too. What was told and is not stored so, a death has taken along.
    pub(crate) fn stored(&mut self, file: usize, at: Option<T>) {
        self.not_before[file] = at;
        let is_stored = |due: &T| at.is_some_and(|at| at.abs_diff(*due) < STORING);
        self.due[file] = self.due[file].filter(is_stored);
    }

    /// Somebody asks for it: now.
    pub(crate) fn asked_for(&mut self, file: usize) {
        (self.not_before[file], self.due[file]) = (None, None);
    }

    /// The program says something.
    pub(crate) fn heard(&mut self, t: T, notice: &Notice) {
        match notice {
            Notice::Accepted { id, path: Some(path), held, .. } => {
                let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
                let file = name.trim_start_matches('f').parse().expect("one of our files");
                self.files.insert(*id, file);
                self.held[file] = held.0;
            }
            Notice::Waiting { id, delay, reason, .. } => {
                let file = self.files[id];
                let binds =
                    matches!(reason, WaitReason::Backoff { .. } | WaitReason::RetryAfter(_) | WaitReason::Host(_));
                let at = delay.filter(|_| binds).map(|d| t + d.as_std());
                self.not_before[file] = at;
                if matches!(reason, WaitReason::Backoff { .. } | WaitReason::RetryAfter(_)) {
                    self.due[file] = at;
                }
            }
            Notice::Session { id, held, .. } => {
                let file = self.files[id];
                self.check_time(t, file);
                self.asked_for(file);
                self.held[file] = held.0;
            }
            Notice::Progress { id, held } => {
                let file = self.files[id];
                if held.0 >= self.held[file] + (64 << 10) {
                    self.progress[file] = Some(t);
                }
                self.held[file] = self.held[file].max(held.0);
            }
            Notice::Ended(report) => {
                let Some(file) = self.files.get(&report.id).copied() else { return };
                self.not_before[file] = None;
                if matches!(report.ending, Ending::Complete { .. } | Ending::Failed { .. }) {
                    self.ends[file] += 1;
                    self.ended[file] = Some(t);
                }
            }
            _ => {}
        }
    }
}
