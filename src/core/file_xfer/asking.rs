//! One request over all its redirects: where it is, what may go along, and where it must not go.

use crate::core::failure::RedirectFault;
use crate::core::file_xfer::dossier::IfRange;
use crate::core::file_xfer::{AnswerHead, Carry, MAX_REDIRECTS, NamedBy, Wanted};
use crate::core::url::{MirrorUrl, Origin};

/// The request under way, over all its redirects.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) url: MirrorUrl,
    pub(super) carry: Carry,
    pub(super) purpose: Purpose,
    pub(super) range: Option<Wanted>,
    /// If-Range went along with the latest hop.
    pub(super) conditional: Option<IfRange>,
    hops: u32,
    seen: Vec<MirrorUrl>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Is the finished file still the one?
    Revalidate,
    /// One earlier block, to compare.
    Probe,
    /// The file, or the rest of it.
    Body,
}

impl Asking {
    /// A request to a mirror; what goes along depends on who named it, and whether it is of the first origin.
    pub(super) fn to(url: MirrorUrl, purpose: Purpose, first_origin: &Origin, named_by: NamedBy) -> Self {
        let carry = match named_by {
            NamedBy::Server => Carry::Never,
            NamedBy::User if url.origin() != *first_origin => Carry::Headers,
            NamedBy::User => Carry::Everything,
        };
        Self { url, carry, purpose, range: None, conditional: None, hops: 0, seen: Vec::new() }
    }

    pub(super) const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Goes where a redirect leads (design 3.11).
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn follow(&mut self, head: &AnswerHead) -> Result<(), RedirectFault> {
        let code = head.status;
        let location = head.location.as_deref().ok_or(RedirectFault::NoLocation { code })?;
        let from = self.url.clone();
        let to = from.join(location, code)?;
        if from.is_https() && !to.is_https() {
            return Err(RedirectFault::Downgrade);
        }
        if self.carry == Carry::Never && from.is_public_host() && !to.is_public_host() {
            return Err(RedirectFault::Inward);
        }
        self.seen.push(from);
        if self.seen.contains(&to) {
            return Err(RedirectFault::Loop);
        }
        self.hops += 1;
        if self.hops > MAX_REDIRECTS {
            return Err(RedirectFault::TooMany { limit: MAX_REDIRECTS });
        }
        if to.origin() != self.url.origin() && self.carry != Carry::Never {
            self.carry = Carry::Nothing;
        }
        self.url = to;
        Ok(())
    }
}
