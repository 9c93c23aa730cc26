//! The client: one GET at a time on pooled connections; nothing is followed, repeated or decoded behind our back.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;
use url::Url;

use super::body::{Answer, Connection};
use super::connect::{Guard, Ride, Stage, Watch};
use super::resolve::Resolver;
use super::scripted::Network;
use super::settings::{Family, NetConfigError, NetSettings};
use super::uplink::Uplink;
use super::{explain, tls};
use crate::core::failure::Failure;
use crate::core::proxy::ProxyRules;
use crate::core::time::Delay;
use crate::core::url::{MirrorUrl, Origin};

/// An idle connection is kept so long.
pub(super) const POOL_IDLE: Duration = Duration::from_secs(90);
/// HTTP/2 flow control: what a server may send ahead, a stream and a connection. The usual 64 KiB would hold a distant
/// server back; at 100 ms of round trip these allow 40 MiB/s a stream.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
/// A connection whose sent bytes stay unacknowledged so long is dead (the connect timeout, where that is longer).
#[cfg(target_os = "linux")]
pub(super) const LEAST_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// While a connection is being made, the connect timeout rules; so often is looked whether it stands.
const LOOK: Duration = Duration::from_millis(250);
/// A timer that has run out proves nothing where our own process stood still: the network gets this time to speak.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// 421: this connection is not for this host (RFC 9110 15.5.20).
const MISDIRECTED: u16 = 421;

/// Sends requests. Clones share their connections, which live on the runtime that made them: every lane needs a client
/// of its own, from [`Client::with_own_pool`].
#[derive(Clone)]
pub struct Client {
    setup: Arc<Setup>,
    pool: Arc<Pool>,
    speaks: Speaks,
    /// Where servers name the URLs that are asked: the host of the file's own server.
    for_file_of: Option<Arc<str>>,
    /// In place of sockets.
    script: Option<Arc<dyn Network>>,
}

/// Which versions of HTTP a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// HTTP/2 where the server has it: all requests to it share one connection.
    Any,
    /// HTTP/1.1 only: requests side by side have a connection each.
    OneAtATime,
}

/// What all clients of one process share.
pub(super) struct Setup {
    pub(super) settings: NetSettings,
    pub(super) tls: rustls::ClientConfig,
    pub(super) resolver: Resolver,
    pub(super) proxies: Arc<ProxyRules>,
}

#[derive(Default)]
struct Pool {
    /// Keeps connections.
    keeping: OnceLock<reqwest::Client>,
    /// Makes a new connection for every request: for the second try after a used one failed.
    lone: OnceLock<reqwest::Client>,
    /// The same two, by HTTP/1.1 only.
    keeping_apart: OnceLock<reqwest::Client>,
    lone_apart: OnceLock<reqwest::Client>,
    second_tries: AtomicU64,
    /// For requests with bodies.
    uplink: OnceLock<Uplink>,
}

#[derive(Clone, Copy)]
enum Reuse {
    Allowed,
    Never,
}

/// A request that brought no answer.
struct Miss {
    failure: Failure,
    connection: Connection,
}

impl Miss {
    /// What a server's close of an idle connection looks like from here.
    fn is_of_a_closed_connection(&self) -> bool {
        self.connection == Connection::Reused && matches!(self.failure, Failure::Cut(_))
    }
}

impl Client {
    /// A client for these settings. Files are read here; connections, and the roots that the system trusts, wait until
    /// they are needed.
    ///
    /// # Errors
    /// [`NetConfigError`] names the option or file that cannot be used.
    pub fn new(settings: &NetSettings) -> Result<Self, NetConfigError> {
        let setup = Setup {
            tls: tls::config(settings)?,
            resolver: Resolver::new(&settings.pins, settings.family),
            proxies: Arc::new(settings.proxies.clone()),
            settings: settings.clone(),
        };
        if http::HeaderValue::from_str(&settings.user_agent).is_err() {
            return Err(NetConfigError::UserAgent { text: settings.user_agent.clone() });
        }
        // Building it now proves the settings, so that nothing can go wrong with them later.
        let pool = Pool { keeping: setup.build(Reuse::Allowed, Speaks::Any)?.into(), ..Pool::default() };
        let (setup, pool) = (Arc::new(setup), Arc::new(pool));
        Ok(Self { setup, pool, speaks: Speaks::Any, for_file_of: None, script: None })
    }

    /// The same client, whose requests go to a scripted network.
    pub fn scripted(self, network: Arc<dyn Network>) -> Self {
        Self { script: Some(network), ..self }
    }

    /// Another client of the same settings with connections of its own, for another runtime.
    pub fn with_own_pool(&self) -> Self {
        Self { setup: Arc::clone(&self.setup), pool: Arc::default(), ..self.clone() }
    }

    /// The same client for requests that are to run side by side on connections of their own: one that HTTP/2 shares is
    /// one to whoever limits what a connection may have. It speaks HTTP/1.1 only.
    pub fn apart(&self) -> Self {
        Self { speaks: Speaks::OneAtATime, ..self.clone() }
    }

    /// The same settings for requests with bodies, on connections of their own. Whoever shares this client's connections
    /// shares those too.
    pub fn uplink(&self) -> Uplink {
        self.pool.uplink.get_or_init(|| Uplink::new(Arc::clone(&self.setup), self.script.clone())).clone()
    }

    /// The same client for URLs that servers name, of a file whose own server is this: it asks no name that has an address
    /// of this machine or of a private network, unless that server's name has one too.
    pub fn for_file_of(&self, server: &Origin) -> Self {
        let guard = server.is_public_host().then(|| server.host().into());
        Self { for_file_of: guard, ..self.clone() }
    }

    /// How often a request was sent a second time, because the pooled connection it had been sent on turned out to be
    /// closed, or not to be for that host.
    pub fn second_tries(&self) -> u64 {
        self.pool.second_tries.load(Ordering::Relaxed)
    }

    /// Sends a GET and waits for the head of the answer, whatever its status (1xx are passed over). Redirects are
    /// not followed. User-info in the URL is not sent: `headers` hold all that goes out.
    ///
    /// `first_byte` counts from when the connection stands. Where a connection that was used before fails before any
    /// answer, which is how a server's idle close looks from here, the request is sent once more on a new one.
    ///
    /// # Errors
    /// [`Failure::Resolve`], [`Failure::Connect`], [`Failure::Certificate`], [`Failure::NoAnswer`], [`Failure::Cut`],
    /// [`Failure::PrivateMirror`] (see [`Client::for_file_of`]), [`Failure::BadAnswer`] for what is no HTTP, [`Failure::Status`] for a proxy's 407 to CONNECT.
    pub async fn get(&self, url: &MirrorUrl, headers: HeaderMap, first_byte: Delay) -> Result<Answer, Failure> {
        if let Some(network) = &self.script {
            return network.get(url, headers, first_byte).await;
        }
        match self.attempt(Reuse::Allowed, url, headers.clone(), first_byte).await {
            Ok(answer) if answer.status != MISDIRECTED || answer.connection == Connection::Fresh => return Ok(answer),
            Err(miss) if !miss.is_of_a_closed_connection() => return Err(miss.failure),
            Ok(_) | Err(_) => {}
        }
        self.pool.second_tries.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%url, "a used connection failed; once more on a new one");
        self.attempt(Reuse::Never, url, headers, first_byte).await.map_err(|miss| miss.failure)
    }

    async fn attempt(
        &self,
        reuse: Reuse,
        url: &MirrorUrl,
        headers: HeaderMap,
        first_byte: Delay,
    ) -> Result<Answer, Miss> {
        let fresh = |failure| Miss { failure, connection: Connection::Fresh };
        self.setup.check_family(url).map_err(fresh)?;
        let guard = self.guard(url);
        if let Some(Err(private)) = guard.as_ref().map(|guard| self.setup.resolver.check(guard)) {
            return Err(fresh(explain::private(&private)));
        }
        let client = self.client(reuse).map_err(fresh)?;
        let ride = Ride::new(self.setup.places(url), guard);
        let request = Arc::clone(&ride).along(client.execute(request(url, headers)));
        let outcome = answer_in_time(request, &ride, first_byte).await;
        let connection = match ride.stage() {
            Stage::Pooled => Connection::Reused,
            Stage::Connecting | Stage::Connected(_) => Connection::Fresh,
        };
        match outcome {
            Some(Ok(response)) => {
                Answer::new(response, connection).map_err(|failure| Miss { failure, connection: Connection::Fresh })
            }
            Some(Err(error)) => {
                let failure = explain::before_head(error, self.setup.settings.connect_timeout);
                Err(Miss { failure, connection })
            }
            None => Err(Miss { failure: Failure::NoAnswer { waited: first_byte }, connection }),
        }
    }

    /// Where a proxy is used, it looks the names up.
    fn guard(&self, url: &MirrorUrl) -> Option<Guard> {
        let of = self.for_file_of.clone().filter(|_| self.setup.proxies.proxy_for(url).is_none())?;
        Some(Guard { host: url.host().to_ascii_lowercase(), of })
    }

    fn client(&self, reuse: Reuse) -> Result<&reqwest::Client, Failure> {
        let slot = match (reuse, self.speaks) {
            (Reuse::Allowed, Speaks::Any) => &self.pool.keeping,
            (Reuse::Never, Speaks::Any) => &self.pool.lone,
            (Reuse::Allowed, Speaks::OneAtATime) => &self.pool.keeping_apart,
            (Reuse::Never, Speaks::OneAtATime) => &self.pool.lone_apart,
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let built = self.setup.build(reuse, self.speaks).map_err(|e| Failure::Connect { detail: e.to_string() })?;
        Ok(slot.get_or_init(|| built))
    }
}

impl Setup {
    fn build(&self, reuse: Reuse, speaks: Speaks) -> Result<reqwest::Client, NetConfigError> {
        let timeout = self.settings.connect_timeout.as_std();
        let mut tls = self.tls.clone();
        if speaks == Speaks::OneAtATime {
            tls::without_http_2(&mut tls);
        }
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(self.resolver.clone()))
            .connector_layer(Watch)
            .connect_timeout(timeout)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .pool_idle_timeout(POOL_IDLE);
        // Other systems have no such option.
        #[cfg(target_os = "linux")]
        {
            builder = builder.tcp_user_timeout(timeout.max(LEAST_USER_TIMEOUT));
        }
        if speaks == Speaks::OneAtATime {
            builder = builder.http1_only();
        }
        if let Reuse::Never = reuse {
            builder = builder.pool_max_idle_per_host(0);
        }
        if !self.settings.user_agent.is_empty() {
            builder = builder.user_agent(&self.settings.user_agent);
        }
        if !self.proxies.is_empty() {
            let rules = Arc::clone(&self.proxies);
            let choose = move |url: &Url| rules.proxy_for_url(url).map(|proxy| proxy.secret_url().clone());
            builder = builder.proxy(reqwest::Proxy::custom(choose));
        }
        builder.build().map_err(|e| NetConfigError::Tls { detail: e.without_url().to_string() })
    }

    /// The resolver filters names; an address in the URL itself never gets there.
    pub(super) fn check_family(&self, url: &MirrorUrl) -> Result<(), Failure> {
        let family = self.settings.family;
        let literal: Option<IpAddr> = match url.secret_url().host() {
            Some(url::Host::Ipv4(ip)) => Some(ip.into()),
            Some(url::Host::Ipv6(ip)) => Some(ip.into()),
            Some(url::Host::Domain(_)) | None => None,
        };
        match literal {
            Some(ip) if family != Family::Any && !family.allows(ip) && self.proxies.proxy_for(url).is_none() => {
                Err(Failure::Connect { detail: format!("{ip} is not an address that {} allows", family.option()) })
            }
            _ => Ok(()),
        }
    }

    /// Hosts and ports that may be looked up for a request, the proxy's first.
    fn places(&self, url: &MirrorUrl) -> Vec<(String, u16)> {
        let proxy = self.proxies.proxy_for(url).map(|proxy| (proxy.secret_url(), proxy.port()));
        let target = url.secret_url();
        let target = (target, target.port_or_known_default().unwrap_or_default());
        let place = |(url, port): (&Url, u16)| Some((url.host_str()?.to_ascii_lowercase(), port));
        proxy.into_iter().chain([target]).filter_map(place).collect()
    }
}

/// The URL without user-info: it would reach a proxy, or become a header that nobody here decided on.
fn request(url: &MirrorUrl, headers: HeaderMap) -> reqwest::Request {
    let mut bare = url.secret_url().clone();
    // These two cannot fail for a URL with a host.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    let mut request = reqwest::Request::new(http::Method::GET, bare);
    *request.headers_mut() = headers;
    request
}

/// `None` where no head came within `first_byte` of the connection.
async fn answer_in_time<T>(
    request: impl Future<Output = Result<reqwest::Response, T>>,
    ride: &Ride,
    first_byte: Delay,
) -> Option<Result<reqwest::Response, T>> {
    let mut request = std::pin::pin!(request);
    let begun = Instant::now();
    let mut deadline = later(begun, first_byte);
    let mut graced = false;
    loop {
        if let Ok(outcome) = tokio::time::timeout_at(deadline, &mut request).await {
            return Some(outcome);
        }
        let now = Instant::now();
        deadline = match ride.stage() {
            Stage::Connecting => now + LOOK,
            Stage::Connected(when) if later(when, first_byte) > now => later(when, first_byte),
            Stage::Pooled | Stage::Connected(_) if !graced => {
                graced = true;
                now + GRACE.min(first_byte.as_std())
            }
            Stage::Pooled | Stage::Connected(_) => return None,
        };
    }
}

fn later(from: Instant, delay: Delay) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 86_400);
    from + delay.as_std().min(FAR)
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("second_tries", &self.second_tries()).finish_non_exhaustive()
    }
}
