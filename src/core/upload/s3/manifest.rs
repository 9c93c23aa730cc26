//! Uploads by URLs that somebody else has signed: one for each request, and no keys here.
//!
//! A manifest is a JSON object: `{"persxfer_upload": 1, "part_size": 8388608, "parts": ["https://...", ...],
//! "complete": "https://...", "abort": "https://...", "list": "https://...", "head": "https://..."}`. `parts` are URLs to PUT the parts to,
//! in order; `complete` is one to POST the list of them to. `abort` (to DELETE), `list` (to GET the parts by) and `head`
//! (to HEAD the object) may be missing. All name the same object at the same server. What is not known is passed over.

use serde::Deserialize;

use super::parts::{Cuts, LARGEST_PART, MAX_PARTS};
use super::sign::moment;
use crate::core::printable::printable;
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};
use crate::core::upload::session::Handle;
use crate::core::url::MirrorUrl;

/// The longest manifest: ten thousand URLs fit in, each with a token.
pub const MAX_TEXT: usize = 32 << 20;

/// A longer URL is none.
const MAX_URL: usize = 8 << 10;

/// The only version.
const VERSION: u32 = 1;

/// The URLs of one upload in parts. Whoever has them can write: they are shown nowhere.
#[derive(Clone, Debug)]
pub struct Manifest {
    object: MirrorUrl,
    upload: String,
    pub(super) part_size: Length,
    pub(super) parts: Vec<MirrorUrl>,
    pub(super) complete: MirrorUrl,
    pub(super) abort: Option<MirrorUrl>,
    pub(super) list: Option<MirrorUrl>,
    pub(super) head: Option<MirrorUrl>,
}

/// Why a text is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadManifest {
    /// More than 32 MiB.
    #[error("the manifest is larger than 32 MiB")]
    TooLarge,
    /// No JSON, or a member is missing or of another kind.
    #[error("the manifest cannot be read: {0}")]
    Json(String),
    /// A version that is not known here.
    #[error("the manifest is of version {0}; 1 is known")]
    Version(u32),
    /// A URL that is none.
    #[error("the URL of {what} is no http or https URL of at most 8 KiB")]
    Url {
        /// Which.
        what: &'static str,
    },
    /// A URL at another server, or of another object.
    #[error("the URL of {what} is not of the object that the first part is of")]
    Elsewhere {
        /// Which.
        what: &'static str,
    },
    /// No parts, or too many.
    #[error("the manifest has {0} parts; 1 to 10000 are possible")]
    Parts(usize),
    /// A size that no part has.
    #[error("the manifest has parts of {0} bytes; 1 byte to 5 GiB are possible")]
    PartSize(u64),
}

#[derive(Deserialize)]
struct Raw {
    persxfer_upload: u32,
    part_size: u64,
    parts: Vec<String>,
    complete: String,
    abort: Option<String>,
    list: Option<String>,
    head: Option<String>,
}

impl Manifest {
    /// Reads a manifest.
    pub fn parse(text: &str) -> Result<Self, BadManifest> {
        if text.len() > MAX_TEXT {
            return Err(BadManifest::TooLarge);
        }
        let raw: Raw = serde_json::from_str(text).map_err(|e| BadManifest::Json(told(&e)))?;
        if raw.persxfer_upload != VERSION {
            return Err(BadManifest::Version(raw.persxfer_upload));
        }
        if !(1..=LARGEST_PART.0).contains(&raw.part_size) {
            return Err(BadManifest::PartSize(raw.part_size));
        }
        let parts = raw.parts.iter().map(|text| signed_url(text, "a part")).collect::<Result<Vec<_>, _>>()?;
        let count = parts.len();
        let first = parts.first().filter(|_| count as u64 <= MAX_PARTS).ok_or(BadManifest::Parts(count))?;
        let object = without_query(first).ok_or(BadManifest::Url { what: "a part" })?;
        let one = |text: &str, what| same_object(signed_url(text, what)?, &object, what);
        let manifest = Self {
            upload: query_value(first, "uploadId").unwrap_or_default(),
            part_size: Length(raw.part_size),
            complete: one(&raw.complete, "\"complete\"")?,
            abort: raw.abort.map(|text| one(&text, "\"abort\"")).transpose()?,
            list: raw.list.map(|text| one(&text, "\"list\"")).transpose()?,
            head: raw.head.map(|text| one(&text, "\"head\"")).transpose()?,
            parts: parts.into_iter().map(|url| same_object(url, &object, "a part")).collect::<Result<_, _>>()?,
            object,
        };
        Ok(manifest)
    }

    /// The object without any signature: what the record of the upload is found by, also when the URLs have been signed
    /// anew.
    pub const fn object(&self) -> &MirrorUrl {
        &self.object
    }

    /// The name of the upload, as its URLs carry it.
    pub(super) fn handle(&self) -> Handle {
        Handle::Id(self.upload.clone())
    }

    /// How a file is cut; `None` where the URLs do not suffice for it.
    pub(super) fn cuts(&self, size: Length) -> Option<Cuts> {
        let cuts = Cuts::new(size, self.part_size)?;
        (cuts.count() as usize <= self.parts.len()).then_some(cuts)
    }

    /// The largest file that the URLs suffice for.
    pub(super) fn at_most(&self) -> Length {
        Length(self.part_size.0.saturating_mul(self.parts.len() as u64))
    }
}

/// When a signed URL ends, if it says so: `X-Amz-Date` and `X-Amz-Expires`, or the older `Expires`.
pub(super) fn ends(url: &MirrorUrl) -> Option<Epoch> {
    if let Some(at) = query_value(url, "Expires") {
        return at.parse().ok().map(Epoch::from_secs);
    }
    let from = moment(&query_value(url, "X-Amz-Date")?)?;
    let lasts: u32 = query_value(url, "X-Amz-Expires")?.parse().ok()?;
    Some(from + Delay::from_secs(u64::from(lasts)))
}

/// Is it a URL that carries its own signature?
pub fn is_signed(url: &MirrorUrl) -> bool {
    ["X-Amz-Signature", "Signature"].iter().any(|name| query_value(url, name).is_some())
}

/// Does the signature of a URL cover this field of the request?
pub(super) fn is_signed_field(url: &MirrorUrl, name: &str) -> bool {
    query_value(url, "X-Amz-SignedHeaders").is_some_and(|all| all.split(';').any(|one| one == name))
}

fn query_value(url: &MirrorUrl, name: &str) -> Option<String> {
    let pairs = url.secret_url().query_pairs();
    pairs.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.into_owned())
}

fn signed_url(text: &str, what: &'static str) -> Result<MirrorUrl, BadManifest> {
    let url = Some(text).filter(|text| text.len() <= MAX_URL).and_then(|text| MirrorUrl::parse(text).ok());
    url.ok_or(BadManifest::Url { what })
}

fn same_object(url: MirrorUrl, object: &MirrorUrl, what: &'static str) -> Result<MirrorUrl, BadManifest> {
    let same = url.origin() == object.origin() && url.secret_url().path() == object.secret_url().path();
    if same { Ok(url) } else { Err(BadManifest::Elsewhere { what }) }
}

fn without_query(url: &MirrorUrl) -> Option<MirrorUrl> {
    let mut bare = url.without_credentials().secret_url().clone();
    bare.set_query(None);
    MirrorUrl::parse(bare.as_str()).ok()
}

/// What is wrong and where; nothing of the text, which holds secrets.
fn told(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Syntax => "it is no JSON",
        serde_json::error::Category::Eof => "it ends too early",
        _ => "\"persxfer_upload\", \"part_size\", \"parts\" or \"complete\" is missing or of another kind",
    };
    printable(&format!("{kind} (line {}, column {})", error.line(), error.column())).into_owned()
}

#[cfg(test)]
mod tests;
