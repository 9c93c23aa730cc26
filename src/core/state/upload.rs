//! What is kept of an upload to one server, in the `<upload_session>` element of its transfer (facts of uploads, 8.3). One that
//! cannot be read is left out, and nothing else of the transfer with it: the server is asked anyway.

use super::decode::{count, length, text, time};
use super::encode::positive;
use super::node::Node;
use super::scalar;
use super::shape::Shape;
use super::tree::Element;
use super::words;
use crate::core::range::{Length, Offset};
use crate::core::upload::{
    Before, Handle, Lost, Mark, Pace, Part, Phase, Protocol, RangesHere, Source, Stamp, Target, UploadSession,
};
use crate::core::url::MirrorUrl;

/// The elements inside, in order.
pub(super) const ORDER: &[&str] = &[
    "protocol",
    "server",
    "session_url",
    "session_id",
    "created",
    "expires",
    "source_size",
    "source_mtime_ns",
    "source_ctime_ns",
    "source_inode",
    "source_digest",
    "confirmed",
    "reached",
    "part_size",
    "part",
    "segment_limit",
    "ceiling",
    "stalled_attempts",
    "whole_segments",
    "finishing",
    "sessions_lost",
    "lost_since",
    "resent",
    "temporary",
    "before",
    "before_size",
    "before_etag",
    "before_modified",
    "direct",
    "ranges",
    "cut_within",
    "stale",
    "found",
    "creating",
];

/// The element of a session.
pub(super) fn encode(session: &UploadSession) -> Node {
    let mut nodes = vec![
        Node::plain("protocol", session.protocol.word()),
        Node::text("server", session.server.secret_url().as_str()),
    ];
    nodes.extend(session.handle.as_ref().map(handle));
    nodes.push(Node::plain("created", session.created));
    nodes.extend(session.expires.map(|t| Node::plain("expires", t)));
    nodes.push(Node::plain("source_size", session.source.stamp.size));
    nodes.push(Node::plain("source_mtime_ns", session.source.stamp.mtime_ns));
    nodes.extend(session.source.mark.map(|mark| Node::plain("source_ctime_ns", mark.ctime_ns)));
    nodes.extend(session.source.mark.map(|mark| Node::plain("source_inode", mark.inode)));
    nodes.extend(session.source.digest.as_ref().map(|d| Node::plain("source_digest", words::digest(d))));
    nodes.push(Node::plain("confirmed", session.confirmed));
    nodes.extend(beyond_zero("reached", session.reached));
    nodes.extend(session.part_size.map(|n| Node::plain("part_size", n)));
    nodes.extend(session.parts.iter().map(part));
    nodes.extend(pace(&session.pace));
    nodes.extend((session.phase == Phase::Finishing).then(|| Node::flag("finishing")));
    nodes.extend(positive("sessions_lost", session.lost.times));
    nodes.extend((session.lost.times > 0).then(|| Node::plain("lost_since", session.lost.since)));
    nodes.extend(session.resent.then(|| Node::flag("resent")));
    nodes.extend(target(&session.target));
    nodes.extend(beyond_zero("stale", session.stale));
    nodes.extend(beyond_zero("found", session.found));
    nodes.extend(session.creating.map(|t| Node::plain("creating", t)));
    Node::parent("upload_session", Shape::Upload, nodes)
}

fn handle(handle: &Handle) -> Node {
    match handle {
        Handle::Url(url) => Node::text("session_url", url.secret_url().as_str()),
        Handle::Id(id) => Node::text("session_id", id),
    }
}

fn part(part: &Part) -> Node {
    let nodes =
        vec![Node::plain("number", part.number), Node::plain("size", part.size), Node::text("etag", &part.etag)];
    Node::parent("part", Shape::UploadPart, nodes)
}

fn pace(pace: &Pace) -> Vec<Node> {
    let mut nodes = Vec::new();
    nodes.extend(pace.segment.map(|n| Node::plain("segment_limit", n)));
    nodes.extend(pace.ceiling.map(|n| Node::plain("ceiling", n)));
    nodes.extend(positive("stalled_attempts", pace.stalled));
    nodes.extend(positive("whole_segments", pace.wins));
    nodes
}

fn target(target: &Target) -> Vec<Node> {
    let mut nodes = Vec::new();
    nodes.extend(target.temporary.as_ref().map(|url| Node::text("temporary", url.secret_url().as_str())));
    match &target.before {
        None => {}
        Some(Before::Nothing) => nodes.push(Node::plain("before", "nothing")),
        Some(Before::Untold) => nodes.push(Node::plain("before", "untold")),
        Some(Before::File { size, etag, modified }) => {
            nodes.push(Node::plain("before", "file"));
            nodes.extend(size.map(|n| Node::plain("before_size", n)));
            nodes.extend(etag.as_ref().map(|tag| Node::text("before_etag", &words::etag(tag))));
            nodes.extend(modified.map(|t| Node::plain("before_modified", t)));
        }
    }
    nodes.extend(target.direct.then(|| Node::flag("direct")));
    nodes.extend(match target.ranges {
        RangesHere::Unknown => None,
        RangesHere::Proven => Some(Node::plain("ranges", "work")),
        RangesHere::Broken => Some(Node::plain("ranges", "broken")),
    });
    nodes.extend(target.cut_within.then(|| Node::flag("cut_within")));
    nodes
}

fn beyond_zero(name: &'static str, offset: Offset) -> Option<Node> {
    (offset > Offset::ZERO).then(|| Node::plain(name, offset))
}

/// The session of an element.
pub(super) fn decode(element: &Element<'_>) -> Option<UploadSession> {
    let protocol = Protocol::from_word(&text(element, "protocol")?)?;
    let server = MirrorUrl::parse(&text(element, "server")?).ok()?;
    let (handle, source) = (read_handle(element)?, read_source(element)?);
    let of = |name: &str| offset(element, name).unwrap_or(Offset::ZERO);
    let created = time(Some(element), "created")?;
    Some(UploadSession {
        handle,
        expires: time(Some(element), "expires"),
        // What was sent is no less than what was confirmed.
        confirmed: of("confirmed"),
        reached: of("reached").max(of("confirmed")),
        part_size: length(Some(element), "part_size").filter(|n| *n > Length::ZERO),
        parts: element.all("part").map(read_part).collect::<Option<_>>()?,
        pace: read_pace(element),
        phase: if flag(element, "finishing") { Phase::Finishing } else { Phase::Sending },
        lost: Lost {
            times: count(Some(element), "sessions_lost"),
            since: time(Some(element), "lost_since").unwrap_or_default(),
        },
        resent: flag(element, "resent"),
        target: read_target(element)?,
        stale: of("stale"),
        found: of("found"),
        creating: time(Some(element), "creating"),
        ..UploadSession::new(protocol, server, source, created)
    })
}

/// None at all is no damage; one that cannot be read is.
fn read_handle(element: &Element<'_>) -> Option<Option<Handle>> {
    match (text(element, "session_url"), text(element, "session_id")) {
        (Some(url), _) => Some(Some(Handle::Url(MirrorUrl::parse(&url).ok()?))),
        (None, Some(id)) => Some(Some(Handle::Id(id))),
        (None, None) => Some(None),
    }
}

fn read_source(element: &Element<'_>) -> Option<Source> {
    let stamp = Stamp {
        size: length(Some(element), "source_size")?,
        mtime_ns: text(element, "source_mtime_ns")?.trim().parse().ok()?,
    };
    let digest = match text(element, "source_digest") {
        Some(text) => Some(words::read_digest(&text)?),
        None => None,
    };
    // Half of it is as good as nothing: then times and digest decide.
    let number = |name: &str| text(element, name).and_then(|t| t.trim().parse().ok());
    let mark = number("source_ctime_ns").zip(text(element, "source_inode").and_then(|t| t.trim().parse().ok()));
    let mark = mark.map(|(ctime_ns, inode)| Mark { ctime_ns, inode });
    Some(Source { stamp, mark, digest })
}

fn read_part(element: &Element<'_>) -> Option<Part> {
    let number = count(Some(element), "number");
    let (size, etag) = (length(Some(element), "size")?, text(element, "etag")?);
    (number > 0).then_some(Part { number, size, etag })
}

fn read_pace(element: &Element<'_>) -> Pace {
    let positive = |name: &str| length(Some(element), name).filter(|n| *n > Length::ZERO);
    Pace {
        segment: positive("segment_limit"),
        ceiling: positive("ceiling"),
        stalled: count(Some(element), "stalled_attempts"),
        wins: count(Some(element), "whole_segments"),
    }
}

fn read_target(element: &Element<'_>) -> Option<Target> {
    let temporary = match text(element, "temporary") {
        Some(url) => Some(MirrorUrl::parse(&url).ok()?),
        None => None,
    };
    Some(Target {
        temporary,
        before: text(element, "before").map(|word| read_before(element, &word)),
        direct: flag(element, "direct"),
        ranges: match text(element, "ranges").as_deref() {
            Some("work") => RangesHere::Proven,
            Some("broken") => RangesHere::Broken,
            _ => RangesHere::Unknown,
        },
        cut_within: flag(element, "cut_within"),
    })
}

fn read_before(element: &Element<'_>, word: &str) -> Before {
    match word {
        "nothing" => Before::Nothing,
        "file" => Before::File {
            size: length(Some(element), "before_size"),
            etag: text(element, "before_etag").map(|t| words::read_etag(&t)),
            modified: time(Some(element), "before_modified"),
        },
        _ => Before::Untold,
    }
}

fn offset(element: &Element<'_>, name: &str) -> Option<Offset> {
    length(Some(element), name).map(Length::as_end)
}

fn flag(element: &Element<'_>, name: &str) -> bool {
    scalar::flag(element.child(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::core::digest::Expected;
    use crate::core::pers_xfer::options::Options;
    use crate::core::pers_xfer::record::{Record, XferId};
    use crate::core::state::Document;
    use crate::core::time::Epoch;
    use crate::core::upload::{Authority, Interop, ReadBack, Surplus, UploadOptions};
    use crate::core::validator::ETag;

    fn url(text: &str) -> MirrorUrl {
        MirrorUrl::parse(text).expect("a URL")
    }

    fn record() -> Record {
        Record::upload(XferId(5), "r_1".into(), "/srv/r_1".into(), &[url("https://u:p@h.example/dav/r_1")])
    }

    fn full() -> UploadSession {
        let stamp = Stamp { size: Length(70_000_000_000), mtime_ns: 1_767_225_600_123_456_789 };
        let digest = Expected::from_hex(crate::core::digest::Algorithm::Sha256, &"0a".repeat(32)).ok();
        UploadSession {
            handle: Some(Handle::Url(url("https://h.example/files/secret?x=1&y=2"))),
            expires: Some(Epoch::from_secs(1_767_300_000)),
            confirmed: Offset(6_000_000_000),
            reached: Offset(7_000_000_000),
            part_size: Some(Length(8 << 20)),
            parts: vec![Part { number: 1, size: Length(8 << 20), etag: "\"<&>\"".into() }],
            pace: Pace { segment: Some(Length(65_536)), ceiling: Some(Length(1 << 20)), stalled: 3, wins: 2 },
            phase: Phase::Finishing,
            lost: Lost { times: 2, since: Epoch::from_secs(1_767_225_000) },
            resent: true,
            target: Target {
                temporary: Some(url("https://h.example/dav/r_1.part-x")),
                before: Some(Before::File {
                    size: Some(Length::ZERO),
                    etag: Some(ETag { weak: true, opaque: "\"v1\"".into() }),
                    modified: Some(Epoch::from_secs(1_700_000_000)),
                }),
                direct: true,
                ranges: RangesHere::Proven,
                cut_within: true,
            },
            stale: Offset(17),
            found: Offset(5),
            creating: Some(Epoch::from_secs(1_767_225_601)),
            ..UploadSession::new(
                Protocol::Tus,
                url("https://h.example/files"),
                Source { stamp, mark: Some(Mark { ctime_ns: 1_767_225_600_999_999_999, inode: u64::MAX }), digest },
                Epoch::from_secs(1_767_225_600),
            )
        }
    }

    fn through_the_file(record: &Record) -> Record {
        let mut document = Document::fresh();
        document.put(record);
        let bytes = document.to_bytes();
        Document::parse(&bytes).expect("sound").get(record.id).expect("there")
    }

    #[test]
    fn sessions_come_back_as_they_were() {
        let least = UploadSession {
            confirmed: Offset::ZERO,
            ..UploadSession::new(
                Protocol::Boinc,
                url("http://h.example/cgi/file_upload_handler"),
                Source { stamp: Stamp { size: Length::ZERO, mtime_ns: -1 }, mark: None, digest: None },
                Epoch::from_secs(1),
            )
        };
        for before in [Before::Nothing, Before::Untold] {
            let target = Target { before: Some(before), ranges: RangesHere::Broken, ..Target::default() };
            let by_id = UploadSession { handle: Some(Handle::Id("id & <so>".into())), target, ..full() };
            let record = Record {
                uploads: vec![full(), least.clone(), by_id],
                xml_signature: Some("\n0123\nabcd.\n".into()),
                ..record()
            };
            let back = through_the_file(&record);
            assert_eq!(back.uploads, record.uploads);
            assert_eq!(back, record);
        }
    }

    #[test]
    fn one_that_is_damaged_is_left_out_alone() {
        let record = Record { uploads: vec![full(), UploadSession { protocol: Protocol::Put, ..full() }], ..record() };
        let mut document = Document::fresh();
        document.put(&record);
        let text = String::from_utf8(document.to_bytes()).expect("UTF-8");
        let damaged = text.replacen("<protocol>tus</protocol>", "<protocol>of tomorrow</protocol>", 1);
        let back = Document::parse(damaged.as_bytes()).expect("sound").get(record.id).expect("there");
        assert_eq!(back.uploads, record.uploads[1..]);
    }

    #[test]
    fn what_the_command_said_of_an_upload_comes_back() {
        let upload = UploadOptions {
            protocols: vec![(url("https://u:p@h.example/files?k=a b"), Protocol::Tus)],
            name: Some("<name>".into()),
            media_type: Some("text/plain".into()),
            read_back: ReadBack::Always,
            surplus: Surplus::Done,
            authority: Authority::Ours,
            interop: Interop::Six,
            profile: Some("lab".into()),
            region: Some("eu-1".into()),
            manifest: Some("/srv/urls.json".into()),
        };
        let options = Arc::new(Options { upload, ..Options::default() });
        let record = Record { options, ..record() };
        assert_eq!(through_the_file(&record), record);
    }

    #[test]
    fn what_is_held_is_what_a_server_confirmed() {
        let other = UploadSession { protocol: Protocol::Put, confirmed: Offset(9), ..full() };
        let record = Record { uploads: vec![other, full()], ..record() };
        assert_eq!(record.held(), Length(6_000_000_000));
    }
}
