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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::pers_xfer::options::Options;
    use crate::core::pers_xfer::record::Status;
    use crate::core::prefs::Mode;
    use crate::core::time::{Delay, Epoch};

    fn url(text: &str) -> MirrorUrl {
        MirrorUrl::parse(text).expect("a URL")
    }

    fn record(id: u64, to: Option<&str>) -> Record {
        let mut record = Record::download(XferId(id), format!("f{id}"), &[url("http://a.example/f")]);
        record.options = Arc::new(Options { report_url: to.map(url), ..Options::default() });
        record
    }

    fn failed(record: &Record, begun: i64) -> Record {
        let status = Status::Failed { code: -224, message: "the server answered 404 Not Found".to_owned() };
        Record { status, first_request_time: Some(Epoch::from_secs(begun)), ..record.clone() }
    }

    fn read_again(document: &Document) -> Document {
        Document::parse(&document.to_bytes()).expect("what we write is sound")
    }

    #[test]
    fn a_failure_makes_a_report_once_a_life_where_somebody_is_to_be_told() {
        let mut document = Document::fresh();
        let (told, untold) = (record(1, Some("https://p.example/cgi?key=s3cret")), record(2, None));
        [&told, &untold].into_iter().for_each(|record| document.put(record));
        assert!(document.reports().is_empty());
        [&told, &untold].into_iter().for_each(|record| document.put(&failed(record, 1)));
        assert_eq!(document.reports().len(), 1);
        let mut document = read_again(&document);
        assert_eq!(document.reports()[0].url, url("https://p.example/cgi?key=s3cret"));
        let sent = document.reports()[0].clone();
        document.drop_report(XferId(1));
        document.put(&Record { sessions: 9, ..failed(&told, 1) });
        assert!(read_again(&document).reports().is_empty(), "it was told of this life");
        document.put(&failed(&told, 2));
        assert_eq!(read_again(&document).reports(), [sent]);
        document.report_failures_to(Some(url("http://q.example/")));
        document.put(&failed(&untold, 3));
        assert_eq!(document.reports()[1].url, url("http://q.example/"), "where the transfer does not say");
    }

    #[test]
    fn a_report_reads_as_it_was_written_and_outlives_its_transfer() {
        let mut document = Document::fresh();
        document.put(&failed(&record(1, Some("http://u:p@p.example/")), 1));
        let mut report = document.reports()[0].clone();
        report.tries = 3;
        report.backoff.n = 3;
        report.next = Some(Epoch::from_secs(1_800_000_000));
        report.used = Delay::from_mins(3);
        report.at = Some(Epoch::from_secs(1_799_999_000));
        report.window = Delay::from_days(2);
        report.policy = report.policy.with_bounds(Some(Delay::from_secs(5)), None).expect("bounds");
        report.owner = Some(crate::core::pers_xfer::sharing::OwnerId(7));
        document.put_report(report.clone());
        document.remove(XferId(1));
        assert_eq!(read_again(&document).reports(), [report]);
    }

    #[test]
    fn a_mode_that_was_set_is_kept_with_what_it_covers() {
        let mut document = Document::fresh();
        assert_eq!(document.network_mode(), None);
        let said = SaidMode::of(Mode::Never, Mode::Auto);
        document.set_network_mode(said);
        assert_eq!(read_again(&document).network_mode(), said);
        assert_eq!(SaidMode::holding(said, Mode::Auto), Mode::Never);
        assert_eq!(SaidMode::holding(said, Mode::Always), Mode::Always, "the preferences said something else since");
        document.set_network_mode(SaidMode::of(Mode::Auto, Mode::Auto));
        assert!(!String::from_utf8(read_again(&document).to_bytes()).expect("text").contains("network_mode"));
    }
}
