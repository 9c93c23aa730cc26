//! The mirrors that are asked beside the one of the session, over links of their own.

use crate::core::failure::Failure;
use crate::core::machine::Cx;
use crate::core::mirrors::Fate;
use crate::core::pers_xfer::Action;
use crate::core::pers_xfer::machine::PersFileXfer;
use crate::core::time::{Mono, Now};
use crate::core::url::{MirrorUrl, Origin};
use crate::core::verdict::{Context, Scope, judge};

impl PersFileXfer {
    /// The mirrors that may be asked, by their positions, and until when each is held back.
    pub fn askable(&self, now: Now) -> Vec<(usize, Option<Mono>)> {
        let mirrors = self.record.mirrors.iter().enumerate().filter(|(_, mirror)| mirror.is_usable());
        mirrors.map(|(i, _)| (i, self.holds.of(i, now.mono).map(|hold| hold.until))).collect()
    }

    /// May this mirror be asked, without having failed in this transfer, as far as is remembered? Then there is something
    /// to gain from it where another one drips; one that failed before may only cost time.
    pub fn is_unasked(&self, url: &MirrorUrl) -> bool {
        let usable = self.record.mirrors.iter().any(|mirror| mirror.url == *url && mirror.is_usable() && !mirror.tried);
        let shown = url.redacted();
        usable && self.record.history.iter().all(|past| past.url != shown)
    }

    pub(super) fn serves(&mut self, url: &MirrorUrl) {
        if let Some(mirror) = self.record.mirrors.iter_mut().find(|mirror| mirror.url == *url) {
            (mirror.served, mirror.contributed) = (true, true);
        }
    }

    /// A mirror failed while others go on: a refusal, and a wish to be left alone, hold for it at once. Everything else
    /// is for the pass in which it is asked by itself.
    pub(super) fn failed_beside(
        &mut self,
        url: &MirrorUrl,
        failure: &Failure,
        origin: Option<&Origin>,
        cx: &mut Cx<'_, Action>,
    ) {
        let Some(mirror) = self.record.mirrors.iter().position(|mirror| mirror.url == *url) else { return };
        let context = Context { served: self.record.mirrors[mirror].served, retry_on: &self.rules.retry_on };
        let verdict = judge(failure, context);
        self.remember(mirror, verdict.class, failure, cx.now);
        let fate = match verdict.scope {
            Scope::RefuseMirror => self.record.mirrors[mirror].refuse(verdict.class, &failure.to_string()),
            Scope::Transient { floor } => {
                self.hold_back(mirror, floor, origin, cx.now);
                Fate::Kept
            }
            // A piece of the file, and it is known whose.
            Scope::WrongDigest | Scope::WrongBytes => self.record.mirrors[mirror].served_wrong(&failure.to_string()),
            Scope::Doubtful | Scope::Local | Scope::FailTransfer => Fate::Kept,
        };
        self.report(mirror, failure.clone(), verdict, fate, cx);
    }
}
