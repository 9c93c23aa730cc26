//! `--dry-run`: what would be done, without the network and without a change on disk.

use crate::cli::foreign::{Book, algorithm_name, human_delay, human_size, printable};
use crate::cli::settings::Plan;
use crate::cli::state::waits;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Evidence, Record, Status};
use crate::core::time::Now;
use crate::engine::{Existing, Job, Target};

/// A paragraph for each download.
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
    lines.extend(job.urls.iter().map(|url| format!("  from {url}")));
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

/// What a real run would begin with.
fn outlook(job: &Job, records: &[Record], now: Now) -> String {
    let path = match &job.target {
        Target::File(path) | Target::Source(path) => Some(path),
        Target::ServerNamed(_) => None,
    };
    match records.iter().find(|r| path.is_some() && r.path.as_ref() == path) {
        Some(record) => known(record, now),
        None => fresh(job, path.is_some_and(|p| p.exists())).into(),
    }
}

fn known(record: &Record, now: Now) -> String {
    match &record.status {
        Status::Done => "complete already: the server would be asked whether it has changed".into(),
        Status::Failed { message, .. } => {
            format!("failed before ({}): would begin anew, with the bytes that are held", printable(message))
        }
        Status::Suspended | Status::Pending => {
            let held = human_size(record.confirmed.0);
            match waits(record, now) {
                Some(delay) => format!("would continue at {held}, in {}", human_delay(delay)),
                None => format!("would continue at {held}"),
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
