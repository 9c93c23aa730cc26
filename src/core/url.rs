//! URLs of mirrors, the origins they belong to, and how both are shown without their secrets.

use std::fmt;

use url::Url;

/// Scheme, host and port that answer a request: what validators, speed, limits and backoff belong to (RFC 6454).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(String);

/// An absolute http or https URL with a host: parsed once, valid for ever. Shown redacted, everywhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MirrorUrl(Url);

/// Why a text is no URL of a mirror.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no http or https URL: {why}")]
pub struct BadUrl {
    /// The text, made printable and redacted.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl Origin {
    /// As text: `https://example.org:8443`, the default port left out.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// From its text as stored, or from any URL of it.
    pub fn parse(text: &str) -> Option<Self> {
        MirrorUrl::parse(text).ok().map(|u| u.origin())
    }
}

impl MirrorUrl {
    /// Reads an absolute http or https URL; a fragment is dropped.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let bad = |why: String| BadUrl { text: text.escape_debug().to_string(), why };
        let mut url = Url::parse(text).map_err(|e| bad(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("the scheme is {:?}", url.scheme())));
        }
        url.set_fragment(None);
        Ok(Self(url))
    }
    /// The URL, secrets and all: for the wire and the state file only.
    pub fn secret_url(&self) -> &Url {
        &self.0
    }
    /// The origin it names.
    pub fn origin(&self) -> Origin {
        Origin(self.0.origin().ascii_serialization())
    }
    /// Without user-info and query values: for people.
    pub fn redacted(&self) -> String {
        let mut url = self.0.clone();
        // These two cannot fail for a URL with a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.to_string()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for MirrorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl fmt::Debug for MirrorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}
