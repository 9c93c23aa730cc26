//! Admission: what a job finds when it is taken up. A record of it in the state, a file at its target, both or neither:
//! from that follows whether it runs, from what, and whether the file there may be replaced (design 3.9, 3.10).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::digest::Expected;
use crate::core::failure::LocalFault;
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::pers_xfer::record::{Direction, Evidence, Finished, MirrorRecord, Record, Standing, Status, XferId};
use crate::core::range::Length;
use crate::core::state::Document;
use crate::core::time::{Epoch, Now};
use crate::core::url::MirrorUrl;
use crate::engine::admit_upload;
use crate::engine::claims::Twins;
use crate::engine::{Existing, Job, Target};
use crate::io::durable;
use crate::io::part::{self, Clobber};

/// What becomes of a job.
#[derive(Debug)]
pub(super) enum Admission {
    /// It runs.
    Run(Box<Entry>),
    /// It is done already.
    Done {
        /// On what evidence.
        evidence: Evidence,
        /// The record, where there is one.
        record: Option<Box<Record>>,
    },
    /// It cannot run.
    Refused(LocalFault),
}

/// A job that runs.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its record, new or taken up.
    pub record: Record,
    /// The finished file's draft, where the server is first asked whether it is still the one.
    pub revalidate: Option<Draft>,
    /// May a file at the target be replaced?
    pub clobber: Clobber,
    /// It had failed for good: it begins a new life.
    pub failed_before: bool,
}

/// The file at a target.
enum Found {
    Nothing,
    Regular(Metadata),
    Other(&'static str),
}

/// Decides about a job, given the record that the state holds of it.
pub(super) fn admit(job: &Job, known: Option<Record>, fresh: impl FnOnce() -> Record) -> Admission {
    if let Target::Source(source) = &job.target {
        return admit_upload::admit(job, source, known, fresh);
    }
    let path = known.as_ref().and_then(|r| r.path.clone()).or_else(|| path_of(&job.target));
    let found = match &path {
        None => Found::Nothing,
        Some(path) => match look_at(path) {
            Ok(found) => found,
            Err(fault) => return Admission::Refused(fault),
        },
    };
    // Its owner alone writes its record, so that nothing is begun here.
    let holder = path.as_deref().and_then(part::holder);
    let path = path.unwrap_or_default();
    if let Some(holder) = holder {
        return Admission::Refused(LocalFault::InUse { path: path.display().to_string(), holder });
    }
    match (found, known) {
        (Found::Regular(_), known) if job.options.existing == Existing::Keep => {
            let evidence = known.as_ref().and_then(|r| r.finished.as_ref()).map_or(Evidence::None, |f| f.evidence);
            Admission::Done { evidence, record: known.filter(|r| r.status == Status::Done).map(Box::new) }
        }
        (Found::Other(what), _) => Admission::Refused(not_ours(&path, &format!("is {what}, not a file of ours"))),
        (Found::Nothing, None) => run(job, fresh(), Clobber::Refuse),
        (Found::Nothing, Some(record)) if record.status == Status::Done => run(job, reborn(record), Clobber::Refuse),
        (Found::Nothing, Some(record)) => take_up(job, record, Clobber::Refuse),
        (Found::Regular(_), known)
            if job.options.existing != Existing::Keep && is_ours_unknown(&path, known.as_ref()) =>
        {
            // Written by a process that ended before the state could say so, and perhaps flushed its name.
            if let Err(fault) = durable::sync_dir(durable::folder_of(&path)) {
                return Admission::Refused(fault);
            }
            run(job, known.map_or_else(fresh, reborn), Clobber::Replace)
        }
        (Found::Regular(meta), Some(record)) => meet(job, &path, &meta, record),
        (Found::Regular(_), None) => foreign(job, &path, |clobber| run(job, fresh(), clobber)),
    }
}

/// We wrote the file, and nothing that the record knows would tell.
fn is_ours_unknown(path: &Path, known: Option<&Record>) -> bool {
    let inode = path.symlink_metadata().ok().map(|meta| meta.ino());
    let told = known.is_some_and(|record| {
        record.dossier.part.inode == inode || record.finished.as_ref().map(|finished| finished.inode) == inode
    });
    part::is_witnessed(path) && !told
}

/// A file and a record of it: is the file the one that we wrote?
fn meet(job: &Job, path: &Path, meta: &Metadata, record: Record) -> Admission {
    let ours = record.finished.as_ref().is_some_and(|f| is_as_left(f, meta));
    match record.status {
        Status::Done if ours => ask_again(job, path, record),
        // The process ended between the rename and the state's write: the file is the part file, whole and verified.
        _ if part::is_published(path, &record.dossier.part, meta) => {
            match durable::sync_dir(durable::folder_of(path)) {
                Ok(()) => ask_again(job, path, record),
                Err(fault) => Admission::Refused(fault),
            }
        }
        Status::Done => foreign(job, path, |clobber| run(job, reborn(record), clobber)),
        _ if ours => take_up(job, record, Clobber::Replace),
        _ => foreign(job, path, |clobber| take_up(job, record, clobber)),
    }
}

/// The record of a download whose file was given its name by a process that ended before the state could say so: complete,
/// with the file as it stands. `None` for every other record, and where a digest speaks against it.
pub(super) fn settled(record: &Record) -> Option<Record> {
    // Asked of every record that is taken up: the disk comes last.
    let is_open = record.direction == Direction::Download && record.status != Status::Done;
    let path = record.path.as_deref().filter(|_| is_open && record.dossier.part.inode.is_some())?;
    let meta = path.symlink_metadata().ok().filter(Metadata::is_file)?;
    if !part::is_published(path, &record.dossier.part, &meta) || part::holder(path).is_some() {
        return None;
    }
    let evidence = match &record.digests[..] {
        [] => record.dossier.part.evidence(),
        digests => has_digests(path, digests).then_some(Evidence::Digest)?,
    };
    durable::sync_dir(durable::folder_of(path)).ok()?;
    let (mut record, length) = (record.clone(), Length(meta.len()));
    record.finished = as_it_stands(path, evidence);
    record.nbytes = Some(length);
    (record.status, record.next_request_time, record.owner) = (Status::Done, None, None);
    record.dossier.part = Draft { held: length, beyond: Length::ZERO, inode: None, ..record.dossier.part };
    Some(record)
}

/// The same, put into the state where it was open there.
pub(super) fn settle(record: Record, document: &mut Document) -> Record {
    let Some(done) = settled(&record) else { return record };
    document.put(&done);
    done
}

/// The file is ours: without a digest the server is asked whether it is still the one; with one the digest decides. One
/// of another size than expected is fetched again.
fn ask_again(job: &Job, path: &Path, mut record: Record) -> Admission {
    if !stands(&record) {
        // What the record calls finished is the file that this one took the place of.
        record.finished = None;
    }
    let covered = record.finished.as_ref().is_some_and(|f| f.evidence == Evidence::Digest);
    if !job.digests.is_empty() {
        let known = covered && job.digests.iter().all(|d| record.digests.contains(d));
        if known || has_digests(path, &job.digests) {
            finish(&mut record, path);
            return Admission::Done { evidence: Evidence::Digest, record: Some(Box::new(record)) };
        }
        return run(job, reborn(record), Clobber::Replace);
    }
    if job.expected.is_some_and(|size| path.symlink_metadata().is_ok_and(|meta| meta.len() != size.0)) {
        return run(job, reborn(record), Clobber::Replace);
    }
    let draft = std::mem::take(&mut record.dossier.part);
    if record.finished.is_none() {
        record.finished = as_it_stands(path, draft.evidence());
    }
    let revalidate = Some(draft);
    let record = updated(job, reborn(record));
    Admission::Run(Box::new(Entry { record, revalidate, clobber: Clobber::Replace, failed_before: false }))
}

/// The digest has spoken for the file: where the process that wrote it ended before the record could say so, it says so now.
fn finish(record: &mut Record, path: &Path) {
    if record.status == Status::Done {
        return part::tidy(path);
    }
    record.status = Status::Done;
    record.finished = as_it_stands(path, Evidence::Digest);
}

/// The facts of a file that is known to be ours, whole and right.
fn as_it_stands(path: &Path, evidence: Evidence) -> Option<Finished> {
    let meta = path.symlink_metadata().ok()?;
    let (size, mtime_ns, inode) = (Length(meta.len()), mtime_ns(&meta), meta.ino());
    Some(Finished {
        at: Epoch::from_secs(meta.mtime()),
        evidence,
        size,
        mtime_ns,
        inode,
        server_digest: None,
        placed: None,
    })
}

/// A file that is not ours stands there.
fn foreign(job: &Job, path: &Path, go_on: impl FnOnce(Clobber) -> Admission) -> Admission {
    match job.options.existing {
        Existing::Overwrite => go_on(Clobber::Replace),
        Existing::Keep => Admission::Done { evidence: Evidence::None, record: None },
        Existing::Refuse if !job.digests.is_empty() && has_digests(path, &job.digests) => {
            Admission::Done { evidence: Evidence::Digest, record: None }
        }
        Existing::Refuse => Admission::Refused(not_ours(
            path,
            "exists and was not written by this transfer; --overwrite replaces it, --no-clobber keeps it",
        )),
    }
}

fn run(job: &Job, record: Record, clobber: Clobber) -> Admission {
    let record = updated(job, record);
    Admission::Run(Box::new(Entry { record, revalidate: None, clobber, failed_before: false }))
}

fn take_up(job: &Job, record: Record, clobber: Clobber) -> Admission {
    let failed_before = matches!(record.status, Status::Failed { .. });
    let mut record = updated(job, record);
    if record.status == Status::Suspended {
        record.status = Status::Pending;
    }
    if !failed_before && record.mirrors.iter().all(is_refused_as_it_is) {
        // Those that were not are gone from the command: who is left is asked afresh, or nobody would be.
        record.mirrors.iter_mut().for_each(|mirror| *mirror = mirror.afresh());
    }
    Admission::Run(Box::new(Entry { record, revalidate: None, clobber, failed_before }))
}

/// Refused, and not for what is held: that one has its own rule, by which it may begin anew.
fn is_refused_as_it_is(mirror: &MirrorRecord) -> bool {
    matches!(mirror.standing, Standing::Refused { .. }) && !mirror.is_odd()
}

/// Does the file of a finished download stand where it was written, as it was left?
pub(super) fn stands(record: &Record) -> bool {
    let meta = record.path.as_deref().and_then(|path| path.symlink_metadata().ok());
    meta.zip(record.finished.as_ref()).is_some_and(|(meta, finished)| meta.is_file() && is_as_left(finished, &meta))
}

/// A finished record begun again: nothing held, nothing counted, no mirror refused; what the file was when we left it
/// stays known.
pub(super) fn reborn(mut record: Record) -> Record {
    // Mirrors that a server named are those of the file as it was.
    record.mirrors.retain(|mirror| mirror.named_with.is_none());
    record.dossier = Dossier { part: record.dossier.part.facts(), ..Dossier::default() };
    record.history.clear();
    record.begin_new_life();
    record.mirrors.iter_mut().for_each(|mirror| mirror.contributed = false);
    record
}

/// What the command says now holds: its mirrors (what is known of the same URLs stays, and so do, behind them, those
/// that servers named), its digests, size and pieces, its limits, its options.
pub(super) fn updated(job: &Job, mut record: Record) -> Record {
    let known = std::mem::take(&mut record.mirrors);
    let is_typed = |m: &&MirrorRecord| m.named_with.is_none();
    let keep = |url: &MirrorUrl| known.iter().filter(is_typed).find(|m| m.url == *url).cloned();
    record.mirrors = job.urls.iter().map(|url| keep(url).unwrap_or_else(|| MirrorRecord::new(url.clone()))).collect();
    record.mirrors.extend(known.iter().filter(|m| !is_typed(m) && !job.urls.contains(&m.url)).cloned());
    if record.mirrors.iter().any(|m| !known.iter().any(|k| k.url == m.url)) {
        // A URL that was not known is fresh activity: it need not wait for what others brought about.
        record.next_request_time = None;
    }
    record.digests.clone_from(&job.digests);
    record.expected = job.expected;
    record.pieces.clone_from(&job.pieces);
    record.nbytes = record.nbytes.or(job.expected);
    record.max_nbytes = job.max_filesize;
    record.options = Arc::clone(&job.options);
    record
}

/// A record of a job that has none yet.
pub(super) fn new_record(job: &Job, id: XferId, name: String) -> Record {
    let (path, folder) = match &job.target {
        Target::File(path) => (Some(path.clone()), None),
        Target::ServerNamed(folder) => (None, Some(folder.clone())),
        Target::Source(source) => return admit_upload::new_record(job, source, id, name),
    };
    Record { path, folder, ..Record::download(id, name, &job.urls) }
}

/// A record whose file stands there already, and stays: it is done with.
pub(super) fn kept(mut record: Record, evidence: Evidence, now: Now) -> Record {
    record.status = Status::Done;
    record.next_request_time = None;
    record.finished.get_or_insert(Finished::unseen(now.wall, evidence, Length::ZERO));
    record
}

/// The job of a record, as the command that asked for it would put it.
pub(super) fn job_of(record: &Record) -> Option<Job> {
    let target = match (&record.path, &record.folder) {
        (Some(path), _) if record.direction == Direction::Upload => Target::Source(path.clone()),
        (Some(path), _) => Target::File(path.clone()),
        (None, Some(folder)) => Target::ServerNamed(folder.clone()),
        (None, None) => return None,
    };
    let typed: Vec<_> = record.mirrors.iter().filter(|m| m.named_with.is_none()).collect();
    if typed.is_empty() {
        return None;
    }
    Some(Job {
        urls: typed.into_iter().map(|m| m.url.clone()).collect(),
        target,
        digests: record.digests.clone(),
        expected: record.expected,
        pieces: record.pieces.clone(),
        max_filesize: record.max_nbytes,
        xml_signature: record.xml_signature.clone(),
        options: Arc::clone(&record.options),
    })
}

/// The identity of the record that the state holds of this job.
pub(super) fn known(document: &Document, job: &Job, twins: &mut Twins) -> Option<XferId> {
    match &job.target {
        Target::File(path) | Target::Source(path) => {
            document.at_path(path).into_iter().find(|id| document.get(*id).is_some_and(|r| is_of(&r, job)))
        }
        Target::ServerNamed(folder) => {
            let id = twins.in_folder(document, folder, job.urls.first()?.secret_url().as_str())?;
            document.get(id).filter(|r| is_of(r, job)).map(|r| r.id)
        }
    }
}

/// Is this the record of that job? A download is its target; until the server has named it, its folder and first URL. An
/// upload is its file and first URL.
fn is_of(record: &Record, job: &Job) -> bool {
    let first_url = || record.mirrors.first().map(|m| &m.url) == job.urls.first();
    match (&job.target, record.direction) {
        (Target::File(path), Direction::Download) => record.path.as_ref() == Some(path),
        (Target::ServerNamed(folder), Direction::Download) => record.folder.as_ref() == Some(folder) && first_url(),
        (Target::Source(path), Direction::Upload) => record.path.as_ref() == Some(path) && first_url(),
        _ => false,
    }
}

pub(super) fn path_of(target: &Target) -> Option<PathBuf> {
    match target {
        Target::File(path) | Target::Source(path) => Some(path.clone()),
        Target::ServerNamed(_) => None,
    }
}

fn look_at(path: &Path) -> Result<Found, LocalFault> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Found::Regular(meta)),
        Ok(meta) if meta.is_symlink() => Ok(Found::Other("a symbolic link")),
        Ok(meta) if meta.is_dir() => Ok(Found::Other("a folder")),
        Ok(_) => Ok(Found::Other("a device or another special file")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(e) => {
            let (path, detail) = (path.display().to_string(), e.to_string());
            Err(LocalFault::Io { doing: "look at", path, detail })
        }
    }
}

fn is_as_left(finished: &Finished, meta: &Metadata) -> bool {
    finished.size == Length(meta.len()) && finished.inode == meta.ino() && finished.mtime_ns == mtime_ns(meta)
}

pub(super) fn mtime_ns(meta: &Metadata) -> i128 {
    i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec())
}

fn has_digests(path: &Path, digests: &[Expected]) -> bool {
    part::has_digests(path, digests).unwrap_or(false)
}

fn not_ours(path: &Path, why: &str) -> LocalFault {
    LocalFault::NotOurs { path: path.display().to_string(), why: why.to_owned() }
}
