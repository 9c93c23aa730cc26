//! What holds for one host, or for a family of them. Of several entries that fit a URL, the most exact one holds, alone.

use std::fmt;
use std::path::PathBuf;

use crate::core::url::Origin;

/// Which hosts an entry is about: `example.org`, `example.org:8443`, or `*.example.org` for those below a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPattern {
    name: String,
    below: bool,
    port: Option<u16>,
}

/// What is preferred of a host.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HostPrefs {
    /// Connections for one file.
    pub connections: Option<u16>,
    /// Sessions at once.
    pub sessions: Option<usize>,
    /// Headers of every request, as `Name: value`.
    pub headers: Vec<String>,
    /// The certificates to trust, and no others.
    pub cacert: Option<PathBuf>,
    /// Where its user and password stand.
    pub login: Option<LoginFrom>,
}

/// Where a user and a password stand: never in the preferences themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginFrom {
    /// In the netrc file of the user.
    Netrc,
    /// In this file, as `USER:PASSWORD`.
    File(PathBuf),
    /// In this environment variable, as `USER:PASSWORD`.
    Env(String),
}

/// Why a text names no hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no host; write example.org, example.org:8443 or *.example.org")]
pub struct BadHost(pub String);

/// All that is preferred of hosts, or what was made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByHost<T = HostPrefs>(Vec<(HostPattern, T)>);

impl HostPattern {
    /// Reads one.
    ///
    /// # Errors
    /// [`BadHost`]: a scheme, a path, a star elsewhere than in front, a port that is none.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        let bad = || BadHost(text.to_owned());
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        // As the host of a URL, a name is brought into the form in which URLs have it.
        let url = url::Url::parse(&format!("http://{rest}/")).map_err(|_| bad())?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let name = url.host_str().filter(|name| plain && !name.contains('*')).ok_or_else(bad)?;
        let port = match rest.rsplit_once(':') {
            Some((_, port)) if !rest.ends_with(']') => Some(port.parse().map_err(|_| bad())?),
            _ => None,
        };
        Ok(Self { name: name.to_owned(), below, port })
    }

    fn fits(&self, host: &str, port: u16) -> bool {
        let name = match host.strip_suffix(self.name.as_str()) {
            Some("") => !self.below,
            Some(front) => self.below && front.ends_with('.'),
            None => false,
        };
        name && self.port.is_none_or(|own| own == port)
    }

    /// The more exact, the greater.
    fn exactness(&self) -> (bool, usize, bool) {
        (!self.below, self.name.len(), self.port.is_some())
    }
}

impl<T> Default for ByHost<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByHost<T> {
    /// Of these entries.
    pub fn new(entries: Vec<(HostPattern, T)>) -> Self {
        Self(entries)
    }

    /// There are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is preferred of the host of this origin.
    pub fn of(&self, origin: &Origin) -> Option<&T> {
        let url = url::Url::parse(origin.as_str()).ok()?;
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        let fitting = self.0.iter().filter(|(pattern, _)| pattern.fits(host, port));
        fitting.max_by_key(|(pattern, _)| pattern.exactness()).map(|(_, prefs)| prefs)
    }

    /// Something else for each entry.
    ///
    /// # Errors
    /// The first that `make` has.
    pub fn try_map<U, E>(&self, make: impl Fn(&HostPattern, &T) -> Result<U, E>) -> Result<ByHost<U>, E> {
        let entry = |(pattern, value): &(HostPattern, T)| Ok((pattern.clone(), make(pattern, value)?));
        self.0.iter().map(entry).collect::<Result<_, E>>().map(ByHost)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Headers may be secret.
impl fmt::Debug for HostPrefs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostPrefs")
            .field("connections", &self.connections)
            .field("sessions", &self.sessions)
            .field("headers", &self.headers.len())
            .finish_non_exhaustive()
    }
}
