//! The texts of the network options: each is tried before anything is touched.

use crate::core::pers_xfer::options::NetOptions;
use crate::core::proxy::ProxyUrl;
use crate::engine;
use crate::io::transport::{Pin, UserHeader};

/// Can the transport use these options? Reads the files that they name.
pub(crate) fn try_net(options: &NetOptions) -> Result<(), String> {
    engine::network(options).map(|_| ())
}

/// `HOST:PORT:ADDRESS[,ADDRESS...]`, addresses of IPv6 in brackets or not, as curl takes them.
pub(crate) fn try_resolve(text: &str) -> Result<(), String> {
    Pin::parse(text).map(|_| ()).map_err(|e| e.to_string())
}

/// A proxy, by its URL; without a scheme it is an http one. Its text may hold a password, so it is not repeated.
pub(crate) fn try_proxy(text: &str) -> Result<(), String> {
    let advice = |why: String| format!("{why}; write http, https, socks5 or socks5h://HOST:PORT");
    ProxyUrl::parse(text, "--proxy").map(|_| ()).map_err(|e| advice(e.why))
}

/// A header of the user's, `Name: value`. What is wrong with one is told without its value, which may be a secret.
pub(crate) fn try_header(text: &str) -> Result<(), String> {
    UserHeader::parse(text).map(|_| ()).map_err(|e| e.to_string())
}
