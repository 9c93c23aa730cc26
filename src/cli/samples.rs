//! What the tests of the face are made of: reports, notices and records of one invented download.

use std::sync::Arc;

use crate::core::digest::Algorithm;
use crate::core::failure::LocalFault;
use crate::core::file_xfer::dossier::Dossier;
use crate::core::pers_xfer::record::{
    Direction, Evidence, Finished, MirrorRecord, Past, Placed, Record, Standing, Status, XferId,
};
use crate::core::range::{Length, Offset};
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::upload::{Handle, Protocol, Source, Stamp, UploadOptions, UploadSession};
use crate::core::url::MirrorUrl;
use crate::core::verdict::Class;
use crate::engine::{Ending, Notice, Options, Report};

pub(crate) const START: i64 = 1_767_225_600;

pub(crate) fn at(seconds: i64) -> Now {
    let passed = Delay::from_secs(seconds.unsigned_abs());
    Now { wall: Epoch::from_secs(START + seconds), mono: Mono::ZERO + Delay::from_secs(1_000) + passed }
}

pub(crate) fn id(n: u64) -> XferId {
    XferId(n)
}

pub(crate) fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).expect("a URL")
}

pub(crate) fn complete() -> Ending {
    Ending::Complete { evidence: Evidence::Digest }
}

pub(crate) fn failed() -> Ending {
    Ending::Failed { class: Class::Missing, message: "the server answered 404 Not Found (http://host/f)".into() }
}

pub(crate) fn stopped() -> Ending {
    Ending::Stopped { next: Some(at(72).wall), why: "the server answered 503 Service Unavailable".into() }
}

pub(crate) fn local() -> Ending {
    Ending::Local(LocalFault::DiskFull { path: "/data/out.bin".into(), detail: "2.0 MiB more are needed".into() })
}

pub(crate) fn report(ending: Ending) -> Report {
    Report {
        id: id(1),
        direction: Direction::Download,
        name: "out.bin".into(),
        url: url("http://user:s3cret@a.example:8080/f1.bin?token=s3cret"),
        path: Some("/data/out.bin".into()),
        total: Some(Length(3 << 20)),
        held: Length(1 << 20),
        received: Length(1 << 19),
        server_digest: None,
        placed: None,
        finished: None,
        wanted: None,
        ending,
    }
}

/// The same of an upload, vouched for by the server's own digest.
pub(crate) fn upload_report(ending: Ending) -> Report {
    let finished = matches!(ending, Ending::Complete { .. } | Ending::Unchanged { .. }).then(|| at(-86_400).wall);
    let server = url("https://me:s3cret@b.example/in/out.bin?sig=s3cret");
    let placed = finished.map(|_| Box::new(Placed { server, found: Length::ZERO, ctime_ns: None, digest: None }));
    let (direction, server_digest) = (Direction::Upload, Some(Algorithm::Sha256));
    Report { direction, server_digest, placed, finished, ..report(ending) }
}

pub(crate) fn accepted(n: u64) -> Notice {
    let path = Some(format!("/data/f{n}.bin").into());
    let (direction, held, total) = (Direction::Download, Length(1 << 20), Some(Length(3 << 20)));
    Notice::Accepted { id: id(n), direction, name: format!("f{n}.bin"), path, held, total }
}

/// A transfer that is taken up again and runs.
pub(crate) fn story() -> Vec<Notice> {
    let url = url("http://user:s3cret@a.example:8080/f1.bin?token=s3cret");
    vec![accepted(1), Notice::Session { id: id(1), number: 2, url, mirror: (1, 2), held: Length(1 << 20) }]
}

/// The same of an upload.
pub(crate) fn upload_story() -> Vec<Notice> {
    let mut story = story();
    if let Some(Notice::Accepted { direction, .. }) = story.first_mut() {
        *direction = Direction::Upload;
    }
    story
}

pub(crate) fn record(n: u64, name: &str, status: Status) -> Record {
    let usable = |text: &str| MirrorRecord {
        url: url(text),
        standing: Standing::Usable,
        served: true,
        missing_passes: 0,
        contributed: true,
        corrupt_fetches: 0,
        not_before: None,
        tried: false,
        named_with: None,
    };
    let refused = Standing::Refused { class: Class::Missing, why: "the server answered 404 Not Found".into() };
    let first = usable(&format!("http://user:s3cret@a.example/{name}?token=s3cret"));
    let second = MirrorRecord { standing: refused, served: false, ..usable(&format!("http://b.example/{name}")) };
    let past = Past {
        at: at(-60).wall,
        url: first.url.redacted(),
        class: Class::Throttled,
        text: "the server answered 503 Service Unavailable".into(),
        held: Length(1 << 20),
    };
    Record {
        id: id(n),
        name: name.into(),
        direction: Direction::Download,
        path: Some(format!("/data/{name}").into()),
        folder: None,
        mirrors: vec![first, second],
        nbytes: Some(Length(3 << 20)),
        max_nbytes: None,
        digests: vec![],
        expected: None,
        pieces: None,
        num_retries: 2,
        sessions: 5,
        first_request_time: Some(at(-3_600).wall),
        next_request_time: (status == Status::Pending).then(|| at(72).wall),
        time_so_far: Delay::from_secs(41),
        progress_mark: Length::ZERO,
        confirmed: Length(1 << 20),
        backoff: Default::default(),
        patience_used: Delay::from_secs(600),
        patience_at: Some(at(-60).wall),
        apart: false,
        uploads: vec![],
        xml_signature: None,
        dossier: Dossier::default(),
        history: vec![past],
        finished: (status == Status::Done).then(|| Finished {
            at: at(-30).wall,
            evidence: Evidence::Validator,
            size: Length(3 << 20),
            mtime_ns: 0,
            inode: 7,
            server_digest: None,
            placed: None,
        }),
        status,
        options: Default::default(),
        owner: None,
        wishes: vec![],
    }
}

/// An upload of `/data/NAME` to two servers, of which the first has 1 MiB by tus.
pub(crate) fn upload_record(n: u64, name: &str, status: Status) -> Record {
    let mut record = Record { direction: Direction::Upload, ..record(n, name, status) };
    let server = record.mirrors[0].url.clone();
    let stamp = Stamp { size: Length(3 << 20), mtime_ns: 7 };
    let mut session =
        UploadSession::new(Protocol::Tus, server.clone(), Source { stamp, mark: None, digest: None }, at(-3_600).wall);
    session.handle = Some(Handle::Url(url("http://a.example/files/s3cret-handle")));
    session.confirmed = Offset(1 << 20);
    session.expires = Some(at(3_600).wall);
    session.pace.segment = Some(Length(8 << 20));
    record.uploads = vec![session];
    let upload = UploadOptions { protocols: vec![(server, Protocol::Tus)], ..UploadOptions::default() };
    record.options = Arc::new(Options { upload, ..Options::default() });
    // What is recorded of it as a download would be says nothing.
    record.confirmed = Length(9);
    record
}
