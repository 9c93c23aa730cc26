//! Sends one report of a failure: a POST, and the answer to it.
//!
//! A success is what the server says is one, and 303, by which it answers a request that it has carried out. Other redirects
//! are followed with the same request, from https never to http; the user's fields and passwords go to the first origin only.

use http::{HeaderName, HeaderValue};

use crate::core::failure::{Failure, RedirectFault};
use crate::core::file_xfer::{Ask, Carry, Freshness, Timeouts};
use crate::core::time::Delay;
use crate::core::upload::{Answer, Gate, Keep, Method};
use crate::core::url::MirrorUrl;
use crate::io::clock::Clock;
use crate::io::transport::{Credentials, Heard, Hop, OutBody, Outgoing, Uplink, WantDigest};

/// So many redirects are followed.
const MOST_REDIRECTS: u32 = 20;
/// See Other: it has been done, and something about it stands elsewhere (RFC 9110 15.4.4).
const SEE_OTHER: u16 = 303;
const REDIRECTS: [u16; 4] = [301, 302, 307, 308];
/// All of it may take so long.
const IN_ALL: Delay = Delay::from_secs(60);

/// What is sent.
#[derive(Debug)]
pub struct Posting {
    /// Where to.
    pub url: MirrorUrl,
    /// The text.
    pub body: String,
    /// The same for each try of one report, so that a server can know it again.
    pub key: String,
    /// How patient to be.
    pub timeouts: Timeouts,
}

/// With what.
#[derive(Debug)]
pub struct Hands {
    /// Connections.
    pub uplink: Uplink,
    /// What is said to hosts, and passwords for them.
    pub credentials: Credentials,
    /// The clocks.
    pub clock: Clock,
}

/// Why it was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTaken {
    /// As a failure of a request.
    pub failure: Failure,
    /// The server asked to wait so long.
    pub floor: Option<Delay>,
}

/// Sends it.
///
/// # Errors
/// [`NotTaken`] where no answer came, or none that says that it was taken.
pub async fn post(posting: Posting, hands: Hands) -> Result<(), NotTaken> {
    let told = tokio::time::timeout(IN_ALL.as_std(), along(&posting, &hands)).await;
    told.unwrap_or_else(|_| Err(not_taken(Failure::NoAnswer { waited: IN_ALL })))
}

async fn along(posting: &Posting, hands: &Hands) -> Result<(), NotTaken> {
    let mut url = posting.url.clone();
    for _ in 0..=MOST_REDIRECTS {
        let answer = once(posting, &url, hands).await?;
        if answer.is_success() || answer.status == SEE_OTHER {
            return Ok(());
        }
        if !REDIRECTS.contains(&answer.status) {
            let failure = Failure::Status { code: answer.status, retry_after: answer.retry_after };
            return Err(NotTaken { failure, floor: answer.retry_after });
        }
        let location = answer.field("location").unwrap_or_default();
        let next = url.join(location, answer.status).map_err(|fault| not_taken(Failure::Redirect(fault)))?;
        if url.is_https() && !next.is_https() {
            return Err(not_taken(Failure::Redirect(RedirectFault::Downgrade)));
        }
        url = next;
    }
    Err(not_taken(Failure::Redirect(RedirectFault::TooMany { limit: MOST_REDIRECTS })))
}

async fn once(posting: &Posting, url: &MirrorUrl, hands: &Hands) -> Result<Answer, NotTaken> {
    let first_origin = posting.url.origin();
    let carry = if url.origin() == first_origin { Carry::Everything } else { Carry::Nothing };
    let question =
        Ask { url: url.clone(), carry, range: None, if_range: None, unless: None, freshness: Freshness::CacheAllowed };
    let hop = Hop { ask: &question, typed: &posting.url, first_origin: &first_origin, want: WantDigest::No };
    let mut headers = hands.credentials.headers(&hop, "", hands.clock.now().wall);
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"));
    if let Ok(key) = HeaderValue::from_str(&format!("\"{}\"", posting.key)) {
        headers.insert(HeaderName::from_static("idempotency-key"), key);
    }
    let request = Outgoing {
        method: Method::Post,
        url: url.clone(),
        headers,
        body: OutBody::Bytes(posting.body.clone().into()),
        gate: Gate::Open,
        keep: Keep::Small,
        patience: posting.timeouts.first_byte,
        stall: posting.timeouts,
    };
    let mut exchange = hands.uplink.send(request, None);
    loop {
        match exchange.next().await {
            Heard::Answer(answer) => return Ok(*answer),
            Heard::Broke { failure, .. } => return Err(not_taken(failure)),
            Heard::Interim(_) | Heard::Sent(_) => {}
        }
    }
}

fn not_taken(failure: Failure) -> NotTaken {
    NotTaken { failure, floor: None }
}
