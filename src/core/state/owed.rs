//! What a document keeps beside transfers, hosts and days: reports of failures that are still to be sent, and the network mode
//! that a person set for good.

use bytes::Bytes;

use super::decode;
use super::document::{Document, element};
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::report::{self, ErrorReport};
use crate::core::schedule::SaidMode;
use crate::core::url::MirrorUrl;

impl Document {
    /// The reports that are still to be sent, in the order in which their transfers failed.
    pub fn reports(&self) -> &[ErrorReport] {
        &self.reports
    }

    /// Puts a report in the place of the one of the same transfer, or behind the last one.
    pub fn put_report(&mut self, report: ErrorReport) {
        match self.reports.iter_mut().find(|other| other.id == report.id) {
            Some(other) if *other == report => return,
            Some(other) => *other = report,
            None => self.reports.push(report),
        }
        self.changed = true;
    }

    /// The report of this transfer is not to be sent any more.
    pub fn drop_report(&mut self, id: XferId) {
        let before = self.reports.len();
        self.reports.retain(|report| report.id != id);
        self.changed |= self.reports.len() != before;
    }

    /// Who is told of failures from now on, where a transfer does not say; not stored.
    pub fn report_failures_to(&mut self, url: Option<MirrorUrl>) {
        self.report_to = url;
    }

    /// A record that says for the first time that its transfer failed makes a report, where somebody is to be told.
    pub(super) fn owe_report(&mut self, record: &Record, old: Option<&Bytes>) {
        let url = record.options.report_url.as_ref().or(self.report_to.as_ref());
        let report = url.and_then(|url| ErrorReport::of(record, url));
        if let Some(report) = report
            && report::is_news(old.map(|raw| decode::record(&element(raw), record.id)).as_ref(), record)
        {
            self.put_report(report);
        }
    }

    /// The network mode that a person set for good.
    pub const fn network_mode(&self) -> Option<SaidMode> {
        self.mode
    }

    /// A person set it, or wants that of the preferences again.
    pub fn set_network_mode(&mut self, mode: Option<SaidMode>) {
        self.changed |= self.mode != mode;
        self.mode = mode;
    }
}
