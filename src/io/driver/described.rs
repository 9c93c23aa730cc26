//! The metalink that a server names for its file (`Link: rel=describedby`, RFC 6249 4): fetched beside the file, and read
//! when the file is whole, or when its mirrors are needed. Whatever goes wrong with it costs the download nothing.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::core::file_xfer::{Ask, Carry, Freshness};
use crate::core::metalink::Metalink;
use crate::core::url::{MirrorUrl, Origin};
use crate::io::driver::Hands;
use crate::io::driver::session::Session;
use crate::io::transport::{Hop, WantDigest};

/// The largest metalink that is fetched unasked.
const MOST: usize = 4 << 20;
/// It may take so long in all.
const PATIENCE: Duration = Duration::from_secs(20);
/// Once the file is whole, nobody waits longer than this for what describes it.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// What is known of the file's description.
#[derive(Debug, Default)]
pub(super) enum Description {
    /// None was named.
    #[default]
    None,
    /// It is being fetched.
    Coming(oneshot::Receiver<Vec<u8>>),
    /// It was read, or could not be.
    Done,
}

impl Session {
    /// Begins to fetch what describes the file, where the open answer names it; once a session.
    pub(super) fn look_for_description(&mut self) {
        let Some(url) = self.machine.metalink().filter(|_| matches!(self.description, Description::None)) else {
            return;
        };
        tracing::debug!(%url, "the server names a metalink");
        let (tell, told) = oneshot::channel();
        let hands = self.hands.clone();
        let first_byte = self.orders.timeouts.first_byte;
        let (typed, first) = (self.orders.url.clone(), self.orders.first_origin.clone());
        let fetch = async move {
            let Ok(Some(bytes)) =
                tokio::time::timeout(PATIENCE, fetch(&hands, &url, (&typed, &first), first_byte)).await
            else {
                return;
            };
            // Nobody may be waiting any more.
            let _ = tell.send(bytes);
        };
        drop(tokio::task::spawn_local(fetch));
        self.description = Description::Coming(told);
    }

    /// The file is whole: what describes it may still bring a digest.
    pub(super) async fn await_description(&mut self) {
        if let Description::Coming(told) = &mut self.description {
            let bytes = tokio::time::timeout(LAST_WAIT, told).await;
            self.description = Description::Done;
            if let Ok(Ok(bytes)) = bytes {
                self.described(&bytes);
            }
        }
    }

    /// The session ends: what has come of the description by now is made use of.
    pub(super) fn take_description(&mut self) {
        if let Description::Coming(told) = &mut self.description {
            let bytes = told.try_recv();
            self.description = Description::Done;
            if let Ok(bytes) = bytes {
                self.described(&bytes);
            }
        }
    }

    fn described(&mut self, bytes: &[u8]) {
        match Metalink::parse(bytes) {
            Ok(metalink) => self.machine.described(&metalink),
            Err(error) => tracing::debug!(%error, "the metalink that the server names is of no use"),
        }
        self.tell_named();
    }
}

/// One plain GET, with nothing of the user's.
async fn fetch(
    hands: &Hands,
    url: &MirrorUrl,
    (typed, first_origin): (&MirrorUrl, &Origin),
    first_byte: crate::core::time::Delay,
) -> Option<Vec<u8>> {
    let ask = Ask {
        url: url.clone(),
        carry: Carry::Never,
        range: None,
        if_range: None,
        unless: None,
        freshness: Freshness::CacheAllowed,
    };
    let hop = Hop { ask: &ask, typed, first_origin, want: WantDigest::No };
    let (head, mut body) = hands.get(&hop, first_byte).await.ok()?;
    if head.status != 200 {
        return None;
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await.ok()? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST {
            return None;
        }
    }
    Some(bytes)
}
