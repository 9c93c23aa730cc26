//! What an answer names as the digest of its own body (Content-Digest, RFC 9530), compared with the body as it flows. It
//! says something once all of that body is here; of part of it, it says nothing.

use crate::core::digest::{Algorithm, Expected};
use crate::core::failure::Failure;
use crate::core::file_xfer::{AnswerHead, LastWord};
use crate::core::range::Length;
use crate::io::part::Digests;

/// A body under way, of which its answer names the digest.
#[derive(Debug)]
pub(super) struct Content {
    named: Expected,
    digests: Digests,
    came: Length,
    /// How long it is, where its head tells.
    length: Option<Length>,
}

impl Content {
    /// Of an answer that brings bytes of the file and names a digest by SHA-256 or SHA-512. Where a digest of the file is
    /// law, that decides, whatever servers say.
    pub(super) fn of(head: &AnswerHead, last_word: LastWord) -> Option<Self> {
        if last_word == LastWord::Digest || !matches!(head.status, 200 | 203 | 206) || head.coding.is_some() {
            return None;
        }
        let sound = |d: &&Expected| matches!(d.algorithm, Algorithm::Sha256 | Algorithm::Sha512);
        // A server that says the same of the whole and of a part does not know the one from the other.
        let is_of_the_whole = |d: &&Expected| head.status == 206 && head.repr_digests.contains(d);
        let named: Vec<Expected> =
            head.content_digests.iter().filter(sound).filter(|d| !is_of_the_whole(d)).cloned().collect();
        let named = Expected::strongest(&named)?.clone();
        let digests = Digests::new(&[named.algorithm]);
        Some(Self { named, digests, came: Length::ZERO, length: head.length() })
    }

    /// The next bytes of the body.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.digests.update(bytes);
        self.came = self.came + Length(bytes.len() as u64);
    }

    /// What is wrong with the body, where all of it is here.
    pub(super) fn fault(&self, end: BodyEnd) -> Option<Failure> {
        let is_whole = end == BodyEnd::Framed || self.length == Some(self.came);
        let is_right = || self.digests.finish().iter().any(|(_, found)| *found == self.named.bytes);
        (is_whole && !is_right()).then(|| Failure::Content { algorithm: self.named.algorithm.name() })
    }
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// More may follow.
    Open,
    /// To the end that its framing gives it.
    Framed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::file_xfer::Framing;
    use crate::core::time::Epoch;
    use http::HeaderMap;

    const HELLO: &str = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:";

    fn head(status: u16, headers: &[(&'static str, &str)], length: u64) -> AnswerHead {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a value"));
        }
        AnswerHead::read(status, Framing::Length(Length(length)), &map, Epoch::from_secs(0))
    }

    fn of(head: &AnswerHead) -> Option<Content> {
        Content::of(head, LastWord::Joints)
    }

    #[test]
    fn a_whole_body_is_right_or_wrong_and_part_of_one_is_neither() {
        for (body, wrong) in [("hello", false), ("hallo", true)] {
            let mut content = of(&head(206, &[("content-digest", HELLO)], 5)).expect("a digest");
            content.feed(&body.as_bytes()[..3]);
            assert_eq!(content.fault(BodyEnd::Open), None);
            content.feed(&body.as_bytes()[3..]);
            assert_eq!(content.fault(BodyEnd::Open).is_some(), wrong, "{body}");
        }
    }

    #[test]
    fn what_says_nothing_of_the_body_is_left_alone() {
        assert!(Content::of(&head(200, &[("content-digest", HELLO)], 5), LastWord::Digest).is_none());
        assert!(of(&head(206, &[("content-digest", HELLO), ("repr-digest", HELLO)], 5)).is_none());
        assert!(of(&head(200, &[("content-digest", HELLO), ("repr-digest", HELLO)], 5)).is_some());
        assert!(of(&head(503, &[("content-digest", HELLO)], 5)).is_none());
        assert!(of(&head(200, &[("content-digest", HELLO), ("content-encoding", "gzip")], 5)).is_none());
        assert!(of(&head(200, &[("content-digest", "md5=:XUFAKrxLKna5cZ2REBfFkg==:")], 5)).is_none());
    }
}
