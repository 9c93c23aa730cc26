//! `--dry-run`: what would be done, without the network and without a change on disk.

use crate::cli::foreign::{Book, algorithm_name, human_delay, human_size, printable};
use crate::cli::settings::Plan;
use crate::cli::state::{Held, waits};
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Direction, Evidence, Record, Status};
use crate::core::time::Now;
use crate::core::url::MirrorUrl;
use crate::engine::{Existing, Job, Target};

/// A paragraph for each transfer.
///
/// # Errors
/// A state file that cannot be read, which would stop a real run too.
pub(crate) fn tell(plan: &Plan, book: &dyn Book, now: Now) -> Result<String, Trouble> {
    let records = book.load()?.records;
    book.writable()?;
    let jobs: String = plan.jobs.iter().map(|job| paragraph(job, &records, now)).collect();
    let state = printable(&plan.settings.state_file.display().to_string());
    Ok(format!("state file {state}\n{jobs}"))
}

fn paragraph(job: &Job, records: &[Record], now: Now) -> String {
    let target = match &job.target {
        Target::File(path) | Target::Source(path) => path.display().to_string(),
        Target::ServerNamed(folder) => format!("{}/ (the server names the file)", folder.display()),
    };
    let mut lines = vec![printable(&target)];
    lines.extend(job.urls.iter().map(|url| way(job, url)));
    lines.extend(at_the_server(job));
    let digest = |d: &crate::core::digest::Expected| {
        format!("  checksum {}={}", algorithm_name(d.algorithm), hex::encode(&d.bytes))
    };
    lines.extend(job.digests.iter().map(digest));
    if job.options.require > Evidence::None {
        lines.push(format!("  needs evidence: {}", job.options.require.word()));
    }
    lines.push(format!("  gives up after {} without progress", human_delay(job.options.give_up)));
    lines.push(format!("  {}", outlook(job, records, now)));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// From where, or to where and how.
fn way(job: &Job, url: &MirrorUrl) -> String {
    match job.target.direction() {
        Direction::Download => format!("  from {url}"),
        Direction::Upload => format!("  to {url} by {}", job.options.upload.protocol_of(url).word()),
    }
}

/// What servers are told of an upload, where it was said.
fn at_the_server(job: &Job) -> Vec<String> {
    let upload = &job.options.upload;
    let told = [
        upload.name.as_ref().map(|name| format!("  as {}", printable(name))),
        upload.media_type.as_ref().map(|kind| format!("  content type {}", printable(kind))),
        job.xml_signature.as_ref().map(|_| "  with a signature".to_owned()),
    ];
    told.into_iter().flatten().collect()
}

/// Is this the record that the job would go on with?
fn is_of(record: &Record, job: &Job) -> bool {
    match &job.target {
        Target::File(path) => record.direction == Direction::Download && record.path.as_ref() == Some(path),
        Target::Source(path) => {
            let first = record.mirrors.first().map(|mirror| &mirror.url);
            record.direction == Direction::Upload && record.path.as_ref() == Some(path) && first == job.urls.first()
        }
        Target::ServerNamed(_) => false,
    }
}

/// What a real run would begin with.
fn outlook(job: &Job, records: &[Record], now: Now) -> String {
    match (records.iter().find(|record| is_of(record, job)), &job.target) {
        (Some(record), _) => known(record, now),
        (None, Target::File(path)) => fresh(job, path.exists()).into(),
        (None, Target::ServerNamed(_)) => fresh(job, false).into(),
        (None, Target::Source(path)) => {
            let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
            format!("would be uploaded, {}", human_size(size))
        }
    }
}

fn known(record: &Record, now: Now) -> String {
    let upload = record.direction == Direction::Upload;
    match &record.status {
        Status::Done if upload => "sent already: nothing would be sent, unless the file has changed since".into(),
        Status::Done => "complete already: the server would be asked whether it has changed".into(),
        Status::Failed { message, .. } => {
            let held = if upload { "from what a server still has" } else { "with the bytes that are held" };
            format!("failed before ({}): would begin anew, {held}", printable(message))
        }
        Status::Suspended | Status::Pending => {
            let held = human_size(Held::of(record, None).bytes().0);
            let at = if upload { format!("with {held} confirmed") } else { format!("at {held}") };
            match waits(record, now) {
                Some(delay) => format!("would continue {at}, in {}", human_delay(delay)),
                None => format!("would continue {at}"),
            }
        }
    }
}

fn fresh(job: &Job, exists: bool) -> &'static str {
    match (exists, job.options.existing) {
        (false, _) => "would be downloaded",
        (true, Existing::Overwrite) => "would be downloaded, and replace the file that stands there",
        (true, Existing::Keep) => "a file stands there: it would be kept, and nothing downloaded",
        (true, Existing::Refuse) => {
            "a file stands there that is not ours: it would be refused (see --overwrite, --no-clobber)"
        }
    }
}
