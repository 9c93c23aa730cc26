//! The exceptions of `NO_PROXY`: names with all that stands below them, addresses, networks, each with or without a port.

use std::net::IpAddr;

/// One exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exempt {
    host: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    Every,
    /// A name in lower case without dots at its ends, and every name below it.
    Name(String),
    /// The addresses that share the first so many bits with this one.
    Network(IpAddr, u32),
}

/// Reads a list separated by commas or blanks. An entry that cannot be read names a host that does not exist, as in curl.
pub(super) fn parse(list: &str) -> Vec<Exempt> {
    list.split([',', ' ', '\t', '\n']).filter(|entry| !entry.is_empty()).map(Exempt::parse).collect()
}

impl Exempt {
    fn parse(entry: &str) -> Self {
        if let Some(network) = network(entry) {
            return Self { host: network, port: None };
        }
        let (host, port) = split_port(entry);
        Self { host: network(host).unwrap_or_else(|| name(host)), port }
    }

    /// Is this host with this port an exception? `host` as a URL has it: lower case, an IPv6 address in brackets.
    pub(super) fn covers(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|p| p == port) && self.host.holds(host)
    }
}

impl Hosts {
    fn holds(&self, host: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Name(name) => {
                let host = host.trim_end_matches('.');
                host == name || host.strip_suffix(name.as_str()).is_some_and(|above| above.ends_with('.'))
            }
            Self::Network(network, bits) => {
                address(host).is_some_and(|ip| first_bits(ip, *bits) == first_bits(*network, *bits))
            }
        }
    }
}

fn name(text: &str) -> Hosts {
    match text {
        "*" => Hosts::Every,
        name => Hosts::Name(name.trim_start_matches("*.").trim_matches('.').to_ascii_lowercase()),
    }
}

fn network(text: &str) -> Option<Hosts> {
    let (ip, bits) = match text.split_once('/') {
        Some((ip, bits)) => (address(ip)?, bits.parse().ok()?),
        None => {
            let ip = address(text)?;
            (ip, width(ip))
        }
    };
    (bits <= width(ip)).then_some(Hosts::Network(ip, bits))
}

/// `host:port`; a text with several colons and no brackets is an address by itself.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok()
}

fn width(ip: IpAddr) -> u32 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// The first `bits` bits; the family stays part of the value, so that networks of two families never meet.
fn first_bits(ip: IpAddr, bits: u32) -> (bool, u128) {
    let value = match ip {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    };
    (ip.is_ipv4(), value.checked_shr(width(ip).saturating_sub(bits)).unwrap_or(0))
}
