//! Names to addresses: those given with `--resolve` first, else the system's resolver, and of its answers only the
//! wanted family.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::connect;
use super::settings::{Family, Pin};

/// A name without an address that may be used.
#[derive(Debug, thiserror::Error)]
#[error("{host}: {detail}")]
pub(super) struct NoAddress {
    pub(super) host: String,
    pub(super) detail: String,
}

/// Looks names up for all clients of one set of settings.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    pins: Arc<[Pin]>,
    family: Family,
}

impl Resolver {
    pub(super) fn new(pins: &[Pin], family: Family) -> Self {
        Self { pins: pins.into(), family }
    }

    /// The addresses of a host that may be used; their port is 0. A port that is not known matches every pin.
    pub(super) async fn addresses(&self, host: String, port: Option<u16>) -> Result<Vec<SocketAddr>, NoAddress> {
        let found = match self.pinned(&host, port) {
            Some(addresses) => addresses,
            None => look_up(&host).await?,
        };
        allowed(host, found, self.family)
    }

    fn pinned(&self, host: &str, port: Option<u16>) -> Option<Vec<IpAddr>> {
        self.pins.iter().find(|pin| pin.covers(host, port)).map(|pin| pin.addresses.clone())
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_ascii_lowercase();
        let port = connect::port_wanted(&host);
        let resolver = self.clone();
        Box::pin(async move { Ok(Box::new(resolver.addresses(host, port).await?.into_iter()) as Addrs) })
    }
}

async fn look_up(host: &str) -> Result<Vec<IpAddr>, NoAddress> {
    let missing = |e: std::io::Error| NoAddress { host: host.to_owned(), detail: e.to_string() };
    // The port is put in by the connector.
    Ok(tokio::net::lookup_host((host, 0)).await.map_err(missing)?.map(|address| address.ip()).collect())
}

fn allowed(host: String, found: Vec<IpAddr>, family: Family) -> Result<Vec<SocketAddr>, NoAddress> {
    let usable: Vec<SocketAddr> =
        found.into_iter().filter(|ip| family.allows(*ip)).map(|ip| SocketAddr::new(ip, 0)).collect();
    if usable.is_empty() {
        let detail = match family {
            Family::Any => "it has no address".to_owned(),
            only => format!("it has no address that {} allows", only.option()),
        };
        return Err(NoAddress { host, detail });
    }
    Ok(usable)
}
