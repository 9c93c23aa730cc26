//! A new connection to whoever answers a URL: names, proxies, TLS.

use std::error::Error;
use std::future::{Future, Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use http::header::{HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tower_service::Service;

use super::Shared;
use super::stream::Stream;
use crate::core::failure::Failure;
use crate::core::proxy::ProxyUrl;
use crate::core::url::MirrorUrl;
#[cfg(target_os = "linux")]
use crate::io::transport::client::LEAST_USER_TIMEOUT;
use crate::io::transport::explain;
use crate::io::transport::resolve::{NoAddress, Resolver};

/// A silent connection is probed after so long, so often: as for downloads.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_TRIES: u32 = 3;

type Fault = Box<dyn Error + Send + Sync>;
type Made = Result<Stream, Fault>;

/// A host and a port to connect to.
struct Place {
    host: String,
    port: u16,
}

/// Connects, in the time that the settings allow.
pub(super) async fn reach(shared: &Shared, url: &MirrorUrl) -> Result<Stream, Failure> {
    shared.setup.check_family(url)?;
    let limit = shared.setup.settings.connect_timeout;
    match tokio::time::timeout(limit.as_std(), way(shared, url)).await {
        Ok(made) => made.map_err(|error| explain::before_connection(&*error, limit)),
        Err(_) => Err(explain::no_connection_within(limit)),
    }
}

/// The proxy that is asked with the whole URL, and what it is told of who asks: one for http, towards http.
pub(super) fn asked_whole<'a>(shared: &'a Shared, url: &MirrorUrl) -> Option<&'a ProxyUrl> {
    shared.setup.proxies.proxy_for(url).filter(|proxy| !url.is_https() && !is_socks(proxy))
}

/// The name and password of a proxy's URL, as a field's value.
pub(super) fn authorization(proxy: &ProxyUrl) -> Option<HeaderValue> {
    let (user, password) = proxy.credentials()?;
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    let mut value = HeaderValue::try_from(format!("Basic {basic}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn is_socks(proxy: &ProxyUrl) -> bool {
    proxy.secret_url().scheme().starts_with("socks")
}

async fn way(shared: &Shared, url: &MirrorUrl) -> Made {
    let target = Place { host: url.host().to_owned(), port: url.port() };
    let stream = match shared.setup.proxies.proxy_for(url) {
        None => tcp(shared, &target).await?,
        Some(proxy) if is_socks(proxy) => through_socks(shared, proxy, &target).await?,
        Some(proxy) => through_http(shared, proxy, url, &target).await?,
    };
    if url.is_https() { over_tls(shared, &target.host, stream).await } else { Ok(stream) }
}

async fn tcp(shared: &Shared, place: &Place) -> Made {
    let names = Names { resolver: shared.setup.resolver.clone(), port: place.port };
    let timeout = shared.setup.settings.connect_timeout.as_std();
    let mut connector = HttpConnector::new_with_resolver(names);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(timeout));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE));
    connector.set_keepalive_retries(Some(KEEPALIVE_TRIES));
    // Other systems have no such option.
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(timeout.max(LEAST_USER_TIMEOUT)));
    Ok(Stream::Tcp(connector.call(place.uri()?).await?.into_inner()))
}

async fn over_tls(shared: &Shared, host: &str, stream: Stream) -> Made {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let name = ServerName::try_from(bare.to_owned())?;
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(&shared.tls));
    Ok(Stream::Tls(Box::new(connector.connect(name, stream).await?)))
}

async fn through_http(shared: &Shared, proxy: &ProxyUrl, url: &MirrorUrl, target: &Place) -> Made {
    let place = Place::of(proxy);
    let mut stream = tcp(shared, &place).await?;
    if proxy.secret_url().scheme() == "https" {
        stream = over_tls(shared, &place.host, stream).await?;
    }
    if !url.is_https() {
        return Ok(stream);
    }
    let mut told = HeaderMap::new();
    if let Some(value) = authorization(proxy) {
        told.insert(PROXY_AUTHORIZATION, value);
    }
    if let Some(agent) = agent(shared) {
        told.insert(USER_AGENT, agent);
    }
    let mut tunnel = Tunnel::new(place.uri()?, Already(Some(stream))).with_headers(told);
    Ok(tunnel.call(target.uri()?).await?.into_inner())
}

async fn through_socks(shared: &Shared, proxy: &ProxyUrl, target: &Place) -> Made {
    let place = Place::of(proxy);
    let stream = tcp(shared, &place).await?;
    let mut socks = SocksV5::new(place.uri()?, Already(Some(stream)));
    if let Some((user, password)) = proxy.credentials() {
        socks = socks.with_auth(user, password);
    }
    let far = if proxy.secret_url().scheme() == "socks5" { here(shared, target).await? } else { target.uri()? };
    let made = socks.call(far).await.map_err(|e| io::Error::other(format!("the SOCKS proxy: {e}")))?;
    Ok(made.into_inner())
}

/// The target by its address, where the proxy is not to look names up.
async fn here(shared: &Shared, target: &Place) -> Result<Uri, Fault> {
    let literal = target.host.starts_with('[') || target.host.parse::<std::net::Ipv4Addr>().is_ok();
    if literal {
        return target.uri();
    }
    let found = shared.setup.resolver.addresses(target.host.clone(), Some(target.port)).await?;
    let missing = || NoAddress { host: target.host.clone(), detail: "it has no address".to_owned() };
    let mut address = *found.first().ok_or_else(missing)?;
    address.set_port(target.port);
    Ok(Uri::builder().scheme("http").authority(address.to_string()).path_and_query("/").build()?)
}

/// The User-Agent of the settings, if any.
pub(super) fn agent(shared: &Shared) -> Option<HeaderValue> {
    let agent = &shared.setup.settings.user_agent;
    // That it can be a value was proven when the client was made.
    (!agent.is_empty()).then(|| HeaderValue::from_str(agent).ok()).flatten()
}

impl Place {
    fn of(proxy: &ProxyUrl) -> Self {
        Self { host: proxy.secret_url().host_str().unwrap_or_default().to_ascii_lowercase(), port: proxy.port() }
    }

    fn uri(&self) -> Result<Uri, Fault> {
        let authority = format!("{}:{}", self.host, self.port);
        Ok(Uri::builder().scheme("http").authority(authority).path_and_query("/").build()?)
    }
}

/// Looks names up for a connection to this port.
#[derive(Clone)]
struct Names {
    resolver: Resolver,
    port: u16,
}

impl Service<Name> for Names {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = NoAddress;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, NoAddress>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAddress>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { resolver, port } = self.clone();
        let host = name.as_str().to_ascii_lowercase();
        Box::pin(async move { Ok(resolver.addresses(host, Some(port)).await?.into_iter()) })
    }
}

/// A connection that stands already, for those who speak to a proxy on it.
struct Already(Option<Stream>);

impl Service<Uri> for Already {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Ready<Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().map(TokioIo::new).ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}
