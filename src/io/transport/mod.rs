//! Requests and answers over the network: HTTP/1.1 and HTTP/2 by ALPN, on reqwest (RFC 9110, 9112, 9113).
//!
//! One call is one exchange ([`Client::get`], and [`Uplink::send`] for requests with bodies); every error becomes a [`crate::core::failure::Failure`]. What goes out in
//! a request is decided by [`Credentials::headers`]. No type of reqwest, hyper or rustls leaves this folder.
//! See `docs/transport.md`.

mod body;
mod client;
mod connect;
mod credentials;
mod explain;
mod header_text;
mod resolve;
mod scripted;
mod settings;
mod throttle;
mod tls;
mod uplink;

#[cfg(test)]
mod tests;

pub use body::{Answer, Body, Connection};
pub use client::Client;
pub use credentials::{Cookies, Credentials, Hop, HostSecrets, LocationTrust, Login, Netrc, WantDigest};
pub use explain::ended_short;
pub use header_text::{BadHeader, UserHeader};
pub use scripted::{Network, Outflow, Pieces, Soon};
pub use settings::{Family, Identity, NetConfigError, NetSettings, Pin, Roots, USER_AGENT, Verify};
pub use throttle::{Brake, Throttle};
pub use uplink::{Exchange, Heard, OutBody, Outgoing, Uplink};
