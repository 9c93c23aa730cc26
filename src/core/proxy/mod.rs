//! Proxies: which one, if any, a request goes through.
//!
//! The variables and their meaning are curl's: `http_proxy` counts in lower case only (a CGI server sets `HTTP_PROXY` from
//! a header of the request), the others in both, lower case first. `NO_PROXY` names the exceptions.

mod exempt;
#[cfg(test)]
mod tests;

use std::fmt;

use url::Url;

use self::exempt::Exempt;
use crate::core::url::{MirrorUrl, credentials_of};

/// The URL of a proxy, user-info included: `http`, `https`, `socks5` (names resolved here) or `socks5h` (names resolved
/// by the proxy). Shown without user-info.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl(Url);

/// Why a text is no proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin} names no proxy that can be used: {why}; write http, https, socks5 or socks5h://HOST:PORT")]
pub struct BadProxy {
    /// Where the text stood: `--proxy`, or the variable.
    pub origin: String,
    /// What is wrong with it; without the text itself, which may hold a password.
    pub why: String,
}

/// Which requests go through which proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRules {
    http: Option<ProxyUrl>,
    https: Option<ProxyUrl>,
    exempt: Vec<Exempt>,
}

impl ProxyUrl {
    /// Reads a proxy's URL; without a scheme it is `http`. `origin` says where the text stood, for the error.
    pub fn parse(text: &str, origin: &str) -> Result<Self, BadProxy> {
        let bad = |why: &str| BadProxy { origin: origin.to_owned(), why: why.to_owned() };
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let mut url = Url::parse(&with_scheme).map_err(|e| bad(&e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") {
            return Err(bad(&format!("the scheme {:?} is not supported", url.scheme())));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad("it has no host"));
        }
        url.set_path("");
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self(url))
    }
    /// The URL, password and all: for the connection only.
    pub fn secret_url(&self) -> &Url {
        &self.0
    }
    /// User name and password, decoded; an absent one of the two is empty.
    pub fn credentials(&self) -> Option<(String, String)> {
        credentials_of(&self.0)
    }
    /// The port, by default the scheme's (1080 for SOCKS).
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(1080)
    }
}

impl ProxyRules {
    /// No request goes through a proxy.
    pub fn none() -> Self {
        Self::default()
    }

    /// Every request goes through this proxy (`--proxy`), but for those that a `NO_PROXY` text exempts.
    pub fn all(proxy: ProxyUrl, no_proxy: Option<&str>) -> Self {
        Self { http: Some(proxy.clone()), https: Some(proxy), exempt: no_proxy.map(exempt::parse).unwrap_or_default() }
    }

    /// The rules of the environment; `variable` looks one up.
    ///
    /// # Errors
    /// [`BadProxy`] names the variable that cannot be read.
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadProxy> {
        let first = |names: &[&str]| {
            let found = names.iter().find_map(|n| variable(n).filter(|v| !v.trim().is_empty()).map(|v| (*n, v)));
            found.map(|(name, value)| ProxyUrl::parse(value.trim(), name)).transpose()
        };
        let all = first(&["all_proxy", "ALL_PROXY"])?;
        Ok(Self {
            http: first(&["http_proxy"])?.or_else(|| all.clone()),
            https: first(&["https_proxy", "HTTPS_PROXY"])?.or(all),
            exempt: Self::no_proxy_of(variable).map(|text| exempt::parse(&text)).unwrap_or_default(),
        })
    }

    /// The text of `no_proxy`, else of `NO_PROXY`.
    pub fn no_proxy_of(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        variable("no_proxy").or_else(|| variable("NO_PROXY"))
    }

    /// The proxy that a request to this URL goes through.
    pub fn proxy_for(&self, url: &MirrorUrl) -> Option<&ProxyUrl> {
        self.proxy_for_url(url.secret_url())
    }

    /// As [`Self::proxy_for`], for any URL; those of other schemes go through none.
    pub fn proxy_for_url(&self, url: &Url) -> Option<&ProxyUrl> {
        let proxy = match url.scheme() {
            "http" => self.http.as_ref(),
            "https" => self.https.as_ref(),
            _ => None,
        }?;
        let host = url.host_str()?;
        let port = url.port_or_known_default()?;
        (!self.exempt.iter().any(|rule| rule.covers(host, port))).then_some(proxy)
    }

    /// No request whatever goes through a proxy.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.host_str().unwrap_or_default();
        write!(f, "{}://{host}:{}", self.0.scheme(), self.port())
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
