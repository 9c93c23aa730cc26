//! What the transport is told: plain data, read once when a [`super::Client`] is made.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::core::proxy::ProxyRules;
use crate::core::time::Delay;

/// The User-Agent that is sent unless the user wants another.
pub const USER_AGENT: &str = concat!("persxfer/", env!("CARGO_PKG_VERSION"));

/// What the transport needs: proxies, TLS, addresses, user agent.
#[derive(Clone, Debug)]
pub struct NetSettings {
    /// User-Agent, also told to proxies; empty for none.
    pub user_agent: String,
    /// The longest that a connection may take, name lookup and TLS handshake included.
    pub connect_timeout: Delay,
    /// Which requests go through which proxy.
    pub proxies: ProxyRules,
    /// Who vouches for servers.
    pub roots: Roots,
    /// Are servers' certificates judged?
    pub verify: Verify,
    /// The certificate shown to servers that ask for one.
    pub identity: Option<Identity>,
    /// Hosts whose addresses are given (`--resolve`).
    pub pins: Vec<Pin>,
    /// Which addresses may be used.
    pub family: Family,
}

/// Who vouches for servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// Whom the system trusts; read when the first certificate is to be judged.
    #[default]
    System,
    /// The certificates of this PEM file, and no others.
    File {
        /// The file.
        path: PathBuf,
        /// What named it: `--cacert` or `SSL_CERT_FILE`, for the error.
        origin: &'static str,
    },
}

/// Are servers' certificates judged?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Yes.
    #[default]
    Certificates,
    /// No: anybody can read and change what is transferred (`--insecure`).
    Nothing,
}

/// A client certificate, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those between it and its root (`--cert`).
    pub cert: PathBuf,
    /// Its private key (`--key`); without one it stands in the same file.
    pub key: Option<PathBuf>,
}

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All.
    #[default]
    Any,
    /// IPv4 only (`-4`).
    V4,
    /// IPv6 only (`-6`).
    V6,
}

/// Addresses given for a host and a port, in place of a name lookup (`--resolve`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The host in lower case, or `*` for every one.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The addresses, at least one.
    pub addresses: Vec<IpAddr>,
}

/// Why the transport cannot be set up: each names the option or file that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetConfigError {
    /// A PEM file that cannot be read.
    #[error("{origin}: cannot read {path}: {detail}")]
    File {
        /// The option or variable.
        origin: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// A PEM file without what it is for.
    #[error("{origin}: {path} holds no {wanted} in PEM form; name a PEM file that does")]
    Empty {
        /// The option or variable.
        origin: &'static str,
        /// The file.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
    },
    /// A certificate and a key that do not belong together, or that the TLS library does not know.
    #[error("--cert: {path} cannot be used: {detail}")]
    Identity {
        /// The certificate's file.
        path: PathBuf,
        /// What the TLS library said.
        detail: String,
    },
    /// A `--resolve` that is none.
    #[error(
        "--resolve {text:?}: {why}; write HOST:PORT:ADDRESS, as in example.org:443:192.0.2.1 or example.org:443:[2001:db8::1]"
    )]
    Pin {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A user agent that no header can carry.
    #[error("--user-agent {text:?} holds characters that no header can carry")]
    UserAgent {
        /// The text.
        text: String,
    },
    /// The TLS library cannot be set up.
    #[error("TLS cannot be set up: {detail}")]
    Tls {
        /// What it said.
        detail: String,
    },
}

impl Default for NetSettings {
    fn default() -> Self {
        Self {
            user_agent: USER_AGENT.to_owned(),
            connect_timeout: Delay::from_secs(30),
            proxies: ProxyRules::none(),
            roots: Roots::System,
            verify: Verify::Certificates,
            identity: None,
            pins: Vec::new(),
            family: Family::Any,
        }
    }
}

impl Roots {
    /// `--cacert` before `SSL_CERT_FILE` before the system's; `variable` looks one up.
    pub fn choose(cacert: Option<PathBuf>, variable: impl Fn(&str) -> Option<String>) -> Self {
        if let Some(path) = cacert {
            return Self::File { path, origin: "--cacert" };
        }
        match variable("SSL_CERT_FILE").filter(|v| !v.is_empty()) {
            Some(path) => Self::File { path: path.into(), origin: "SSL_CERT_FILE" },
            None => Self::System,
        }
    }
}

impl Family {
    /// May this address be used?
    pub fn allows(self, ip: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => ip.is_ipv4(),
            Self::V6 => ip.is_ipv6(),
        }
    }
    /// The option that chose it, for messages.
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }
}

impl Pin {
    /// Reads curl's form: `HOST:PORT:ADDRESS[,ADDRESS]...`, an IPv6 address with or without brackets.
    pub fn parse(text: &str) -> Result<Self, NetConfigError> {
        let bad = |why| NetConfigError::Pin { text: text.to_owned(), why };
        // A leading + means in curl that the entry may expire; ours last as long as the process.
        let mut parts = text.trim_start_matches('+').splitn(3, ':');
        let (Some(host), Some(port), Some(addresses)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad("a part is missing"));
        };
        let host = host.trim_end_matches('.');
        if host.is_empty() {
            return Err(bad("the host is missing"));
        }
        if host.starts_with('[') || host.parse::<IpAddr>().is_ok() {
            return Err(bad("the host is an address already"));
        }
        let port = port.parse().map_err(|_| bad("the port is no number up to 65535"))?;
        let addresses: Option<Vec<IpAddr>> = addresses.split(',').map(address).collect();
        let addresses = addresses.ok_or_else(|| bad("the address is none"))?;
        Ok(Self { host: host.to_ascii_lowercase(), port, addresses })
    }

    /// Does it speak for this host and port? A port that is not known matches every one.
    pub(super) fn covers(&self, host: &str, port: Option<u16>) -> bool {
        port.is_none_or(|p| p == self.port) && (self.host == "*" || self.host == host.trim_end_matches('.'))
    }
}

fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curls_forms_of_resolve_are_read() {
        let pin = Pin::parse("Example.org:443:192.0.2.1,[2001:db8::1],2001:db8::2").unwrap();
        assert_eq!((pin.host.as_str(), pin.port, pin.addresses.len()), ("example.org", 443, 3));
        assert!(pin.covers("example.org", Some(443)) && !pin.covers("example.org", Some(80)));
        assert!(Pin::parse("*:80:127.0.0.1").unwrap().covers("anything", Some(80)));
        for bad in [
            "",
            "host",
            "host:80",
            ":80:127.0.0.1",
            ".:80:127.0.0.1",
            "host:x:127.0.0.1",
            "host:80:",
            "127.0.0.1:80:127.0.0.2",
        ] {
            assert!(matches!(Pin::parse(bad), Err(NetConfigError::Pin { .. })), "{bad}");
        }
    }

    #[test]
    fn the_option_goes_before_the_variable() {
        let set = |_: &str| Some("/env.pem".to_owned());
        assert_eq!(
            Roots::choose(Some("/opt.pem".into()), set),
            Roots::File { path: "/opt.pem".into(), origin: "--cacert" }
        );
        assert_eq!(Roots::choose(None, set), Roots::File { path: "/env.pem".into(), origin: "SSL_CERT_FILE" });
        assert_eq!(Roots::choose(None, |_| None), Roots::System);
    }
}
