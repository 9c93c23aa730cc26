//! The digests that the answers of links name. Those of the whole file are heeded like the session's own. Those of their own
//! bodies are compared: where one is wrong, what that answer brought goes, and is asked for again past all caches; whoever
//! sent it is known for it.

use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::AnswerHead;
use crate::core::file_xfer::link::Link;
use crate::core::range::{ByteRange, RangeSet};
use crate::core::segments::{Ending, LinkId};
use crate::io::driver::content::{BodyEnd, Content};
use crate::io::driver::fan::Fan;
use crate::io::driver::{Beside, Tell};

impl Fan<'_> {
    /// Bytes of a link count: what its answers say of the whole does, too.
    pub(super) fn heed_sayings(&mut self, link: LinkId) {
        let machine = self.lines.get_mut(&link).and_then(|line| line.machine.as_mut());
        let sayings = machine.map(Link::take_sayings).unwrap_or_default();
        if sayings.is_empty() {
            return;
        }
        self.session.machine.said_beside(sayings);
        for algorithm in self.session.machine.take_disputed() {
            let by = algorithm.name();
            let text = format!("servers name different digests of the file ({by}); what it turns out to be decides");
            (self.session.tell)(Tell::Remark(text));
        }
        self.session.learn();
    }

    /// An answer begins.
    pub(super) fn note_content(&mut self, link: LinkId, head: &AnswerHead) {
        let content = Content::of(head, self.session.orders.terms.last_word());
        if let Some(line) = self.lines.get_mut(&link) {
            (line.content, line.wrote) = (content, RangeSet::new());
        }
    }

    /// Bytes of its body came.
    pub(super) fn feed_content(&mut self, link: LinkId, chunk: &[u8]) {
        if let Some(content) = self.lines.get_mut(&link).and_then(|line| line.content.as_mut()) {
            content.feed(chunk);
        }
    }

    /// False where the whole body is here and is not what its answer says: then what it brought is gone, and the link too.
    pub(super) fn content_agrees(&mut self, link: LinkId, end: BodyEnd) -> Result<bool, LocalFault> {
        let content = self.lines.get(&link).and_then(|line| line.content.as_ref());
        match content.and_then(|content| content.fault(end)) {
            Some(failure) => self.content_is_wrong(link, failure).map(|()| false),
            None => Ok(true),
        }
    }

    fn content_is_wrong(&mut self, link: LinkId, failure: Failure) -> Result<(), LocalFault> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        let (seat, wrote) = (line.seat, std::mem::take(&mut line.wrote));
        self.failures.insert(seat, failure.clone());
        self.tell_beside(seat, |url| Beside::Failed { url, failure, origin: None });
        let before = self.brought.get(&seat).cloned().unwrap_or_default();
        self.doubted.entry(seat).or_insert(before);
        // The bytes go first: a link that is opened as this one ends must not be compared with them.
        let runs: Vec<ByteRange> = wrote.iter().collect();
        for (n, run) in runs.into_iter().enumerate() {
            self.lose(run, (n == 0).then_some(seat))?;
        }
        self.over(link, Ending::Cut)
    }
}
