//! What goes out with a request: the one place that decides which secret goes where (design 3.11).
//!
//! Headers of the user go to every URL that was typed. Credentials among them, and `-u`, go to the first origin only;
//! user-info in a typed URL to that URL's origin; netrc and cookie files to the hosts they name, where such a host was
//! typed. Nothing of this crosses an origin by redirect, unless the user trusts locations.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use super::header_text::UserHeader;
use crate::core::digest;
use crate::core::file_xfer::{Ask, Carry, Freshness, Unless};
use crate::core::prefs::ByHost;
use crate::core::time::Epoch;
use crate::core::url::{MirrorUrl, Origin};

/// RFC 9530: which digests of the whole are wanted, and how much.
const WANTED_DIGESTS: HeaderValue = HeaderValue::from_static(digest::WANT_REPR_DIGEST);
const WANT_REPR_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");

/// The user's headers and credentials. Shown without values.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// `-H`, in the order given.
    pub headers: Vec<UserHeader>,
    /// `-u`.
    pub login: Option<Login>,
    /// `--netrc`.
    pub netrc: Option<Netrc>,
    /// `--cookies`.
    pub cookies: Option<Cookies>,
    /// `--location-trusted`.
    pub location: LocationTrust,
    /// What is preferred of hosts: it goes to them where they were typed, after what the command says.
    pub hosts: Arc<ByHost<HostSecrets>>,
}

/// What is sent to one host, or to a family of them. Shown without values.
#[derive(Clone, Debug, Default)]
pub struct HostSecrets {
    /// Headers of every request.
    pub headers: Vec<UserHeader>,
    /// A user and a password.
    pub login: Option<Login>,
    /// Where else they stand.
    pub netrc: Option<Netrc>,
}

/// A user and a password. Shown without both.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// May redirects to other origins take the user's headers and credentials along?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocationTrust {
    /// No.
    #[default]
    None,
    /// Yes: whoever is redirected to may see everything (`--location-trusted`).
    All,
}

/// Looks up a host, and a user where the URL names one.
#[derive(Clone)]
pub struct Netrc(Arc<NetrcLookUp>);

type NetrcLookUp = dyn Fn(&str, Option<&str>) -> Option<Login> + Send + Sync;

/// Gives the text of the Cookie header for a URL at a time.
#[derive(Clone)]
pub struct Cookies(Arc<CookieJar>);

type CookieJar = dyn Fn(&MirrorUrl, Epoch) -> Option<String> + Send + Sync;

/// One request, as far as credentials are concerned.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    /// The request.
    pub ask: &'a Ask,
    /// The URL that was typed, with which this session began: its user-info is for its origin, also after a redirect
    /// within it.
    pub typed: &'a MirrorUrl,
    /// The origin of the first URL that was typed for this transfer.
    pub first_origin: &'a Origin,
    /// Is a digest of the whole wanted?
    pub want: WantDigest,
}

/// Is the server asked for a digest of the whole file (`Want-Repr-Digest`)?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantDigest {
    /// No.
    #[default]
    No,
    /// Yes.
    Yes,
}

/// What of the user's may go along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    Everything,
    Headers,
    Nothing,
}

impl Credentials {
    /// All fields of a request.
    ///
    /// A text that no field can carry (it can only come from a damaged state) is left out: a request without If-Range
    /// is judged by comparison, one without a condition brings the file.
    pub fn headers(&self, hop: &Hop<'_>, user_agent: &str, now: Epoch) -> HeaderMap {
        let may = self.may(hop);
        let mut fields = HeaderMap::new();
        put(&mut fields, header::USER_AGENT, user_agent);
        put(&mut fields, header::ACCEPT, "*/*");
        if let Some(host) = self.of_host(hop, may) {
            for header in &host.headers {
                fields.insert(header.name(), header.secret_value().clone());
            }
        }
        self.put_user_headers(&mut fields, may);
        if let Some(login) = self.login_for(hop, may)
            && !fields.contains_key(header::AUTHORIZATION)
        {
            fields.insert(header::AUTHORIZATION, login.basic());
        }
        if let Some(Cookies(jar)) = &self.cookies
            && may != May::Nothing
            && !fields.contains_key(header::COOKIE)
        {
            put_secret(&mut fields, header::COOKIE, &jar(&hop.ask.url, now).unwrap_or_default());
        }
        put_conditions(&mut fields, hop.ask);
        if hop.want == WantDigest::Yes && !fields.contains_key(WANT_REPR_DIGEST) {
            fields.insert(WANT_REPR_DIGEST, WANTED_DIGESTS);
        }
        // Last, so that nothing overrides it.
        fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        fields
    }

    fn may(&self, hop: &Hop<'_>) -> May {
        match hop.ask.carry {
            Carry::Nothing if self.location == LocationTrust::All => May::Everything,
            Carry::Nothing | Carry::Never => May::Nothing,
            Carry::Everything if hop.ask.url.origin() == *hop.first_origin => May::Everything,
            Carry::Everything | Carry::Headers => May::Headers,
        }
    }

    fn of_host(&self, hop: &Hop<'_>, may: May) -> Option<&HostSecrets> {
        if may == May::Nothing { None } else { self.hosts.of(&hop.ask.url.origin()) }
    }

    fn put_user_headers(&self, fields: &mut HeaderMap, may: May) {
        let allowed = |h: &&UserHeader| may == May::Everything || may == May::Headers && !h.is_for_one_origin();
        let mut seen: Vec<&HeaderName> = Vec::new();
        for header in self.headers.iter().filter(allowed) {
            if seen.contains(&header.name()) {
                fields.append(header.name(), header.secret_value().clone());
            } else {
                // The first of a name takes the place of ours.
                fields.insert(header.name(), header.secret_value().clone());
                seen.push(header.name());
            }
        }
    }

    /// The nearest login: in the URL itself, in the typed URL of the same origin, `-u`, what is preferred of the host, netrc.
    fn login_for(&self, hop: &Hop<'_>, may: May) -> Option<Login> {
        let url = &hop.ask.url;
        let typed = || (hop.typed.origin() == url.origin()).then(|| Login::in_url(hop.typed)).flatten();
        let own = Login::in_url(url).or_else(typed);
        let host = self.of_host(hop, may);
        let netrc = |user: Option<&str>| match self.netrc.as_ref().or_else(|| host?.netrc.as_ref()) {
            Some(Netrc(look_up)) if may != May::Nothing => look_up(url.secret_url().host_str()?, user),
            _ => None,
        };
        match own {
            // A user without a password: netrc may know it.
            Some(own) if own.password.is_empty() => Some(netrc(Some(&own.user)).unwrap_or(own)),
            Some(own) => Some(own),
            None if may == May::Everything && self.login.is_some() => self.login.clone(),
            None => host.and_then(|host| host.login.clone()).or_else(|| netrc(None)),
        }
    }
}

impl Login {
    /// The user-info of a URL, where it has one.
    pub fn in_url(url: &MirrorUrl) -> Option<Self> {
        let url = url.secret_url();
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, password) = (url.username(), url.password());
        (!user.is_empty() || password.is_some())
            .then(|| Self { user: decode(user), password: decode(password.unwrap_or_default()) })
    }

    /// RFC 7617.
    fn basic(&self) -> HeaderValue {
        let text = format!("Basic {}", STANDARD.encode(format!("{}:{}", self.user, self.password)));
        // Base64 holds nothing that a field could not carry; an empty value stands for the impossible.
        let mut value = HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }
}

impl Netrc {
    /// From a look-up by host in lower case, and by user where one is known.
    pub fn new(look_up: impl Fn(&str, Option<&str>) -> Option<Login> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }
}

impl Cookies {
    /// From a function that gives the text of the Cookie header for a URL, or nothing.
    pub fn new(jar: impl Fn(&MirrorUrl, Epoch) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(jar))
    }
}

/// What the session asks for. A range without an end: a server may end sooner, we may stop sooner.
fn put_conditions(fields: &mut HeaderMap, ask: &Ask) {
    if let Some(wanted) = ask.range {
        put(fields, header::RANGE, &wanted.text());
        put(fields, header::IF_RANGE, ask.if_range.as_deref().unwrap_or_default());
    }
    match &ask.unless {
        Some(Unless::Match(tag)) => put(fields, header::IF_NONE_MATCH, tag),
        Some(Unless::ModifiedSince(date)) => put(fields, header::IF_MODIFIED_SINCE, date),
        None => {}
    }
    if ask.freshness == Freshness::NoCache {
        put(fields, header::CACHE_CONTROL, "no-cache");
        put(fields, header::PRAGMA, "no-cache");
    }
}

/// Puts a field, unless its text is empty or cannot be carried.
fn put(fields: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_bytes(text.as_bytes())
        && !value.is_empty()
    {
        fields.insert(name, value);
    }
}

fn put_secret(fields: &mut HeaderMap, name: HeaderName, text: &str) {
    put(fields, name.clone(), text);
    if let Some(value) = fields.get_mut(name) {
        value.set_sensitive(true);
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(...)")
    }
}

impl fmt::Debug for Netrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Netrc(...)")
    }
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookies(...)")
    }
}
