//! How a session begins: is the source the one that the upload was begun with?

use super::{Cleanup, Doing, Next, Step, UpEnd, UpXfer};
use crate::core::digest::Expected;
use crate::core::range::{ByteRange, Offset};
use crate::core::time::Epoch;
use crate::core::upload::ask::Answer;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Call, Said};
use crate::core::upload::source::{Change, Likeness};

impl UpXfer {
    /// The first step.
    pub fn start(&mut self, now: Epoch) -> Step {
        self.job.now = now;
        if self.kept.is_none() {
            return self.prepare();
        }
        match self.job.source.likeness(&self.job.session.source) {
            Likeness::Same => self.resume(),
            Likeness::Changed(change) => self.changed(change),
            Likeness::AskDigest => match &self.job.session.source.digest {
                Some(begun) => {
                    let (range, algorithm) = (self.whole(), begun.algorithm);
                    self.doing = Doing::Likeness;
                    self.step(Next::Digest { range, algorithm })
                }
                None => self.changed(Change::Content),
            },
        }
    }

    /// Instead of [`UpXfer::start`]: only cleans up what the record names. Ends with [`UpEnd::Abandoned`], or is dropped
    /// after [`crate::core::upload::ABANDON_PATIENCE`].
    pub fn abandon(&mut self, now: Epoch) -> Step {
        self.job.now = now;
        self.clean_up(Cleanup::Last)
    }

    /// The digest of the source as it is now.
    pub(super) fn compared(&mut self, digest: Expected) -> Step {
        self.job.source.digest = Some(digest);
        match self.job.source.likeness(&self.job.session.source) {
            Likeness::Same => self.resume(),
            Likeness::Changed(change) => self.changed(change),
            // A digest by another algorithm than the one asked for compares with nothing.
            Likeness::AskDigest => self.changed(Change::Content),
        }
    }

    fn resume(&mut self) -> Step {
        // A file that was only touched goes on under its new time; the digest of one that was not is still its own.
        let begun = &self.job.session.source;
        self.job.source.digest = self.job.source.digest.take().or_else(|| begun.digest.clone());
        self.job.session.source = self.job.source.clone();
        self.high = self.job.session.confirmed;
        self.prepare()
    }

    /// Another source: what the server has of the old one is cleaned up, and a new upload begins.
    fn changed(&mut self, change: Change) -> Step {
        self.restarted = Some(change);
        self.clean_up(Cleanup::BeforeAnew)
    }

    pub(super) fn clean_up(&mut self, cleanup: Cleanup) -> Step {
        (self.cleanup, self.call) = (cleanup, Call::Abandon);
        let turn = self.protocol.abandon(&mut self.job);
        self.take(turn)
    }

    /// A request to clean up was refused. What is not there any more is as good as cleaned up.
    pub(super) fn note_left(&mut self, answer: &Answer) {
        let gone = answer.is_success() || matches!(answer.status, 404 | 410);
        if self.call == Call::Abandon && !gone {
            self.left = Some(self.status(&Said::of(answer)));
        }
    }

    /// It could not be asked to the end.
    pub(super) fn not_cleaned_up(&mut self, failure: UpFailure) -> Step {
        self.left = Some(failure);
        self.cleaned_up()
    }

    /// The server has been cleaned up, as well as could be.
    pub(super) fn cleaned_up(&mut self) -> Step {
        if self.cleanup == Cleanup::Last {
            let left = self.left.take();
            return self.end(left.map_or(UpEnd::Abandoned, UpEnd::NotAbandoned));
        }
        self.waits = 0;
        self.begin_anew();
        self.job.session.stale = self.job.session.stale.max(self.stale);
        // What stands under the old name may still be the old version, whatever was answered to its removal.
        self.job.session.target.temporary = None;
        self.prepare()
    }

    /// A fresh record for the same server.
    pub(super) fn begin_anew(&mut self) {
        self.job.session.restart(self.job.source.clone(), self.job.now);
        self.attempt = None;
        self.high = Offset::ZERO;
        self.sent_empty = false;
    }

    pub(super) fn prepare(&mut self) -> Step {
        self.begin_creating();
        self.call = Call::Prepare;
        let turn = self.protocol.prepare(&mut self.job);
        self.take(turn)
    }

    pub(super) fn whole(&self) -> ByteRange {
        ByteRange::new(Offset::ZERO, self.job.size().as_end())
    }
}
