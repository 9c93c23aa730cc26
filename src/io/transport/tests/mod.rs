//! Tests of the transport against raw servers on the loopback interface.

mod bodies;
mod fields;
mod heads;
mod http2;
mod over_tls;
mod proxies;
mod server;
mod uplink;

use http::HeaderMap;

use super::*;
use crate::core::failure::Failure;
use crate::core::time::Delay;
use crate::core::url::MirrorUrl;

const PATIENT: Delay = Delay::from_secs(20);

fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).unwrap()
}

fn client() -> Client {
    Client::new(&NetSettings::default()).unwrap()
}

async fn get(client: &Client, at: &str) -> Result<Answer, Failure> {
    client.get(&url(at), HeaderMap::new(), PATIENT).await
}

/// The whole body, or what came before it failed, and how.
async fn read(mut body: Body) -> (Vec<u8>, Option<Failure>) {
    let mut all = Vec::new();
    loop {
        match body.chunk().await {
            Ok(Some(chunk)) => all.extend_from_slice(&chunk),
            Ok(None) => return (all, None),
            Err(failure) => return (all, Some(failure)),
        }
    }
}
