//! How transfers ended, in words: one line each, and what to do next.

mod upload;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::cli::exit::Exit;
use crate::cli::foreign::{boinc_name, human_delay, human_size, printable, strongest};
use crate::cli::resume::Resume;
use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Direction, Evidence};
use crate::core::time::{Delay, Epoch, Now};
use crate::core::url::MirrorUrl;
use crate::engine::{Ending, Job, Report, Target};

/// Which digests were asked for, to name them where a file rests on them.
#[derive(Debug, Default)]
pub(crate) struct Digests(HashMap<PathBuf, &'static str>);

impl Digests {
    /// Of these downloads.
    pub(crate) fn of(jobs: &[Job]) -> Self {
        let named = |job: &Job| match &job.target {
            Target::File(path) if !job.digests.is_empty() => Some((path.clone(), strongest(&job.digests)?)),
            _ => None,
        };
        Self(jobs.iter().filter_map(named).collect())
    }

    fn name(&self, path: Option<&Path>) -> Option<&'static str> {
        path.and_then(|path| self.0.get(path)).copied()
    }
}

/// What a transfer is called in lines: its file's own name; where another transfer has that name too, by the name that the
/// state file tells them apart by.
pub(crate) fn label(name: &str, path: Option<&Path>) -> String {
    let Some(file) = path.and_then(Path::file_name).map(|file| file.to_string_lossy()) else { return printable(name) };
    let plain = boinc_name(&file);
    let numbered = name.rsplit_once('~').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    printable(&match numbered {
        Some((stem, _)) if stem == plain => name.to_owned(),
        // The server has named the file.
        Some(_) if name != plain => format!("{file} ({name})"),
        _ => file.into_owned(),
    })
}

/// A wait that is over before a person could type the command again is not worth telling.
const AT_ONCE: Delay = Delay::from_secs(5);

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// `--quiet` silences it.
    News,
    /// It is said in any case.
    Matters,
}

/// What was seen of a transfer while it ran, and its report does not tell: its latest session.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its number, from 1.
    pub(crate) sessions: u32,
    /// With whom.
    pub(crate) server: MirrorUrl,
}

/// The last line of a transfer.
pub(crate) fn line(report: &Report, digests: &Digests, seen: Option<&Seen>, now: Now) -> (Weight, String) {
    let name = label(&report.name, report.path.as_deref());
    let of_upload = match (report.direction, &report.ending) {
        (Direction::Upload, Ending::Complete { evidence }) => Some(upload::complete(report, *evidence, seen)),
        (Direction::Upload, Ending::Unchanged { evidence }) => Some(upload::unchanged(report, *evidence)),
        _ => None,
    };
    if let Some((weight, text)) = of_upload {
        return (weight, format!("{name}: {text}"));
    }
    match &report.ending {
        Ending::Complete { evidence } => {
            let size = human_size(report.total.unwrap_or(report.held).0);
            let weight = if *evidence == Evidence::None { Weight::Matters } else { Weight::News };
            (weight, format!("{name}: complete, {size}, {}", rests_on(*evidence, &source(report, digests))))
        }
        Ending::Unchanged { evidence } => (
            Weight::News,
            match evidence {
                Evidence::None => format!("{name}: here already, and kept as it is; nothing vouches for it"),
                _ => format!("{name}: here already, {}", rests_on(*evidence, &source(report, digests))),
            },
        ),
        Ending::Failed { message, .. } => (Weight::Matters, format!("{name}: failed for good: {}", printable(message))),
        Ending::Stopped { next, why } => (Weight::Matters, format!("{name}: {}", stopped(report, *next, why, now))),
        Ending::Local(fault) => (Weight::Matters, format!("{name}: {}", printable(&fault.to_string()))),
    }
}

/// By which digest, and by whom it was named where not by the user.
fn source(report: &Report, digests: &Digests) -> String {
    let servers = report.server_digest.map(|algorithm| format!("{algorithm} by the server"));
    servers.or_else(|| digests.name(report.path.as_deref()).map(str::to_owned)).unwrap_or_default()
}

fn rests_on(evidence: Evidence, digest: &str) -> String {
    match (evidence, digest) {
        (Evidence::None, _) => "length unverified: the server did not tell it (--checksum would prove the file)".into(),
        (Evidence::Digest, name) if !name.is_empty() => format!("evidence: digest {name}"),
        (other, _) => format!("evidence: {}", other.word()),
    }
}

fn stopped(report: &Report, next: Option<Epoch>, why: &str, now: Now) -> String {
    let held = human_size(report.held.0);
    let mut text = match report.total {
        _ if report.direction == Direction::Upload => upload::confirmed(report),
        Some(total) => format!("stopped at {held} of {}", human_size(total.0)),
        None => format!("stopped at {held}"),
    };
    if !why.is_empty() {
        text += &format!(": {}", printable(why));
    }
    match next {
        Some(next) if next.since(now.wall) > AT_ONCE => {
            text + &format!("; next try in {} ({})", human_delay(next.since(now.wall)), clock(next))
        }
        _ => text,
    }
}

/// A moment as the clock on the wall says it.
pub(crate) fn clock(at: Epoch) -> String {
    let zone = jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC);
    let read = jiff::Timestamp::from_microsecond(at.as_micros());
    read.map_or_else(|_| "never".into(), |at| at.to_zoned_datetime(zone).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// What is said after all transfers: their count where there are several, and how to go on where work is left.
pub(crate) fn closing(reports: &[Report], exit: Exit, resume: &dyn Fn() -> Resume) -> Vec<(Weight, String)> {
    let mut lines = Vec::new();
    if reports.len() > 1 {
        let weight = if exit == Exit::Complete { Weight::News } else { Weight::Matters };
        lines.push((weight, count(reports)));
    }
    let left = reports.iter().any(|r| goes_on(&r.ending));
    if left || exit == Exit::Interrupted {
        let resume = resume();
        // Who interrupts is there to read it.
        let weight = if exit == Exit::Interrupted { Weight::Matters } else { Weight::News };
        lines.push((weight, format!("to continue: {}", resume.line)));
        if resume.hides {
            lines.push((weight, "(write what is <hidden> there again; persxfer does not show secrets)".into()));
        }
    }
    lines
}

/// Would the same command continue it? Not where a file of somebody else stands in its place.
const fn goes_on(ending: &Ending) -> bool {
    match ending {
        Ending::Stopped { .. } => true,
        Ending::Local(fault) => !matches!(fault, LocalFault::NotOurs { .. }),
        Ending::Complete { .. } | Ending::Unchanged { .. } | Ending::Failed { .. } => false,
    }
}

fn count(reports: &[Report]) -> String {
    let of = |f: fn(&Ending) -> bool| reports.iter().filter(|r| f(&r.ending)).count();
    let parts = [
        (of(|e| matches!(e, Ending::Complete { .. })), "complete"),
        (of(|e| matches!(e, Ending::Unchanged { .. })), "here already"),
        (of(|e| matches!(e, Ending::Failed { .. })), "failed for good"),
        (of(|e| matches!(e, Ending::Stopped { .. })), "stopped"),
        (of(|e| matches!(e, Ending::Local(_))), "stopped by trouble on this machine"),
    ];
    let told: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let all = |direction| reports.iter().all(|r| r.direction == direction);
    let what = match (all(Direction::Download), all(Direction::Upload)) {
        (true, _) => "downloads",
        (_, true) => "uploads",
        _ => "transfers",
    };
    format!("{} {what}: {}", reports.len(), told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{foreign, samples};
    use crate::core::digest::Algorithm;
    use crate::core::range::Length;

    fn said(ending: Ending) -> String {
        let digests = Digests(HashMap::from([("/data/out.bin".into(), "sha-256")]));
        line(&samples::report(ending), &digests, None, samples::at(0)).1
    }

    #[test]
    fn one_line_each() {
        insta::assert_snapshot!(said(samples::complete()), @"out.bin: complete, 3.0 MiB, evidence: digest sha-256");
        insta::assert_snapshot!(said(Ending::Complete { evidence: Evidence::Validator }), @"out.bin: complete, 3.0 MiB, evidence: validator");
        insta::assert_snapshot!(said(Ending::Complete { evidence: Evidence::None }), @"out.bin: complete, 3.0 MiB, length unverified: the server did not tell it (--checksum would prove the file)");
        insta::assert_snapshot!(said(Ending::Unchanged { evidence: Evidence::Overlap }), @"out.bin: here already, evidence: overlap");
        let by_server = Report { server_digest: Some(Algorithm::Sha256), ..samples::report(samples::complete()) };
        let (_, by_server) = line(&by_server, &Digests::default(), None, samples::at(0));
        insta::assert_snapshot!(by_server, @"out.bin: complete, 3.0 MiB, evidence: digest sha-256 by the server");
        insta::assert_snapshot!(said(samples::failed()), @"out.bin: failed for good: the server answered 404 Not Found (http://host/f)");
        insta::assert_snapshot!(said(samples::local()), @"out.bin: no space left on the disk for /data/out.bin: 2.0 MiB more are needed");
        let stopped = said(samples::stopped());
        let clock = clock(samples::at(72).wall);
        assert_eq!(
            stopped,
            format!(
                "out.bin: stopped at 1.0 MiB of 3.0 MiB: the server answered 503 Service Unavailable; next try in 1 min 12 s ({clock})"
            )
        );
    }

    #[test]
    fn two_of_one_name_are_told_apart() {
        let called = |name, path: &str| label(name, Some(Path::new(path)));
        assert_eq!([called("a b.iso", "/x/a b.iso"), called("a b.iso~2", "/y/a b.iso")], ["a b.iso", "a b.iso~2"]);
        assert_eq!([called("a~2", "/x/a~2"), called("a~2~2", "/y/a~2")], ["a~2", "a~2~2"]);
        assert_eq!([called("get", "/x/a"), called("get~2", "/y/a")], ["a", "a (get~2)"], "named by the server");
        assert_eq!(label("get~2", None), "get~2");
    }

    #[test]
    fn quiet_hides_good_news_only() {
        let weight = |ending| line(&samples::report(ending), &Digests::default(), None, samples::at(0)).0;
        assert_eq!(weight(samples::complete()), Weight::News);
        assert_eq!(weight(Ending::Complete { evidence: Evidence::None }), Weight::Matters);
        for ending in [samples::failed(), samples::stopped(), samples::local()] {
            assert_eq!(weight(ending), Weight::Matters);
        }
    }

    #[test]
    fn the_closing_counts_and_tells_how_to_go_on() {
        let resume = || Resume { line: "persxfer download http://h/f".into(), hides: true };
        let reports: Vec<_> = [samples::complete(), samples::failed(), samples::stopped()].map(samples::report).into();
        let lines: Vec<_> = closing(&reports, Exit::Failed, &resume).into_iter().map(|(_, line)| line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        3 downloads: 1 complete, 1 failed for good, 1 stopped
        to continue: persxfer download http://h/f
        (write what is <hidden> there again; persxfer does not show secrets)
        ");
        assert_eq!(closing(&reports[..1], Exit::Complete, &resume), []);
        let mixed = [samples::report(samples::complete()), samples::upload_report(samples::complete())];
        let (_, count) = &closing(&mixed, Exit::Complete, &resume)[0];
        assert_eq!(count, "2 transfers: 2 complete");
    }

    #[test]
    fn a_name_that_would_move_the_cursor_does_not() {
        let report = Report { name: "\u{1b}[2Jx".into(), held: Length(1), ..samples::report(samples::complete()) };
        let (_, text) = line(&report, &Digests::default(), None, samples::at(0));
        assert_eq!(text, foreign::printable(&text));
    }
}
