//! From a `<file_info>` or `<file>` element to its record, with BOINC's leniencies: what is absent or malformed has its
//! default.

use std::sync::Arc;

use super::scalar;
use super::shape::url_direction;
use super::tree::Element;
use super::{OURS, backoff, dossier, options, sharing, upload, words};
use crate::core::backoff::Backoff;
use crate::core::digest::{Algorithm, Expected, Pieces};
use crate::core::hosts::HostKey;
use crate::core::pers_xfer::record::{
    Direction, Evidence, Finished, MirrorRecord, Past, Placed, Record, Standing, Status, XferId,
};
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};
use crate::core::url::MirrorUrl;
use crate::core::verdict::Class;

/// The record of an element, under this identity.
pub(super) fn record(element: &Element<'_>, id: XferId) -> Record {
    let ours = element.child(OURS);
    // BOINC's element for a running transfer, or else our own for what it would have held.
    let six = element.child("persistent_file_xfer").or(ours);
    let direction = direction(element);
    let mut mirrors = mirrors(element, direction);
    ours.into_iter().for_each(|ours| assign_standings(&mut mirrors, ours));
    Record {
        id,
        name: text(element, "name").unwrap_or_default(),
        direction,
        path: ours.and_then(|o| o.child("path")).map(scalar::path),
        folder: ours.and_then(|o| o.child("folder")).map(scalar::path),
        mirrors,
        nbytes: size(element, "nbytes", "zero_nbytes"),
        max_nbytes: size(element, "max_nbytes", "zero_max_nbytes"),
        digests: digests(element),
        expected: length(ours, "expected_nbytes"),
        pieces: ours.and_then(|o| o.child("pieces")).and_then(pieces).map(Arc::new),
        status: status(element, direction),
        num_retries: count(six, "num_retries"),
        sessions: count(ours, "sessions"),
        first_request_time: boinc_time(six, "first_request_time"),
        next_request_time: boinc_time(six, "next_request_time"),
        time_so_far: span(six, "time_so_far"),
        confirmed: length(six, "last_bytes_xferred").unwrap_or_default(),
        progress_mark: length(ours, "progress_mark").unwrap_or_default(),
        backoff: ours.and_then(|o| o.child("backoff")).map_or_else(Backoff::default, backoff::decode),
        patience_used: span(ours, "patience_used"),
        patience_at: time(ours, "patience_at"),
        apart: ours.is_some_and(|o| scalar::flag(o.child("mirrors_apart"))),
        dossier: ours.and_then(|o| o.child("dossier")).map(dossier::decode).unwrap_or_default(),
        uploads: ours.into_iter().flat_map(|o| o.all("upload_session")).filter_map(upload::decode).collect(),
        xml_signature: text(element, "xml_signature").filter(|_| direction == Direction::Upload),
        history: ours.into_iter().flat_map(|o| o.all("failure")).map(past).collect(),
        finished: ours.and_then(|o| o.child("finished")).map(finished),
        options: ours.and_then(|o| o.child("options")).map(|o| Arc::new(options::decode(o))).unwrap_or_default(),
        owner: sharing::owner(ours),
        wishes: sharing::wishes(ours),
    }
}

/// Our word for it; else BOINC's; else what URLs there are.
fn direction(element: &Element<'_>) -> Direction {
    let said = element.child(OURS).and_then(|o| text(o, "direction")).and_then(|w| words::read_direction(&w));
    let boinc = element.child("persistent_file_xfer").and_then(|p| p.child("is_upload")).map(|e| scalar::flag(Some(e)));
    match (said, boinc) {
        (Some(direction), _) => direction,
        (None, Some(true)) => Direction::Upload,
        (None, Some(false)) => Direction::Download,
        (None, None) => {
            let has = |wanted| element.elements().any(|e| url_direction(e) == Some(wanted));
            if has(Direction::Upload) && !has(Direction::Download) { Direction::Upload } else { Direction::Download }
        }
    }
}

fn mirrors(element: &Element<'_>, direction: Direction) -> Vec<MirrorRecord> {
    let urls = element.elements().filter(|e| url_direction(e) == Some(direction));
    urls.filter_map(|e| MirrorUrl::parse(&e.text()).ok()).map(MirrorRecord::new).collect()
}

/// The hosts of a transfer's mirrors, and which way its bytes go.
pub(super) fn hosts(element: &Element<'_>) -> Vec<HostKey> {
    let way = direction(element);
    let urls = element.elements().filter(|e| url_direction(e) == Some(way));
    let keys = urls.filter_map(|e| MirrorUrl::parse(&e.text()).ok());
    keys.map(|url| HostKey { origin: url.origin(), direction: way }).collect()
}

/// Gives each `<mirror>` of ours to the URL at its position, or, where the list was changed by hand, to the first equal one.
fn assign_standings(mirrors: &mut [MirrorRecord], ours: &Element<'_>) {
    for element in ours.all("mirror") {
        let url = text(element, "url").unwrap_or_default();
        let is_it = |m: &MirrorRecord| m.url.secret_url().as_str() == url;
        let position = (count(Some(element), "position") as usize).wrapping_sub(1);
        let named = mirrors.get(position).is_some_and(is_it).then_some(position);
        let Some(i) = named.or_else(|| mirrors.iter().position(is_it)) else { continue };
        let mirror = &mut mirrors[i];
        mirror.standing = text(element, "refused").map_or(Standing::Usable, |t| refused(&t));
        mirror.served = scalar::flag(element.child("served"));
        mirror.contributed = scalar::flag(element.child("contributed"));
        mirror.missing_passes = count(Some(element), "missing_passes");
        mirror.corrupt_fetches = count(Some(element), "corrupt_fetches");
        mirror.not_before = time(Some(element), "not_before");
        mirror.tried = scalar::flag(element.child("tried"));
        mirror.named_with = text(element, "named_with").map(|t| named_with(&t));
    }
}

/// The digest with which a server named a mirror. One that cannot be read is one that no file has: the mirror stays a
/// server's, and is of no use.
fn named_with(text: &str) -> Expected {
    words::read_digest(text).unwrap_or_else(|| Expected { algorithm: Algorithm::Sha256, bytes: Vec::new() })
}

/// `class: why`
fn refused(text: &str) -> Standing {
    let (word, why) = text.split_once(": ").unwrap_or((text.trim_end_matches(':'), ""));
    Standing::Refused { class: class(word), why: why.to_owned() }
}

/// A class that a later version added is, for us, the one that asks for a person's attention.
fn class(word: &str) -> Class {
    Class::from_word(word).unwrap_or(Class::Unsupported)
}

/// A size; BOINC's 0 is "not known", unless we said otherwise.
fn size(element: &Element<'_>, name: &str, zero_flag: &str) -> Option<Length> {
    let told = length(Some(element), name).filter(|n| *n > Length::ZERO);
    let zero = element.child(OURS).is_some_and(|o| scalar::flag(o.child(zero_flag)));
    told.or(zero.then_some(Length::ZERO))
}

/// Our own list where there is one, and BOINC's MD5.
fn digests(element: &Element<'_>) -> Vec<Expected> {
    let ours = element.child(OURS).into_iter().flat_map(|o| o.all("digest"));
    let mut digests: Vec<Expected> = ours.filter_map(|e| words::read_digest(&e.text())).collect();
    let md5 = text(element, "md5_cksum").and_then(|t| Expected::from_hex(Algorithm::Md5, &t).ok());
    digests.extend(md5.filter(|_| !digests.iter().any(|d| d.algorithm == Algorithm::Md5)));
    digests
}

/// Digests of pieces; none where any of it is damaged, for the digest of the whole has the last word anyway.
fn pieces(element: &Element<'_>) -> Option<Pieces> {
    let algorithm = Algorithm::from_name(&text(element, "algorithm")?)?;
    let bytes = hex::decode(element.child("digests")?.text().as_bytes()).ok()?;
    Pieces::new(algorithm, length(Some(element), "length")?, bytes).ok()
}

fn status(element: &Element<'_>, direction: Direction) -> Status {
    let code = element.child("status").and_then(|e| scalar::integer(&e.text())).unwrap_or(0);
    if code < 0 {
        let code = i32::try_from(code).unwrap_or(i32::MIN);
        return Status::Failed { code, message: text(element, "error_msg").unwrap_or_default() };
    }
    let done = match direction {
        Direction::Download => code == 1,
        Direction::Upload => scalar::flag(element.child("uploaded")),
    };
    if done {
        return Status::Done;
    }
    let suspended = element.child(OURS).is_some_and(|o| scalar::flag(o.child("suspended")));
    if suspended { Status::Suspended } else { Status::Pending }
}

fn past(element: &Element<'_>) -> Past {
    Past {
        at: time(Some(element), "time").unwrap_or_default(),
        url: text(element, "url").unwrap_or_default(),
        class: class(&text(element, "class").unwrap_or_default()),
        text: text(element, "text").unwrap_or_default(),
        held: length(Some(element), "held").unwrap_or_default(),
    }
}

fn finished(element: &Element<'_>) -> Finished {
    let number = |name: &str| element.child(name).map(|e| e.text());
    Finished {
        at: time(Some(element), "time").unwrap_or_default(),
        evidence: text(element, "evidence").and_then(|w| Evidence::from_word(&w)).unwrap_or(Evidence::None),
        size: length(Some(element), "size").unwrap_or_default(),
        mtime_ns: number("mtime_ns").and_then(|t| t.parse().ok()).unwrap_or(0),
        inode: number("inode").and_then(|t| t.parse().ok()).unwrap_or(0),
        server_digest: text(element, "server_digest").and_then(|name| Algorithm::from_name(&name)),
        placed: placed(element),
    }
}

fn placed(element: &Element<'_>) -> Option<Placed> {
    let server = MirrorUrl::parse(&text(element, "server")?).ok()?;
    Some(Placed {
        server,
        found: length(Some(element), "found").unwrap_or_default(),
        ctime_ns: text(element, "ctime_ns").and_then(|t| t.trim().parse().ok()),
        digest: text(element, "source_digest").and_then(|t| words::read_digest(&t)),
    })
}

/// The text of a child.
pub(super) fn text(element: &Element<'_>, name: &str) -> Option<String> {
    element.child(name).map(scalar::text)
}

/// The time in a child.
pub(super) fn time(element: Option<&Element<'_>>, name: &str) -> Option<Epoch> {
    element?.child(name).and_then(|e| scalar::time(&e.text()))
}

/// A time in BOINC's sense, where 0 is none.
fn boinc_time(element: Option<&Element<'_>>, name: &str) -> Option<Epoch> {
    time(element, name).filter(|t| *t != Epoch::ZERO)
}

/// The number of bytes in a child.
pub(super) fn length(element: Option<&Element<'_>>, name: &str) -> Option<Length> {
    element?.child(name).and_then(|e| scalar::length(&e.text()))
}

/// The counter in a child; 0 where there is none.
pub(super) fn count(element: Option<&Element<'_>>, name: &str) -> u32 {
    element.and_then(|e| e.child(name)).and_then(|e| scalar::count(&e.text())).unwrap_or(0)
}

/// The span in a child; none where there is none.
pub(super) fn span(element: Option<&Element<'_>>, name: &str) -> Delay {
    element.and_then(|e| e.child(name)).and_then(|e| scalar::span(&e.text())).unwrap_or_default()
}
