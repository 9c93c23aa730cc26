//! URLs of mirrors, the origins they belong to, and how both are shown without their secrets.
//!
//! The secrets of a URL are its user-info and the values of its query (signed links); both are left out wherever a URL
//! is shown, also where a text is refused because it is no URL.

mod public;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str;

use percent_encoding::percent_decode_str;
use url::{ParseError, Url};

use crate::core::failure::RedirectFault;
use crate::core::printable::printable;

/// Scheme, host and port that answer a request: what validators, speed, limits and backoff belong to (RFC 6454).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(String);

/// An absolute http or https URL with a host: parsed once, valid for ever. Shown redacted, everywhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MirrorUrl(Url);

/// Why a text is no URL of a mirror.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no http or https URL: {why}")]
pub struct BadUrl {
    /// The text, made printable and redacted.
    pub text: String,
    /// What is wrong with it, and what to do.
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
    /// Its host, as [`MirrorUrl::host`] gives it.
    pub fn host(&self) -> String {
        // The text was made of a URL with a host.
        MirrorUrl::parse(&self.0).map(|u| u.host().to_owned()).unwrap_or_default()
    }
    /// As [`MirrorUrl::is_public_host`].
    pub fn is_public_host(&self) -> bool {
        MirrorUrl::parse(&self.0).is_ok_and(|u| u.is_public_host())
    }
}

impl MirrorUrl {
    /// Reads an absolute http or https URL; a fragment is dropped.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let bad = |why: String| BadUrl { text: printable(&redacted_text(text)).into_owned(), why };
        let url = Url::parse(text).map_err(|e| bad(parse_fault(text, e)))?;
        if !is_web(&url) {
            return Err(bad(scheme_fault(text, url.scheme())));
        }
        Ok(Self::of(url))
    }

    /// The URL that a redirect of status `code` leads to from here. Bytes in it that are no ASCII are tolerated. That
    /// https is not left for http, that there is an end to redirects, and that none goes in a circle, is the caller's
    /// to see to.
    pub fn join(&self, location: impl AsRef<[u8]>, code: u16) -> Result<Self, RedirectFault> {
        let location = location_text(location.as_ref().trim_ascii());
        let unusable = RedirectFault::NoLocation { code };
        if location.is_empty() {
            return Err(unusable);
        }
        match self.0.join(&location) {
            Ok(url) if is_web(&url) => Ok(Self::of(url)),
            Ok(url) => Err(RedirectFault::Scheme { scheme: printable(url.scheme()).into_owned() }),
            Err(_) => Err(unusable),
        }
    }

    /// The URL, secrets and all: for the wire and the state file only.
    pub fn secret_url(&self) -> &Url {
        &self.0
    }

    /// The origin it names.
    pub fn origin(&self) -> Origin {
        Origin(self.0.origin().ascii_serialization())
    }

    /// Is it to be asked over TLS?
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The host: lower case, a name in its ASCII form, an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        // A URL of these schemes always has one.
        self.0.host_str().unwrap_or_default()
    }

    /// Does its path end as those of HTML pages do?
    pub fn names_a_page(&self) -> bool {
        let path = self.0.path().to_ascii_lowercase();
        [".html", ".htm", ".xhtml"].iter().any(|end| path.ends_with(end))
    }

    /// The port, that of the scheme where none is written.
    pub fn port(&self) -> u16 {
        self.0.port().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// Is the host one that anybody on the internet could mean? Addresses of this machine, of private networks and of
    /// special purpose are not, nor are names without a dot and those of local zones. A public name may still
    /// *resolve* to a private address: who connects has to look again.
    pub fn is_public_host(&self) -> bool {
        public::is_public(self.0.host())
    }

    /// The same of an address, which a name has led to.
    pub fn is_public_address(address: IpAddr) -> bool {
        public::is_public_address(address)
    }

    /// User name and password in it, decoded; an absent one of the two is empty.
    pub fn credentials(&self) -> Option<(String, String)> {
        credentials_of(&self.0)
    }

    /// The same without user name and password.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        let mut url = self.0.clone();
        // These two cannot fail for a URL with a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Self(url)
    }

    /// Without user-info, and with `***` in place of each value in the query: for people.
    pub fn redacted(&self) -> String {
        let mut url = self.without_credentials().0;
        let query = url.query().map(redacted_query);
        url.set_query(query.as_deref());
        url.into()
    }

    fn of(mut url: Url) -> Self {
        url.set_fragment(None);
        Self(url)
    }
}

/// User name and password in a URL, decoded.
pub(super) fn credentials_of(url: &Url) -> Option<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = (url.username(), url.password());
    (!user.is_empty() || password.is_some()).then(|| (decoded(user), decoded(password.unwrap_or_default())))
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// A Location as text: UTF-8 as it is; in anything else, every byte that is no ASCII percent-encoded.
fn location_text(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|b| encoded_byte(*b)).collect()),
    }
}

fn encoded_byte(byte: u8) -> String {
    if byte.is_ascii() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

fn parse_fault(text: &str, error: ParseError) -> String {
    match error {
        ParseError::RelativeUrlWithoutBase if text.trim().is_empty() => "it is empty".to_owned(),
        ParseError::RelativeUrlWithoutBase => no_scheme(text),
        ParseError::EmptyHost => "it names no host".to_owned(),
        other => other.to_string(),
    }
}

fn scheme_fault(text: &str, scheme: &str) -> String {
    // `example.org:8080/x` reads as the scheme `example.org`.
    if text.contains("://") { format!("the scheme {scheme} is neither http nor https") } else { no_scheme(text) }
}

fn no_scheme(text: &str) -> String {
    let meant = redacted_text(text.trim().trim_start_matches('/'));
    format!("it has no scheme; was https://{} meant?", printable(&meant))
}

/// `token=abc&x` as `token=***&***`.
fn redacted_query(query: &str) -> String {
    let masked = |pair: &str| match pair.split_once('=') {
        Some((key, _)) => format!("{key}=***"),
        None if pair.is_empty() => String::new(),
        None => "***".to_owned(),
    };
    query.split('&').map(masked).collect::<Vec<_>>().join("&")
}

/// The same for a text that is no URL. What is user-info there and what query cannot be told for certain, so everything
/// before the last `@` goes, and everything at all where that stands behind a `?`.
fn redacted_text(text: &str) -> String {
    let (scheme, rest) = split_scheme(text);
    let rest = match (rest.rfind('@'), rest.find('?')) {
        (Some(at), Some(query)) if query < at => "***".to_owned(),
        (Some(at), _) => format!("***{}", &rest[at..]),
        (None, _) => rest.to_owned(),
    };
    let shown = rest.split('#').next().unwrap_or_default();
    match shown.split_once('?') {
        Some((before, query)) => format!("{scheme}{before}?{}", redacted_query(query)),
        None => format!("{scheme}{shown}"),
    }
}

/// `https://` and what follows; no scheme where what stands before `://` could be something else.
fn split_scheme(text: &str) -> (&str, &str) {
    let end =
        text.find("://").filter(|end| text[..*end].bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)));
    text.split_at(end.map_or(0, |end| end + 3))
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

#[cfg(test)]
mod tests;
