//! Signature Version 4 of AWS, the header form: a canonical request, the text to sign, and the signature.
//!
//! The signature covers method, host, path, query, the fields that say something about the object, and the moment of sending, so that each
//! request is signed when it goes out, and again when it is repeated or sent elsewhere.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

use super::credentials::Credentials;
use crate::core::time::Epoch;
use crate::core::upload::ask::Ask;
use crate::core::url::MirrorUrl;

/// In place of the digest of a body that TLS protects on its way.
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// RFC 3986 2.3: all but these are encoded.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same, and the slashes of a path stay.
const PATH: &AsciiSet = &STRICT.remove(b'/');

/// For whom, where and when a request is signed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signing<'a> {
    pub(super) credentials: &'a Credentials,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) at: Epoch,
}

/// What is signed of a request: plain data, so that the published examples can be tried as they stand.
#[derive(Clone, Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// The path as it is sent.
    pub(super) path: &'a str,
    /// The query as it is sent, without the question mark.
    pub(super) query: &'a str,
    /// The fields that are signed, `host` among them.
    pub(super) fields: Vec<(String, String)>,
    /// The hex digest of the body, or [`UNSIGNED`].
    pub(super) payload: &'a str,
}

impl Request<'_> {
    /// The form in which both sides see the request.
    pub(super) fn canonical(&self) -> String {
        let (path, query) = (canonical_path(self.path), canonical_query(self.query));
        let fields: String = self.sorted().iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        format!("{}\n{path}\n{query}\n{fields}\n{}\n{}", self.method, self.names(), self.payload)
    }

    /// The names of the fields that are signed.
    fn names(&self) -> String {
        self.sorted().into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(";")
    }

    /// Names in lower case and in order, values without superfluous blanks.
    fn sorted(&self) -> Vec<(String, String)> {
        let plain = |value: &str| value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let mut all: Vec<_> = self.fields.iter().map(|(n, v)| (n.to_ascii_lowercase(), plain(v))).collect();
        all.sort();
        all
    }
}

impl Signing<'_> {
    /// The signature in hex; `None` for a moment that has no date of four digits.
    pub(super) fn signature(&self, request: &Request<'_>) -> Option<String> {
        let stamp = stamp(self.at)?;
        let text = format!("{ALGORITHM}\n{stamp}\n{}\n{}", self.scope(&stamp), sha256_hex(request.canonical()));
        Some(hex::encode(hmac(&self.key(&stamp), text.as_bytes())))
    }

    /// The request with the fields that prove who sends it.
    pub(super) fn sign(&self, ask: Ask, payload: &str) -> Option<Ask> {
        let stamp = stamp(self.at)?;
        let mut ask = ask.with("x-amz-content-sha256", payload).with("x-amz-date", stamp.as_str());
        if let Some(token) = &self.credentials.token {
            ask = ask.with("x-amz-security-token", token.expose());
        }
        let (names, signature) = self.of_ask(&ask, payload)?;
        let (who, scope) = (&self.credentials.access_key, self.scope(&stamp));
        let proof = format!("{ALGORITHM} Credential={who}/{scope}, SignedHeaders={names}, Signature={signature}");
        Some(ask.with("authorization", proof))
    }

    /// The names signed and the signature of a request that has all its fields but the last.
    pub(super) fn of_ask(&self, ask: &Ask, payload: &str) -> Option<(String, String)> {
        let url = ask.url.secret_url();
        let named = ask.fields.iter().filter(|(name, _)| is_signed(name));
        let mut fields: Vec<_> = named.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        fields.push(("host".to_owned(), authority(&ask.url)));
        let (path, query) = (url.path(), url.query().unwrap_or_default());
        let request = Request { method: ask.method.as_str(), path, query, fields, payload };
        Some((request.names(), self.signature(&request)?))
    }

    fn scope(&self, stamp: &str) -> String {
        format!("{}/{}/{}/aws4_request", day(stamp), self.region, self.service)
    }

    /// The key of the day, the region and the service.
    fn key(&self, stamp: &str) -> [u8; 32] {
        let first = format!("AWS4{}", self.credentials.secret.expose());
        let words = [day(stamp), self.region, self.service, "aws4_request"];
        let mut key = hmac(first.as_bytes(), words[0].as_bytes());
        for word in &words[1..] {
            key = hmac(&key, word.as_bytes());
        }
        key
    }
}

/// Fields that nothing on the way may change. Others, as Cache-Control, are a proxy's to change.
fn is_signed(name: &str) -> bool {
    matches!(name, "content-md5" | "content-type") || name.starts_with("x-amz-")
}

/// What the field Host says of a URL: the port only where it is not that of the scheme.
fn authority(url: &MirrorUrl) -> String {
    match url.secret_url().port() {
        Some(port) => format!("{}:{port}", url.host()),
        None => url.host().to_owned(),
    }
}

/// `20130524T000000Z`.
fn stamp(at: Epoch) -> Option<String> {
    let time = jiff::Timestamp::from_second(at.as_micros().div_euclid(1_000_000)).ok()?;
    let text = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    (text.len() == 16).then_some(text)
}

/// The moment that such a text names.
pub(in crate::core::upload) fn moment(stamp: &str) -> Option<Epoch> {
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", stamp).ok()?;
    Some(Epoch::from_secs(jiff::tz::TimeZone::UTC.to_timestamp(time).ok()?.as_second()))
}

fn day(stamp: &str) -> &str {
    stamp.split('T').next().unwrap_or_default()
}

/// Every byte that is not unreserved, encoded; for values in a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, STRICT).to_string()
}

/// The same for a path.
pub(super) fn encoded_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// S3 encodes a path once, and leaves its segments as they are.
fn canonical_path(path: &str) -> String {
    let raw: Vec<u8> = percent_decode_str(path).collect();
    let text: String = percent_encoding::percent_encode(&raw, PATH).to_string();
    if text.is_empty() { "/".to_owned() } else { text }
}

fn canonical_query(query: &str) -> String {
    let again = |text: &str| {
        let raw: Vec<u8> = percent_decode_str(text).collect();
        percent_encoding::percent_encode(&raw, STRICT).to_string()
    };
    let pair = |text: &str| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        (again(name), again(value))
    };
    let mut all: Vec<_> = query.split('&').filter(|text| !text.is_empty()).map(pair).collect();
    all.sort();
    all.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// SHA-256 in lower-case hex.
pub(super) fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(bytes.as_ref()))
}

/// HMAC (RFC 2104) by SHA-256.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests;
