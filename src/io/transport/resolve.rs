//! Names to addresses: those given with `--resolve` first, else the system's resolver, and of its answers only the
//! wanted family. A name that a server gave must not lead into a private network ([`Guard`]).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::connect::{self, Guard};
use super::settings::{Family, Pin};
use crate::core::url::MirrorUrl;

/// A name without an address that may be used.
#[derive(Debug, thiserror::Error)]
#[error("{host}: {detail}")]
pub(super) struct NoAddress {
    pub(super) host: String,
    pub(super) detail: String,
}

/// A mirror that a server named, and its private address.
#[derive(Debug, thiserror::Error)]
#[error("{host}: {address} is private")]
pub(super) struct Private {
    pub(super) host: String,
    pub(super) address: IpAddr,
}

/// Who says which addresses a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The user, with `--resolve`, which makes a public server no private one.
    Pin,
    /// The system's resolver.
    System,
}

/// Names that were found to have a private address, with one of them.
type Inward = Arc<Mutex<HashMap<String, (IpAddr, Source)>>>;

/// Looks names up for all clients of one set of settings.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    pins: Arc<[Pin]>,
    family: Family,
    inward: Inward,
}

impl Resolver {
    pub(super) fn new(pins: &[Pin], family: Family) -> Self {
        Self { pins: pins.into(), family, inward: Inward::default() }
    }

    /// Does what is known of these names forbid the request? Asked before a connection that is open already is used.
    pub(super) fn check(&self, guard: &Guard) -> Result<(), Private> {
        check(&lock(&self.inward), guard)
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
        let pinned = self.pinned(&host, connect::port_wanted(&host));
        let (family, inward, guard) = (self.family, Arc::clone(&self.inward), connect::guard_of(&host));
        Box::pin(async move {
            let (found, source) = match pinned {
                Some(addresses) => (addresses, Source::Pin),
                None => (look_up(&host).await?, Source::System),
            };
            note(&mut lock(&inward), &host, &found, source);
            guard.map_or(Ok(()), |guard| check(&lock(&inward), &guard))?;
            Ok(Box::new(allowed(host, found, family)?.into_iter()) as Addrs)
        })
    }
}

fn lock(inward: &Inward) -> MutexGuard<'_, HashMap<String, (IpAddr, Source)>> {
    inward.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One private address among several is enough: which of them is connected to, nobody knows before.
fn note(inward: &mut HashMap<String, (IpAddr, Source)>, host: &str, found: &[IpAddr], source: Source) {
    match found.iter().find(|ip| !MirrorUrl::is_public_address(**ip)) {
        Some(address) => _ = inward.insert(host.to_owned(), (*address, source)),
        None => _ = inward.remove(host),
    }
}

fn check(inward: &HashMap<String, (IpAddr, Source)>, guard: &Guard) -> Result<(), Private> {
    let of_private = inward.get(&*guard.of).is_some_and(|(_, source)| *source == Source::System);
    match inward.get(&guard.host) {
        Some((address, _)) if !of_private => Err(Private { host: guard.host.clone(), address: *address }),
        _ => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_mirror_is_private_where_its_server_is_not() {
        let guard = Guard { host: "near.example.net".into(), of: "files.example.org".into() };
        let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
        let mut inward = HashMap::new();
        note(&mut inward, "near.example.net", &[address("93.184.216.34")], Source::System);
        assert!(check(&inward, &guard).is_ok());
        note(&mut inward, "near.example.net", &[address("93.184.216.34"), address("10.0.0.7")], Source::System);
        assert_eq!(check(&inward, &guard).expect_err("one is private").address, address("10.0.0.7"));
        // Both within: a network with names of its own. What the user pins says nothing of the server.
        note(&mut inward, "files.example.org", &[address("192.168.1.1")], Source::Pin);
        assert!(check(&inward, &guard).is_err());
        note(&mut inward, "files.example.org", &[address("192.168.1.1")], Source::System);
        assert!(check(&inward, &guard).is_ok());
        note(&mut inward, "files.example.org", &[address("2606:2800::1")], Source::System);
        assert!(check(&inward, &guard).is_err());
    }
}
