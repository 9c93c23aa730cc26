//! What must never happen, noted when it does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use persxfer::core::pers_xfer::record::XferId;
use persxfer::engine::{Ending, Notice, WaitReason};

use super::host::T;

/// Clocks and doubles round.
const ROUNDING: Duration = Duration::from_millis(2);

/// What has been seen.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Requests under way, a host.
    at_host: Vec<Vec<usize>>,
    /// Of so many files at a host are allowed.
    pub(crate) most_at_host: usize,
    /// Before then, this file is not to be asked for.
    not_before: Vec<Option<T>>,
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
        if let Some(at) = self.not_before[file].filter(|at| t + ROUNDING < *at) {
            self.broken.push(format!("{t:?}: file {file} is asked for before its time, {at:?}"));
        }
    }

    /// It is over.
    pub(crate) fn left(&mut self, host: usize, file: usize) {
        let at = self.at_host[host].iter().position(|of| *of == file).expect("it was there");
        self.at_host[host].swap_remove(at);
    }

    /// A stored time binds later processes too.
    pub(crate) fn not_before(&mut self, file: usize, at: Option<T>) {
        self.not_before[file] = at;
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
                self.not_before[file] = delay.filter(|_| binds).map(|d| t + d.as_std());
            }
            Notice::Session { id, held, .. } => {
                let file = self.files[id];
                self.check_time(t, file);
                self.not_before[file] = None;
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
