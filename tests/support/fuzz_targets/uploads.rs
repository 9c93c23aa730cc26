//! What servers of uploads answer, and what people write about object stores: profiles with keys, lists of signed URLs.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};

use persxfer::core::digest::Expected;
use persxfer::core::range::Length;
use persxfer::core::time::{Delay, Epoch};
use persxfer::core::upload::s3::{Account, Credentials, Given, Manifest, Place, PlaceSettings};
use persxfer::core::upload::{
    Answer, Boinc, Event, Handle, Ietf, Named, Next, Part, Plan, Protocol, Put, PutRange, Redirects, S3, Sight,
    SignedPut, Source, Stamp, Tus, UpEnd, UpXfer, UploadProtocol, UploadSession, judge,
};

use super::{assert_printable, text, url};
use crate::fuzz::{Target, kind};

/// Bytes of the file: three parts.
const SIZE: Length = Length(12 << 20);
const PART: Length = Length(5 << 20);
/// No session takes so many steps.
const FAR: usize = 2_000;

/// An answer: its status, its fields, an empty line, its body. A server gives it to everything.
pub(super) const ANSWERS: Target = Target {
    name: "upload_answers",
    grows_from: 4 << 10,
    run: answers,
    words: &[
        "200\n",
        "404\n",
        "308\n",
        "\n\n",
        "Location: /x\n",
        "Location: http://evil.example/x\n",
        "Upload-Offset: 7\n",
        "Upload-Length: 12582912\n",
        "Upload-Complete: ?1\n",
        "Upload-Limit: max-size=9\n",
        "Tus-Resumable: 1.0.0\n",
        "Tus-Extension: creation,checksum\n",
        "Content-Length: 12582912\n",
        "Content-Range: bytes 0-1/3\n",
        "ETag: \"07070707070707070707070707070707\"\n",
        "x-amz-bucket-region: eu-x-1\n",
        "Retry-After: 3\n",
        "<data_server_reply>",
        "</data_server_reply>",
        "<status>0</status>",
        "<status>-1</status>",
        "<file_size>12582912</file_size>",
        "<message>x</message>",
        "<InitiateMultipartUploadResult>",
        "</InitiateMultipartUploadResult>",
        "<UploadId>i</UploadId>",
        "<ListPartsResult>",
        "</ListPartsResult>",
        "<IsTruncated>true</IsTruncated>",
        "<NextPartNumberMarker>2</NextPartNumberMarker>",
        "<Part><PartNumber>2</PartNumber><ETag>\"t\"</ETag><Size>5242880</Size></Part>",
        "<CompleteMultipartUploadResult>",
        "</CompleteMultipartUploadResult>",
        "<Error><Code>NoSuchUpload</Code><Message>m</Message><Region>r</Region></Error>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "&amp;",
        "&#27;",
    ],
    runs: 1_500,
    frames: &[
        ("200\n\n<ListPartsResult>", "</ListPartsResult>"),
        ("200\n\n<data_server_reply>", "</data_server_reply>"),
        ("400\n\n<Error>", "</Error>"),
        ("200\n", "\n\n"),
    ],
};

fn answers(data: &[u8]) -> u32 {
    let answer = answer(data);
    let server = url("https://store.example/bucket/k");
    let mut outcome = Vec::new();
    for protocol in protocols() {
        outcome.push(session(protocol, None, &answer));
    }
    // Taken up in the middle, so that the list is asked for first.
    let stamp = Stamp { size: SIZE, mtime_ns: 1 };
    let mut saved =
        UploadSession::new(Protocol::S3, server, Source { stamp, mark: None, digest: None }, Epoch::default());
    saved.handle = Some(Handle::Id("i".to_owned()));
    saved.part_size = Some(PART);
    saved.parts = vec![Part { number: 1, size: PART, etag: "\"07070707070707070707070707070707\"".to_owned() }];
    outcome.push(session(with_keys(), Some(saved), &answer));
    kind(&outcome)
}

fn protocols() -> Vec<Box<dyn UploadProtocol>> {
    vec![
        Box::new(Boinc::new(SIZE, None)),
        Box::new(Put::default()),
        Box::new(PutRange::default()),
        Box::new(Tus::default()),
        Box::new(Ietf::default()),
        with_keys(),
        Box::new(SignedPut::new()),
    ]
}

fn with_keys() -> Box<dyn UploadProtocol> {
    Box::new(S3::signed(Credentials::new("k", "s3cret", None), None).with_part_size(PART))
}

/// One session with a server that gives one answer to everything: how it ended.
fn session(protocol: Box<dyn UploadProtocol>, saved: Option<UploadSession>, answer: &Answer) -> usize {
    let spoken = protocol.protocol();
    // Requests that are signed with keys go nowhere else.
    let bound = protocol.redirects() == Redirects::Told;
    let plan = Plan {
        protocol,
        server: url("https://store.example/bucket/k"),
        saved,
        source: Source { stamp: Stamp { size: SIZE, mtime_ns: 1 }, mark: None, digest: None },
        name: "f.bin".to_owned(),
        media_type: "application/octet-stream".to_owned(),
        token: "t".to_owned(),
        read_back: Length(0),
        stale: persxfer::core::range::Offset::ZERO,
    };
    let mut now = Epoch::from_secs(1_800_000_000);
    let mut machine = UpXfer::new(plan, now);
    let mut step = machine.start(now);
    for steps in 0..FAR {
        let event = match step.next {
            Next::Ask(ask) => {
                let home = ask.url.host() == "store.example";
                assert!(home || !bound, "{spoken:?} asks {}", ask.url);
                Event::Answer(Box::new(Answer { sent: ask.body.length(), ..answer.clone() }))
            }
            Next::Digest { algorithm, .. } => {
                Event::Digested(Expected { algorithm, bytes: vec![7; algorithm.output_len()] })
            }
            Next::Look => {
                Event::Looked(Sight { stamp: Stamp { size: SIZE, mtime_ns: 1 }, mark: None, name: Named::Open })
            }
            Next::Rest(delay) => {
                now = now + delay.max(Delay::from_secs(1));
                Event::Rested
            }
            Next::Await => Event::Stopped { sent: Length::ZERO },
            Next::End(UpEnd::Failed(failure)) => {
                assert_printable(&failure);
                let shown = failure.to_string();
                assert!(!shown.contains("s3cret"), "{shown}");
                let _ = judge(&failure);
                return 3 + steps.min(9);
            }
            Next::End(UpEnd::Stored { .. }) => return 1,
            Next::End(_) => return 2,
        };
        step = machine.handle(event, now);
    }
    panic!("{spoken:?} does not come to an end");
}

/// The answer that bytes say.
fn answer(data: &[u8]) -> Answer {
    let end = data.windows(2).position(|w| w == b"\n\n").unwrap_or(data.len());
    let (head, body) = (&data[..end], data.get(end + 2..).unwrap_or_default());
    let mut lines = head.split(|b| *b == b'\n');
    let status = lines.next().and_then(|line| text(line).trim().parse().ok()).filter(|code| (200..600).contains(code));
    let mut fields = HeaderMap::new();
    for line in lines {
        let Some(at) = line.iter().position(|b| *b == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..at]);
        let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            fields.append(name, value);
        }
    }
    let length = Length(body.len() as u64);
    Answer { status: status.unwrap_or(200), fields, body: body.to_vec(), length, ..Answer::default() }
}

/// The files of profiles, both the same.
pub(super) const PROFILES: Target = Target {
    name: "profiles",
    grows_from: 4 << 10,
    run: profiles,
    words: &[
        "[default]\n",
        "[profile lab]\n",
        "[lab]\n",
        "[services s]\n",
        "services = s\n",
        "s3 =\n",
        "  endpoint_url = http://h:9\n",
        "  addressing_style = path\n",
        "endpoint_url = http://h\n",
        "region = eu-x-1\n",
        "aws_access_key_id = k\n",
        "aws_secret_access_key = s3cret\n",
        "aws_session_token = t\n",
        "role_arn = r\n",
        "credential_process = p\n",
        " # c",
        " ; c",
        "=",
        "\t",
        "\"",
    ],
    runs: 10_000,
    frames: &[("", ""), ("[default]\n", ""), ("[lab]\n", "\n[default]\n")],
};

fn profiles(data: &[u8]) -> u32 {
    let (read, variables) = (text(data), BTreeMap::new());
    let mut outcome = Vec::new();
    for profile in [None, Some("lab"), Some("default")] {
        match Account::choose(&variables, Given { credentials: Some(&read), config: Some(&read), profile }) {
            Ok(account) => {
                let plain = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
                for keys in account.credentials.iter() {
                    let token = keys.token.as_ref().is_none_or(|token| plain(token.expose()));
                    assert!(plain(&keys.access_key) && token && !keys.secret.expose().is_empty(), "{keys:?}");
                    assert_eq!(format!("{} {:?}", keys.secret, keys.secret), "*** ***");
                }
                outcome.extend([1, usize::from(account.credentials.is_some()), usize::from(account.style.is_some())]);
                outcome.push(places(&account));
            }
            Err(bad) => {
                assert_printable(&bad);
                assert!(!bad.to_string().contains("s3cret"), "{bad}");
                outcome.push(0);
            }
        }
    }
    kind(&outcome)
}

/// Where objects would be, by what an account says: bucket and key stay what they are.
fn places(account: &Account) -> usize {
    let settings =
        PlaceSettings { region: account.region.as_deref(), style: account.style, name: "f", ..Default::default() };
    match Place::parse("s3://bucket/k/", &settings) {
        Ok(place) => {
            assert_eq!((place.bucket(), place.key()), ("bucket", "k/f"));
            let host = place.url().host();
            assert!(host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"), "{host}");
            1
        }
        Err(bad) => {
            assert_printable(&bad);
            2
        }
    }
}

/// Lists of signed URLs.
pub(super) const MANIFEST: Target = Target {
    name: "manifest",
    grows_from: 4 << 10,
    run: manifest,
    words: &[
        "{\"persxfer_upload\": 1, \"part_size\": 8, \"parts\": [\"http://h/b/k?partNumber=1&uploadId=i\"], \"complete\": \"http://h/b/k?uploadId=i\"}",
        "\"http://h/b/k?partNumber=2&X-Amz-Signature=s3cret\",",
        "\"abort\": \"http://h/b/k\",",
        "\"list\": \"http://h/b/other\",",
        "\"head\": null,",
        "\"persxfer_upload\": 2,",
        "\"part_size\": 0,",
        "\"x\": [[[[",
        "]",
        "}",
        "\\u001b",
        "https://u:s3cret@h/b/k",
    ],
    runs: 10_000,
    frames: &[
        ("", ""),
        (
            "{\"persxfer_upload\": 1, \"part_size\": 8, \"parts\": [",
            "\"http://h/b/k\"], \"complete\": \"http://h/b/k\"}",
        ),
    ],
};

fn manifest(data: &[u8]) -> u32 {
    match Manifest::parse(&text(data)) {
        Ok(manifest) => {
            let object = manifest.object();
            assert!(object.secret_url().query().is_none() && object.credentials().is_none(), "{object}");
            assert_printable(object);
            kind(&[1, object.host().len()])
        }
        Err(bad) => {
            assert_printable(&bad);
            assert!(!bad.to_string().contains("s3cret"), "{bad}");
            kind(&[0, bad.to_string().len().min(60)])
        }
    }
}
