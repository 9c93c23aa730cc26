//! What `state check` found, as lines for people and as JSON (`docs/events.md`).

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::exit::Exit;
use crate::cli::foreign::{counted, human_size, printable};
use crate::cli::state::check::title;
use crate::cli::state::json;
use crate::core::pers_xfer::record::XferId;
use crate::core::range::ByteRange;

/// How many ranges are told one by one.
const RANGES: usize = 8;

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    pub(super) grade: Grade,
    /// Whose it is.
    pub(super) id: Option<XferId>,
    /// Which file it is about.
    pub(super) path: Option<PathBuf>,
    /// The bytes it is about.
    pub(super) ranges: Vec<ByteRange>,
    /// What it is, its file first.
    pub(super) text: String,
    /// What to do, or what was done.
    pub(super) advice: String,
}

/// What kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The state file was damaged.
    State,
    /// Blocks do not have their sum.
    Block,
    /// Bytes that are said to be held lie beyond the end of the file.
    Cut,
    /// The part file is gone.
    Gone,
    /// Something else stands in its place.
    Strange,
    /// The journal is gone, or says nothing.
    Journal,
    /// Less is held than the record says.
    Short,
    /// Bytes have no block sums yet, so that nothing tells what was written there.
    Unchecked,
    /// It cannot be looked at.
    Unreadable,
    /// No transfer owns it.
    Orphan,
    /// A process works on it.
    Busy,
    /// A part file is the finished file already.
    Published,
    /// A finished file is not there any more.
    Moved,
    /// The file of an upload is gone, or not the one that was begun with.
    Source,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    /// Worth knowing, and no damage.
    Note,
    /// Damage.
    Damage,
    /// It was damage.
    Repaired,
    /// Damage that could not be repaired for trouble on this machine, such as a process that works on the file.
    Kept,
}

/// A part file that was looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) id: XferId,
    pub(super) path: PathBuf,
    pub(super) held: u64,
    pub(super) segments: usize,
    pub(super) verified: u64,
    /// Bytes that are held and have no block sums.
    pub(super) unchecked: u64,
    pub(super) journal: &'static str,
    pub(super) holder: Option<String>,
}

/// Could the state file be read?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Read,
    Unreadable,
}

/// All that was found.
#[derive(Clone, Debug)]
pub(super) struct Overview {
    state_file: PathBuf,
    transfers: usize,
    pub(super) files: Vec<File>,
    pub(super) findings: Vec<Finding>,
    pub(super) outcome: Outcome,
}

impl Finding {
    /// Damage, of no file in particular.
    pub(super) fn damage(kind: Kind, text: impl Into<String>, advice: impl Into<String>) -> Self {
        let (text, advice) = (text.into(), advice.into());
        Self { kind, grade: Grade::Damage, id: None, path: None, ranges: Vec::new(), text, advice }
    }

    /// Something worth knowing.
    pub(super) fn note(kind: Kind, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { grade: Grade::Note, ..Self::damage(kind, text, advice) }
    }

    /// Is it damage of what is held, which can be let go of? A folder in the way cannot, nor what cannot be read.
    pub(super) fn wants_repair(&self) -> bool {
        let mendable =
            matches!(self.kind, Kind::Block | Kind::Cut | Kind::Gone | Kind::Strange | Kind::Journal | Kind::Short);
        // What a process at work may be changing is only a hint until that has ended.
        (mendable && self.grade == Grade::Damage) || (self.kind == Kind::Busy && !self.ranges.is_empty())
    }

    fn form(&self) -> Form {
        Form {
            kind: self.kind.word(),
            grade: self.grade.word(),
            id: self.id.map(|id| id.to_string()),
            path: self.path.as_deref().map(shown),
            ranges: json::pairs(&self.ranges),
            more_ranges: self.ranges.len().saturating_sub(json::PAIRS),
            message: printable(&self.text),
            advice: printable(&self.advice),
        }
    }

    fn line(&self) -> String {
        let separator = if self.advice.is_empty() { "" } else { "; " };
        printable(&format!("{}{separator}{}", self.text, self.advice))
    }
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Block => "block",
            Self::Cut => "cut",
            Self::Gone => "gone",
            Self::Strange => "strange",
            Self::Journal => "journal",
            Self::Short => "short",
            Self::Unchecked => "unchecked",
            Self::Unreadable => "unreadable",
            Self::Orphan => "orphan",
            Self::Busy => "busy",
            Self::Published => "published",
            Self::Moved => "moved",
            Self::Source => "source",
        }
    }
}

impl Grade {
    const fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Damage => "damage",
            Self::Repaired => "repaired",
            Self::Kept => "kept",
        }
    }
}

impl File {
    fn text(&self) -> String {
        let segments = match self.segments {
            0 | 1 => String::new(),
            n => format!(" in {n} segments"),
        };
        let verified = match self.verified {
            0 => "no block sums yet".to_owned(),
            n => format!("{} read and compared with their block sums", human_size(n)),
        };
        let holder = self.holder.as_ref().map(|holder| format!(", process {holder} works on it")).unwrap_or_default();
        let held = human_size(self.held);
        format!("{}: holds {held}{segments}, {verified}{holder}", shown(&self.path))
    }
}

impl Overview {
    /// Of a state file with so many transfers; nothing is found yet.
    pub(super) fn of(state_file: &Path, transfers: usize) -> Self {
        let (files, findings) = (Vec::new(), Vec::new());
        Self { state_file: state_file.to_owned(), transfers, files, findings, outcome: Outcome::Read }
    }

    fn count(&self, grade: Grade) -> usize {
        self.findings.iter().filter(|finding| finding.grade == grade).count()
    }

    /// What is still wrong.
    fn faults(&self) -> usize {
        self.count(Grade::Damage) + self.count(Grade::Kept)
    }

    pub(super) fn exit(&self) -> Exit {
        match (self.outcome, self.count(Grade::Kept), self.faults()) {
            (Outcome::Unreadable, ..) => Exit::Failed,
            (_, 1.., _) => Exit::Local,
            (_, 0, 1..) => Exit::Failed,
            (_, 0, 0) => Exit::Complete,
        }
    }

    /// A line each, and the verdict.
    pub(super) fn text(&self) -> String {
        let files = self.files.iter().map(File::text);
        let findings = self.findings.iter().map(Finding::line);
        let lines: Vec<String> = files.chain(findings).chain([self.verdict()]).collect();
        lines.join("\n") + "\n"
    }

    fn verdict(&self) -> String {
        if self.outcome == Outcome::Unreadable {
            return format!(
                "{}: damaged, there is no sound copy of it, and nothing was changed. Repair that place or restore a backup; \
                 or move the file away to begin anew: part files without a record are fetched again, not continued",
                shown(&self.state_file)
            );
        }
        let title = title(&self.state_file, self.transfers);
        let unchecked: u64 = self.files.iter().map(|file| file.unchecked).sum();
        match (self.faults(), self.count(Grade::Repaired)) {
            (0, 0) if unchecked > 0 => format!("{title}, no damage found, {} not checked", human_size(unchecked)),
            (0, 0) => format!("{title}, no damage"),
            (n, 0) => format!("{title}, {} found", counted(n, "fault")),
            (0, n) => format!("{title}, {} repaired", counted(n, "fault")),
            (left, n) => format!("{title}, {} repaired, {left} left", counted(n, "fault")),
        }
    }

    /// As JSON.
    pub(super) fn json(&self) -> impl Serialize {
        let file = |file: &File| FileForm {
            id: file.id.to_string(),
            path: shown(&file.path),
            held: file.held,
            segments: file.segments,
            verified: file.verified,
            unchecked: file.unchecked,
            journal: file.journal,
            in_use_by: file.holder.clone(),
        };
        Whole {
            schema: json::SCHEMA,
            state_file: shown(&self.state_file),
            readable: self.outcome == Outcome::Read,
            transfers: self.transfers,
            faults: self.faults(),
            repaired: self.count(Grade::Repaired),
            files: self.files.iter().map(file).collect(),
            findings: self.findings.iter().map(Finding::form).collect(),
        }
    }
}

#[derive(Serialize)]
struct Whole {
    schema: u32,
    state_file: String,
    readable: bool,
    transfers: usize,
    faults: usize,
    repaired: usize,
    files: Vec<FileForm>,
    findings: Vec<Form>,
}

#[derive(Serialize)]
struct FileForm {
    id: String,
    path: String,
    held: u64,
    segments: usize,
    verified: u64,
    unchecked: u64,
    journal: &'static str,
    in_use_by: Option<String>,
}

#[derive(Serialize)]
struct Form {
    kind: &'static str,
    grade: &'static str,
    id: Option<String>,
    path: Option<String>,
    ranges: Vec<[u64; 2]>,
    more_ranges: usize,
    message: String,
    advice: String,
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// `bytes 0-16777215 and 33554432-50331647 (32.0 MiB)`: first and last byte of each, as a Range header has them.
pub(super) fn bytes(ranges: &[ByteRange]) -> String {
    let all: u64 = ranges.iter().map(|range| range.length().0).sum();
    let told = ranges.iter().take(RANGES).map(|r| format!("{}-{}", r.start.0, r.end.0.saturating_sub(1)));
    let more = match ranges.len().saturating_sub(RANGES) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("bytes {}{more} ({})", told.collect::<Vec<_>>().join(", "), human_size(all))
}
