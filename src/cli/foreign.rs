//! Every call from the face to what the floors below provide, in one place.
//!
//! The face knows the engine's types by name; what it *calls* goes through here, so that a change of a signature below
//! is mended in this file alone, and so that tests can put a fake state file in the real one's place.

#![allow(dead_code, reason = "the stand-ins leave some of it unused; this line goes when they do")]

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::backoff::Policy;
use crate::core::digest::{Algorithm, Expected};
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::MirrorUrl;
use crate::engine::{Job, Notice, Report, Settings};
use crate::io::transport::{Credentials, NetSettings};

// --- the engine

/// A cloneable handle that asks the engine to stop: what is held is saved, and `run` returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks, once and for all.
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
    /// Has somebody asked?
    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Why the engine could not run at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// Trouble on this machine: the state file is damaged, foreign or cannot be written.
    #[error("{0}")]
    Local(String),
}

/// What the engine is called as, so that a test can take its place.
pub(crate) type Engine<'a> =
    dyn FnOnce(Settings, Vec<Job>, Stop, &mut dyn FnMut(Notice)) -> Result<Vec<Report>, EngineError> + 'a;

/// Runs all jobs on the calling thread.
pub(crate) fn run_engine(
    _settings: Settings,
    _jobs: Vec<Job>,
    _stop: Stop,
    _notices: &mut dyn FnMut(Notice),
) -> Result<Vec<Report>, EngineError> {
    Err(EngineError::Local("this build has no engine".into()))
}

// --- clocks

/// Both clocks, now.
pub(crate) fn now() -> Now {
    #[expect(clippy::disallowed_methods, reason = "stands in for io/clock.rs")]
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "stands in for io/clock.rs")]
    let start = START.get_or_init(std::time::Instant::now);
    Now { wall: Epoch::ZERO + Delay::from(wall), mono: Mono::ZERO + Delay::from(start.elapsed()) }
}

// --- texts of people

/// `50ms 10s 5m 2h 14d`.
pub(crate) fn parse_delay(text: &str) -> Result<Delay, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let secs = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err("a duration is a number with a unit, such as 50ms, 10s, 5m, 2h or 14d".into()),
    };
    let number: f64 = number.parse().map_err(|_| "a duration starts with a number, such as 10s".to_owned())?;
    Ok(Delay::from_secs_f64(number * secs))
}

/// A rate in bytes per second: `64k 2.5m 1g`, 1024-based.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    parse_size(text)
}

/// `64k 2.5m 1g`, 1024-based.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(split);
    let factor = match unit {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err("a size is a number with k, m, g or t, such as 64k, 2.5m or 1g".into()),
    };
    let number: f64 = number.parse().map_err(|_| "a size starts with a number, such as 64k".to_owned())?;
    Ok((number * factor) as u64)
}

/// A span of time for people: `1 min 12 s`.
pub(crate) fn human_delay(delay: Delay) -> String {
    let two = |n: u64, unit: u64, large: &str, small: &str| match n % unit {
        0 => format!("{} {large}", n / unit),
        rest => format!("{} {large} {rest} {small}", n / unit),
    };
    let s = delay.as_secs();
    match s {
        0 if delay > Delay::ZERO => format!("{} ms", (delay.as_micros() / 1000).max(1)),
        0..60 => format!("{s} s"),
        60..3_600 => two(s, 60, "min", "s"),
        3_600..86_400 => two(s / 60, 60, "h", "min"),
        _ => two(s / 3_600, 24, "d", "h"),
    }
}

/// A number of bytes for people: `3.0 MiB`.
pub(crate) fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value < 99.95 { format!("{value:.1} {}", UNITS[unit]) } else { format!("{value:.0} {}", UNITS[unit]) }
}

/// The text with every character escaped that does something else than to be seen; never cut, as a path or a command
/// must be whole.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// `core::printable::is_hidden`.
fn is_hidden(c: char) -> bool {
    matches!(c, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

// --- policies, names, digests

/// A retry policy by its text.
pub(crate) fn policy(text: &str) -> Result<Policy, String> {
    let name = text.split(':').next().unwrap_or_default();
    let known = ["boinc", "boinc-7", "tor", "ladder", "ranged"].contains(&name);
    let unknown = || format!("there is no retry policy {name:?}: choose boinc, boinc-7, tor, ladder or ranged");
    known.then(Policy::default).ok_or_else(unknown)
}

/// A policy within these bounds instead of its own; what is wrong with them is told with the options' names.
pub(crate) fn bounded(policy: Policy, min: Option<Delay>, max: Option<Delay>) -> Result<Policy, String> {
    match (min, max) {
        (Some(min), Some(max)) if min > max => Err("--min-delay is longer than --max-delay".into()),
        _ => Ok(policy),
    }
}

/// The name of the file that a URL points to: one safe component; `index.html` where it names none.
pub(crate) fn name_from_url(url: &MirrorUrl) -> String {
    let last = url.secret_url().path().split('/').rev().find(|s| !s.is_empty()).unwrap_or_default();
    let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().replace(['/', '\0'], "_");
    if matches!(name.as_str(), "" | "." | "..") { "index.html".into() } else { name }
}

/// `sha-256=HEX` or `sha256:HEX`.
pub(crate) fn parse_digest(text: &str) -> Result<Expected, String> {
    let (name, digits) = text.split_once(['=', ':']).ok_or("a checksum is written sha-256=HEX")?;
    let (algorithm, length) =
        algorithm(name).ok_or("the algorithms are sha-256, sha-512, sha-1, md5, blake3, crc32c")?;
    let bytes = hex::decode(digits).map_err(|e| format!("its digits are no hex: {e}"))?;
    if bytes.len() != length {
        return Err(format!("a {name} digest has {} hex digits, not {}", 2 * length, digits.len()));
    }
    Ok(Expected { algorithm, bytes })
}

/// A list of digests as `sha256sum` writes it.
#[derive(Debug)]
pub(crate) struct Sums(Vec<(String, Expected)>);

impl Sums {
    /// Reads it; `list` is its own name, which tells the algorithm where its lines do not.
    pub(crate) fn parse(text: &[u8], list: &str) -> Result<Self, String> {
        let algorithm = if list.to_ascii_lowercase().contains("sha512") { "sha-512" } else { "sha-256" };
        let line = |line: &str| {
            let (digits, name) = line.split_once([' ', '\t'])?;
            let name = name.trim_start_matches([' ', '*']).trim_start_matches("./");
            Some((name.to_owned(), parse_digest(&format!("{algorithm}={digits}")).ok()?))
        };
        let sums: Vec<_> = String::from_utf8_lossy(text).lines().filter_map(line).collect();
        if sums.is_empty() { Err("there is no checksum in it".into()) } else { Ok(Self(sums)) }
    }

    /// The digests of a file, by its name or by the last component of the names in the list.
    pub(crate) fn find(&self, name: &str) -> Result<Vec<Expected>, String> {
        let same =
            |(listed, digest): &(String, Expected)| (listed.rsplit('/').next() == Some(name)).then(|| digest.clone());
        let found: Vec<_> = self.0.iter().filter_map(same).collect();
        if found.is_empty() { Err(format!("it has no checksum for {:?}", printable(name))) } else { Ok(found) }
    }
}

/// The strongest of several digests, by the name of its algorithm.
pub(crate) fn strongest(digests: &[Expected]) -> Option<&'static str> {
    digests.iter().map(|d| algorithm_name(d.algorithm)).max_by_key(|name| name.len())
}

/// The algorithm's name, as people write it.
pub(crate) fn algorithm_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Blake3 => "blake3",
        Algorithm::Crc32c => "crc32c",
        Algorithm::Md5 => "md5",
        Algorithm::Sha1 => "sha-1",
        Algorithm::Sha256 => "sha-256",
        Algorithm::Sha512 => "sha-512",
    }
}

fn algorithm(name: &str) -> Option<(Algorithm, usize)> {
    match name.to_ascii_lowercase().replace('-', "").as_str() {
        "blake3" => Some((Algorithm::Blake3, 32)),
        "crc32c" => Some((Algorithm::Crc32c, 4)),
        "md5" => Some((Algorithm::Md5, 16)),
        "sha1" => Some((Algorithm::Sha1, 20)),
        "sha256" => Some((Algorithm::Sha256, 32)),
        "sha512" => Some((Algorithm::Sha512, 64)),
        _ => None,
    }
}

// --- the network

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    /// Either.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Are certificates checked?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verify {
    /// They are.
    #[default]
    Certificates,
    /// `--insecure`: they are not.
    Nothing,
}

/// Where credentials may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// To the first origin.
    #[default]
    FirstOrigin,
    /// `--location-trusted`: to every origin that a redirect leads to.
    Redirects,
}

/// `--resolve`: the addresses of one host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolve {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) addresses: Vec<IpAddr>,
}

/// `HOST:PORT:ADDRESS[,ADDRESS...]`, addresses of IPv6 in brackets or not, as curl takes them.
pub(crate) fn parse_resolve(text: &str) -> Result<Resolve, String> {
    let bad = || "it is written HOST:PORT:ADDRESS, such as example.org:443:192.0.2.1".to_owned();
    let mut parts = text.splitn(3, ':');
    let (host, port, addresses) = (parts.next(), parts.next(), parts.next());
    let host = host.filter(|h| !h.is_empty()).ok_or_else(bad)?.to_ascii_lowercase();
    let port = port.and_then(|p| p.parse().ok()).ok_or_else(bad)?;
    let bare = |a: &str| a.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().map_err(|_| bad());
    let addresses = addresses.ok_or_else(bad)?.split(',').map(bare).collect::<Result<Vec<_>, _>>()?;
    Ok(Resolve { host, port, addresses })
}

/// A proxy, by its URL; without a scheme it is an http one.
pub(crate) fn parse_proxy(text: &str) -> Result<url::Url, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    match url::Url::parse(&whole) {
        Ok(url) if matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") && url.has_host() => Ok(url),
        // Its text may hold a password, so it is not repeated.
        _ => Err("it is no proxy's URL; write http://, https://, socks5:// or socks5h://HOST:PORT".into()),
    }
}

/// All that was asked of the network, read but not yet built into clients.
#[derive(Clone, Default)]
pub(crate) struct NetAsked {
    pub(crate) connect_timeout: Delay,
    pub(crate) proxy: Option<url::Url>,
    pub(crate) cacert: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) verify: Verify,
    pub(crate) resolve: Vec<Resolve>,
    pub(crate) family: Family,
    pub(crate) user_agent: Option<String>,
    pub(crate) headers: Vec<(http::HeaderName, http::HeaderValue)>,
    pub(crate) user: Option<(String, String)>,
    pub(crate) netrc: bool,
    pub(crate) cookies: Option<PathBuf>,
    pub(crate) trust: Trust,
}

/// What the transport needs, from what was asked; reads the certificate, cookie and netrc files.
pub(crate) fn net(_asked: NetAsked) -> Result<(NetSettings, Credentials), String> {
    Ok((NetSettings::default(), Credentials::default()))
}

/// A header of the user's, `Name: value`. What is wrong with one is told without its value, which may be a secret.
pub(crate) fn parse_header(text: &str) -> Result<(http::HeaderName, http::HeaderValue), String> {
    use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, IF_RANGE, RANGE, TRANSFER_ENCODING};
    let (name, value) = text.split_once(':').ok_or("a header is written 'Name: value'")?;
    let known =
        http::HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| format!("{name:?} is no name of a header"))?;
    if [RANGE, IF_RANGE, ACCEPT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&known) {
        return Err(format!("the header {name} is set by persxfer itself; leave it out"));
    }
    let value = http::HeaderValue::from_str(value.trim());
    Ok((known, value.map_err(|_| format!("the value of the header {name} holds a control character"))?))
}

// --- the state file

/// Damage, or something odd, in a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Which file.
    pub(crate) file: PathBuf,
    /// Line and column, from 1, where it has a place.
    pub(crate) at: Option<(usize, usize)>,
    /// What is the matter, and what was done about it.
    pub(crate) text: String,
}

/// What a state file held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The transfers, in the file's order.
    pub(crate) records: Vec<Record>,
    /// Damage that was survived.
    pub(crate) warnings: Vec<Warning>,
}

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BookError {
    /// No valid generation: nothing was overwritten.
    #[error("the state file {} is damaged: {}", path.display(), first(damage))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Every damage found.
        damage: Vec<Warning>,
    },
    /// It belongs to a BOINC client, and is never written.
    #[error("the state file {} belongs to a BOINC client; persxfer lists it, but never writes it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {doing} {}: {detail}", path.display())]
    Io {
        /// A verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
}

fn first(damage: &[Warning]) -> String {
    damage.first().map(ToString::to_string).unwrap_or_default()
}

/// `client_state.xml:3:14: what`.
impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.at {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", printable(&self.text))
    }
}

/// The state file, as the `state` commands use it.
pub(crate) trait Book {
    /// Where it is.
    fn path(&self) -> &Path;
    /// Reads it; no file at all is an empty one.
    fn load(&self) -> Result<Contents, BookError>;
    /// Takes records out, and writes the rest.
    fn remove(&self, ids: &[XferId]) -> Result<(), BookError>;
    /// The process that works on a transfer just now.
    fn holder(&self, record: &Record) -> Option<String>;
    /// The part file and what stands beside it, whether there or not; the part file first.
    fn parts(&self, record: &Record) -> Vec<PathBuf>;
}

/// The real one.
pub(crate) struct StateBook {
    path: PathBuf,
}

impl StateBook {
    /// At this path, which need not exist.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }
}

impl Book for StateBook {
    fn path(&self) -> &Path {
        &self.path
    }
    fn load(&self) -> Result<Contents, BookError> {
        match std::fs::metadata(&self.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Contents::default()),
            Err(e) => Err(BookError::Io { doing: "read", path: self.path.clone(), detail: e.to_string() }),
            Ok(_) => {
                Err(BookError::Io { doing: "read", path: self.path.clone(), detail: "this build has no reader".into() })
            }
        }
    }
    fn remove(&self, _ids: &[XferId]) -> Result<(), BookError> {
        Err(BookError::Io { doing: "write", path: self.path.clone(), detail: "this build has no writer".into() })
    }
    fn holder(&self, _record: &Record) -> Option<String> {
        None
    }
    fn parts(&self, record: &Record) -> Vec<PathBuf> {
        let beside = |path: &PathBuf, end: &str| PathBuf::from(format!("{}{end}", path.display()));
        record.path.iter().flat_map(|p| [beside(p, ".persxfer-part"), beside(p, ".persxfer-journal")]).collect()
    }
}
