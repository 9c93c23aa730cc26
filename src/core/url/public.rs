//! Which hosts are public: neither this machine, nor a private network, nor set aside (the IANA special-purpose
//! registries).
//!
//! A server may name mirrors of a file; it must not make us talk to the printer beside us.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Names that only a local network resolves (RFC 6761, RFC 6762, RFC 8375, and `internal`, which ICANN set aside).
const LOCAL_ZONES: [&str; 7] = ["localhost", "local", "internal", "home.arpa", "lan", "localdomain", "test"];

pub(super) fn is_public(host: Option<Host<&str>>) -> bool {
    match host {
        Some(Host::Domain(name)) => public_name(name),
        Some(Host::Ipv4(address)) => public_v4(address),
        Some(Host::Ipv6(address)) => public_v6(address),
        None => false,
    }
}

pub(super) fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => public_v4(address),
        IpAddr::V6(address) => public_v6(address),
    }
}

fn public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let within = |zone: &str| name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    name.contains('.') && !LOCAL_ZONES.iter().any(|zone| within(zone))
}

fn public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        [0 | 240..=255, ..] => true,
        [100, second, ..] => (64..128).contains(&second),
        [192, 0, 0, _] => true,
        [198, 18 | 19, ..] => true,
        _ => false,
    };
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // IPv4 inside IPv6: mapped, compatible (`::1` and `::` are among these), NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => public_v4(v4(high, low)),
        [0x2002, high, low, ..] => public_v4(v4(high, low)),
        // Documentation, Teredo, and benchmarking.
        [0x2001, 0xdb8 | 0 | 2, ..] | [0x3fff, ..] => false,
        // Otherwise global unicast is what is handed out.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}
