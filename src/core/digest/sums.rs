//! Lists of checksums, SHA256SUMS and its kin: `HEX  NAME` and `HEX *NAME` (GNU, with its `\` escapes),
//! `SHA256 (NAME) = HEX` (BSD, OpenSSL), or nothing but `HEX`.
//!
//! Lines that are no entry (comments, the armour of a signature) are passed over; whether the file that is asked for
//! has an entry is what counts, and if it has none, the first line that could not be read is named.

use crate::core::digest::{Algorithm, BadDigest, Expected};
use crate::core::printable::printable;

/// A list of checksums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    entries: Vec<Entry>,
    /// The first line that looked like an entry and was none.
    unread: Option<BadLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// As written, unescaped, without a leading `./`; empty where the line was nothing but a digest.
    name: String,
    digest: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct BadLine {
    number: usize,
    why: String,
}

/// Why a file is no list of checksums.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSums {
    /// Lines without an algorithm, and no hint from the file's name.
    #[error(
        "line {line} does not say by which algorithm: name the list like SHA256SUMS, or write `SHA256 (NAME) = HEX`"
    )]
    NoAlgorithm {
        /// The first such line, from 1.
        line: usize,
    },
    /// Not one line could be read.
    #[error("it holds no checksum{}", because(unread))]
    Nothing {
        /// What was wrong with the first line that looked like one.
        unread: Option<String>,
    },
}

/// Why a list has no checksum for a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSum {
    /// No entry of that name.
    #[error("the list has no checksum for \"{name}\"{}", because(unread))]
    Missing {
        /// The name, made printable.
        name: String,
        /// What was wrong with the first line that could not be read.
        unread: Option<String>,
    },
    /// Entries that contradict each other.
    #[error("the list has several {algorithm} checksums for \"{name}\", and they differ")]
    Ambiguous {
        /// The name, made printable.
        name: String,
        /// By which algorithm they are.
        algorithm: Algorithm,
    },
}

fn because(unread: &Option<String>) -> String {
    unread.as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
}

impl Algorithm {
    /// The algorithm that the name of a list tells: `SHA256SUMS`, `disk.img.sha1`, `md5sum.txt`. The ending speaks
    /// first; otherwise the name must hold that of one algorithm only.
    pub fn of_list_name(name: &str) -> Option<Self> {
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        if let Some(told) = ending.and_then(Self::from_name) {
            return Some(told);
        }
        let mut told = MARKS.iter().filter(|(mark, _)| name.contains(mark)).map(|(_, algorithm)| *algorithm);
        let first = told.next()?;
        told.all(|other| other == first).then_some(first)
    }
}

/// What names of lists hold.
const MARKS: [(&str, Algorithm); 10] = [
    ("sha512", Algorithm::Sha512),
    ("sha-512", Algorithm::Sha512),
    ("sha256", Algorithm::Sha256),
    ("sha-256", Algorithm::Sha256),
    ("sha1", Algorithm::Sha1),
    ("sha-1", Algorithm::Sha1),
    ("md5", Algorithm::Md5),
    ("blake3", Algorithm::Blake3),
    ("b3sum", Algorithm::Blake3),
    ("crc32c", Algorithm::Crc32c),
];

impl Sums {
    /// Reads a list. `algorithm` is that of lines which name none: the user's word, else [`Algorithm::of_list_name`].
    pub fn parse(text: &[u8], algorithm: Option<Algorithm>) -> Result<Self, BadSums> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut sums = Self { entries: Vec::new(), unread: None };
        for (number, line) in (1..).zip(text.split(|b| *b == b'\n')) {
            match read_line(line.strip_suffix(b"\r").unwrap_or(line), algorithm) {
                Ok(entry) => sums.entries.extend(entry),
                Err(Fault::NoAlgorithm) => return Err(BadSums::NoAlgorithm { line: number }),
                Err(Fault::Bad(bad)) => _ = sums.unread.get_or_insert(BadLine { number, why: bad.to_string() }),
            }
        }
        if sums.entries.is_empty() { Err(BadSums::Nothing { unread: sums.unread() }) } else { Ok(sums) }
    }

    /// The checksums of a file, one an algorithm, by its exact relative name, or else by the final component of the
    /// name. A list that is nothing but one digest is that of any file.
    pub fn find(&self, name: &str) -> Result<Vec<Expected>, NoSum> {
        let exact = normal(name);
        let found = self.matching(|entry| entry == exact);
        let found = if found.is_empty() { self.matching(|entry| last(entry) == last(exact)) } else { found };
        let found = match found.as_slice() {
            [] if self.entries.iter().all(|entry| entry.name.is_empty()) => self.matching(|_| true),
            _ => found,
        };
        if found.is_empty() {
            return Err(NoSum::Missing { name: printable(name).into_owned(), unread: self.unread() });
        }
        one_each(found).map_err(|algorithm| NoSum::Ambiguous { name: printable(name).into_owned(), algorithm })
    }

    /// All entries that name a file, in order: the name, without a leading `./`, and its checksum.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Expected)> {
        let named = self.entries.iter().filter(|entry| !entry.name.is_empty());
        named.map(|entry| (entry.name.as_str(), &entry.digest))
    }

    fn matching(&self, is_it: impl Fn(&str) -> bool) -> Vec<&Expected> {
        self.entries.iter().filter(|entry| is_it(&entry.name)).map(|entry| &entry.digest).collect()
    }

    fn unread(&self) -> Option<String> {
        self.unread.as_ref().map(|bad| format!("line {} cannot be read: {}", bad.number, bad.why))
    }
}

/// One digest an algorithm; an algorithm with two that differ is the error.
fn one_each(found: Vec<&Expected>) -> Result<Vec<Expected>, Algorithm> {
    let mut kept: Vec<Expected> = Vec::new();
    for one in found {
        match kept.iter().find(|other| other.algorithm == one.algorithm) {
            Some(other) if other != one => return Err(one.algorithm),
            Some(_) => {}
            None => kept.push(one.clone()),
        }
    }
    Ok(kept)
}

/// Without `./` in front.
fn normal(name: &str) -> &str {
    let mut name = name;
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    name
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

enum Fault {
    NoAlgorithm,
    Bad(BadDigest),
}

/// An entry; none where the line is of another kind.
fn read_line(line: &[u8], algorithm: Option<Algorithm>) -> Result<Option<Entry>, Fault> {
    let text = String::from_utf8_lossy(line);
    let (text, escaped) = match text.strip_prefix('\\') {
        Some(rest) => (rest, true),
        None => (text.as_ref(), false),
    };
    let name_of = |name: &str| if escaped { unescape(name) } else { name.to_owned() };
    if let Some((word, name, digits)) = split_bsd(text) {
        // An algorithm that we do not know (SHA384) says nothing for us or against the list.
        let Some(algorithm) = Algorithm::from_name(word) else { return Ok(None) };
        let digest = Expected::from_hex(algorithm, digits).map_err(Fault::Bad)?;
        return Ok(Some(Entry { name: normal(&name_of(name)).to_owned(), digest }));
    }
    let Some((digits, name)) = split_gnu(text) else { return Ok(None) };
    let digest = Expected::from_hex(algorithm.ok_or(Fault::NoAlgorithm)?, digits).map_err(Fault::Bad)?;
    Ok(Some(Entry { name: normal(&name_of(name)).to_owned(), digest }))
}

/// `WORD (NAME) = HEX`, also without the blanks: word, name, digits. The name may hold brackets itself.
fn split_bsd(text: &str) -> Option<(&str, &str, &str)> {
    let (head, digits) = text.rsplit_once('=')?;
    let (word, name) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    let word = word.trim();
    // Longer ones are digits of the GNU form, before a name with brackets.
    let is_word =
        (1..=12).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-/".contains(&b));
    is_word.then(|| (word, name, digits.trim()))
}

/// `HEX  NAME`, `HEX *NAME`, `HEX NAME` or `HEX`: digits, name. At least a CRC's eight digits, so that no prose counts.
fn split_gnu(text: &str) -> Option<(&str, &str)> {
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.len() < 8 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.strip_prefix([' ', '\t']).unwrap_or(rest);
    Some((digits, rest.strip_prefix([' ', '*', '\t']).unwrap_or(rest)))
}

/// The escapes of GNU coreutils: `\n`, `\r`, `\\`.
fn unescape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some(next @ ('n' | 'r' | '\\'))) => {
                chars.next();
                out.push(match next {
                    'n' => '\n',
                    'r' => '\r',
                    other => other,
                });
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
