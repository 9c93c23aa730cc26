//! Is the source what it was? It is looked at before every body, before the upload is closed, and before it is called
//! done.

use super::{Doing, Next, Step, Then, UpXfer};
use crate::core::digest::Expected;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::source::{Change, Mark, Sight, Since};

impl UpXfer {
    pub(super) fn look(&mut self, then: Then) -> Step {
        self.doing = Doing::Look(then);
        self.step(Next::Look)
    }

    pub(super) fn looked(&mut self, seen: &Sight, then: Then) -> Step {
        let digest = self.job.source.digest.as_ref().map(|digest| digest.algorithm);
        match (self.job.source.since(seen), seen.mark, digest) {
            (Since::Untouched, ..) => self.then(then),
            (Since::Changed(change), ..) => self.source_changed(change),
            // Its content decides, where it is known.
            (Since::Touched, Some(mark), Some(algorithm)) => {
                self.doing = Doing::Reread(mark, then);
                self.step(Next::Digest { range: self.whole(), algorithm })
            }
            (Since::Touched, ..) => self.source_changed(Change::Time),
        }
    }

    /// The digest of a source that was begun with without one. It is that of what was begun with only if nobody has touched the
    /// file since: then a touch is none from now on.
    pub(super) fn known(&mut self, digest: Expected, seen: &Sight) {
        if self.job.source.digest.is_none() && self.job.source.since(seen) == Since::Untouched {
            self.job.source.digest = Some(digest.clone());
            self.job.session.source.digest = Some(digest);
        }
    }

    /// The digest of a source that was touched. What is done to it from that look on shows at the next.
    pub(super) fn reread(&mut self, digest: &Expected, mark: Mark, then: Then) -> Step {
        if self.job.source.digest.as_ref() != Some(digest) {
            return self.source_changed(Change::Content);
        }
        self.touched = true;
        self.job.source.mark = Some(mark);
        self.job.session.source.mark = Some(mark);
        self.then(then)
    }

    /// Bytes of two versions may have been sent. Whatever the file is made to be later, what is there is not gone on with:
    /// without a digest the record fits no file that was touched.
    fn source_changed(&mut self, change: Change) -> Step {
        self.job.session.source.digest = None;
        self.fail(UpFailure::SourceChanged(change))
    }

    /// The source was touched while it was sent and is still the same, by its digest; told once.
    pub fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }
}
