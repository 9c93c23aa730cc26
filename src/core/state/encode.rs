//! From a record to its `<file_info>` element: BOINC's elements in BOINC's order (boinc.md 2.3), then our own.
//!
//! What has its default is left out of our own element, so a queued transfer costs some 400 bytes.

use super::node::Node;
use super::shape::Shape;
use super::{backoff, dossier, options, sharing, upload, words};
use crate::core::digest::{Algorithm, Pieces};
use crate::core::pers_xfer::record::{Direction, Finished, MirrorRecord, Past, Record, Standing, Status};
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};

/// BOINC's number for a failure without one of its own (ERR_... in general).
const UNKNOWN_ERROR: i32 = -1;

/// The element of a record.
pub(super) fn record(record: &Record) -> Node {
    let up = record.direction == Direction::Upload;
    let mut nodes =
        vec![Node::text("name", &record.name), bytes("nbytes", record.nbytes), bytes("max_nbytes", record.max_nbytes)];
    let md5 = record.digests.iter().find(|d| d.algorithm == Algorithm::Md5);
    nodes.extend(md5.map(|d| Node::plain("md5_cksum", hex::encode(&d.bytes))));
    nodes.push(Node::plain("status", status_code(record)));
    if up && record.status == Status::Done {
        nodes.push(Node::flag("uploaded"));
    }
    let url = if up { "upload_url" } else { "download_url" };
    nodes.extend(record.mirrors.iter().map(|m| Node::text(url, m.url.secret_url().as_str())));
    if is_under_way(record) {
        nodes.push(Node::parent("persistent_file_xfer", Shape::Transfer, six(record)));
    }
    let signature = record.xml_signature.as_deref().filter(|_| up);
    nodes.extend(signature.map(|s| Node::text("xml_signature", s)));
    if let Status::Failed { message, .. } = &record.status {
        nodes.push(Node::text("error_msg", message));
    }
    nodes.push(Node::parent("persxfer", Shape::Ours, ours(record)));
    Node::parent("file_info", Shape::Record(record.direction), nodes)
}

/// BOINC's status: 0 not there, 1 there, negative an error.
fn status_code(record: &Record) -> i32 {
    match (&record.status, record.direction) {
        (Status::Failed { code, .. }, _) if *code < 0 => *code,
        (Status::Failed { .. }, _) => UNKNOWN_ERROR,
        (Status::Done, _) | (_, Direction::Upload) => 1,
        (Status::Pending | Status::Suspended, Direction::Download) => 0,
    }
}

/// It is a persistent transfer in BOINC's sense: not over, and begun.
fn is_under_way(record: &Record) -> bool {
    matches!(record.status, Status::Pending | Status::Suspended) && record.first_request_time.is_some()
}

/// BOINC's six fields. A time that is not known is 0 there.
fn six(record: &Record) -> Vec<Node> {
    vec![
        Node::plain("num_retries", record.num_retries),
        Node::plain("first_request_time", record.first_request_time.unwrap_or_default()),
        Node::plain("next_request_time", record.next_request_time.unwrap_or_default()),
        Node::plain("time_so_far", record.time_so_far),
        bytes("last_bytes_xferred", Some(record.confirmed)),
        Node::plain("is_upload", u8::from(record.direction == Direction::Upload)),
    ]
}

/// What BOINC has no word for; and five of its six fields where it has no element for them.
fn ours(record: &Record) -> Vec<Node> {
    let mut nodes = vec![Node::plain("id", record.id)];
    // A download is told by its URLs, where it has any.
    if record.direction == Direction::Upload || record.mirrors.is_empty() {
        nodes.push(Node::plain("direction", words::direction(record.direction)));
    }
    nodes.extend(record.path.as_deref().map(|p| Node::path("path", p)));
    nodes.extend(record.folder.as_deref().map(|p| Node::path("folder", p)));
    nodes.extend(zero(record.nbytes).then(|| Node::flag("zero_nbytes")));
    nodes.extend(zero(record.max_nbytes).then(|| Node::flag("zero_max_nbytes")));
    nodes.extend((record.status == Status::Suspended).then(|| Node::flag("suspended")));
    nodes.extend(digests(record));
    nodes.extend(record.expected.map(|n| Node::plain("expected_nbytes", n)));
    nodes.extend(record.pieces.as_deref().map(pieces));
    if !is_under_way(record) {
        nodes.extend(six_apart(record));
    }
    nodes.extend((record.progress_mark > Length::ZERO).then(|| Node::plain("progress_mark", record.progress_mark)));
    nodes.extend(positive("sessions", record.sessions));
    nodes.extend(record.mirrors.iter().enumerate().filter_map(|(i, m)| mirror(i, m)));
    nodes.extend(backoff::element(&record.backoff));
    nodes.extend((record.patience_used > Delay::ZERO).then(|| Node::plain("patience_used", record.patience_used)));
    nodes.extend(record.patience_at.map(|t| Node::plain("patience_at", t)));
    nodes.extend(dossier::encode(&record.dossier));
    nodes.extend(record.apart.then(|| Node::flag("mirrors_apart")));
    nodes.extend(record.uploads.iter().map(upload::encode));
    nodes.extend(record.history.iter().map(failure));
    nodes.extend(record.finished.as_ref().map(finished));
    nodes.extend(options::encode(&record.options));
    nodes.extend(sharing::encode(record));
    nodes
}

/// BOINC's own element holds one MD5; anything more is listed in full.
fn digests(record: &Record) -> Vec<Node> {
    match record.digests.as_slice() {
        [only] if only.algorithm == Algorithm::Md5 => Vec::new(),
        all => all.iter().map(|d| Node::plain("digest", words::digest(d))).collect(),
    }
}

fn pieces(pieces: &Pieces) -> Node {
    let nodes = vec![
        Node::plain("algorithm", pieces.algorithm()),
        Node::plain("length", pieces.length()),
        Node::plain("digests", pieces.hex()),
    ];
    Node::parent("pieces", Shape::Pieces, nodes)
}

/// Five of BOINC's six fields, where they say something.
fn six_apart(record: &Record) -> Vec<Node> {
    let mut nodes = Vec::new();
    let time = |name, time: Option<Epoch>| time.map(|t| Node::plain(name, t));
    nodes.extend(positive("num_retries", record.num_retries));
    nodes.extend(time("first_request_time", record.first_request_time));
    nodes.extend(time("next_request_time", record.next_request_time));
    nodes.extend((record.time_so_far > Delay::ZERO).then(|| Node::plain("time_so_far", record.time_so_far)));
    nodes.extend((record.confirmed > Length::ZERO).then(|| bytes("last_bytes_xferred", Some(record.confirmed))));
    nodes
}

/// What is known of a mirror beyond its URL; the position and the URL say of which.
fn mirror(position: usize, mirror: &MirrorRecord) -> Option<Node> {
    let mut nodes = Vec::new();
    if let Standing::Refused { class, why } = &mirror.standing {
        nodes.push(Node::text("refused", &format!("{}: {why}", class.word())));
    }
    nodes.extend(mirror.served.then(|| Node::flag("served")));
    nodes.extend(mirror.contributed.then(|| Node::flag("contributed")));
    nodes.extend(positive("missing_passes", mirror.missing_passes));
    nodes.extend(positive("corrupt_fetches", mirror.corrupt_fetches));
    nodes.extend(mirror.not_before.map(|t| Node::plain("not_before", t)));
    nodes.extend(mirror.tried.then(|| Node::flag("tried")));
    nodes.extend(mirror.named_with.as_ref().map(|d| Node::plain("named_with", words::digest(d))));
    if nodes.is_empty() {
        return None;
    }
    let which = [Node::plain("position", position + 1), Node::text("url", mirror.url.secret_url().as_str())];
    nodes.splice(0..0, which);
    Some(Node::parent("mirror", Shape::Mirror, nodes))
}

fn failure(past: &Past) -> Node {
    let nodes = vec![
        Node::plain("time", past.at),
        Node::text("url", &past.url),
        Node::plain("class", past.class.word()),
        Node::plain("held", past.held),
        Node::text("text", &past.text),
    ];
    Node::parent("failure", Shape::Failure, nodes)
}

fn finished(finished: &Finished) -> Node {
    let mut nodes = vec![
        Node::plain("time", finished.at),
        Node::plain("evidence", finished.evidence.word()),
        Node::plain("size", finished.size),
        Node::plain("mtime_ns", finished.mtime_ns),
        Node::plain("inode", finished.inode),
    ];
    nodes.extend(finished.server_digest.map(|a| Node::plain("server_digest", a.name())));
    if let Some(placed) = &finished.placed {
        nodes.push(Node::text("server", placed.server.secret_url().as_str()));
        nodes.extend((placed.found > Length::ZERO).then(|| Node::plain("found", placed.found)));
        nodes.extend(placed.ctime_ns.map(|n| Node::plain("ctime_ns", n)));
        nodes.extend(placed.digest.as_ref().map(|d| Node::plain("source_digest", words::digest(d))));
    }
    Node::parent("finished", Shape::Finished, nodes)
}

/// A size as BOINC writes it: a double with six decimals, 0 where it is not known.
fn bytes(name: &'static str, length: Option<Length>) -> Node {
    Node::plain(name, format_args!("{}.000000", length.unwrap_or_default()))
}

/// Known to be zero, which BOINC cannot tell from not known.
fn zero(length: Option<Length>) -> bool {
    length == Some(Length::ZERO)
}

/// A counter that is not 0.
pub(super) fn positive(name: &'static str, count: u32) -> Option<Node> {
    (count > 0).then(|| Node::plain(name, count))
}
