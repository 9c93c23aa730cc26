//! A descriptor under way: what its lines have told so far.

use sha1::Digest as _;

use super::fault::Fault;
use super::reader::{MAX_SEGMENT, behind};
use super::segment::{Facts, Segment};
use super::table::{ANY, DateLine, End, Identity, Kind, Shape};
use crate::core::digest::Algorithm;
use crate::core::printable::printable_bytes;
use crate::core::sync::stamp;
use crate::core::time::Epoch;

const END_SIGNATURE: &str = "-----END SIGNATURE-----";
/// The line after which a status is no longer covered by its signatures (dir-spec 3.4.1), with the blank behind it.
const STATUS_SIGNED_TO: &str = "directory-signature ";

#[derive(Debug)]
pub(super) struct Draft {
    kind: &'static Kind,
    at: u64,
    length: u64,
    bytes: Vec<u8>,
    annotated: bool,
    has_body: bool,
    /// Of `kind.marks`, those that were seen.
    marked: u8,
    /// The line before which the end may stand was seen.
    end_begun: bool,
    /// The last line that is not blank was the end.
    ended: bool,
    date: Option<Epoch>,
    told: Option<String>,
    fingerprint: Option<String>,
    signatures: u32,
    sums: Sums,
    fault: Option<Fault>,
}

/// The digests that identities and names are made of.
#[derive(Debug, Default)]
struct Sums {
    /// SHA-1 of what is signed, until that ends.
    signed: sha1::Sha1,
    signed_is: Option<Vec<u8>>,
    /// SHA-1 of the body.
    sha1: Option<sha1::Sha1>,
    /// SHA-256 of the body.
    sha256: Option<sha2::Sha256>,
}

impl Draft {
    pub(super) fn new(kind: &'static Kind, at: u64) -> Self {
        let wants = |algorithm| kind.in_name == Some(algorithm);
        let sums = Sums {
            sha1: wants(Algorithm::Sha1).then(sha1::Sha1::new),
            sha256: (wants(Algorithm::Sha256) || kind.identity == Identity::Sha256).then(sha2::Sha256::new),
            ..Sums::default()
        };
        Self {
            kind,
            at,
            length: 0,
            bytes: Vec::new(),
            annotated: false,
            has_body: false,
            marked: 0,
            end_begun: false,
            ended: false,
            date: None,
            told: None,
            fingerprint: None,
            signatures: 0,
            sums,
            fault: None,
        }
    }

    pub(super) const fn has_body(&self) -> bool {
        self.has_body
    }

    /// Is it something else, whose lines mean something else? A vote holds a certificate, a server descriptor what begins
    /// a microdescriptor. So it lasts until the next annotation.
    pub(super) const fn is_foreign(&self) -> bool {
        matches!(self.fault, Some(Fault::OtherKind { .. } | Fault::Annotation | Fault::Start { .. }))
    }

    /// Bytes that nothing is known of.
    pub(super) const fn pass(&mut self, bytes: usize) {
        self.length += bytes as u64;
        self.has_body = true;
    }

    /// The first fault is the one that is told.
    pub(super) fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// One line more, its end included.
    pub(super) fn line(&mut self, line: &[u8]) {
        self.length += line.len() as u64;
        if self.kind.shape == Shape::Split {
            if self.bytes.len() + line.len() > MAX_SEGMENT {
                return self.fail(Fault::TooLong { limit: MAX_SEGMENT });
            }
            self.bytes.extend_from_slice(line);
        }
        match line.starts_with(b"@") && !self.has_body {
            true => self.annotation(line),
            false => self.body(line),
        }
    }

    fn annotation(&mut self, line: &[u8]) {
        let Some(said) = behind(line, "@type") else { return };
        self.annotated = true;
        let text = String::from_utf8_lossy(said);
        let mut words = text.split_ascii_whitespace();
        let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let major = version.split('.').next().and_then(|n| n.parse::<u16>().ok());
        let wanted = || format!("{} {}", self.kind.name, self.kind.version.0);
        match major {
            None => self.fail(Fault::Annotation),
            Some(major) if (name, major) == (self.kind.name, self.kind.version.0) => {}
            Some(_) => {
                let (found, wanted) = (printable_bytes(said), wanted());
                self.fail(Fault::OtherKind { found, wanted });
            }
        }
    }

    fn body(&mut self, line: &[u8]) {
        let text = line.trim_ascii_end();
        if !self.has_body && text.is_empty() {
            // A blank line in front of the first.
            return;
        }
        if !self.has_body && !self.kind.start.is(line) {
            self.fail(Fault::Start { found: printable_bytes(&text[..text.len().min(80)]), kind: self.kind.name });
        }
        let first = !self.has_body;
        self.has_body = true;
        self.sums.take(self.kind, line, text);
        for (n, mark) in self.kind.marks.iter().enumerate() {
            if behind(text, mark).is_some() {
                self.marked |= 1 << n;
            }
        }
        self.note_end(text);
        self.note_facts(text, first);
    }

    fn note_end(&mut self, text: &[u8]) {
        match self.kind.end {
            End::Open => self.ended = true,
            _ if text.is_empty() => {}
            End::Signature(word) => {
                self.end_begun |= behind(text, word).is_some();
                self.ended = self.end_begun && text == END_SIGNATURE.as_bytes();
            }
            End::Word(word) => self.ended |= behind(text, word).is_some(),
        }
        self.signatures += u32::from(behind(text, "directory-signature").is_some());
    }

    fn note_facts(&mut self, text: &[u8], first: bool) {
        let said = match self.kind.date {
            DateLine::Name => None,
            DateLine::Word(word) => behind(text, word),
            DateLine::First => first.then_some(text),
            DateLine::Key(key) => key_value(text, key),
        };
        if let (None, Some(said)) = (self.date, said) {
            let words = String::from_utf8_lossy(said);
            self.date = match self.kind.date {
                DateLine::Word(_) => two_words(&words).and_then(stamp::parse),
                _ => words.parse().ok().filter(|n: &f64| (0.0..1e11).contains(n)).map(Epoch::from_secs_f64),
            };
            if self.date.is_none() {
                self.fail(Fault::Date { text: printable_bytes(said) });
            }
        }
        let hex = |said: &[u8]| {
            let word = said.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            let fits = matches!(word.len(), 40 | 64) && word.iter().all(u8::is_ascii_hexdigit);
            fits.then(|| String::from_utf8_lossy(word).to_ascii_lowercase())
        };
        match self.kind.identity {
            Identity::Told(word) => self.told = self.told.take().or_else(|| behind(text, word).and_then(hex)),
            Identity::FingerprintAndDate => {
                self.fingerprint = self.fingerprint.take().or_else(|| behind(text, "fingerprint").and_then(hex));
            }
            _ => {}
        }
    }

    /// It has ended; `name` is that of its file.
    pub(super) fn finish(mut self, name: &str) -> Segment {
        let verdict = self.verdict(name);
        Segment { at: self.at, length: self.length, bytes: self.bytes, annotated: self.annotated, verdict }
    }

    fn verdict(&mut self, name: &str) -> Result<Facts, Fault> {
        let cut = self.fault.take_if(|fault| *fault == Fault::CutLine);
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if !self.has_body {
            return Err(if self.annotated { Fault::Stub } else { Fault::Empty });
        }
        if self.kind.name == ANY {
            return Ok(Facts { date: stamp::of_name(name), ..Facts::default() });
        }
        if let Some((_, mark)) = self.kind.marks.iter().enumerate().find(|(n, _)| self.marked & (1 << n) == 0) {
            return Err(cut.unwrap_or(Fault::Missing { line: mark }));
        }
        if !self.ended {
            let end = match self.kind.end {
                End::Word(word) => word,
                _ => END_SIGNATURE,
            };
            return Err(Fault::End { end });
        }
        if let Some(cut) = cut {
            return Err(cut);
        }
        self.check_name(name)?;
        let date = self.date.or_else(|| stamp::of_name(name));
        Ok(Facts { date, identity: self.identity()?, signatures: self.signatures })
    }

    fn identity(&mut self) -> Result<Option<String>, Fault> {
        let digest = |bytes: Option<Vec<u8>>| bytes.map(hex::encode).ok_or(Fault::Identity).map(Some);
        match self.kind.identity {
            Identity::File => Ok(None),
            Identity::Sha1To(_) => digest(self.sums.signed_is.take()),
            Identity::Sha256 => digest(self.sums.sha256.take().map(|sum| sum.finalize().to_vec())),
            Identity::Told(_) => self.told.take().map(Some).ok_or(Fault::Identity),
            Identity::FingerprintAndDate => {
                let (who, when) = self.fingerprint.take().zip(self.date).ok_or(Fault::Identity)?;
                Ok(Some(format!("{who}-{}", stamp::second(when).replace([' ', ':'], "-"))))
            }
        }
    }

    /// A name may end in a digest, of the body, or of a vote in what its signature covers.
    fn check_name(&mut self, name: &str) -> Result<(), Fault> {
        let Some(algorithm) = self.kind.in_name else { return Ok(()) };
        let last = name.rsplit('-').next().unwrap_or_default();
        let Some(named) = hex::decode(last).ok().filter(|bytes| bytes.len() == algorithm.output_len()) else {
            return Ok(());
        };
        let whole = match algorithm {
            Algorithm::Sha1 => self.sums.sha1.take().map(|sum| sum.finalize().to_vec()),
            _ => self.sums.sha256.take().map(|sum| sum.finalize().to_vec()),
        };
        let found = [whole, self.sums.signed_is.take()];
        if found.iter().flatten().any(|found| *found == named) {
            return Ok(());
        }
        let found = found.into_iter().rev().flatten().next().map(hex::encode).unwrap_or_default();
        Err(Fault::Digest { algorithm, found, named: last.to_ascii_lowercase() })
    }
}

impl Sums {
    fn take(&mut self, kind: &Kind, line: &[u8], text: &[u8]) {
        if let Some(sum) = &mut self.sha1 {
            sum.update(line);
        }
        if let Some(sum) = &mut self.sha256 {
            sum.update(line);
        }
        if self.signed_is.is_some() {
            return;
        }
        match kind.identity {
            Identity::Sha1To(last) => {
                self.signed.update(line);
                if text == last.as_bytes() {
                    self.signed_is = Some(std::mem::take(&mut self.signed).finalize().to_vec());
                }
            }
            Identity::File if kind.in_name == Some(Algorithm::Sha1) => {
                match line.starts_with(STATUS_SIGNED_TO.as_bytes()) {
                    true => {
                        self.signed.update(STATUS_SIGNED_TO);
                        self.signed_is = Some(std::mem::take(&mut self.signed).finalize().to_vec());
                    }
                    false => self.signed.update(line),
                }
            }
            _ => {}
        }
    }
}

/// The first two words, which are a day and a time.
fn two_words(text: &str) -> Option<&str> {
    let text = text.trim();
    let end = text.match_indices(' ').nth(1).map_or(text.len(), |(at, _)| at);
    text.get(..end)
}

/// What stands behind a key somewhere in a line, up to the next blank.
fn key_value<'l>(line: &'l [u8], key: &str) -> Option<&'l [u8]> {
    let words = line.split(|b| *b == b' ');
    words.into_iter().find_map(|word| word.strip_prefix(key.as_bytes()))
}
