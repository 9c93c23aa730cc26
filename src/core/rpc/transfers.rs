//! The list of transfers, as BOINC's tools read it (boinc.md 4.3). Times are seconds of the wall clock.

use crate::core::pers_xfer::record::{Direction, Record};
use crate::core::range::Length;
use crate::core::rpc::project::PROJECT_NAME;
use crate::core::rpc::reply::{Lines, Reply};
use crate::core::state::MASTER_URL;
use crate::core::time::{Delay, Epoch};

/// One transfer as it stands.
#[derive(Clone, Debug)]
pub struct FileTransfer<'a> {
    /// What is known of it.
    pub record: &'a Record,
    /// Bytes held; of an upload, those that a server confirmed.
    pub held: Length,
    /// The session that runs, if one does.
    pub session: Option<Session>,
    /// For so long nothing of it is tried because its host backs off.
    pub backoff: Delay,
}

/// A session that runs.
#[derive(Clone, Debug)]
pub struct Session {
    /// With whom, without secrets.
    pub url: String,
    /// Where in the file it began.
    pub from: Length,
    /// How far in the file it is.
    pub at: Length,
    /// For how long it has run.
    pub lasts: Delay,
}

/// The answer to `get_file_transfers`. `now` stands where BOINC has a time and we have none yet.
pub fn file_transfers<'a>(transfers: impl IntoIterator<Item = FileTransfer<'a>>, now: Epoch) -> Reply {
    let mut lines = Lines::default();
    lines.open(0, "file_transfers");
    transfers.into_iter().for_each(|transfer| transfer.write(&mut lines, now));
    lines.close(0, "file_transfers");
    lines.into()
}

impl FileTransfer<'_> {
    fn write(&self, lines: &mut Lines, now: Epoch) {
        let record = self.record;
        lines.open(0, "file_transfer");
        lines.put(1, "project_url", MASTER_URL);
        lines.put(1, "project_name", PROJECT_NAME);
        lines.text(1, "name", &record.name);
        lines.put(1, "nbytes", bytes(record.nbytes.unwrap_or_default()));
        lines.put(1, "max_nbytes", bytes(record.max_nbytes.unwrap_or_default()));
        lines.put(1, "status", i32::from(record.direction == Direction::Upload));
        self.write_persistent(lines, now);
        if let Some(session) = &self.session {
            session.write(lines, record.nbytes);
        }
        if self.backoff > Delay::ZERO {
            lines.put(1, "project_backoff", self.backoff);
        }
        lines.close(0, "file_transfer");
    }

    fn write_persistent(&self, lines: &mut Lines, now: Epoch) {
        let record = self.record;
        let first = record.first_request_time.unwrap_or(now);
        let active = self.session.as_ref().map_or(Delay::ZERO, |session| session.lasts);
        lines.open(1, "persistent_file_xfer");
        lines.put(2, "num_retries", record.num_retries);
        lines.put(2, "first_request_time", first);
        lines.put(2, "next_request_time", record.next_request_time.unwrap_or(first));
        lines.put(2, "time_so_far", record.time_so_far.saturating_add(active));
        lines.put(2, "last_bytes_xferred", bytes(self.held));
        lines.put(2, "is_upload", i32::from(record.direction == Direction::Upload));
        lines.close(1, "persistent_file_xfer");
    }
}

impl Session {
    fn write(&self, lines: &mut Lines, total: Option<Length>) {
        let speed = self.speed();
        lines.open(1, "file_xfer");
        let rest = total.map(|total| total.saturating_sub(self.at)).filter(|_| speed > 0.0);
        if let Some(rest) = rest {
            lines.put(2, "estimated_xfer_time_remaining", Delay::from_secs_f64(rest.0 as f64 / speed));
        }
        lines.put(2, "bytes_xferred", bytes(self.at));
        lines.put(2, "file_offset", bytes(self.from));
        lines.put(2, "xfer_speed", format_args!("{speed:.6}"));
        lines.text(2, "url", &self.url);
        lines.close(1, "file_xfer");
    }

    /// Bytes per second over the whole session.
    fn speed(&self) -> f64 {
        let moved = self.at.saturating_sub(self.from);
        let secs = self.lasts.as_secs_f64();
        if secs > 0.0 { moved.0 as f64 / secs } else { 0.0 }
    }
}

/// A size as BOINC writes it.
fn bytes(length: Length) -> String {
    format!("{length}.000000")
}
