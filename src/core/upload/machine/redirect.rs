//! Redirects: which are followed, and with what.

use super::UpXfer;
use crate::core::failure::RedirectFault;
use crate::core::file_xfer::MAX_REDIRECTS;
use crate::core::upload::ask::{Answer, Ask, Method};
use crate::core::upload::protocol::{Protocol, Redirects};

impl UpXfer {
    /// The request that a redirect asks for. Only those that keep method and body are followed, and for questions also
    /// the older ones, but not by the IETF's protocol, which forbids it.
    pub(super) fn redirected(&mut self, answer: &Answer) -> Option<Result<Ask, RedirectFault>> {
        let told = self.protocol.redirects() == Redirects::Told;
        if told || !(300..400).contains(&answer.status) || answer.status == 304 {
            return None;
        }
        let last = self.last.clone()?;
        let question = matches!(last.method, Method::Get | Method::Head);
        let older = question && matches!(answer.status, 301 | 302) && self.protocol.protocol() != Protocol::Ietf;
        let unusable = Err(RedirectFault::NoLocation { code: answer.status });
        if !older && !matches!(answer.status, 307 | 308) {
            return Some(unusable);
        }
        self.hops += 1;
        if self.hops > MAX_REDIRECTS {
            return Some(Err(RedirectFault::TooMany { limit: MAX_REDIRECTS }));
        }
        let Some(location) = answer.field("location") else { return Some(unusable) };
        Some(match last.url.join(location, answer.status) {
            Ok(url) if last.url.is_https() && !url.is_https() => Err(RedirectFault::Downgrade),
            Ok(url) => Ok(Ask { url, ..last }),
            Err(fault) => Err(fault),
        })
    }
}
