//! Fetching files: what sources have that we do not. A file that several sources have, by the same digest, is one transfer
//! with several mirrors; one that a source's folder holds already is not fetched for another.

use std::path::PathBuf;

use super::indexes::{failure, shown};
use super::module::Work;
use super::source::At;
use super::{Halt, TAKEN};
use crate::core::digest::Expected;
use crate::core::failure::LocalFault;
use crate::core::range::Length;
use crate::core::sync::diff::same_file;
use crate::core::sync::listing::{Digest, Entry};
use crate::core::sync::manifest::Held;
use crate::core::time::Epoch;
use crate::core::url::MirrorUrl;
use crate::core::verdict::Class;
use crate::engine::{Ending, Job, Report, SyncMode};
use crate::io::durable::Clobber;
use crate::io::sync::{Batch, Piece, Placed, Staged, is_free, set_time, standing};

/// So many files are fetched in one run of the engine, and flushed and placed together.
const AT_ONCE: usize = 2_000;

/// A file that is needed.
#[derive(Debug)]
struct Want {
    path: String,
    size: Option<Length>,
    digest: Option<Expected>,
    modified: Option<Epoch>,
    /// The sources that need it, by their places; the first gives it its place while it is fetched.
    takers: Vec<usize>,
    /// A source whose folder holds it already.
    held_by: Option<usize>,
    urls: Vec<MirrorUrl>,
}

impl Work<'_, '_> {
    /// Fetches all that is needed, in pieces, each of which is placed and noted before the next one begins.
    pub(super) fn fetch_files(&mut self, sources: &mut [At<'_>]) -> Result<(), Halt> {
        let mut from = (0, 0);
        while !self.stop.is_requested() {
            let (wants, next) = some_wants(sources, from);
            if wants.is_empty() {
                break;
            }
            from = next;
            if let Err(halt) = self.fetch_some(sources, wants) {
                // What is staged is of no use to a disk that is full.
                if matches!(halt, Halt::Local(LocalFault::DiskFull { .. })) {
                    let _ = self.clear_staging(sources);
                }
                return Err(halt);
            }
        }
        Ok(())
    }

    /// Those that can be placed. Where a file has become a folder, or the other way round, what stands there has to go first.
    fn placeable(&mut self, sources: &[At<'_>], wants: Vec<Want>) -> Result<Vec<Want>, Halt> {
        let mut placeable = Vec::with_capacity(wants.len());
        for want in wants {
            let mut taken = false;
            for taker in &want.takers {
                taken |= !is_free(&sources[*taker].root, &want.path)?;
            }
            if !taken {
                placeable.push(want);
                continue;
            }
            self.warn(format!("{}: {TAKEN}; it is left out", want.path));
            for taker in want.takers {
                let counts = &mut self.report.sources[taker].counts;
                (counts.failed, counts.left) = (counts.failed + 1, counts.left - 1);
            }
        }
        Ok(placeable)
    }

    fn fetch_some(&mut self, sources: &mut [At<'_>], wants: Vec<Want>) -> Result<(), Halt> {
        let wants = self.placeable(sources, wants)?;
        let (here, away): (Vec<Want>, Vec<Want>) = wants.into_iter().partition(|want| want.held_by.is_some());
        let jobs = away.iter().map(|want| self.job(want, &sources[want.takers[0]])).collect();
        let reports = self.transfer(jobs, SyncMode::None)?;
        let mut done = Vec::new();
        for (want, report) in away.iter().zip(&reports) {
            if self.settle(want, report) {
                done.push((want, sources[want.takers[0]].staging().join(&want.path)));
            }
        }
        let local = reports.iter().find_map(|report| match &report.ending {
            Ending::Local(fault) => Some(fault.clone()),
            _ => None,
        });
        self.place(sources, &done, Taking::Move)?;
        let held = |want: &Want| want.held_by.map(|n| sources[n].place(&want.path));
        let here: Vec<_> = here.iter().filter_map(|want| Some((want, held(want)?))).collect();
        self.place(sources, &here, Taking::Copy)?;
        self.forget(reports.iter().filter(|report| !is_kept(report)))?;
        // The trouble of this machine is everybody's.
        local.map_or(Ok(()), |fault| Err(fault.into()))
    }

    fn job(&self, want: &Want, at: &At<'_>) -> Job {
        Job {
            digests: want.digest.iter().cloned().collect(),
            expected: want.size,
            ..self.job_of(want.urls.clone(), at.staging().join(&want.path))
        }
    }

    /// Counts what came of a transfer; is its file here?
    fn settle(&mut self, want: &Want, report: &Report) -> bool {
        let gone = matches!(report.ending, Ending::Failed { class: Class::Missing | Class::Gone, .. });
        let why = failure(report);
        for taker in &want.takers {
            let counts = &mut self.report.sources[*taker].counts;
            match (&why, &report.ending) {
                (None, _) => continue,
                (_, Ending::Stopped { .. } | Ending::Local(_)) => continue,
                (_, _) if gone => counts.vanished += 1,
                _ => counts.failed += 1,
            }
            counts.left -= 1;
        }
        match why {
            None => {
                self.report.sources[want.takers[0]].counts.bytes += report.received.0;
                true
            }
            Some(_) if gone => {
                let name = self.report.sources[want.takers[0]].name.clone();
                self.news(format!("{name}: {} went away before it was fetched", want.path));
                false
            }
            Some(_) => false,
        }
    }

    /// Gives files their places in the folders of all that need them, and notes it, before and after.
    fn place(&mut self, sources: &mut [At<'_>], files: &[(&Want, PathBuf)], taking: Taking) -> Result<(), Halt> {
        // Those who take a copy come before the one who takes the file itself.
        for n in (0..sources.len()).rev() {
            let at = &mut sources[n];
            let mine: Vec<_> = files.iter().filter(|(want, _)| want.takers.contains(&n)).collect();
            if mine.is_empty() {
                continue;
            }
            let mut batch = Batch::begin(at.own.join("placing"))?;
            for (want, file) in &mine {
                let to = at.place(&want.path);
                if want.takers[0] == n && taking == Taking::Move {
                    if let Some(modified) = want.modified {
                        set_time(file, modified)?;
                    }
                    batch.add(Staged { from: file.clone(), to, clobber: Clobber::Replace });
                } else {
                    let whole = Piece::Of { file, at: 0, length: u64::MAX };
                    batch.write(&[whole], Placed { path: to, clobber: Clobber::Replace, modified: want.modified })?;
                }
                at.book.note(&Entry {
                    path: &want.path,
                    size: want.size,
                    modified: want.modified,
                    digest: want.digest.as_ref().map(Digest::from),
                    tag: Held::Placing,
                });
            }
            at.book.flush()?;
            batch.commit(&mut |_| {})?;
            for (want, _) in mine {
                self.placed(n, at, want)?;
            }
            at.book.flush()?;
        }
        Ok(())
    }

    fn placed(&mut self, n: usize, at: &mut At<'_>, want: &Want) -> Result<(), Halt> {
        let place = at.place(&want.path);
        let Some(stands) = standing(&place)? else {
            return Err(LocalFault::NotOurs { path: shown(&place), why: "is no regular file".to_owned() }.into());
        };
        at.note(&want.path, stands, want.digest.as_ref().map(Digest::from), Held::Fetched);
        at.fresh.push(want.path.clone());
        let counts = &mut self.report.sources[n].counts;
        counts.fetched += 1;
        counts.left -= 1;
        Ok(())
    }
}

/// What becomes of the file that is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    /// The first who needs it takes it.
    Move,
    /// It stays where it is.
    Copy,
}

/// A transfer that is to be gone on with, or whose failure a person may want to look at.
fn is_kept(report: &Report) -> bool {
    match &report.ending {
        Ending::Complete { .. } | Ending::Unchanged { .. } => false,
        Ending::Failed { class, .. } => !matches!(class, Class::Missing | Class::Gone),
        Ending::Stopped { .. } | Ending::Local(_) => true,
    }
}

/// The next files that are needed, from a source and a place in its index on; and where to go on.
fn some_wants(sources: &[At<'_>], from: (usize, usize)) -> (Vec<Want>, (usize, usize)) {
    let mut wants = Vec::new();
    let (mut n, mut k) = from;
    while n < sources.len() && wants.len() < AT_ONCE {
        match sources[n].index.as_ref().and_then(|index| index.listing.get(k)) {
            Some(entry) => {
                if sources[n].needs(k) {
                    wants.extend(want(sources, n, &entry));
                }
                k += 1;
            }
            None => (n, k) = (n + 1, 0),
        }
    }
    (wants, (n, k))
}

/// What the source at `n` needs; nothing where a source before it needs the same file, and shares it.
fn want(sources: &[At<'_>], n: usize, entry: &Entry<'_>) -> Option<Want> {
    let (mut takers, mut held_by, mut urls) = (Vec::new(), None, Vec::new());
    for (m, other) in sources.iter().enumerate() {
        let same = m == n || other.entry(entry.path).is_some_and(|theirs| same_file(theirs.digest, entry.digest));
        if !same {
            continue;
        }
        let needs = other.needs_path(entry.path);
        match (needs, m < n) {
            (true, true) => return None,
            (true, false) => takers.push(m),
            (false, _) => held_by = held_by.or(Some(m)),
        }
        urls.extend(other.urls_of(entry.path));
    }
    Some(Want {
        path: entry.path.to_owned(),
        size: entry.size,
        digest: entry.digest.map(Digest::expected),
        modified: entry.modified,
        takers,
        held_by,
        urls,
    })
    .filter(|want| !want.urls.is_empty())
}

impl At<'_> {
    /// The same, by its path.
    pub(super) fn needs_path(&self, path: &str) -> bool {
        let at = self.index.as_ref().and_then(|index| index.listing.position(path));
        at.is_some_and(|at| self.needs(at))
    }

    /// Where a file of it is; of a metalink, where that says, which from the internet leads to no private network.
    fn urls_of(&self, path: &str) -> Vec<MirrorUrl> {
        let is_allowed = |url: &MirrorUrl| url.is_public_host() || !self.source.base.is_public_host();
        let named = self.index.as_ref().and_then(|index| {
            let at = index.mirrors.binary_search_by(|(name, _)| name.as_str().cmp(path)).ok()?;
            Some(index.mirrors[at].1.iter().filter(|url| is_allowed(url)).cloned().collect::<Vec<_>>())
        });
        named.filter(|urls| !urls.is_empty()).unwrap_or_else(|| self.source.url_of(path).into_iter().collect())
    }
}
