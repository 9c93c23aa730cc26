//! One claimed record, from its job to its last word.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::digest::Expected;
use crate::core::failure::{Failure, LocalFault};
use crate::core::ledger::attempt::{Miss, of_misses};
use crate::core::ledger::class::Class;
use crate::core::ledger::fail::Failed;
use crate::core::ledger::place::{place_beside, place_of};
use crate::core::ledger::record::{Key, Record, Token};
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::Length;
use crate::core::time::Epoch;
use crate::core::url::MirrorUrl;
use crate::core::verdict;
use crate::engine::{Ending, Job, Options, Report, Target};
use crate::io::store::Word;

/// A record that this worker has claimed.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) key: Key,
    pub(super) token: Token,
    digest: Option<String>,
    /// What its sessions failed by.
    misses: Vec<Miss>,
    /// Another has it: whatever comes of it is nobody's business.
    pub(super) is_lost: bool,
}

/// A job made of a record, or why there is none.
pub(super) enum Made {
    /// To this path.
    Job(Box<Job>, PathBuf),
    /// Nobody here can fetch it: why.
    Impossible(String),
}

impl Held {
    pub(super) fn of(record: &Record, token: Token) -> Self {
        let (key, digest) = (record.key.clone(), record.digest.clone());
        Self { key, token, digest, misses: Vec::new(), is_lost: false }
    }

    /// A session of it failed.
    pub(super) fn missed(&mut self, url: &MirrorUrl, failure: &Failure, class: verdict::Class) {
        let asked = match failure {
            Failure::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        self.misses.push(Miss { class, asked, url: url.secret_url().to_string() });
    }

    /// What is said of it in the end.
    pub(super) fn word(&self, report: &Report, now: Epoch) -> Word {
        let failed = |class, asked| Word::Failed(Failed { class, asked, mirror: None, bytes_done: report.held });
        match &report.ending {
            Ending::Complete { evidence } | Ending::Unchanged { evidence } => {
                Word::Done { size: report.total, digest: self.digest.clone().filter(|_| *evidence == Evidence::Digest) }
            }
            // One that a person aborted, or somebody else here works on, is given back.
            Ending::Failed { class, .. } => match of_misses(&self.misses, report.held) {
                Some(failed) => Word::Failed(failed),
                None => Class::of(*class).map_or(Word::Released, |class| failed(class, None)),
            },
            Ending::Stopped { next, .. } => match of_misses(&self.misses, report.held) {
                Some(failed) => Word::Failed(failed),
                // Its host was to be left alone, or nothing could pass.
                None => failed(Class::Throttled, next.map(|at| at.since(now))),
            },
            Ending::Local(LocalFault::InUse { .. }) => failed(Class::Interrupted, None),
            // Something else has the name: no other file suffers from that.
            Ending::Local(LocalFault::NotOurs { .. }) => failed(Class::Unsupported, None),
            Ending::Local(_) => failed(Class::LocalFault, None),
        }
    }
}

/// The job of a record, in this folder.
pub(super) fn job_of(record: &Record, folder: &Path, options: &Arc<Options>, now: Epoch) -> Made {
    let mut urls: Vec<MirrorUrl> = record.usable(now).filter_map(|url| MirrorUrl::parse(url).ok()).collect();
    if urls.is_empty() {
        // Better one that sent wrong bytes once than none.
        urls = record.mirrors.iter().filter_map(|mirror| MirrorUrl::parse(&mirror.url).ok()).collect();
    }
    let Some(first) = record.mirrors.iter().find_map(|mirror| MirrorUrl::parse(&mirror.url).ok()) else {
        return Made::Impossible("no URL of it is one of http or https".to_owned());
    };
    let digests = match record.digest.as_deref().map(Expected::parse) {
        None => Vec::new(),
        Some(Ok(digest)) => vec![digest],
        Some(Err(why)) => return Made::Impossible(format!("its digest cannot be used: {why}")),
    };
    let below = |place: Vec<String>| place.iter().fold(folder.to_owned(), |path, name| path.join(name));
    // The first URL that it ever had names it, so that it finds its place again.
    let mut path = below(place_of(&first, &record.key));
    if !can_stand(&path, folder) {
        path = below(place_beside(&first, &record.key));
    }
    let job = Job {
        urls,
        target: Target::File(path.clone()),
        digests,
        expected: record.size.filter(|size| *size > Length::ZERO || record.digest.is_some()),
        pieces: None,
        max_filesize: None,
        xml_signature: None,
        options: Arc::clone(options),
    };
    Made::Job(Box::new(job), path)
}

/// Neither is the path a folder, nor is anything above it, below `folder`, a file.
fn can_stand(path: &Path, folder: &Path) -> bool {
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
    let above = path.ancestors().skip(1).take_while(|above| *above != folder);
    !path.is_dir() && !above.into_iter().any(is_file)
}
