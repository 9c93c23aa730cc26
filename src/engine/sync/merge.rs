//! Merging: what was fetched is looked at, and what is good gets its place in our own trees (B8.8 to B8.10).
//!
//! Sources come in the configured order and files in that of their paths, so that the same sources always give the same
//! trees. What is about to be placed counts as being there. Names are given in batches: first those of `recent`, then those
//! of the trees that last, then the manifests; a run that was killed between any two merges the same files again, and finds
//! what is there identical.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::indexes::shown;
use super::module::Work;
use super::source::At;
use super::{Counts, Halt, TAKEN};
use crate::core::digest::Expected;
use crate::core::failure::LocalFault;
use crate::core::sync::config::{Criterion, KindChoice};
use crate::core::sync::criteria::{Candidate, Copy, Keep, Replace, replace_named};
use crate::core::sync::kinds::{self, Fault, Kind, Segment, Shape};
use crate::core::sync::listing::{Digest, Entry};
use crate::core::sync::manifest::{Held, sha256};
use crate::core::sync::merge::{Local, MergeAction, decide, is_recent, may_keep};
use crate::core::sync::path::Part;
use crate::io::durable::{self, Clobber};
use crate::io::sync::{Batch, CommandKeep, CommandReplace, Looked, OWN, Piece, Placed, is_free, look, standing};

/// Our own trees, and what is about to be placed in them.
pub(super) struct Trees {
    pub(super) keep: Vec<Box<dyn Keep>>,
    pub(super) replace: Vec<Box<dyn Replace>>,
    pub(super) out: Batch,
    pub(super) recent: Option<(PathBuf, Batch)>,
    pending: HashMap<PathBuf, Copy>,
    /// What is to be noted once it is placed: the source, the path, what became of it.
    marks: Vec<(usize, String, Held, Option<Expected>)>,
}

/// A file that is merged.
#[derive(Clone, Copy)]
pub(super) struct File<'f> {
    /// Its source's place.
    pub(super) n: usize,
    /// Its source's name.
    pub(super) source: &'f str,
    /// Its path in the source.
    pub(super) path: &'f str,
    /// The same below the module's own folder.
    pub(super) below: &'f str,
    /// Where it is.
    pub(super) place: &'f Path,
    pub(super) kind: &'static Kind,
}

impl Work<'_, '_> {
    /// Merges all that was fetched, and has not been merged.
    pub(super) fn merge(&mut self, sources: &mut [At<'_>]) -> Result<(), Halt> {
        if sources.iter().all(|at| at.fresh.is_empty()) {
            return Ok(());
        }
        let mut trees = self.trees()?;
        for n in 0..sources.len() {
            let mut fresh = std::mem::take(&mut sources[n].fresh);
            fresh.sort();
            fresh.dedup();
            for path in &fresh {
                if self.stop.is_requested() {
                    return Ok(());
                }
                self.merge_one(&mut trees, n, &mut sources[n], path)?;
                if trees.is_full() {
                    self.commit(&mut trees, sources)?;
                }
            }
        }
        self.commit(&mut trees, sources)
    }

    fn trees(&self) -> Result<Trees, Halt> {
        let module = self.module;
        let own = |root: &Path| root.join(OWN).join(&module.name);
        let recent = match &self.job.config.recent {
            Some(recent) => Some((recent.clone(), Batch::begin(own(recent))?)),
            None => None,
        };
        Ok(Trees {
            keep: module.keep.iter().filter_map(keep_of).collect(),
            replace: module.replace.iter().filter_map(replace_of).collect(),
            out: Batch::begin(own(&module.out))?,
            recent,
            pending: HashMap::new(),
            marks: Vec::new(),
        })
    }

    fn merge_one(&mut self, trees: &mut Trees, n: usize, at: &mut At<'_>, path: &str) -> Result<(), Halt> {
        let place = at.place(path);
        if standing(&place)?.is_none() {
            return Ok(());
        }
        let Some(below) = self.module.parts.iter().find_map(|part: &Part| part.of(path)) else { return Ok(()) };
        let Some(kind) = self.kind_of(path) else {
            self.reject(n, path, 0, &Fault::Refused("nobody knows what belongs in its folder".into()));
            let digest = at.entry(path).and_then(|entry| entry.digest).map(Digest::expected);
            trees.marks.push((n, path.to_owned(), Held::Rejected, digest));
            return Ok(());
        };
        let file = File { n, source: &at.source.name, path, below, place: &place, kind };
        let mut whole = None;
        let looked = look(&place, kind, &mut |segment| whole = Some(segment))?;
        let said = at.entry(path).map(|entry| (entry.size.is_some(), entry.digest.map(Digest::expected)));
        let (sized, digest) = said.unwrap_or_default();
        let ours = sha256(looked.sha256_as_is);
        if digest.as_ref().is_some_and(|digest| digest.algorithm == ours.algorithm && *digest != ours) {
            return self.damaged(n, at, file);
        }
        if kind.is_open_ended() && kind.name != kinds::ANY && !sized && digest.is_none() {
            self.warn(format!(
                "{}: {path}: nothing vouches for it: no size, no digest, and no end that could be missing",
                at.source.name
            ));
            self.counts(n).unverified += 1;
        }
        let held = match (kind.shape, whole) {
            (Shape::Whole, Some(segment)) => self.merge_whole(trees, file, &looked, segment)?,
            (Shape::Whole, None) => Held::Rejected,
            (Shape::Split, _) => self.merge_split(trees, file)?,
        };
        trees.marks.push((n, path.to_owned(), held, digest.or(Some(ours))));
        Ok(())
    }

    /// The kind that a file should be of.
    pub(super) fn kind_of(&self, path: &str) -> Option<&'static Kind> {
        match &self.module.kind {
            KindChoice::ByFolder => kinds::for_folder(path),
            KindChoice::Named(name) => kinds::named(name),
        }
    }

    /// It is not what was fetched: power was lost before it was flushed. It is fetched again by the next run.
    fn damaged(&mut self, n: usize, at: &mut At<'_>, file: File<'_>) -> Result<(), Halt> {
        self.warn(format!(
            "{}: {}: it no longer has its digest; it will be fetched again",
            file.source,
            shown(file.place)
        ));
        durable::remove(file.place)?;
        self.counts(n).failed += 1;
        at.book.note(&gone(file.path));
        Ok(())
    }

    fn merge_whole(
        &mut self,
        trees: &mut Trees,
        file: File<'_>,
        looked: &Looked,
        segment: Segment,
    ) -> Result<Held, Halt> {
        let facts = match segment.verdict {
            Ok(facts) => facts,
            Err(fault) => {
                self.reject(file.n, file.path, segment.at, &fault);
                return Ok(Held::Rejected);
            }
        };
        let copy = Copy { facts, size: looked.size, sha256: looked.sha256, place: file.place.to_owned() };
        if let Err(fault) = may_keep(&candidate(file, &copy), &trees.keep) {
            self.reject(file.n, file.path, 0, &fault);
            return Ok(Held::Rejected);
        }
        let pieces = [Piece::Bytes(looked.prefix.as_bytes()), Piece::Of { file: file.place, at: 0, length: u64::MAX }];
        let action = self.offer(trees, file, &copy, &pieces, self.module.out.join(file.below))?;
        if action != MergeAction::KeepLocal && is_recent(copy.facts.date, self.now, self.module.window) {
            self.offer_recent(trees, file, &copy, &pieces)?;
        }
        Ok(Held::Merged)
    }

    /// Offers a copy to the tree that lasts; gives what becomes of it.
    pub(super) fn offer(
        &mut self,
        trees: &mut Trees,
        file: File<'_>,
        copy: &Copy,
        pieces: &[Piece<'_>],
        to: PathBuf,
    ) -> Result<MergeAction, Halt> {
        if !can_stand(&self.module.out, &to)? {
            self.reject(file.n, file.path, 0, &Fault::Refused(TAKEN.to_owned()));
            return Ok(MergeAction::KeepLocal);
        }
        let local = trees.local(&to, file.kind)?;
        let action = decide(&local, &candidate(file, copy), &trees.replace);
        let counts = self.counts(file.n);
        match &action {
            MergeAction::Add => counts.copied += 1,
            MergeAction::Heal(_) => counts.healed += 1,
            MergeAction::Identical => counts.identical += 1,
            MergeAction::KeepLocal => counts.conflicts += 1,
            MergeAction::Replace(_) => counts.replaced += 1,
        }
        self.tell_action(file, copy, &local, &action, &to);
        let clobber = match action {
            MergeAction::Identical | MergeAction::KeepLocal => return Ok(action),
            MergeAction::Add => Clobber::Refuse,
            MergeAction::Heal(_) | MergeAction::Replace(_) => Clobber::Replace,
        };
        // What waits for the same name goes first.
        let clobber = if trees.pending.contains_key(&to) { Clobber::Replace } else { clobber };
        trees.out.write(pieces, Placed { path: to.clone(), clobber, modified: None })?;
        trees.pending.insert(to, copy.clone());
        Ok(action)
    }

    fn tell_action(&mut self, file: File<'_>, copy: &Copy, local: &Local, action: &MergeAction, to: &Path) {
        let (source, path) = (file.source, file.path);
        match (action, local) {
            (MergeAction::Heal(fault), _) => {
                self.warn(format!("{}: it is no valid copy ({fault}); that of {source} takes its place", shown(to)));
            }
            (MergeAction::KeepLocal, Local::Valid(here)) => {
                let (here, there) = (hex::encode(here.sha256), hex::encode(copy.sha256));
                tracing::debug!(source, path, local = here, candidate = there, "conflict: the local copy is kept");
            }
            (MergeAction::Replace(why), _) => tracing::debug!(source, path, why, "the local copy is replaced"),
            (MergeAction::Identical, _) => tracing::debug!(source, path, "identical"),
            _ => tracing::debug!(source, path, "copied"),
        }
    }

    /// A copy that is kept for good, and is recent by its own date, stands in `recent` too.
    fn offer_recent(
        &mut self,
        trees: &mut Trees,
        file: File<'_>,
        copy: &Copy,
        pieces: &[Piece<'_>],
    ) -> Result<(), Halt> {
        let Some((root, _)) = &trees.recent else { return Ok(()) };
        let to = root.join(recent_path(file.path));
        let clobber = match trees.local(&to, file.kind)? {
            Local::Valid(here) if here.sha256 == copy.sha256 => return Ok(()),
            Local::Absent => Clobber::Refuse,
            // It stands beside the one that lasts, whatever that is now.
            Local::Valid(_) | Local::Invalid(_) => Clobber::Replace,
        };
        trees.write_recent(pieces, to, clobber, copy)
    }

    /// Something is not what it should be.
    pub(super) fn reject(&mut self, n: usize, path: &str, at: u64, fault: &Fault) {
        let (name, url) = (&self.report.sources[n].name, &self.report.sources[n].url);
        let line = format!("{name} ({url}): {path}: at byte {at}: {fault}; it is not kept");
        self.counts(n).rejected += 1;
        self.warn(line);
    }

    pub(super) fn counts(&mut self, n: usize) -> &mut Counts {
        &mut self.report.sources[n].counts
    }

    /// Gives all that is staged its names, and notes it.
    fn commit(&mut self, trees: &mut Trees, sources: &mut [At<'_>]) -> Result<(), Halt> {
        let mut taken = Vec::new();
        if let Some((_, recent)) = &mut trees.recent {
            recent.commit(&mut |path| taken.push(path.to_owned()))?;
        }
        trees.out.commit(&mut |path| taken.push(path.to_owned()))?;
        for path in taken {
            self.warn(format!("{}: somebody else has put a file there meanwhile; it stays", shown(&path)));
        }
        trees.pending.clear();
        for (n, path, held, digest) in trees.marks.drain(..) {
            let at = &mut sources[n];
            if let Some(stands) = standing(&at.place(&path))? {
                at.note(&path, stands, digest.as_ref().map(Digest::from), held);
            }
        }
        for at in sources {
            at.book.flush()?;
        }
        Ok(())
    }
}

impl Trees {
    fn is_full(&self) -> bool {
        self.out.is_full() || self.recent.as_ref().is_some_and(|(_, recent)| recent.is_full())
    }

    /// What stands under a name, or is about to.
    pub(super) fn local(&self, path: &Path, kind: &'static Kind) -> Result<Local, LocalFault> {
        if let Some(copy) = self.pending.get(path) {
            return Ok(Local::Valid(copy.clone()));
        }
        if standing(path)?.is_none() {
            return Ok(Local::Absent);
        }
        let mut found = Vec::new();
        let looked = look(path, kind, &mut |segment| found.push(Segment { bytes: Vec::new(), ..segment }))?;
        if let Some(fault) = found.iter().find_map(|segment| segment.verdict.as_ref().err()) {
            return Ok(Local::Invalid(fault.clone()));
        }
        let facts = found.pop().and_then(|segment| segment.verdict.ok()).unwrap_or_default();
        // As it is, and not as it would be kept: one without an annotation is not the same as one with.
        let size = crate::core::range::Length(looked.size.0 - looked.prefix.len() as u64);
        Ok(Local::Valid(Copy { facts, size, sha256: looked.sha256_as_is, place: path.to_owned() }))
    }

    /// Stages a file for `recent`.
    pub(super) fn write_recent(
        &mut self,
        pieces: &[Piece<'_>],
        to: PathBuf,
        clobber: Clobber,
        copy: &Copy,
    ) -> Result<(), Halt> {
        let Some((root, batch)) = &mut self.recent else { return Ok(()) };
        if !can_stand(root, &to)? {
            tracing::warn!(path = shown(&to), "its place in recent is taken by something of another sort");
            return Ok(());
        }
        let clobber = if self.pending.contains_key(&to) { Clobber::Replace } else { clobber };
        batch.write(pieces, Placed { path: to.clone(), clobber, modified: copy.facts.date })?;
        self.pending.insert(to, copy.clone());
        Ok(())
    }

    /// Is a file about to be placed there?
    pub(super) fn is_pending(&self, path: &Path) -> bool {
        self.pending.contains_key(path)
    }
}

/// Can a file stand at this path of a tree?
fn can_stand(root: &Path, to: &Path) -> Result<bool, LocalFault> {
    to.strip_prefix(root).ok().and_then(Path::to_str).map_or(Ok(false), |path| is_free(root, path))
}

/// The path of a file in our own `recent`, which is the folder of that name in a source.
pub(super) fn recent_path(path: &str) -> &str {
    path.strip_prefix("recent/").unwrap_or(path)
}

pub(super) fn candidate<'c>(file: File<'c>, copy: &'c Copy) -> Candidate<'c> {
    Candidate { path: file.path, source: file.source, kind: file.kind.name, copy }
}

pub(super) fn gone(path: &str) -> Entry<'_, Held> {
    Entry { path, size: None, modified: None, digest: None, tag: Held::Gone }
}

fn keep_of(criterion: &Criterion) -> Option<Box<dyn Keep>> {
    match criterion {
        // What is valid is what the reader of its kind takes.
        Criterion::Known(_) => None,
        Criterion::Command { name, words } => Some(Box::new(CommandKeep { name: name.clone(), words: words.clone() })),
    }
}

fn replace_of(criterion: &Criterion) -> Option<Box<dyn Replace>> {
    match criterion {
        Criterion::Known(name) => replace_named(name),
        Criterion::Command { name, words } => {
            Some(Box::new(CommandReplace { name: name.clone(), words: words.clone() }))
        }
    }
}
