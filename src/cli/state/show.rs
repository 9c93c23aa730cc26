//! `state show`: the whole story of one transfer: why it waits, what each mirror or server said, what is held or confirmed, and
//! on what evidence.

use std::fmt::Write;

use crate::cli::exit::Exit;
use crate::cli::foreign::{algorithm_name, counted, human_delay, human_size, printable};
use crate::cli::report::clock;
use crate::cli::state::json::{self, Around, Form, Held, Story};
use crate::cli::state::{Desk, pick, servers};
use crate::cli::trouble::Trouble;
use crate::core::digest::Pieces;
use crate::core::file_xfer::dossier::{Draft, Joints, OriginNotes, Ranges};
use crate::core::hosts::HostRecord;
use crate::core::pers_xfer::record::{Direction, MirrorRecord, Placed, Record, Standing, Status};
use crate::core::range::{ByteRange, Offset, RangeSet};
use crate::core::time::{Epoch, Now};

/// Prints it.
pub(super) fn run(desk: &Desk<'_>, word: &str, form: Form) -> Result<Exit, Trouble> {
    let contents = desk.load()?;
    let record = pick::one(&contents.records, word, desk.cwd)?;
    let text = match form {
        Form::Json => json::text(&Story::new(record, &contents.hosts, Around::of(desk, record))) + "\n",
        Form::Text => tell(desk, record, &contents.hosts),
    };
    (desk.out)(&text)?;
    Ok(Exit::Complete)
}

fn tell(desk: &Desk<'_>, record: &Record, hosts: &[HostRecord]) -> String {
    let mut text = String::new();
    for (label, value) in head(desk, record, hosts) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "{label:<11}{}", printable(&value));
    }
    text += if record.direction == Direction::Upload { "servers\n" } else { "mirrors\n" };
    for mirror in &record.mirrors {
        let named = if mirror.named_with.is_some() { ", named by a server" } else { "" };
        let (by, standing) = (servers::by(record, &mirror.url), standing(mirror, record.direction, desk.now));
        let _ = writeln!(text, "  {}{by}: {}{named}", mirror.url, printable(&standing));
        for told in servers::lines(record, &mirror.url, desk.now) {
            let _ = writeln!(text, "    {told}");
        }
        for told in hosts.iter().filter_map(|host| left_alone(host, mirror, record.direction, desk.now)) {
            let _ = writeln!(text, "    {told}");
        }
    }
    for told in servers::former(record, desk.now) {
        let _ = writeln!(text, "  {told}");
    }
    if !record.history.is_empty() {
        text += "failures, the latest last\n";
    }
    for past in &record.history {
        let line = format!("{} at {}: {} ({})", clock(past.at), human_size(past.held.0), past.text, past.url);
        let _ = writeln!(text, "  {}", printable(&line));
    }
    text
}

/// The lines that stand alone, with their labels.
fn head(desk: &Desk<'_>, record: &Record, hosts: &[HostRecord]) -> Vec<(&'static str, String)> {
    let way = match record.direction {
        Direction::Download => "download",
        Direction::Upload => "upload",
    };
    let mut lines = vec![
        ("name", record.name.clone()),
        ("id", record.id.to_string()),
        (way, place(record)),
        ("state", state(desk, record)),
    ];
    let found = json::segments(desk.book, record);
    lines.extend(held(record, found.as_ref()));
    lines.push((
        "sessions",
        format!("{}, {}, {} in sessions", record.sessions, passes(record.num_retries), human_delay(record.time_so_far)),
    ));
    lines.extend(record.first_request_time.map(|at| ("begun", clock(at))));
    if record.status == Status::Pending {
        lines.extend(desk.standing.ways.of(record.direction).left.iter().map(|left| ("network", left.text.clone())));
        lines.push(("patience", format!("{} without progress so far", human_delay(record.patience_used))));
    }
    lines.extend(
        record
            .digests
            .iter()
            .map(|d| ("checksum", format!("{}={}", algorithm_name(d.algorithm), hex::encode(&d.bytes)))),
    );
    lines.extend(record.expected.map(|n| ("expected", format!("{}, by its metalink", human_size(n.0)))));
    lines.extend(record.pieces.as_deref().map(|p| ("pieces", pieces(p))));
    lines.extend(record.dossier.part.vouched.iter().map(|d| ("vouched", d.to_string())));
    lines.extend(evidence(record, found.as_ref()).map(|e| ("evidence", e)));
    lines.extend(version(&record.dossier.part).into_iter().map(|v| ("version", v)));
    lines.extend(record.dossier.rival.as_ref().map(|rival| ("newer", newer(rival))));
    lines.extend(learned(record, hosts).into_iter().map(|told| ("server", told)));
    if record.apart {
        lines.push(("apart", "no two mirrors' bytes are mixed any more: together they had the wrong digest".into()));
    }
    if record.dossier.changes > 0 {
        lines.push(("changes", format!("the file changed on the server {}", times(record.dossier.changes))));
    }
    lines
}

fn state(desk: &Desk<'_>, record: &Record) -> String {
    let last = record.history.last().map(|past| past.text.as_str());
    if let Some(why) = desk.waits_for(record) {
        return format!("waiting: {}", why.message);
    }
    match (&record.status, desk.book.holder(record), record.next_request_time) {
        (Status::Pending, holder, Some(next)) if next > desk.now.wall => {
            format!(
                "waiting{}, next try in {} ({}): {}",
                holder.map(|holder| format!(", run by process {holder}")).unwrap_or_default(),
                human_delay(next.since(desk.now.wall)),
                clock(next),
                last.unwrap_or("its time has not come")
            )
        }
        (Status::Pending, Some(holder), _) if record.first_request_time.is_none() => {
            format!("queued, in process {holder}")
        }
        (Status::Pending, Some(holder), _) => format!("running, in process {holder}"),
        (Status::Pending, None, due) => ready(record, due, last),
        (Status::Suspended, ..) => "suspended".into(),
        (Status::Done, ..) => format!(
            "complete{}{}",
            record.finished.as_ref().map(|f| format!(" since {}", clock(f.at))).unwrap_or_default(),
            if desk.book.is_missing(record) { "; its file is missing: moved or deleted since" } else { "" }
        ),
        (Status::Failed { code, message }, ..) => format!("failed for good: {message} (error {code})"),
    }
}

/// It waits for nothing but a program that runs it.
fn ready(record: &Record, due: Option<Epoch>, last: Option<&str>) -> String {
    let since = due.map(|due| format!(" since {}", clock(due))).unwrap_or_default();
    let why = last.map(|text| format!("; the last failure was: {text}")).unwrap_or_default();
    let how = if is_boincs(record) { "" } else { ": the same command again continues it" };
    format!("ready{since}{how}{why}")
}

fn place(record: &Record) -> String {
    match (&record.path, &record.folder) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(folder)) => format!("into {}, the server is to name the file", folder.display()),
        (None, None) => "in the BOINC client's own folder".into(),
    }
}

/// A record of ours has a path, or the folder that the file is to go into.
const fn is_boincs(record: &Record) -> bool {
    record.path.is_none() && record.folder.is_none()
}

/// `24 of 1.0 MiB with digests by sha-256`.
fn pieces(pieces: &Pieces) -> String {
    let (count, length) = (pieces.count(), human_size(pieces.length().0));
    format!("{count} of {length} with digests by {}", algorithm_name(pieces.algorithm()))
}

fn passes(n: u32) -> String {
    if n == 1 { "1 failed pass".into() } else { format!("{n} failed passes") }
}

fn times(n: u32) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

/// How much is held, and where it lies if it is not in one piece from the start.
fn held(record: &Record, found: Option<&RangeSet>) -> Vec<(&'static str, String)> {
    let total = record.nbytes.map_or_else(|| "a file of unknown size".into(), |n| human_size(n.0));
    let held = Held::of(record, found);
    if let Held::AtServer(most) = held {
        return vec![("confirmed", format!("{} of {total}", human_size(most.0)))];
    }
    let source = match held {
        Held::InPart(_) => ", by its part file",
        Held::Recorded(_) if record.status == Status::Done || record.confirmed.0 == 0 => "",
        Held::Recorded(_) => ", as recorded when its last session ended",
        Held::AtServer(_) => "",
    };
    let found = found.filter(|_| matches!(held, Held::InPart(_)));
    let mut lines = vec![("held", format!("{} of {total}{source}", human_size(held.bytes().0)))];
    let ranges: Vec<ByteRange> = found.iter().flat_map(|found| found.iter()).collect();
    if ranges.len() > 1 || ranges.first().is_some_and(|first| first.start > Offset::ZERO) {
        lines.push(("segments", segments(&ranges)));
    }
    lines
}

/// Segments told one by one.
const SEGMENTS: usize = 16;

/// `2: bytes 0-1048575, 2097152-3145727`: the first and the last byte of each.
fn segments(ranges: &[ByteRange]) -> String {
    let told = ranges.iter().take(SEGMENTS).map(|r| format!("{}-{}", r.start.0, r.end.0.saturating_sub(1)));
    let more = match ranges.len().saturating_sub(SEGMENTS) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{}: bytes {}{more}", ranges.len(), told.collect::<Vec<_>>().join(", "))
}

/// What was learned of the servers: how many connections they bear, how fast one is, whether they answer ranges.
fn learned(record: &Record, hosts: &[HostRecord]) -> Vec<String> {
    let of = |notes: &OriginNotes| {
        let ranges = match notes.ranges {
            Ranges::Unknown => None,
            Ranges::Work => Some("answers ranges".to_owned()),
            Ranges::Broken => Some("does not answer ranges".to_owned()),
        };
        let most = notes.most.map(|n| format!("bears {} at a time", counted(n as usize, "connection")));
        let rate = json::rate(&notes.origin, hosts).map(|rate| format!("{}/s over one connection", human_size(rate)));
        let told: Vec<String> = [ranges, most, rate].into_iter().flatten().collect();
        (!told.is_empty()).then(|| format!("{}: {}", notes.origin, told.join(", ")))
    };
    record.dossier.origins.iter().filter_map(of).collect()
}

/// Another version that was begun beside the one that is held.
fn newer(rival: &Draft) -> String {
    let from = rival.last_origin.as_ref().map(|origin| format!(", from {origin}")).unwrap_or_default();
    format!("{} of another version, which takes the place once it is whole or longer{from}", human_size(rival.held.0))
}

/// What a complete file rests on, or what the bytes held so far are joined by.
fn evidence(record: &Record, found: Option<&RangeSet>) -> Option<String> {
    if let Some(finished) = json::done(record) {
        let by = finished.server_digest.map(|algorithm| format!(" {algorithm} by the server")).unwrap_or_default();
        let at = finished.placed.as_ref().map(held_by).unwrap_or_default();
        return Some(format!("{}{by}{at}", finished.evidence.word()));
    }
    let joints = match record.dossier.part.joints {
        Joints::Validator => "one strong validator, or a single session",
        Joints::Overlap => "bytes compared where sessions join",
        Joints::Length => "the length only where sessions join",
    };
    let held = found.map_or(record.dossier.part.held, RangeSet::head);
    (held.0 > 0).then(|| format!("so far {joints}"))
}

/// Where an upload is, and whether the size of what is there can tell it from what was there before.
fn held_by(placed: &Placed) -> String {
    let found = match placed.found.0 {
        0 => "",
        _ => "; a file that was no shorter was there before, the content was not compared",
    };
    format!(", at {}{found}", placed.server)
}

/// The validators of the version that is held, an origin each.
fn version(draft: &Draft) -> Vec<String> {
    let tag = |t: &crate::core::validator::ETag| format!("ETag {}{}", if t.weak { "W/" } else { "" }, t.opaque);
    let told = |(origin, v): &(crate::core::url::Origin, crate::core::validator::Validators)| {
        let parts = [v.etag.as_ref().map(tag), v.last_modified.map(|at| format!("last modified {}", clock(at)))];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{origin}: {}", parts.join(", ")))
    };
    draft.validators.iter().filter_map(told).collect()
}

/// What holds for a mirror's host as a whole, while it does.
fn left_alone(host: &HostRecord, mirror: &MirrorRecord, direction: Direction, now: Now) -> Option<String> {
    if host.key.origin != mirror.url.origin() || host.key.direction != direction {
        return None;
    }
    let closed = host.closed_until.filter(|until| *until > now.wall);
    let asked = host.not_before.filter(|until| *until > now.wall);
    let why = closed.map(|until| format!("the host keeps failing and is left in peace until {}", clock(until)));
    why.or_else(|| asked.map(|until| format!("the host asks to wait until {}", clock(until))))
}

fn standing(mirror: &MirrorRecord, direction: Direction, now: Now) -> String {
    let later = |at: Epoch| format!("asks to wait, not before {}", clock(at));
    match (&mirror.standing, mirror.not_before) {
        (Standing::Refused { class, why }, _) => format!("refused ({}): {why}", class.word()),
        (Standing::Usable, Some(at)) if at > now.wall => later(at),
        (Standing::Usable, _) if mirror.served && direction == Direction::Download => "usable, has served bytes".into(),
        (Standing::Usable, _) => "usable".into(),
    }
}
