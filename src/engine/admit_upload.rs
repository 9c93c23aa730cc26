//! Admission of uploads: is the file there, was it sent already, and is it still the one that was sent?

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Direction, Evidence, Finished, Record, Status};
use crate::core::printable::plain_error;
use crate::core::range::Length;
use crate::core::upload::{Likeness, Mark, Source, Stamp};
use crate::engine::Job;
use crate::engine::admit::{Admission, Entry, updated};
use crate::io::driver::upload::{digest_of_file, identity_of};
use crate::io::part::Clobber;

/// Decides about an upload, given the record that the state holds of it.
pub(super) fn admit(job: &Job, source: &Path, known: Option<Record>, fresh: impl FnOnce() -> Record) -> Admission {
    let meta = match look_at(source) {
        Ok(meta) => meta,
        Err(fault) => return Admission::Refused(fault),
    };
    match known {
        Some(record) if record.status == Status::Done && was_sent(&record, source, &meta) => {
            let evidence = record.finished.as_ref().map_or(Evidence::None, |f| f.evidence);
            Admission::Done { evidence, record: Some(Box::new(record)) }
        }
        Some(record) if record.status == Status::Done => run(job, again(record), &meta),
        Some(mut record) => {
            if record.status == Status::Suspended {
                record.status = Status::Pending;
            }
            run(job, record, &meta)
        }
        None => run(job, fresh(), &meta),
    }
}

fn run(job: &Job, record: Record, meta: &Metadata) -> Admission {
    let failed_before = matches!(record.status, Status::Failed { .. });
    let mut record = updated(job, record);
    record.nbytes = Some(Length(meta.len()));
    record.xml_signature.clone_from(&job.xml_signature);
    Admission::Run(Box::new(Entry { record, revalidate: None, clobber: Clobber::Refuse, failed_before }))
}

/// A finished upload whose file is another one by now: it is sent anew.
pub(super) fn again(mut record: Record) -> Record {
    record.history.clear();
    record.finished = None;
    record.begin_new_life();
    record
}

/// Does the file of a finished upload stand there and differ from what was sent? One that is gone has done its duty.
pub(super) fn is_another_now(record: &Record) -> bool {
    let found = record.path.as_deref().and_then(|path| look_at(path).ok().map(|meta| (path, meta)));
    record.direction == Direction::Upload && found.is_some_and(|(path, meta)| !was_sent(record, path, &meta))
}

/// Is it the file that was sent? One that was touched, or whose time of modification was set back, is known by its digest;
/// where none was taken of it, it is another.
fn was_sent(record: &Record, path: &Path, meta: &Metadata) -> bool {
    let Some(sent) = record.finished.as_ref().and_then(as_sent) else { return false };
    let now = identity_of(meta);
    match (now.likeness(&sent), &sent.digest) {
        (Likeness::Same, _) => true,
        (Likeness::AskDigest, Some(digest)) => {
            digest_of_file(path, digest.algorithm).is_ok_and(|found| found == *digest)
        }
        (Likeness::AskDigest | Likeness::Changed(_), _) => false,
    }
}

/// The file as it was sent; `None` where too little was kept of it.
fn as_sent(finished: &Finished) -> Option<Source> {
    let placed = finished.placed.as_ref()?;
    let mark = placed.ctime_ns.map(|ctime_ns| Mark { ctime_ns, inode: finished.inode });
    if mark.is_none() && placed.digest.is_none() {
        return None;
    }
    let stamp = Stamp { size: finished.size, mtime_ns: finished.mtime_ns };
    Some(Source { stamp, mark, digest: placed.digest.clone() })
}

fn look_at(source: &Path) -> Result<Metadata, LocalFault> {
    let path = source.display().to_string();
    let fault = |detail: String| LocalFault::Io { doing: "read", path: path.clone(), detail };
    let meta = std::fs::metadata(source).map_err(|e| fault(plain_error(&e)))?;
    if meta.is_file() { Ok(meta) } else { Err(fault("it is no regular file".to_owned())) }
}

/// A record of an upload that has none yet.
pub(super) fn new_record(job: &Job, source: &Path, id: crate::core::pers_xfer::record::XferId, name: String) -> Record {
    let mut record = Record::upload(id, name, source.to_owned(), &job.urls);
    record.options = Arc::clone(&job.options);
    record.xml_signature.clone_from(&job.xml_signature);
    record
}
