//! Files that hold many descriptors: each good one that is new gets a file of its own, named by what names it, in the tree
//! that lasts; and those together one file in `recent` (B4, B9.28).

use std::collections::BTreeMap;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::Halt;
use super::merge::{File, Trees, candidate, recent_path};
use super::module::Work;
use crate::core::range::Length;
use crate::core::sync::criteria::Copy;
use crate::core::sync::kinds::{Facts, Segment};
use crate::core::sync::manifest::Held;
use crate::core::sync::merge::{MergeAction, is_recent, may_keep};
use crate::core::sync::path;
use crate::core::time::Epoch;
use crate::io::durable::Clobber;
use crate::io::sync::{Piece, look, standing};

/// A descriptor that is new, and recent.
#[derive(Clone, Debug)]
struct Fresh {
    annotated: bool,
    at: u64,
    length: u64,
    sha256: [u8; 32],
    date: Option<Epoch>,
}

impl Work<'_, '_> {
    /// Merges what is good of a file; it was rejected where nothing is.
    pub(super) fn merge_split(&mut self, trees: &mut Trees, file: File<'_>) -> Result<Held, Halt> {
        let (mut fresh, mut good, mut halt) = (Vec::new(), 0, None);
        look(file.place, file.kind, &mut |segment| {
            if halt.is_none() {
                match self.merge_segment(trees, file, &segment) {
                    Ok(merged) => {
                        good += usize::from(segment.verdict.is_ok());
                        fresh.extend(merged);
                    }
                    Err(error) => halt = Some(error),
                }
            }
        })?;
        if let Some(halt) = halt {
            return Err(halt);
        }
        if !fresh.is_empty() {
            self.offer_recent_part(trees, file, &fresh)?;
        }
        Ok(if good > 0 { Held::Merged } else { Held::Rejected })
    }

    /// Merges one descriptor; gives it back where it belongs in `recent`.
    fn merge_segment(&mut self, trees: &mut Trees, file: File<'_>, segment: &Segment) -> Result<Option<Fresh>, Halt> {
        let facts = match &segment.verdict {
            Ok(facts) => facts,
            Err(fault) => {
                self.reject(file.n, file.path, segment.at, fault);
                return Ok(None);
            }
        };
        let prefix = if segment.annotated { String::new() } else { file.kind.annotation() };
        let copy = copy_of(file, segment, facts, &prefix);
        if let Err(fault) = may_keep(&candidate(file, &copy), &trees.keep) {
            self.reject(file.n, file.path, segment.at, &fault);
            return Ok(None);
        }
        let to = self.own_place(file, facts);
        let pieces = [Piece::Bytes(prefix.as_bytes()), Piece::Bytes(&segment.bytes)];
        let action = self.offer(trees, file, &copy, &pieces, to)?;
        let is_new = !matches!(action, MergeAction::Identical | MergeAction::KeepLocal);
        let recent = is_new && is_recent(facts.date, self.now, self.module.window);
        Ok(recent.then_some(Fresh {
            annotated: segment.annotated,
            at: segment.at,
            length: segment.length,
            sha256: copy.sha256,
            date: facts.date,
        }))
    }

    /// Where a descriptor lasts: in its file's folder, spread by the first digits of what names it.
    fn own_place(&self, file: File<'_>, facts: &Facts) -> PathBuf {
        let identity = facts.identity.as_deref().unwrap_or_default();
        let folder = self.module.out.join(path::folder(file.below));
        let digit = |n: usize| identity.get(n..=n).unwrap_or("_");
        folder.join(digit(0)).join(digit(1)).join(identity)
    }

    /// The new ones of a file, together, under the file's name. They get there before any of them is in the tree that lasts:
    /// a run that is killed between finds those that are missing there new once more, and this file whole.
    fn offer_recent_part(&mut self, trees: &mut Trees, file: File<'_>, fresh: &[Fresh]) -> Result<(), Halt> {
        let Some((root, _)) = &trees.recent else { return Ok(()) };
        let annotation = file.kind.annotation();
        let mut pieces = Vec::with_capacity(fresh.len());
        for one in fresh {
            if !one.annotated {
                pieces.push(Piece::Bytes(annotation.as_bytes()));
            }
            pieces.push(Piece::Of { file: file.place, at: one.at, length: one.length });
        }
        let mut to = root.join(recent_path(file.path));
        if trees.is_pending(&to) || standing(&to)?.is_some() {
            if self.holds_all(trees, file, &to, fresh)? {
                return Ok(());
            }
            // Another source's file of that name: this one is told apart by what is in it.
            let mut sum = Sha256::new();
            fresh.iter().for_each(|one| sum.update(one.sha256));
            to.set_file_name(format!("{}-{}", path::file_name(file.path), hex::encode(&sum.finalize()[..4])));
        }
        let date = fresh.iter().filter_map(|one| one.date).max();
        let facts = Facts { date, ..Facts::default() };
        let copy = Copy { facts, place: file.place.to_owned(), ..Copy::default() };
        trees.write_recent(&pieces, to, Clobber::Replace, &copy)
    }

    /// Does a file in `recent` hold all of these?
    fn holds_all(&self, trees: &Trees, file: File<'_>, path: &std::path::Path, fresh: &[Fresh]) -> Result<bool, Halt> {
        if trees.is_pending(path) {
            return Ok(false);
        }
        let mut held = BTreeMap::new();
        look(path, file.kind, &mut |segment| {
            if segment.verdict.is_ok() && segment.annotated {
                held.insert(<[u8; 32]>::from(Sha256::digest(&segment.bytes)), ());
            }
        })?;
        Ok(fresh.iter().all(|one| held.contains_key(&one.sha256)))
    }
}

fn copy_of(file: File<'_>, segment: &Segment, facts: &Facts, prefix: &str) -> Copy {
    let mut sum = Sha256::new();
    sum.update(prefix);
    sum.update(&segment.bytes);
    Copy {
        facts: facts.clone(),
        size: Length(segment.length + prefix.len() as u64),
        sha256: sum.finalize().into(),
        place: file.place.to_owned(),
    }
}
