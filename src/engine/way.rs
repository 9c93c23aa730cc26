//! Ways: how the requests of a transfer travel, and what they carry, made from its stored options. Transfers with the same
//! options share one way, and each lane has one client a way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::cookies;
use crate::core::netrc;
use crate::core::pers_xfer::options::{AddressFamily, NetOptions};
use crate::core::prefs::{HostPattern, HostPrefs, LoginFrom, Preferences, Travel};
use crate::core::printable::plain_error;
use crate::core::proxy::{ProxyRules, ProxyUrl};
use crate::core::url::Origin;
use crate::engine::{EngineError, Timeouts};
use crate::io::transport::{
    Client, Cookies, Credentials, Family, HostSecrets, Identity, LocationTrust, Login, NetSettings, Netrc, Network,
    Pin, Roots, USER_AGENT, UserHeader, Verify,
};

/// Below this rate a body counts as stalled, in bytes per second (BOINC's number).
const STALL_RATE: u64 = 10;

/// One way to servers.
#[derive(Debug)]
pub(super) struct Way {
    number: usize,
    client: Client,
    pub(super) credentials: Credentials,
    pub(super) user_agent: String,
    pub(super) timeouts: Timeouts,
}

/// All ways of a run.
#[derive(Default)]
pub(super) struct Ways {
    made: BTreeMap<Arc<NetOptions>, Arc<Way>>,
    count: usize,
    prefs: Arc<Preferences>,
    /// In place of sockets.
    script: Option<Arc<dyn Network>>,
}

/// The clients of one lane.
#[derive(Debug, Default)]
pub(super) struct LaneClients(RefCell<BTreeMap<usize, Client>>);

impl Ways {
    /// Ways by these preferences, over a scripted network where there is one.
    pub(super) fn new(prefs: Arc<Preferences>, script: Option<Arc<dyn Network>>) -> Self {
        Self { prefs, script, ..Self::default() }
    }

    /// Other preferences hold for the ways that are made from now on.
    pub(super) fn prefer(&mut self, prefs: Arc<Preferences>) {
        self.made.clear();
        self.prefs = prefs;
    }

    /// The way of these options.
    ///
    /// # Errors
    /// What in them cannot be used, or no longer: a file that is gone.
    pub(super) fn of(&mut self, options: &Arc<NetOptions>) -> Result<Arc<Way>, EngineError> {
        if let Some(way) = self.made.get(options) {
            return Ok(Arc::clone(way));
        }
        let (settings, credentials) = preferred(options, &self.prefs).map_err(EngineError::Options)?;
        let client = Client::new(&settings)?;
        self.count += 1;
        let way = Arc::new(Way {
            number: self.count,
            client: match &self.script {
                Some(network) => client.scripted(Arc::clone(network)),
                None => client,
            },
            credentials,
            user_agent: settings.user_agent,
            timeouts: timeouts(options),
        });
        self.made.insert(Arc::clone(options), Arc::clone(&way));
        Ok(way)
    }

    /// The way to this host, where it is judged by certificates of its own; else the one that is there.
    ///
    /// # Errors
    /// As [`Ways::of`].
    pub(super) fn of_host(
        &mut self,
        host: &Origin,
        options: &NetOptions,
        usual: &Arc<Way>,
    ) -> Result<Arc<Way>, EngineError> {
        match self.own_roots(host) {
            Some(cacert) if options.cacert.is_none() => {
                self.of(&Arc::new(NetOptions { cacert: Some(cacert), ..options.clone() }))
            }
            _ => Ok(Arc::clone(usual)),
        }
    }

    /// The certificates by which this host is judged, where it has its own.
    pub(super) fn own_roots(&self, host: &Origin) -> Option<PathBuf> {
        self.prefs.hosts.of(host).and_then(|prefs| prefs.cacert.clone())
    }
}

impl LaneClients {
    /// This lane's client for a way.
    pub(super) fn of(&self, way: &Way) -> Client {
        self.0.borrow_mut().entry(way.number).or_insert_with(|| way.client.with_own_pool()).clone()
    }
}

fn timeouts(options: &NetOptions) -> Timeouts {
    Timeouts { first_byte: options.first_byte_timeout, stall: options.stall_timeout, stall_rate: STALL_RATE }
}

/// What the transport needs, from options; reads the cookie and netrc files, and the proxies of the environment.
///
/// # Errors
/// What cannot be used, in one line that names the option and no secret.
pub fn network(options: &NetOptions) -> Result<(NetSettings, Credentials), String> {
    preferred(options, &Preferences::default())
}

/// The same, with what is preferred where the options do not say.
fn preferred(options: &NetOptions, prefs: &Preferences) -> Result<(NetSettings, Credentials), String> {
    let settings = NetSettings {
        user_agent: options.user_agent.clone().unwrap_or_else(|| USER_AGENT.to_owned()),
        connect_timeout: options.connect_timeout,
        proxies: proxies(options.proxy.as_deref(), &prefs.travel)?,
        roots: Roots::choose(options.cacert.clone(), variable),
        verify: if options.insecure { Verify::Nothing } else { Verify::Certificates },
        identity: identity(options)?,
        pins: options
            .resolve
            .iter()
            .map(|text| Pin::parse(text).map_err(|e| e.to_string()))
            .collect::<Result<_, _>>()?,
        family: match options.family {
            AddressFamily::Any => Family::Any,
            AddressFamily::V4 => Family::V4,
            AddressFamily::V6 => Family::V6,
        },
    };
    let hosts = Arc::new(prefs.hosts.try_map(secrets)?);
    Ok((settings, Credentials { hosts, ..credentials(options)? }))
}

/// What is sent to a host, from where it stands.
fn secrets(pattern: &HostPattern, prefs: &HostPrefs) -> Result<HostSecrets, String> {
    let header = |text: &String| UserHeader::parse(text).map_err(|e| format!("the headers for {pattern}: {e}"));
    let mut secrets =
        HostSecrets { headers: prefs.headers.iter().map(header).collect::<Result<_, _>>()?, ..HostSecrets::default() };
    let login = |text: &str| {
        login(text.trim_end()).map_err(|_| format!("the credentials for {pattern} should be USER:PASSWORD"))
    };
    match &prefs.login {
        None => {}
        Some(LoginFrom::Netrc) => secrets.netrc = read_netrc()?,
        Some(LoginFrom::Env(name)) => {
            let text = variable(name).ok_or_else(|| format!("the credentials for {pattern}: {name} is not set"))?;
            secrets.login = Some(login(&text)?);
        }
        Some(LoginFrom::File(path)) => {
            let text = std::fs::read_to_string(path).map_err(|e| {
                format!("the credentials for {pattern}: cannot read {}: {}", path.display(), plain_error(&e))
            })?;
            secrets.login = Some(login(&text)?);
        }
    }
    Ok(secrets)
}

fn credentials(options: &NetOptions) -> Result<Credentials, String> {
    let header = |text: &String| UserHeader::parse(text).map_err(|e| format!("--header: {e}"));
    Ok(Credentials {
        headers: options.headers.iter().map(header).collect::<Result<_, _>>()?,
        login: options.user.as_deref().map(login).transpose()?,
        netrc: if options.netrc { read_netrc()? } else { None },
        cookies: options.cookies.as_deref().map(read_cookies).transpose()?,
        location: if options.location_trusted { LocationTrust::All } else { LocationTrust::None },
        hosts: Arc::default(),
    })
}

fn login(text: &str) -> Result<Login, String> {
    let missing = || "--user: the password is missing; write USER:PASSWORD, or use --netrc".to_owned();
    let (user, password) = text.split_once(':').ok_or_else(missing)?;
    Ok(Login { user: user.to_owned(), password: password.to_owned() })
}

/// An environment variable that is text.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn proxies(given: Option<&str>, travel: &Travel) -> Result<ProxyRules, String> {
    let Some(given) = given.or(travel.proxy.as_deref()) else {
        return ProxyRules::from_env(variable).map_err(|e| e.to_string());
    };
    // The text may hold a password, so it is not repeated.
    let proxy = ProxyUrl::parse(given, "--proxy").map_err(|e| format!("--proxy: {}", e.why))?;
    let exempt = travel.no_proxy.clone().or_else(|| ProxyRules::no_proxy_of(variable));
    Ok(ProxyRules::all(proxy, exempt.as_deref()))
}

fn identity(options: &NetOptions) -> Result<Option<Identity>, String> {
    match (&options.cert, &options.key) {
        (Some(cert), key) => Ok(Some(Identity { cert: cert.clone(), key: key.clone() })),
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
