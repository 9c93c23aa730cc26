//! The files of unfinished uploads: is each still the one that was begun with? They are looked at, and never touched.

use crate::cli::foreign::SourceNow;
use crate::cli::state::check::finding::{Finding, Kind};
use crate::cli::state::{Desk, pick};
use crate::core::pers_xfer::record::{Direction, Record};
use crate::core::upload::{Likeness, Source, UploadSession};

/// What is the matter with the file of one; nothing of downloads, and of what is over: it has done its duty.
pub(super) fn look(desk: &Desk<'_>, record: &Record) -> Option<Finding> {
    if record.direction != Direction::Upload || !record.status.is_open() {
        return None;
    }
    let finding = match desk.book.source(record)? {
        SourceNow::Here(now) => changed(record, &now)?,
        SourceNow::Gone => {
            let advice = "the upload waits until it is back under this name; `persxfer state forget` drops the upload";
            Finding::damage(Kind::Source, "is gone, and was not sent whole", advice)
        }
        SourceNow::Unusable(why) => {
            let text = format!("cannot be sent: {why}");
            Finding::damage(Kind::Source, text, "the upload waits until that is changed")
        }
    };
    let text = format!("{}: the file to upload {}", pick::place(record), finding.text);
    Some(Finding { id: Some(record.id), path: record.path.clone(), text, ..finding })
}

/// Worth knowing, and no damage: an upload of another version begins anew.
fn changed(record: &Record, now: &Source) -> Option<Finding> {
    // What a server has none of is not lost.
    let begun = record.uploads.iter().filter(|session| session.confirmed.0 > 0);
    let differs = |session: &UploadSession| match now.likeness(&session.source) {
        Likeness::Same => None,
        Likeness::Changed(change) => {
            let advice =
                "what a server has of the old one is given up, and the next session sends the new one from its start";
            Some((format!("is another one than what was begun to be sent: {change}"), advice))
        }
        Likeness::AskDigest if now.mark.is_none() && session.source.stamp == now.stamp => None,
        Likeness::AskDigest => {
            let advice = "the next session compares its digest, and goes on where the content is the same";
            Some(("was touched since it was begun to be sent".to_owned(), advice))
        }
    };
    let (text, advice) = begun.filter_map(differs).next()?;
    Some(Finding::note(Kind::Source, text, advice))
}
