//! An S3 store in memory that checks signatures and digests, keeps nothing of a body that broke off, and misbehaves as
//! told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest as _;

use super::super::s3::{Credentials, moment_of, verify_signature};
use super::super::{Answer, Method};
use super::sim::{Request, Server, answer, digest_of, path};
use crate::core::digest::Algorithm;
use crate::core::time::{Delay, Epoch};
use crate::core::validator::http_date;

pub(super) const KEY: &str = "AKTEST";
pub(super) const SECRET: &str = "s3cr3t/of+test";

/// Beyond this, a request is too old or too new.
const TOLERANCE: Delay = Delay::from_mins(15);

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    Head,
    Create,
    Part,
    Put,
    List,
    Complete,
    Abort,
    Uploads,
    /// The object.
    Read,
}

/// What comes in place of an answer.
#[derive(Clone, Debug)]
pub(super) enum Instead {
    /// This error, and nothing is done.
    Error(u16, &'static str),
    /// It is done, and the answer is lost.
    Swallow,
    /// It is done, and this error is said.
    DoneBut(u16, &'static str),
    /// This answer, and nothing is done.
    Say(Answer),
}

/// How the store makes its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tags {
    Md5,
    /// Words of its own.
    Opaque,
    /// What looks like MD5s and is none, and it says so.
    Kms,
    /// As MD5s, and none in lists.
    Unlisted,
}

#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) bytes: Vec<u8>,
    pub(super) tag: String,
}

#[derive(Clone, Debug)]
pub(super) struct S3Server {
    pub(super) keys: Credentials,
    /// The region of the bucket.
    pub(super) region: &'static str,
    /// Requests come by signed URLs: what they carry is not looked at.
    pub(super) by_url: bool,
    /// The host that the bucket answers under; others send there.
    pub(super) host: Option<&'static str>,
    /// Its clock, ahead of the client's.
    pub(super) ahead: Delay,
    pub(super) tags: Tags,
    /// Parts a page of a list.
    pub(super) page: usize,
    pub(super) least_part: usize,
    pub(super) instead: VecDeque<(Is, Instead)>,
    /// A byte of the next bodies is changed behind the checks.
    pub(super) spoil: u32,
    pub(super) uploads: BTreeMap<String, BTreeMap<u32, Stored>>,
    pub(super) begun: u32,
    /// When which was begun.
    pub(super) times: BTreeMap<String, Epoch>,
    pub(super) object: Option<Stored>,
    pub(super) seen: Vec<Is>,
    /// What was in the field x-amz-date, and what was said of bodies.
    pub(super) dates: Vec<String>,
    pub(super) payloads: Vec<String>,
    /// The paths that were asked for.
    pub(super) paths: BTreeSet<String>,
}

fn error(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>in a test</Message></Error>");
    answer(status, &[], body.as_bytes())
}

pub(super) fn md5_hex(bytes: &[u8]) -> String {
    digest_of(Algorithm::Md5, bytes).hex()
}

impl S3Server {
    pub(super) fn new() -> Self {
        Self {
            keys: Credentials::new(KEY, SECRET, None),
            region: "us-east-1",
            by_url: false,
            host: None,
            ahead: Delay::ZERO,
            tags: Tags::Md5,
            page: 1000,
            least_part: 5 << 20,
            instead: VecDeque::new(),
            spoil: 0,
            uploads: BTreeMap::new(),
            begun: 0,
            times: BTreeMap::new(),
            object: None,
            seen: Vec::new(),
            dates: Vec::new(),
            payloads: Vec::new(),
            paths: BTreeSet::new(),
        }
    }

    /// The only upload that is open.
    pub(super) fn open(&mut self) -> &mut BTreeMap<u32, Stored> {
        assert_eq!(self.uploads.len(), 1, "one upload is open");
        self.uploads.values_mut().next().expect("one")
    }

    pub(super) fn count(&self, is: Is) -> usize {
        self.seen.iter().filter(|one| **one == is).count()
    }

    fn tag_of(&self, bytes: &[u8]) -> String {
        match self.tags {
            Tags::Md5 | Tags::Unlisted => format!("\"{}\"", md5_hex(bytes)),
            Tags::Opaque => format!("\"opaque-{}\"", bytes.len()),
            Tags::Kms => format!("\"{}\"", md5_hex(&[bytes, b"key"].concat())),
        }
    }

    fn with_fields(&self, mut fields: Vec<(&str, String)>, body: &str, status: u16) -> Answer {
        if self.tags == Tags::Kms {
            fields.push(("x-amz-server-side-encryption", "aws:kms".to_owned()));
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        answer(status, &fields, body.as_bytes())
    }

    /// Who asks, when, where?
    fn refuses(&mut self, request: &Request) -> Option<Answer> {
        if self.by_url {
            return None;
        }
        let ask = &request.ask;
        let here = request.now + self.ahead;
        let date = ask.field("x-amz-date").unwrap_or_default().to_owned();
        let proof = ask.field("authorization").unwrap_or_default().to_owned();
        if !proof.contains(&format!("/{}/s3/", self.region)) {
            let fields = [("x-amz-bucket-region", self.region)];
            let text =
                format!("<Error><Code>AuthorizationHeaderMalformed</Code><Region>{}</Region></Error>", self.region);
            return Some(answer(400, if self.host.is_some() { &fields } else { &[] }, text.as_bytes()));
        }
        if self.host.is_some_and(|host| host != ask.url.host()) {
            let location = format!("{}://{}{}", scheme(ask), self.host.unwrap_or_default(), rest_of(ask));
            let mut told = error(307, "TemporaryRedirect");
            told.fields = super::sim::header_map(&[("location", &location)]);
            return Some(told);
        }
        if !verify_signature(ask, &self.keys, self.region) {
            return Some(error(403, "SignatureDoesNotMatch"));
        }
        let at = moment_of(&date).expect("a date");
        if here.since(at) > TOLERANCE || at.since(here) > TOLERANCE {
            let mut told = error(403, "RequestTimeTooSkewed");
            told.fields = super::sim::header_map(&[("date", &http_date(here).expect("a date"))]);
            return Some(told);
        }
        self.dates.push(date);
        None
    }

    /// Is the body not what was signed and summed?
    fn doubts(&mut self, request: &Request) -> Option<Answer> {
        let payload = request.ask.field("x-amz-content-sha256").unwrap_or("UNSIGNED-PAYLOAD").to_owned();
        if payload == "UNSIGNED-PAYLOAD" {
            assert!(self.by_url || request.ask.url.is_https(), "bodies are signed where nothing else protects them");
        } else if payload != hex::encode(sha2::Sha256::digest(&request.body)) {
            return Some(error(400, "XAmzContentSHA256Mismatch"));
        }
        self.payloads.push(payload);
        let sum = STANDARD.encode(digest_of(Algorithm::Md5, &request.body).bytes);
        match request.ask.field("content-md5") {
            Some(md5) if md5 != sum => Some(error(400, "BadDigest")),
            _ => None,
        }
    }

    fn spoilt(&mut self, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        if self.spoil > 0 && !body.is_empty() {
            self.spoil -= 1;
            body[0] ^= 1;
        }
        body
    }

    fn part(&mut self, request: &Request) -> Answer {
        let number = query(request, "partNumber").and_then(|n| n.parse().ok()).expect("a number");
        let bytes = self.spoilt(&request.body);
        let tag = self.tag_of(&bytes);
        let id = query(request, "uploadId").unwrap_or_default();
        let Some(upload) = self.uploads.get_mut(&id) else { return error(404, "NoSuchUpload") };
        upload.insert(number, Stored { bytes, tag: tag.clone() });
        self.with_fields(vec![("etag", tag)], "", 200)
    }

    fn list(&self, request: &Request) -> Answer {
        let id = query(request, "uploadId").unwrap_or_default();
        let Some(upload) = self.uploads.get(&id) else { return error(404, "NoSuchUpload") };
        let from: u32 = query(request, "part-number-marker").and_then(|n| n.parse().ok()).unwrap_or(0);
        let rest: Vec<_> = upload.range(from + 1..).collect();
        let page = &rest[..self.page.min(rest.len())];
        let mut text = String::new();
        for (number, stored) in page {
            let tag = if self.tags == Tags::Unlisted { String::new() } else { format!("<ETag>{}</ETag>", stored.tag) };
            let size = stored.bytes.len();
            text.push_str(&format!("<Part><PartNumber>{number}</PartNumber>{tag}<Size>{size}</Size></Part>"));
        }
        let (more, last) = (page.len() < rest.len(), page.last().map_or(from, |(number, _)| **number));
        let head = format!("<IsTruncated>{more}</IsTruncated><NextPartNumberMarker>{last}</NextPartNumberMarker>");
        answer(200, &[], format!("<ListPartsResult>{head}{text}</ListPartsResult>").as_bytes())
    }

    fn open_uploads(&self, request: &Request) -> Answer {
        let key = query(request, "prefix").expect("of one key");
        let one = |id: &String| {
            let at = self.times.get(id).copied().unwrap_or_default().as_secs_f64() as i64;
            let at = jiff::Timestamp::from_second(at).expect("a time");
            format!("<Upload><Key>{key}</Key><UploadId>{id}</UploadId><Initiated>{at}</Initiated></Upload>")
        };
        let text: String = self.uploads.keys().map(one).collect();
        let date = http_date(request.now + self.ahead).expect("a date");
        answer(
            200,
            &[("date", &date)],
            format!("<ListMultipartUploadsResult>{text}</ListMultipartUploadsResult>").as_bytes(),
        )
    }

    fn complete(&mut self, request: &Request) -> Answer {
        let id = query(request, "uploadId").unwrap_or_default();
        let Some(upload) = self.uploads.get(&id) else { return error(404, "NoSuchUpload") };
        let text = String::from_utf8(request.body.clone()).expect("UTF-8");
        let value = |text: &str, name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>")).expect(name);
            rest.split_once(&format!("</{name}>")).expect(name).0.replace("&quot;", "\"")
        };
        let wanted: Vec<(u32, String)> = text
            .split("<Part>")
            .skip(1)
            .map(|part| (value(part, "PartNumber").parse().expect("a number"), value(part, "ETag")))
            .collect();
        if wanted.windows(2).any(|two| two[0].0 >= two[1].0) {
            return error(400, "InvalidPartOrder");
        }
        let mut whole = Stored { bytes: Vec::new(), tag: String::new() };
        let mut sums = Vec::new();
        for (at, (number, tag)) in wanted.iter().enumerate() {
            let Some(stored) = upload.get(number).filter(|stored| stored.tag == *tag) else {
                return error(400, "InvalidPart");
            };
            if stored.bytes.len() < self.least_part && at + 1 < wanted.len() {
                return error(400, "EntityTooSmall");
            }
            sums.extend(digest_of(Algorithm::Md5, &stored.bytes).bytes);
            whole.bytes.extend_from_slice(&stored.bytes);
        }
        whole.tag = match self.tags {
            Tags::Md5 | Tags::Unlisted => format!("\"{}-{}\"", md5_hex(&sums), wanted.len()),
            Tags::Opaque => "\"opaque\"".to_owned(),
            Tags::Kms => format!("\"{}-{}\"", md5_hex(b"key"), wanted.len()),
        };
        let body = format!(
            "<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
            whole.tag.replace('"', "&quot;")
        );
        self.object = Some(whole);
        self.uploads.remove(&id);
        self.with_fields(Vec::new(), &format!("  \n {body}"), 200)
    }

    fn put(&mut self, request: &Request) -> Answer {
        let bytes = self.spoilt(&request.body);
        let tag = self.tag_of(&bytes);
        self.object = Some(Stored { bytes, tag: tag.clone() });
        self.with_fields(vec![("etag", tag)], "", 200)
    }

    fn head(&self) -> Answer {
        match &self.object {
            Some(object) => {
                let size = object.bytes.len().to_string();
                self.with_fields(vec![("etag", object.tag.clone()), ("content-length", size)], "", 200)
            }
            None => answer(404, &[], b""),
        }
    }

    fn does(&mut self, is: Is, request: &Request) -> Answer {
        match is {
            Is::Head => self.head(),
            Is::Create => {
                self.begun += 1;
                let id = format!("id/{}+=", self.begun);
                self.uploads.insert(id.clone(), BTreeMap::new());
                self.times.insert(id.clone(), request.now + self.ahead);
                let text =
                    format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
                answer(200, &[], text.as_bytes())
            }
            Is::Part => self.part(request),
            Is::Put => self.put(request),
            Is::List => self.list(request),
            Is::Complete => self.complete(request),
            Is::Uploads => self.open_uploads(request),
            Is::Read => self.object.as_ref().map_or_else(|| answer(404, &[], b""), |o| answer(200, &[], &o.bytes)),
            Is::Abort => {
                let id = query(request, "uploadId").unwrap_or_default();
                self.uploads.remove(&id).map_or_else(|| error(404, "NoSuchUpload"), |_| answer(204, &[], b""))
            }
        }
    }

    fn answers(&mut self, is: Is, request: &Request) -> Option<Answer> {
        self.seen.push(is);
        let told = match self.instead.iter().position(|(of, _)| *of == is) {
            Some(at) if !request.cut => self.instead.remove(at).map(|(_, what)| what),
            _ => None,
        };
        match told {
            Some(Instead::Error(status, code)) => return Some(error(status, code)),
            Some(Instead::Say(answer)) => return Some(answer),
            _ if request.cut => return None,
            _ => {}
        }
        let refusal = self.refuses(request).or_else(|| self.doubts(request));
        let answer = refusal.unwrap_or_else(|| self.does(is, request));
        match told {
            Some(Instead::Swallow) => None,
            Some(Instead::DoneBut(status, code)) => Some(error(status, code)),
            _ => Some(answer),
        }
    }
}

fn scheme(ask: &super::super::Ask) -> &'static str {
    if ask.url.is_https() { "https" } else { "http" }
}

fn rest_of(ask: &super::super::Ask) -> String {
    let query = ask.url.secret_url().query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", path(&ask.url))
}

fn query(request: &Request, name: &str) -> Option<String> {
    let pairs = request.ask.url.secret_url().query_pairs();
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

impl Server for S3Server {
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        let upload = query(request, "uploadId").is_some();
        self.paths.insert(path(&request.ask.url).to_owned());
        let is = match request.ask.method {
            Method::Head => Is::Head,
            Method::Post if upload => Is::Complete,
            Method::Post => Is::Create,
            Method::Put if upload => Is::Part,
            Method::Put => Is::Put,
            Method::Get if request.ask.url.secret_url().query().is_none() => Is::Read,
            Method::Get if !upload => Is::Uploads,
            Method::Get => Is::List,
            Method::Delete => Is::Abort,
            other => panic!("{other:?} is no request of S3"),
        };
        let answer = self.answers(is, request)?;
        // A HEAD has no body, and so no word for what is wrong.
        let bare = is == Is::Head && !answer.is_success();
        Some(if bare { Answer { body: Vec::new(), ..answer } } else { answer })
    }

    fn stored(&self) -> Option<&[u8]> {
        self.object.as_ref().map(|object| object.bytes.as_slice())
    }
}

/// What the client's clock shows in tests where dates matter.
pub(super) const TODAY: Epoch = Epoch::from_secs(1_800_000_000);
