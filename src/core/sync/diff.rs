//! What is to be fetched, what stays, what goes: an index beside a manifest and the folder itself (B8.5 and B8.7).
//!
//! Two decisions of their own: [`need`] of each file, and [`Guard::judge`] of all that would be deleted together.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::index::Index;
use super::listing::{Digest, Entry};
use super::manifest::{Held, Manifest, Memory};
use super::path::folder;
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};

/// A file as it stands in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its size.
    pub size: Length,
    /// Its modification time, to the second.
    pub modified: Epoch,
}

/// What an entry of an index asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it is here.
    Keep,
    /// Its bytes must be read: they may be the right ones, and the manifest cannot tell.
    Check,
    /// It must be fetched.
    Fetch,
}

/// Decides about one file: what the index says, what stands in the folder, what the manifest says of that.
///
/// Where the index tells a digest, size and digest decide, and times do not: what is older or newer here and has the same
/// digest is the same (B9.6), and what was written twice within a minute is seen (B9.7). Without a digest a time that
/// differs in either direction is another content.
pub fn need(wanted: &Entry<'_>, stands: Option<Standing>, known: Option<&Entry<'_, Held>>) -> Need {
    let Some(stands) = stands else { return Need::Fetch };
    if wanted.size.is_some_and(|size| size != stands.size) {
        return Need::Fetch;
    }
    // Of a file that was about to be placed nobody knows whether it was; of one that was touched, what is in it.
    let known =
        known.filter(|k| k.tag != Held::Placing && k.size == Some(stands.size) && k.modified == Some(stands.modified));
    match (wanted.digest, known.and_then(|k| k.digest)) {
        (Some(wanted), Some(known)) if wanted.algorithm == known.algorithm => is(wanted == known),
        (Some(_), _) => Need::Check,
        (None, _) if known.is_none() => Need::Fetch,
        // A page of another server may tell no time.
        (None, _) => is(wanted.modified.is_none_or(|at| at == stands.modified)),
    }
}

const fn is(same: bool) -> Need {
    if same { Need::Keep } else { Need::Fetch }
}

/// Two sources have the same file: they name the same digest.
pub fn same_file(one: Option<Digest<'_>>, other: Option<Digest<'_>>) -> bool {
    one.is_some() && one == other
}

/// Why nothing is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// It was made before one that was obeyed.
    #[error("it is older than the one before")]
    Older,
    /// It was made in the future.
    #[error("it says that it was made in the future: the clock there, or here, is wrong")]
    Future,
    /// Long ago.
    #[error("it says that it was made long ago: the clock there is wrong, or the source is no longer tended")]
    Stale,
    /// Too much would go at once.
    #[error("{lost} of {held} files would go at once; if the next index says the same, they go")]
    Loss {
        /// How many would go.
        lost: usize,
        /// Of how many.
        held: usize,
    },
}

/// When deletions are obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Up to so many may always go at once.
    pub few: usize,
    /// So many indexes in a row must say the same before more than half of the files go.
    pub confirmations: u32,
    /// How far a source's clock may be ahead of ours.
    pub ahead: Delay,
    /// How old an index may be.
    pub age: Delay,
}

impl Default for Guard {
    fn default() -> Self {
        Self { few: 20, confirmations: 2, ahead: Delay::from_hours(1), age: Delay::from_days(7) }
    }
}

/// What the guard says of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Why nothing is deleted, where nothing is.
    pub doubt: Option<Doubt>,
    /// What is remembered for the next one.
    pub memory: Memory,
}

impl Guard {
    /// May the files go that an index no longer has?
    pub fn judge(&self, index: &Index, manifest: &Manifest, now: Epoch) -> Judged {
        let (lost, loss) = losses(index, manifest);
        let memory = &manifest.memory;
        let unsure = |doubt| Judged { doubt: Some(doubt), memory: memory.clone() };
        if let Some(created) = index.created {
            if created > now + self.ahead {
                return unsure(Doubt::Future);
            }
            if created + self.age < now {
                return unsure(Doubt::Stale);
            }
            if memory.accepted.is_some_and(|accepted| created < accepted) {
                return unsure(Doubt::Older);
            }
        }
        let held = manifest.files.len();
        let great = lost > self.few && lost * 2 > held;
        let doubts = if memory.loss == loss { memory.doubts + 1 } else { 1 };
        if great && doubts < self.confirmations {
            let memory = Memory { accepted: memory.accepted, doubts, loss };
            return Judged { doubt: Some(Doubt::Loss { lost, held }), memory };
        }
        Judged { doubt: None, memory: Memory { accepted: index.created.or(memory.accepted), doubts: 0, loss: 0 } }
    }
}

/// The files of a manifest that an index no longer has, though it knows their folder.
pub fn lost<'m>(index: &'m Index, manifest: &'m Manifest) -> impl Iterator<Item = Entry<'m, Held>> {
    let known = |entry: &Entry<'_, Held>| index.folders.contains(folder(entry.path));
    manifest.files.iter().filter(move |entry| known(entry) && index.listing.find(entry.path).is_none())
}

/// How many go, and which, in a number.
fn losses(index: &Index, manifest: &Manifest) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    let n = lost(index, manifest).inspect(|entry| entry.path.hash(&mut hasher)).count();
    (n, hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::sync::manifest::sha256;

    const NOW: Epoch = Epoch::from_secs(1_000_000_000);

    fn at(secs: i64) -> Epoch {
        Epoch::from_secs(1_000_000_000 + secs)
    }

    fn wanted(size: Option<u64>, modified: Option<i64>) -> Entry<'static> {
        Entry { path: "d/f", size: size.map(Length), modified: modified.map(at), digest: None, tag: () }
    }

    fn stands(size: u64, modified: i64) -> Option<Standing> {
        Some(Standing { size: Length(size), modified: at(modified) })
    }

    fn known(size: u64, modified: i64, tag: Held) -> Entry<'static, Held> {
        Entry { path: "d/f", size: Some(Length(size)), modified: Some(at(modified)), digest: None, tag }
    }

    #[test]
    fn without_a_digest_size_and_time_decide() {
        let here = known(9, 0, Held::Merged);
        assert_eq!(need(&wanted(Some(9), Some(0)), None, Some(&here)), Need::Fetch);
        assert_eq!(need(&wanted(Some(9), Some(0)), stands(9, 0), Some(&here)), Need::Keep);
        assert_eq!(need(&wanted(Some(8), Some(0)), stands(9, 0), Some(&here)), Need::Fetch);
        assert_eq!(need(&wanted(Some(9), Some(60)), stands(9, 0), Some(&here)), Need::Fetch);
        assert_eq!(need(&wanted(Some(9), Some(-60)), stands(9, 0), Some(&here)), Need::Fetch, "older there: other");
        assert_eq!(need(&wanted(None, None), stands(9, 0), Some(&here)), Need::Keep);
        assert_eq!(need(&wanted(Some(9), Some(0)), stands(9, 0), None), Need::Fetch, "who wrote that?");
        assert_eq!(need(&wanted(Some(9), Some(0)), stands(9, 5), Some(&here)), Need::Fetch, "somebody touched it");
    }

    #[test]
    fn b06_and_b07_a_digest_decides_whatever_the_times() {
        let (one, other) = (sha256([1; 32]), sha256([2; 32]));
        let with = |entry: Entry<'static>, digest| Entry { digest: Some(digest), ..entry };
        let here = Entry { digest: Some((&one).into()), ..known(9, 7_000, Held::Merged) };
        let index = with(wanted(Some(9), Some(0)), (&one).into());
        assert_eq!(need(&index, stands(9, 7_000), Some(&here)), Need::Keep, "newer here, the same");
        let index = with(wanted(Some(9), Some(7_000)), (&other).into());
        assert_eq!(need(&index, stands(9, 7_000), Some(&here)), Need::Fetch, "the same minute and size, another");
        assert_eq!(need(&index, stands(9, 7_001), Some(&here)), Need::Check, "touched since");
        assert_eq!(need(&index, stands(8, 7_001), Some(&here)), Need::Fetch, "not even its size is right");
        assert_eq!(need(&index, stands(9, 7_000), None), Need::Check);
        let placing = Entry { digest: Some((&other).into()), ..known(9, 7_000, Held::Placing) };
        assert_eq!(need(&index, stands(9, 7_000), Some(&placing)), Need::Check, "it may be the one before");
    }

    fn index(files: std::ops::Range<u32>, folders: &[&str], created: Option<i64>) -> Index {
        let mut index = Index { created: created.map(at), ..Index::default() };
        for n in files {
            let path = format!("d/{n:05}");
            index.listing.push(Entry { path: &path, size: None, modified: None, digest: None, tag: () }).expect("room");
        }
        index.listing.put_in_order();
        index.folders.extend(folders.iter().map(|&folder| folder.to_owned()));
        index
    }

    fn manifest(files: std::ops::Range<u32>) -> Manifest {
        let mut manifest = Manifest::default();
        for n in files {
            let path = format!("d/{n:05}");
            manifest.files.push(Entry { path: &path, ..known(1, 0, Held::Merged) }).expect("room");
        }
        manifest.files.put_in_order();
        manifest
    }

    #[test]
    fn b10_of_a_folder_that_is_missing_nothing_is_lost() {
        let held = manifest(0..5);
        assert_eq!(
            lost(&index(0..2, &["", "d"], None), &held).map(|e| e.path).collect::<Vec<_>>(),
            ["d/00002", "d/00003", "d/00004"]
        );
        assert_eq!(lost(&index(0..0, &["", "e"], None), &held).count(), 0);
    }

    #[test]
    fn b11_a_great_loss_is_obeyed_when_it_is_confirmed() {
        let guard = Guard::default();
        let mut held = manifest(0..100);
        let judged = guard.judge(&index(0..0, &["d"], Some(0)), &held, NOW);
        assert_eq!(judged.doubt, Some(Doubt::Loss { lost: 100, held: 100 }));
        held.memory = judged.memory;
        let other = guard.judge(&index(0..10, &["d"], Some(1)), &held, NOW);
        assert!(other.doubt.is_some(), "another loss is not the same said twice");
        let again = guard.judge(&index(0..0, &["d"], Some(60)), &held, NOW);
        assert_eq!((again.doubt, again.memory.doubts), (None, 0));
        for (left, doubted) in [(50, false), (49, true), (81, false)] {
            let judged = guard.judge(&index(0..left, &["d"], None), &manifest(0..100), NOW);
            assert_eq!(judged.doubt.is_some(), doubted, "{left} left");
        }
        assert_eq!(guard.judge(&index(0..0, &["d"], None), &manifest(0..20), NOW).doubt, None, "few");
        held.memory = Memory::default();
        let good = guard.judge(&index(0..100, &["d"], None), &held, NOW);
        assert_eq!(good.doubt, None);
    }

    #[test]
    fn b25_a_wrong_clock_deletes_nothing() {
        let guard = Guard::default();
        let mut held = manifest(0..3);
        let doubt = |created, held: &Manifest| guard.judge(&index(0..2, &["d"], Some(created)), held, NOW).doubt;
        assert_eq!(doubt(0, &held), None);
        assert_eq!(doubt(3_700, &held), Some(Doubt::Future));
        assert_eq!(doubt(-8 * 86_400, &held), Some(Doubt::Stale));
        held.memory.accepted = Some(at(-60));
        assert_eq!((doubt(-61, &held), doubt(-60, &held)), (Some(Doubt::Older), None));
    }
}
