//! What a server says of the whole file: its digest (RFC 9530, and the older Digest of RFC 3230), where else the file is
//! to be had, and what describes it (RFC 6249). Design 3.8 and 3.12.
//!
//! A server's digest vouches for the transport: that the bytes here are those that it meant to send. It is kept with the
//! version that it was said of. Where the same server says another one, the file is another one, whatever its validators
//! say. The one mistake that is common, a digest of the part that is sent in place of the whole, is found out by asking
//! for the whole once: the head of that answer shows it.

use crate::core::digest::{Algorithm, Expected};
use crate::core::file_xfer::dossier::Draft;
use crate::core::file_xfer::machine::{FileXfer, Open};
use crate::core::file_xfer::said::differ;
use crate::core::file_xfer::{AnswerHead, LastWord, NamedBy};
use crate::core::links::{MAX_DUPLICATES, described_by, duplicates};
use crate::core::metalink::{MetaFile, Metalink};
use crate::core::name::SafeName;
use crate::core::url::{MirrorUrl, Origin};
use crate::core::validator::Sameness;

/// The media type of a metalink (RFC 5854).
const METALINK: &str = "application/metalink4+xml";

/// Mirrors that a server named, of the file with this digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMirrors {
    /// Who named them.
    pub by: Origin,
    /// The digest of the whole that makes bytes from there the file.
    pub digest: Expected,
    /// The best first; at most [`MAX_DUPLICATES`].
    pub urls: Vec<MirrorUrl>,
}

impl AnswerHead {
    /// The digests of the whole file, in the coding it is sent in, that this answer names. The body of a 200 is the whole
    /// file, so what it says of that counts too; an algorithm of which the two say different things says nothing.
    pub(super) fn vouched(&self) -> Vec<Expected> {
        let whole = matches!(self.status, 200 | 203);
        let of_body = if whole && self.coding.is_none() { &self.content_digests[..] } else { &[] };
        if !whole && self.status != 206 {
            return Vec::new();
        }
        let all: Vec<Expected> = self.repr_digests.iter().chain(of_body).cloned().collect();
        let mut vouched: Vec<Expected> = Vec::new();
        for one in all.iter().filter(|one| !differ(std::slice::from_ref(one), &all)) {
            if !vouched.contains(one) {
                vouched.push(one.clone());
            }
        }
        vouched
    }
}

/// Does what is said name other digests than any that is known of the file? Of servers that contradict each other, several
/// may be known.
pub fn contradict(said: &[Expected], known: &[Expected]) -> bool {
    let by = |one: &Expected| known.iter().any(|other| other.algorithm == one.algorithm);
    said.iter().any(|one| by(one) && !known.contains(one))
}

impl FileXfer {
    /// By which digest the draft at hand is to be checked, where a server vouches for it.
    pub fn vouched(&self) -> Option<&Expected> {
        self.draft().vouched()
    }

    /// All that servers vouch for of the draft at hand.
    pub fn all_vouched(&self) -> &[Expected] {
        &self.draft().vouched
    }

    /// The metalink that the open answer names, of which nothing is known but its URL; not one in a private network
    /// from a public host, and not over http from https.
    pub fn metalink(&self) -> Option<MirrorUrl> {
        let base = &self.asking.url;
        described_by(&self.head()?.links, base, METALINK).filter(|url| url.is_https() || !base.is_https())
    }

    /// What the metalink says that the server named: of this very file, by its size, and without a contradiction to what is
    /// law or vouched for already. It vouches as the server does, and its mirrors count where a digest proves the file.
    pub fn described(&mut self, metalink: &Metalink) {
        let name = SafeName::from_url(&self.plan.url);
        let file = match metalink.files.as_slice() {
            [only] => Some(only),
            several => several.iter().find(|file| file.name == name),
        };
        let law = self.plan.law.as_slice();
        let draft = self.draft();
        let fits = |file: &&MetaFile| {
            file.size.is_some()
                && file.size == draft.total
                && !contradict(&file.digests, &draft.vouched)
                && !contradict(&file.digests, law)
        };
        let Some(file) = file.filter(fits) else { return };
        if self.plan.digest == LastWord::Joints {
            let fresh = file.digests.iter().filter(|d| !draft.vouched.contains(d)).cloned().collect::<Vec<_>>();
            self.draft_mut().vouched.extend(fresh);
        }
        let urls = file.urls.iter().map(|url| url.url.clone()).collect();
        self.name_mirrors(urls);
    }

    fn name_mirrors(&mut self, urls: Vec<MirrorUrl>) {
        let known = if self.plan.digest == LastWord::Digest { self.plan.law.as_ref() } else { self.draft().vouched() };
        let digest = known.filter(|digest| digest.algorithm.proves()).cloned();
        let Some(digest) = digest.filter(|_| self.plan.named_by == NamedBy::User) else { return };
        let bare = urls.iter().map(MirrorUrl::without_credentials);
        let mut urls: Vec<MirrorUrl> = bare.filter(|url| self.may_be_named(url)).collect();
        urls.truncate(MAX_DUPLICATES);
        if !urls.is_empty() {
            self.named = Some(NamedMirrors { by: self.plan.url.origin(), digest, urls });
        }
    }

    /// The mirrors that were named since this was last asked.
    pub fn take_named(&mut self) -> Option<NamedMirrors> {
        self.named.take()
    }

    /// Notes the mirrors that an answer, or a redirect, names. They count only where a digest of the whole is known that
    /// proves it: one that is law, or one that the same answer names.
    pub(super) fn note_named(&mut self, head: &AnswerHead) {
        if self.plan.named_by == NamedBy::Server || head.links.is_empty() {
            return;
        }
        let said = Expected::strongest(&head.vouched()).cloned().filter(|d| d.algorithm.proves());
        let law = self.plan.law.clone();
        let Some(digest) = (if self.plan.digest == LastWord::Digest { law } else { said }) else { return };
        let urls = self.usable(head);
        if urls.is_empty() {
            return;
        }
        let by = self.asking.url.origin();
        let before = self.named.take().filter(|named| named.digest == digest);
        let mut named = before.unwrap_or_else(|| NamedMirrors { by, digest, urls: Vec::new() });
        let fresh = urls.into_iter().filter(|url| !named.urls.contains(url)).collect::<Vec<_>>();
        named.urls.extend(fresh);
        named.urls.truncate(MAX_DUPLICATES);
        self.named = Some(named);
    }

    /// Of the mirrors that this answer names, those that may be used: no step down from https, and nothing private where
    /// the answer, or the URL that it all began with, is public.
    fn usable(&self, head: &AnswerHead) -> Vec<MirrorUrl> {
        let base = &self.asking.url;
        let may = |url: &MirrorUrl| (url.is_https() || !base.is_https()) && self.may_be_named(url);
        duplicates(&head.links, base).into_iter().map(|d| d.url).filter(may).collect()
    }

    /// May a server name this mirror, whatever it stands in?
    fn may_be_named(&self, url: &MirrorUrl) -> bool {
        let typed = &self.plan.url;
        (url.is_https() || !typed.is_https())
            && (url.is_public_host() || !typed.is_public_host())
            && *url != typed.without_credentials()
    }

    /// What an answer says of the whole, as far as its origin is believed.
    fn vouched_by(&self, head: &AnswerHead, origin: &Origin) -> Vec<Expected> {
        let lies = head.status == 206 && self.notes(origin).part_digests_lie;
        if lies { Vec::new() } else { head.vouched() }
    }

    /// Does an answer say that the whole has another digest than it is known to have? Where a digest is law, that
    /// decides, whatever servers say.
    pub(super) fn contradicts(&self, draft: &Draft, head: &AnswerHead, origin: &Origin) -> bool {
        self.plan.digest == LastWord::Joints && contradict(&self.vouched_by(head, origin), &draft.vouched)
    }

    /// A part came with another digest than the whole is known to have; and here comes the whole, with the one that is
    /// known: what the server says of parts is not about the whole. Then a part may be asked for again.
    pub(super) fn part_digest_lied(&mut self, sameness: Sameness, head: &AnswerHead, origin: &Origin) -> bool {
        let doubted = std::mem::take(&mut self.contradicted);
        let said = head.vouched();
        let agrees = self.draft().vouched.iter().any(|known| said.contains(known));
        if !doubted || !agrees || sameness != Sameness::Same {
            return false;
        }
        self.note(origin, |notes| notes.part_digests_lie = true);
        self.plain = false;
        true
    }

    /// What is vouched for once a whole answer has brought every byte held: what it says itself; where it is silent, what
    /// was known of this very version.
    pub(super) fn vouched_by_whole(&self, open: &Open) -> Vec<Expected> {
        let said = open.head.vouched();
        let same = open.sameness == Sameness::Same;
        if said.is_empty() && same { self.draft().vouched.clone() } else { said }
    }

    /// The same of a range that has joined: it may tell what is not known yet.
    pub(super) fn vouched_by_range(&self, open: &Open) -> Vec<Expected> {
        let known = &self.draft().vouched;
        if known.is_empty() { self.vouched_by(&open.head, &open.origin) } else { known.clone() }
    }
}

/// The strongest digest among these that proves a file.
pub fn proof_among(digests: &[Expected]) -> Option<&Expected> {
    Expected::strongest(digests).filter(|d| Algorithm::proves(d.algorithm))
}
