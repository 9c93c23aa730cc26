//! A request of the machine made ready for the network: the user's fields where they may go, and the file behind a range.

use std::fs::File;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use crate::core::file_xfer::{Ask as Question, Carry, Freshness, Timeouts};
use crate::core::time::{Delay, Epoch};
use crate::core::upload::{Ask, BODY_PATIENCE, Body, Carries};
use crate::core::url::{MirrorUrl, Origin};
use crate::io::transport::{Credentials, Hop, OutBody, Outgoing, WantDigest};

/// Whose session it is.
pub(super) struct Whose<'a> {
    /// The server's URL, as it was typed.
    pub(super) typed: &'a MirrorUrl,
    /// The origin of the transfer's first URL.
    pub(super) first_origin: &'a Origin,
    /// What the user adds.
    pub(super) credentials: &'a Credentials,
    /// Does the protocol let that go along?
    pub(super) carries: Carries,
}

/// The request as it goes out. What the protocol says stands before what the user adds.
/// Nothing where it would carry bytes of a file that is not open.
pub(super) fn outgoing(
    ask: Ask,
    whose: &Whose<'_>,
    file: Option<&Arc<File>>,
    stall: Timeouts,
    now: Epoch,
) -> Option<Outgoing> {
    let carry = match whose.carries {
        // Wherever it leads, and whatever origins the user trusts.
        Carries::Nothing => Carry::Never,
        Carries::Users if ask.url.origin() == whose.typed.origin() => Carry::Everything,
        Carries::Users => Carry::Nothing,
    };
    let question = Question {
        url: ask.url.clone(),
        carry,
        range: None,
        if_range: None,
        unless: None,
        freshness: Freshness::CacheAllowed,
    };
    let hop = Hop { ask: &question, typed: whose.typed, first_origin: whose.first_origin, want: WantDigest::No };
    let mut headers = whose.credentials.headers(&hop, "", now);
    for (name, value) in &ask.fields {
        // Texts that no field can carry come from nowhere but a defect or a damaged state; the server misses them.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    let body = match ask.body {
        Body::Nothing => OutBody::Nothing,
        Body::Bytes(bytes) => OutBody::Bytes(bytes.into()),
        Body::Source(range) => OutBody::Source { before: bytes::Bytes::new(), file: Arc::clone(file?), range },
        Body::Framed { before, range } => OutBody::Source { before: before.into(), file: Arc::clone(file?), range },
    };
    let Ask { method, url, gate, keep, patience, .. } = ask;
    let patience = patience_of(patience, stall.first_byte);
    Some(Outgoing { method, url, headers, body, gate, keep, patience, stall })
}

/// How long the answer is waited for. After a body the user's word counts, whatever it is; what the protocol would not wait
/// so long for is cut short by it.
fn patience_of(asked: Delay, first_byte: Delay) -> Delay {
    if asked == BODY_PATIENCE { first_byte } else { asked.min(first_byte) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::upload::{ABANDON_PATIENCE, PATIENCE};

    #[test]
    fn the_users_word_counts_for_the_answer_to_a_body_and_shortens_the_rest() {
        let (second, hour) = (Delay::from_secs(1), Delay::from_mins(60));
        assert_eq!([second, hour].map(|user| patience_of(BODY_PATIENCE, user)), [second, hour]);
        assert_eq!([second, hour].map(|user| patience_of(PATIENCE, user)), [second, PATIENCE]);
        assert_eq!([second, hour].map(|user| patience_of(ABANDON_PATIENCE, user)), [second, ABANDON_PATIENCE]);
    }
}
