//! Requests and answers over the network.

/// What the transport needs: proxies, TLS, addresses, user agent.
#[derive(Clone, Debug, Default)]
pub struct NetSettings {}

/// The user's headers and credentials.
#[derive(Clone, Debug, Default)]
pub struct Credentials {}
