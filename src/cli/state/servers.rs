//! What servers have of an upload, in their own words, for people and as JSON. What a server calls it is a secret: who
//! knows that can write there.

use serde::Serialize;

use crate::cli::foreign::{counted, human_size};
use crate::cli::report::clock;
use crate::core::pers_xfer::record::{Direction, Record};
use crate::core::time::{Epoch, Now};
use crate::core::upload::{Phase, UploadSession};
use crate::core::url::MirrorUrl;

/// What one server has.
#[derive(Serialize)]
pub(super) struct Server {
    url: String,
    protocol: &'static str,
    confirmed: u64,
    begun: f64,
    expires: Option<f64>,
    segment: Option<u64>,
    part_size: Option<u64>,
    parts: usize,
    finishing: bool,
}

/// Those at which something of it was begun.
pub(super) fn forms(record: &Record) -> Vec<Server> {
    record.uploads.iter().map(form).collect()
}

fn form(session: &UploadSession) -> Server {
    Server {
        url: session.server.redacted(),
        protocol: session.protocol.word(),
        confirmed: session.confirmed.0,
        begun: session.created.as_secs_f64(),
        expires: session.expires.map(Epoch::as_secs_f64),
        segment: session.pace.segment.map(|length| length.0),
        part_size: session.part_size.map(|length| length.0),
        parts: session.parts.len(),
        finishing: session.phase == Phase::Finishing,
    }
}

/// `, by tus`: how a server of an upload is spoken to.
pub(super) fn by(record: &Record, server: &MirrorUrl) -> String {
    match record.direction {
        Direction::Download => String::new(),
        Direction::Upload => format!(", by {}", record.options.upload.protocol_of(server).word()),
    }
}

/// What a server has, a line a protocol.
pub(super) fn lines(record: &Record, server: &MirrorUrl, now: Now) -> Vec<String> {
    record.uploads.iter().filter(|session| session.server == *server).map(|session| line(session, now)).collect()
}

/// The same of servers that are not asked any more: another command took them out.
pub(super) fn former(record: &Record, now: Now) -> Vec<String> {
    let listed = |session: &&UploadSession| record.mirrors.iter().any(|mirror| mirror.url == session.server);
    let told = |session: &UploadSession| {
        let (url, protocol) = (&session.server, session.protocol.word());
        format!("{url}, by {protocol}: not asked any more; {}", line(session, now))
    };
    record.uploads.iter().filter(|session| !listed(session)).map(told).collect()
}

fn line(session: &UploadSession, now: Now) -> String {
    let expires = |at: Epoch| {
        if session.is_past(now.wall) {
            format!("said to be forgotten since {}", clock(at))
        } else {
            format!("kept until {}", clock(at))
        }
    };
    let parts = || {
        let size = session.part_size.map(|size| format!(" of {}", human_size(size.0))).unwrap_or_default();
        format!("{}{size}", counted(session.parts.len(), "part"))
    };
    let told = [
        Some(format!("{} confirmed, begun {}", human_size(session.confirmed.0), clock(session.created))),
        session.expires.map(expires),
        session.pace.segment.map(|most| format!("takes at most {} at once", human_size(most.0))),
        (!session.parts.is_empty()).then(parts),
        (session.phase == Phase::Finishing).then(|| "asked to finish, its answer not known".to_owned()),
    ];
    told.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
