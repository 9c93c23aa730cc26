//! Judging what was found in a part file and its journal: which of it is damage, and what to do.

use std::path::PathBuf;

use crate::cli::foreign::{Inspection, JournalState, PartState, human_size};
use crate::cli::state::check::finding::{File, Finding, Grade, Kind, bytes};
use crate::cli::state::{Desk, pick};
use crate::core::pers_xfer::record::{Direction, Record, Status};
use crate::core::range::{ByteRange, RangeSet};

/// What is known of one part file.
pub(super) struct Seen {
    /// The file, where it holds something.
    pub(super) file: Option<File>,
    /// What is the matter with it.
    pub(super) findings: Vec<Finding>,
    /// The bytes to let go of.
    pub(super) damaged: Vec<ByteRange>,
}

/// What every finding of one part file needs.
struct Case<'a> {
    record: &'a Record,
    found: &'a Inspection,
    path: PathBuf,
    /// The process that works on it.
    holder: Option<String>,
}

/// Looks into the part file of an unfinished download; `None` where there is none to speak of.
pub(super) fn look(desk: &Desk<'_>, record: &Record) -> Option<Seen> {
    if record.direction != Direction::Download || record.status == Status::Done {
        return None;
    }
    let path = desk.book.parts(record).into_iter().next()?;
    let found = match desk.book.inspect(record)? {
        Ok(found) => found,
        Err(fault) => {
            let text = format!("{}: the part file of {}: {fault}", path.display(), pick::place(record));
            let finding =
                Finding { id: Some(record.id), path: Some(path), ..Finding::damage(Kind::Unreadable, text, "") };
            return Some(Seen { file: None, findings: vec![finding], damaged: vec![] });
        }
    };
    let holder = found.holder.clone().or_else(|| desk.book.holder(record));
    Some(Case { record, found: &found, path, holder }.judge())
}

/// What is needed of nobody.
const REFETCHED: &str = "the next session fetches again what is missing, nothing is to be done";
/// What a person can do.
const REPAIR: &str = "`persxfer state check --repair` has just these bytes fetched again, by the next session";

/// What nothing is known against.
const KEPT: &str = "`--repair` keeps them; a checksum of the whole file tells in the end, and without one `persxfer state \
                    forget` and the same command fetch everything anew";

impl Case<'_> {
    fn judge(&self) -> Seen {
        let findings = if self.holder.is_some() { self.hints() } else { self.findings() };
        let findings: Vec<Finding> = findings.into_iter().map(|finding| self.placed(finding)).collect();
        Seen { file: self.file(), findings, damaged: self.found.damaged.clone() }
    }

    fn placed(&self, finding: Finding) -> Finding {
        let text = format!("{}: the part file of {} {}", self.path.display(), pick::place(self.record), finding.text);
        Finding { id: Some(self.record.id), path: Some(self.path.clone()), text, ..finding }
    }

    fn file(&self) -> Option<File> {
        let found = self.found;
        (found.part == PartState::Regular && found.length.0 > 0).then(|| File {
            id: self.record.id,
            path: self.path.clone(),
            held: found.held.length().0,
            segments: found.held.iter().len(),
            verified: found.verified.length().0,
            unchecked: self.unproven().length().0,
            journal: word(found.journal),
            holder: self.holder.clone(),
        })
    }

    /// While a process works on the file, what looks wrong may be on its way.
    fn hints(&self) -> Vec<Finding> {
        let wrong = &self.found.damaged;
        let Some(holder) = self.holder.as_ref().filter(|_| !wrong.is_empty()) else { return vec![] };
        let text = format!("does not look right in {}, but process {holder} works on it", bytes(wrong));
        let advice = "that may be changing them: stop it, and check again";
        vec![Finding { ranges: wrong.clone(), ..Finding::note(Kind::Busy, text, advice) }]
    }

    fn findings(&self) -> Vec<Finding> {
        match self.found.part {
            // In the way of every session, and nothing to be let go of.
            PartState::Folder => {
                let text = "is a folder";
                vec![Finding::damage(Kind::Unreadable, text, "move it away")]
            }
            PartState::Strange => vec![self.strange()],
            PartState::Published => vec![Self::published()],
            PartState::Missing => self.gone().into_iter().collect(),
            PartState::Regular => self.regular(),
        }
    }

    fn strange(&self) -> Finding {
        let lost = match self.recorded() {
            0 => String::new(),
            n => format!(", and fetches the {} again that are recorded", human_size(n)),
        };
        let advice = format!("the next session puts a part file in its place{lost}; what it leads to stays untouched");
        Finding::damage(Kind::Strange, "is no regular file, and was not opened", advice)
    }

    fn published() -> Finding {
        let text = "has its final name already: it was whole, and a process ended before the state could say so";
        Finding::note(Kind::Published, text, "the next run finds that it is complete, nothing is to be done")
    }

    fn gone(&self) -> Option<Finding> {
        // One that failed for good may have lost it on purpose.
        let open = self.record.status.is_open() && self.recorded() > 0;
        let text = || format!("is gone, with the {} that are recorded", human_size(self.recorded()));
        open.then(|| Finding::damage(Kind::Gone, text(), REFETCHED))
    }

    fn regular(&self) -> Vec<Finding> {
        if self.found.length.0 == 0 && self.recorded() == 0 {
            return vec![];
        }
        if self.record.dossier.part.is_blank() {
            let text = "is not known to the record yet";
            return vec![Finding::note(Kind::Journal, text, "the next session begins it anew, nothing is to be done")];
        }
        let journal = self.journal();
        if matches!(self.found.journal, JournalState::Missing | JournalState::Unreadable) {
            return journal.into_iter().collect();
        }
        let mut findings: Vec<Finding> = journal.into_iter().chain(self.blocks()).chain(self.cut()).collect();
        if self.found.damaged.is_empty() {
            findings.extend(self.short());
        }
        findings.extend(self.unchecked());
        findings
    }

    /// What is held beyond the block sums: that nothing was found there says nothing.
    fn unchecked(&self) -> Option<Finding> {
        let unproven: Vec<ByteRange> = self.unproven().iter().collect();
        let text = || format!("has no block sums yet for {}: not checked", bytes(&unproven));
        (!unproven.is_empty())
            .then(|| Finding { ranges: unproven.clone(), ..Finding::note(Kind::Unchecked, text(), KEPT) })
    }

    fn unproven(&self) -> RangeSet {
        let mut unproven = self.found.held.clone();
        self.found.verified.iter().for_each(|range| unproven.remove(range));
        unproven
    }

    /// What the journal's own state means.
    fn journal(&self) -> Option<Finding> {
        let lost = |what: &str| {
            let text = format!("{what}, so that nothing of the {} in it counts", human_size(self.found.length.0));
            let damage = Finding::damage(Kind::Journal, text, REFETCHED);
            // What came within the first moments has no journal yet.
            if self.recorded() > 0 { damage } else { Finding { grade: Grade::Note, ..damage } }
        };
        match self.found.journal {
            JournalState::Sound => None,
            JournalState::Missing => Some(lost("has lost its journal")),
            JournalState::Unreadable => Some(lost("has a journal that cannot be read")),
            JournalState::Torn => {
                let text = "has a journal whose last words are torn, as after a kill";
                Some(Finding::note(Kind::Journal, text, "what stands before them counts, nothing is to be done"))
            }
        }
    }

    fn blocks(&self) -> Option<Finding> {
        let wrong = self.damaged(|range| range.start.0 < self.found.length.0);
        let text = || {
            let told = bytes(&wrong);
            format!("is damaged: {told} are not what was written, by their block sums")
        };
        (!wrong.is_empty()).then(|| Finding { ranges: wrong.clone(), ..Finding::damage(Kind::Block, text(), REPAIR) })
    }

    fn cut(&self) -> Option<Finding> {
        let lost = self.damaged(|range| range.start.0 >= self.found.length.0);
        let text = || {
            let held = self.found.held.length().0;
            let recorded = self.recorded().max(held + lost.iter().map(|range| range.length().0).sum::<u64>());
            let (held, recorded) = (human_size(held), human_size(recorded));
            format!("holds {held} of the {recorded} that are recorded: {} are missing", bytes(&lost))
        };
        (!lost.is_empty()).then(|| Finding { ranges: lost.clone(), ..Finding::damage(Kind::Cut, text(), REFETCHED) })
    }

    /// Less is held than the record says. A process that was killed may have lost what it was about to write.
    fn short(&self) -> Option<Finding> {
        let (held, recorded) = (self.found.held.length().0, self.recorded());
        (held < recorded).then(|| {
            let text = format!("holds {} of the {} that are recorded", human_size(held), human_size(recorded));
            let damage = Finding::damage(Kind::Short, text, REFETCHED);
            if self.record.owner.is_some() { Finding { grade: Grade::Note, ..damage } } else { damage }
        })
    }

    fn damaged(&self, which: impl Fn(&ByteRange) -> bool) -> Vec<ByteRange> {
        self.found.damaged.iter().copied().filter(which).collect()
    }

    /// Bytes that the record counts on.
    fn recorded(&self) -> u64 {
        self.record.dossier.part.in_all().0
    }
}

const fn word(journal: JournalState) -> &'static str {
    match journal {
        JournalState::Sound => "sound",
        JournalState::Missing => "missing",
        JournalState::Torn => "torn",
        JournalState::Unreadable => "unreadable",
    }
}
