//! Where an object is: an endpoint, a bucket, a key, and how the two are written into a URL.

mod aws;

use percent_encoding::percent_decode_str;

use super::sign::encoded_path;
use crate::core::printable::printable;
use crate::core::url::{BadUrl, MirrorUrl};

use aws::AwsHost;

/// The longest key.
const MAX_KEY: usize = 1024;

/// How a bucket stands in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `https://endpoint/bucket/key`.
    Path,
    /// `https://bucket.endpoint/key`.
    Host,
}

/// An object in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    endpoint: MirrorUrl,
    bucket: String,
    key: String,
    style: Style,
    region: Option<String>,
    url: MirrorUrl,
}

/// What the user said beside the URL.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaceSettings<'a> {
    /// Where the store is; AWS where nothing is said.
    pub endpoint: Option<&'a MirrorUrl>,
    /// The region, which names the endpoint at AWS; `us-east-1` where nothing is said.
    pub region: Option<&'a str>,
    /// How buckets stand in URLs; where nothing is said, as the endpoint is known to like it.
    pub style: Option<Style>,
    /// The name of the file: it is put behind a key that is empty or ends in a slash.
    pub name: &'a str,
}

/// Why a text names no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlace {
    /// No URL at all.
    #[error("{0}")]
    Url(#[from] BadUrl),
    /// No bucket in it, or one with a name that no bucket has.
    #[error("\"{0}\" is no name of a bucket (s3://BUCKET/KEY is wanted)")]
    Bucket(String),
    /// A key too long, or one that cannot be written into a URL.
    #[error("\"{0}\" is no key that a URL can carry: at most 1024 bytes, no part of it . or .., no controls")]
    Key(String),
    /// A region with other characters than letters, digits and `-`.
    #[error("\"{0}\" is no name of a region")]
    Region(String),
    /// A query: of a URL that is signed already, or nobody knows what for.
    #[error("a URL of an object has no query; a signed URL is used as it is, without keys")]
    Query,
    /// User name and password.
    #[error("keys are not written into the URL: the environment or a profile has them")]
    UserInfo,
}

impl Place {
    /// Reads `s3://bucket/key` (the key as it is, nothing decoded), or an http or https URL of an object, with the
    /// bucket in its path or in its host.
    pub fn parse(text: &str, settings: &PlaceSettings<'_>) -> Result<Self, BadPlace> {
        match text.strip_prefix("s3://") {
            Some(rest) => {
                let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
                Self::of_parts(bucket, key, settings)
            }
            None => Self::of_url(&MirrorUrl::parse(text)?, settings),
        }
    }

    fn of_parts(bucket: &str, key: &str, settings: &PlaceSettings<'_>) -> Result<Self, BadPlace> {
        if bucket.contains('@') {
            return Err(BadPlace::UserInfo);
        }
        let key = full_key(key, settings.name);
        let region = settings.region.map(str::to_owned);
        match settings.endpoint {
            // Other stores are more often known by one name than by one for each bucket.
            Some(endpoint) => {
                let style = settings.style.unwrap_or(Style::Path);
                Self::build(bare(endpoint)?, bucket, &key, style, region)
            }
            None => {
                let endpoint = aws::endpoint(checked_region(settings.region.unwrap_or(super::FIRST_REGION))?)?;
                Self::build(endpoint, bucket, &key, settings.style.unwrap_or(natural(bucket)), region)
            }
        }
    }

    /// The object that an http or https URL names.
    pub fn of_url(url: &MirrorUrl, settings: &PlaceSettings<'_>) -> Result<Self, BadPlace> {
        if url.secret_url().query().is_some() {
            return Err(BadPlace::Query);
        }
        if url.credentials().is_some() {
            return Err(BadPlace::UserInfo);
        }
        let path = url.secret_url().path();
        let path = decoded(path.strip_prefix('/').unwrap_or(path))?;
        let (region, bucket, host) = bucket_in_host(url, settings);
        let mut endpoint = url.secret_url().clone();
        endpoint.set_path("/");
        if let Some(bucket) = bucket {
            let _ = endpoint.set_host(Some(&host));
            let key = full_key(&path, settings.name);
            return Self::build(MirrorUrl::parse(endpoint.as_str())?, &bucket, &key, Style::Host, region);
        }
        let prefix = settings.endpoint.filter(|e| e.origin() == url.origin()).map(|e| e.secret_url().path());
        let prefix = prefix.unwrap_or_default().trim_matches('/');
        let inside = path.strip_prefix(prefix).filter(|_| !prefix.is_empty()).and_then(|rest| rest.strip_prefix('/'));
        if inside.is_some() {
            endpoint.set_path(&format!("/{prefix}"));
        }
        let (bucket, key) = inside.unwrap_or(&path).split_once('/').unwrap_or((inside.unwrap_or(&path), ""));
        let key = full_key(key, settings.name);
        Self::build(MirrorUrl::parse(endpoint.as_str())?, bucket, &key, Style::Path, region)
    }

    fn build(
        endpoint: MirrorUrl,
        bucket: &str,
        key: &str,
        style: Style,
        region: Option<String>,
    ) -> Result<Self, BadPlace> {
        if !is_bucket(bucket) {
            return Err(BadPlace::Bucket(printable(bucket).into_owned()));
        }
        let dots = key.split('/').any(|part| matches!(part, "." | ".."));
        if key.is_empty() || key.len() > MAX_KEY || dots || key.chars().any(char::is_control) {
            return Err(BadPlace::Key(printable(key).into_owned()));
        }
        if let Some(region) = &region {
            checked_region(region)?;
        }
        let mut url = endpoint.secret_url().clone();
        let before = url.path().trim_end_matches('/').to_owned();
        match style {
            Style::Path => url.set_path(&format!("{before}/{bucket}/{}", encoded_path(key))),
            Style::Host => {
                let host = format!("{bucket}.{}", endpoint.host());
                url.set_host(Some(&host)).map_err(|_| BadPlace::Bucket(printable(bucket).into_owned()))?;
                url.set_path(&format!("{before}/{}", encoded_path(key)));
            }
        }
        let url = MirrorUrl::parse(url.as_str())?;
        Ok(Self { endpoint, bucket: bucket.to_owned(), key: key.to_owned(), style, region, url })
    }

    /// The same object, asked for where its bucket is said to be. Only at AWS has a region a host of its own.
    pub(super) fn in_region(&self, region: &str) -> Result<Self, BadPlace> {
        let region = checked_region(region)?;
        let endpoint = match AwsHost::read(self.endpoint.host()) {
            Some(_) => with_scheme_of(&aws::endpoint(region)?, &self.endpoint)?,
            None => self.endpoint.clone(),
        };
        Self::build(endpoint, &self.bucket, &self.key, self.style, Some(region.to_owned()))
    }

    /// The URL of the object: what requests go to, and what a record of an upload is found by.
    pub const fn url(&self) -> &MirrorUrl {
        &self.url
    }

    /// The bucket's name.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The key, nothing encoded.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the bucket stands in the URL.
    pub const fn style(&self) -> Style {
        self.style
    }

    /// The region that the host names, or the user.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }
}

/// Is it a host of AWS, where each region has its own?
pub(super) fn is_aws(url: &MirrorUrl) -> bool {
    AwsHost::read(url.host()).is_some()
}

/// Do both belong to AWS, so that requests signed for the one may be signed for the other?
pub(super) fn both_aws(a: &MirrorUrl, b: &MirrorUrl) -> bool {
    is_aws(a) && is_aws(b)
}

/// Region, bucket and the rest of a host that names the bucket. Of the region the host's word counts.
fn bucket_in_host(url: &MirrorUrl, settings: &PlaceSettings<'_>) -> (Option<String>, Option<String>, String) {
    let said = settings.region.map(str::to_owned);
    if let Some(aws) = AwsHost::read(url.host()) {
        return (aws.region.or(said), aws.bucket, aws.rest);
    }
    let under = settings.endpoint.filter(|e| e.port() == url.port()).and_then(|endpoint| {
        let bucket = url.host().strip_suffix(endpoint.host())?.strip_suffix('.')?;
        Some((bucket.to_owned(), endpoint.host().to_owned()))
    });
    if let Some((bucket, rest)) = under {
        return (said, Some(bucket), rest);
    }
    let first = url.host().split_once('.').filter(|_| settings.style == Some(Style::Host));
    match first {
        Some((bucket, rest)) => (said, Some(bucket.to_owned()), rest.to_owned()),
        None => (said, None, String::new()),
    }
}

fn full_key(key: &str, name: &str) -> String {
    if key.is_empty() || key.ends_with('/') { format!("{key}{name}") } else { key.to_owned() }
}

/// An endpoint has neither query nor keys.
fn bare(endpoint: &MirrorUrl) -> Result<MirrorUrl, BadPlace> {
    match (endpoint.secret_url().query(), endpoint.credentials()) {
        (Some(_), _) => Err(BadPlace::Query),
        (_, Some(_)) => Err(BadPlace::UserInfo),
        (None, None) => Ok(endpoint.clone()),
    }
}

fn decoded(path: &str) -> Result<String, BadPlace> {
    let text = percent_decode_str(path).decode_utf8();
    text.map(Into::into).map_err(|_| BadPlace::Key(printable(path).into_owned()))
}

/// A certificate for `*.s3...` does not cover a bucket with dots in its name.
fn natural(bucket: &str) -> Style {
    let plain = bucket.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if plain { Style::Host } else { Style::Path }
}

/// Old buckets and other stores have capitals and underscores too.
fn is_bucket(name: &str) -> bool {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    (1..=255).contains(&name.len()) && plain && !name.starts_with('.') && !name.contains("..")
}

/// A region goes into hosts and signatures, and it may be a server's word.
pub(super) fn checked_region(region: &str) -> Result<&str, BadPlace> {
    let plain = region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let fits = (1..=64).contains(&region.len()) && plain;
    if fits { Ok(region) } else { Err(BadPlace::Region(printable(region).into_owned())) }
}

fn with_scheme_of(url: &MirrorUrl, like: &MirrorUrl) -> Result<MirrorUrl, BadUrl> {
    if like.is_https() {
        return Ok(url.clone());
    }
    MirrorUrl::parse(&format!("http://{}/", url.host()))
}

#[cfg(test)]
mod tests;
