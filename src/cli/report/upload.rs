//! How uploads ended, in words: where the file is, and on whose word.

use crate::cli::foreign::human_size;
use crate::cli::report::{Seen, Weight, clock};
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::Length;
use crate::engine::Report;

/// It is at a server now.
pub(super) fn complete(report: &Report, evidence: Evidence, seen: Option<&Seen>) -> (Weight, String) {
    let size = human_size(report.total.unwrap_or(report.held).0);
    let placed = report.placed.as_ref().map(|placed| &placed.server);
    let server = placed.or_else(|| seen.map(|seen| &seen.server)).unwrap_or(&report.url);
    let sessions = seen.map(|seen| in_sessions(seen.sessions)).unwrap_or_default();
    let weight = if evidence == Evidence::None { Weight::Matters } else { Weight::News };
    (weight, format!("uploaded to {server}, {size}{sessions}, {}", rests_on(report, evidence)))
}

/// It was sent before, and has not changed since.
pub(super) fn unchanged(report: &Report, evidence: Evidence) -> (Weight, String) {
    let server = report.placed.as_ref().map(|placed| format!(" to {}", placed.server)).unwrap_or_default();
    let when = report.finished.map(|at| format!(", confirmed {}", clock(at))).unwrap_or_default();
    (Weight::News, format!("sent already{server} and not changed since{when}, {}", rests_on(report, evidence)))
}

/// How much a server has confirmed, and how much went out: what came of that is asked the next time.
pub(super) fn confirmed(report: &Report) -> String {
    let (held, sent) = (human_size(report.held.0), human_size(report.received.0));
    let of = report.total.map(|total| format!(" of {}", human_size(total.0))).unwrap_or_default();
    let went = if report.received > Length::ZERO { format!(", {sent} sent in this run") } else { String::new() };
    format!("stopped with {held}{of} confirmed{went}")
}

fn in_sessions(n: u32) -> String {
    if n == 1 { " in 1 session".into() } else { format!(" in {n} sessions") }
}

fn rests_on(report: &Report, evidence: Evidence) -> String {
    let found = report.placed.as_ref().is_some_and(|placed| placed.found > Length::ZERO);
    match (evidence, report.server_digest) {
        (Evidence::None, _) if found => {
            "evidence: none, content not compared: a file that was no shorter was there before".into()
        }
        (Evidence::None, _) => "evidence: none, the server said yes and cannot be asked what it has".into(),
        (Evidence::Digest, Some(algorithm)) => format!("evidence: digest (server's {algorithm})"),
        (Evidence::Length, _) => "evidence: length, as the server tells it".into(),
        (other, _) => format!("evidence: {}", other.word()),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::report::{Digests, Seen, Weight, clock, line};
    use crate::cli::samples;
    use crate::core::pers_xfer::record::{Evidence, Placed};
    use crate::core::range::Length;
    use crate::engine::{Ending, Report};

    fn said(ending: Ending) -> (Weight, String) {
        let server = samples::url("https://me:s3cret@b.example/in/out.bin?sig=s3cret");
        let seen = Seen { sessions: 3, server };
        let (weight, text) = line(&samples::upload_report(ending), &Digests::default(), Some(&seen), samples::at(0));
        assert!(!text.contains("s3cret"), "{text}");
        (weight, text)
    }

    #[test]
    fn one_line_each() {
        insta::assert_snapshot!(said(samples::complete()).1, @"out.bin: uploaded to https://b.example/in/out.bin?sig=***, 3.0 MiB in 3 sessions, evidence: digest (server's sha-256)");
        insta::assert_snapshot!(said(Ending::Complete { evidence: Evidence::Length }).1, @"out.bin: uploaded to https://b.example/in/out.bin?sig=***, 3.0 MiB in 3 sessions, evidence: length, as the server tells it");
        let (weight, text) = said(Ending::Complete { evidence: Evidence::None });
        assert_eq!(weight, Weight::Matters, "that nothing vouches for it is said in any case");
        insta::assert_snapshot!(text, @"out.bin: uploaded to https://b.example/in/out.bin?sig=***, 3.0 MiB in 3 sessions, evidence: none, the server said yes and cannot be asked what it has");
        insta::assert_snapshot!(said(samples::failed()).1, @"out.bin: failed for good: the server answered 404 Not Found (http://host/f)");
        let (since, next) = (clock(samples::at(-86_400).wall), clock(samples::at(72).wall));
        assert_eq!(
            said(Ending::Unchanged { evidence: Evidence::Digest }).1,
            format!(
                "out.bin: sent already to https://b.example/in/out.bin?sig=*** and not changed since, confirmed {since}, evidence: digest (server's sha-256)"
            )
        );
        let report = samples::upload_report(Ending::Complete { evidence: Evidence::None });
        let placed = report.placed.clone().map(|placed| Box::new(Placed { found: Length(3 << 20), ..*placed }));
        let (weight, text) = line(&Report { placed, ..report }, &Digests::default(), None, samples::at(0));
        assert_eq!(weight, Weight::Matters);
        insta::assert_snapshot!(text, @"out.bin: uploaded to https://b.example/in/out.bin?sig=***, 3.0 MiB, evidence: none, content not compared: a file that was no shorter was there before");
        assert_eq!(
            said(samples::stopped()).1,
            format!(
                "out.bin: stopped with 1.0 MiB of 3.0 MiB confirmed, 512 KiB sent in this run: the server answered 503 \
                 Service Unavailable; next try \
                 in 1 min 12 s ({next})"
            )
        );
    }
}
