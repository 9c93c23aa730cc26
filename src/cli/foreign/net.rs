//! The network as it was asked for, made into what the transport takes.

use std::path::{Path, PathBuf};

use crate::core::cookies;
use crate::core::netrc;
use crate::core::printable::plain_error;
use crate::core::proxy::{ProxyRules, ProxyUrl};
use crate::core::time::Delay;
use crate::io::transport::{
    Cookies, Credentials, Identity, LocationTrust, Login, NetSettings, Netrc, Pin, Roots, USER_AGENT, UserHeader,
};

pub(crate) use crate::io::transport::{Family, LocationTrust as Trust, Verify};

/// All that was asked of the network, read but not yet built into clients.
#[derive(Clone, Default)]
pub(crate) struct NetAsked {
    pub(crate) connect_timeout: Delay,
    pub(crate) proxy: Option<ProxyUrl>,
    pub(crate) cacert: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) verify: Verify,
    pub(crate) resolve: Vec<Pin>,
    pub(crate) family: Family,
    pub(crate) user_agent: Option<String>,
    pub(crate) headers: Vec<UserHeader>,
    pub(crate) user: Option<(String, String)>,
    pub(crate) netrc: bool,
    pub(crate) cookies: Option<PathBuf>,
    pub(crate) trust: LocationTrust,
}

/// What the transport needs, from what was asked; reads the cookie and netrc files.
pub(crate) fn net(asked: NetAsked) -> Result<(NetSettings, Credentials), String> {
    let settings = NetSettings {
        user_agent: asked.user_agent.unwrap_or_else(|| USER_AGENT.to_owned()),
        connect_timeout: asked.connect_timeout,
        proxies: proxies(asked.proxy)?,
        roots: Roots::choose(asked.cacert, variable),
        verify: asked.verify,
        identity: identity(asked.cert, asked.key)?,
        pins: asked.resolve,
        family: asked.family,
    };
    let credentials = Credentials {
        headers: asked.headers,
        login: asked.user.map(|(user, password)| Login { user, password }),
        netrc: if asked.netrc { read_netrc()? } else { None },
        cookies: asked.cookies.as_deref().map(read_cookies).transpose()?,
        location: asked.trust,
    };
    Ok((settings, credentials))
}

/// An environment variable that is text.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn proxies(given: Option<ProxyUrl>) -> Result<ProxyRules, String> {
    match given {
        Some(proxy) => Ok(ProxyRules::all(proxy, ProxyRules::no_proxy_of(variable).as_deref())),
        None => ProxyRules::from_env(variable).map_err(|e| e.to_string()),
    }
}

fn identity(cert: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<Identity>, String> {
    match (cert, key) {
        (Some(cert), key) => Ok(Some(Identity { cert, key })),
        (None, Some(_)) => Err("--key: the certificate is missing; give --cert FILE too".to_owned()),
        (None, None) => Ok(None),
    }
}

/// `NETRC`, else `.netrc` in the home folder; none at all is no mistake, as with curl.
fn read_netrc() -> Result<Option<Netrc>, String> {
    let named = variable("NETRC").filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || variable("HOME").map(|home| Path::new(&home).join(".netrc"));
    let Some(path) = named.or_else(home) else { return Ok(None) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!("--netrc: cannot read {}: {}", path.display(), plain_error(&e))),
    };
    let netrc = netrc::Netrc::parse(&text).map_err(|e| format!("--netrc: {}: {e}", path.display()))?;
    Ok(Some(Netrc::new(move |host, user| {
        let (login, password) = netrc.lookup(host)?;
        let fits = user.is_none_or(|user| user == login);
        fits.then(|| Login { user: login.to_owned(), password: password.to_owned() })
    })))
}

fn read_cookies(path: &Path) -> Result<Cookies, String> {
    let bytes =
        std::fs::read(path).map_err(|e| format!("--cookies: cannot read {}: {}", path.display(), plain_error(&e)))?;
    let jar = cookies::Cookies::parse(&String::from_utf8_lossy(&bytes));
    Ok(Cookies::new(move |url, now| jar.header_for(url, now)))
}

/// `HOST:PORT:ADDRESS[,ADDRESS...]`, addresses of IPv6 in brackets or not, as curl takes them.
pub(crate) fn parse_resolve(text: &str) -> Result<Pin, String> {
    Pin::parse(text).map_err(|e| e.to_string())
}

/// A proxy, by its URL; without a scheme it is an http one. Its text may hold a password, so it is not repeated.
pub(crate) fn parse_proxy(text: &str) -> Result<ProxyUrl, String> {
    ProxyUrl::parse(text, "--proxy").map_err(|e| format!("{}; write http, https, socks5 or socks5h://HOST:PORT", e.why))
}

/// A header of the user's, `Name: value`. What is wrong with one is told without its value, which may be a secret.
pub(crate) fn parse_header(text: &str) -> Result<UserHeader, String> {
    UserHeader::parse(text).map_err(|e| e.to_string())
}
