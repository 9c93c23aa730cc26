//! The manifest: what of a module we hold in a source's folder, and what became of it. One a module and folder.
//!
//! A file of lines to which lines are appended: of one path, the last counts. A line is
//!
//! ```text
//! STATE TAB PATH TAB SIZE TAB MTIME TAB DIGEST TAB SUM
//! ```
//!
//! with a state of one letter, `-` for what is not known, times in seconds since the Unix epoch, and a CRC-32C of what
//! stands before the last tab. A line whose sum is wrong ends the file: it is where power was lost. Now and then it is
//! written anew, in order, one line a path. Lines with the state `i` are about indexes; their path is no file's.

use crate::core::digest::{Algorithm, Expected};
use crate::core::range::Length;
use crate::core::sync::listing::{Entry, Listing};
use crate::core::sync::path::TreePath;
use crate::core::sync::stamp;
use crate::core::time::Epoch;

/// The first line of every manifest.
pub const HEAD: &str = "persxfer sync manifest 1\n";

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    /// It is about to be given its name: it may stand there, or something older.
    Placing,
    /// It stands there, and has not been looked at.
    Fetched,
    /// It was merged.
    Merged,
    /// It was looked at, and is not what it should be; once is enough for one content.
    Rejected,
    /// It is gone.
    Gone,
}

impl Held {
    const ALL: [(Self, &'static str); 5] =
        [(Self::Placing, "p"), (Self::Fetched, "f"), (Self::Merged, "m"), (Self::Rejected, "r"), (Self::Gone, "g")];

    fn letter(self) -> &'static str {
        Self::ALL.iter().find(|(held, _)| *held == self).map_or("g", |(_, letter)| letter)
    }
}

/// What the guard remembers of indexes (B8.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// When the last index that was obeyed was made.
    pub accepted: Option<Epoch>,
    /// How often in a row the same great loss was seen, and refused.
    pub doubts: u32,
    /// Which loss that was.
    pub loss: u64,
}

/// What a manifest says.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// The files, in order; none that is gone.
    pub files: Listing<Held>,
    /// What is remembered of indexes.
    pub memory: Memory,
    /// Lines beyond those that it would have, written anew.
    pub surplus: usize,
    /// Something in it could not be read.
    pub damaged: bool,
}

/// Reads a manifest, line by line.
#[derive(Debug, Default)]
pub struct Reading {
    manifest: Manifest,
    lines: usize,
    read: usize,
}

impl Reading {
    /// The next line, without its end. Whether there is any use in another one.
    ///
    /// One of another version, or of another making, is as good as none: then every file is looked at again.
    pub fn line(&mut self, line: &[u8]) -> bool {
        self.lines += 1;
        let sound = match self.lines {
            1 => line == HEAD.trim_end().as_bytes(),
            _ => self.manifest.take(line).is_some(),
        };
        self.read += usize::from(sound && self.lines > 1 && !line.starts_with(b"i\t"));
        self.manifest.damaged |= !sound;
        sound
    }

    /// There are no more lines; the last one did not end where `torn`.
    pub fn finish(self, torn: bool) -> Manifest {
        let mut manifest = self.manifest;
        manifest.damaged |= torn;
        manifest.files.put_in_order();
        manifest.files.retain(|entry| entry.tag != Held::Gone);
        manifest.surplus = self.read - manifest.files.len();
        manifest
    }
}

impl Manifest {
    fn take(&mut self, line: &[u8]) -> Option<()> {
        let line = std::str::from_utf8(line).ok()?;
        let (said, sum) = line.rsplit_once('\t')?;
        if sum != sum_of(said) {
            return None;
        }
        let mut fields = said.split('\t');
        let mut next = || fields.next();
        let (state, path, size, modified, digest) = (next()?, next()?, next()?, next()?, next()?);
        if state == "i" {
            let accepted = number(modified).map(Epoch::from_secs);
            self.memory = Memory { accepted, doubts: size.parse().ok()?, loss: digest.parse().ok()? };
            return Some(());
        }
        let held = Held::ALL.iter().find(|(_, letter)| *letter == state)?.0;
        let path = TreePath::parse(path).ok()?;
        let digest = if digest == "-" { None } else { Some(Expected::parse(digest).ok()?) };
        let entry = Entry {
            path: path.as_str(),
            size: size.parse().ok().map(Length),
            modified: number(modified).map(Epoch::from_secs),
            digest: digest.as_ref().map(Into::into),
            tag: held,
        };
        self.files.push(entry).ok()
    }

    /// All of it, written anew.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let head = [HEAD.to_owned(), line_of_memory(&self.memory)];
        head.into_iter().chain(self.files.iter().map(|entry| line(&entry)))
    }
}

/// The line of a file, with its end.
pub fn line(entry: &Entry<'_, Held>) -> String {
    let size = entry.size.map_or_else(|| "-".to_owned(), |size| size.0.to_string());
    let modified = entry.modified.map_or_else(|| "-".to_owned(), |at| stamp::seconds(at).to_string());
    let digest = entry.digest.map_or_else(|| "-".to_owned(), |digest| digest.expected().to_string());
    summed(format!("{}\t{}\t{size}\t{modified}\t{digest}", entry.tag.letter(), entry.path))
}

/// The line of what is remembered of indexes, with its end.
pub fn line_of_memory(memory: &Memory) -> String {
    let accepted = memory.accepted.map_or_else(|| "-".to_owned(), |at| stamp::seconds(at).to_string());
    summed(format!("i\t-\t{}\t{accepted}\t{}", memory.doubts, memory.loss))
}

fn summed(mut line: String) -> String {
    let sum = sum_of(&line);
    line.push('\t');
    line.push_str(&sum);
    line.push('\n');
    line
}

fn sum_of(text: &str) -> String {
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A digest by the strongest algorithm that we write: SHA-256.
pub fn sha256(bytes: [u8; 32]) -> Expected {
    Expected { algorithm: Algorithm::Sha256, bytes: bytes.to_vec() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(entries: &[(&str, Option<u64>, Held)]) -> String {
        let digest = sha256([7; 32]);
        let line = |(path, size, held): &(&str, Option<u64>, Held)| {
            let digest = size.is_some().then_some((&digest).into());
            line(&Entry { path, size: size.map(Length), modified: Some(Epoch::from_secs(-5)), digest, tag: *held })
        };
        HEAD.to_owned() + &entries.iter().map(line).collect::<String>()
    }

    fn read(text: &[u8]) -> Manifest {
        let mut reading = Reading::default();
        let mut lines = text.split_inclusive(|b| *b == b'\n');
        let torn = lines.by_ref().find_map(|line| match line.strip_suffix(b"\n") {
            None => Some(true),
            Some(line) => (!reading.line(line)).then_some(false),
        });
        reading.finish(torn == Some(true))
    }

    fn held(manifest: &Manifest) -> Vec<(&str, Held)> {
        manifest.files.iter().map(|entry| (entry.path, entry.tag)).collect()
    }

    #[test]
    fn the_last_line_on_a_path_counts() {
        let text = text_of(&[
            ("b", Some(1), Held::Placing),
            ("a", None, Held::Fetched),
            ("b", Some(1), Held::Merged),
            ("c", Some(1), Held::Merged),
            ("c", None, Held::Gone),
        ]);
        let manifest = read(text.as_bytes());
        assert_eq!(held(&manifest), [("a", Held::Fetched), ("b", Held::Merged)]);
        assert_eq!((manifest.surplus, manifest.damaged), (3, false));
        let anew: String = manifest.lines().collect();
        let again = read(anew.as_bytes());
        assert_eq!((held(&again), again.surplus), (held(&manifest), 0));
        let one = again.files.find("b").expect("there");
        assert_eq!((one.size, one.modified), (Some(Length(1)), Some(Epoch::from_secs(-5))));
        assert_eq!(one.digest.map(|d| d.expected()), Some(sha256([7; 32])));
    }

    #[test]
    fn what_indexes_said_is_remembered() {
        let memory = Memory { accepted: Some(Epoch::from_secs(9)), doubts: 1, loss: u64::MAX };
        let manifest = Manifest { memory: memory.clone(), ..Manifest::default() };
        let text: String = manifest.lines().collect();
        assert_eq!(read(text.as_bytes()).memory, memory);
    }

    #[test]
    fn another_making_is_as_good_as_none() {
        assert!(read(b"something else\n").damaged && read(b"persxfer sync manifest 2\n").damaged);
        let text = text_of(&[("a", None, Held::Merged)]).replace("\ta\t", "\t../a\t");
        assert!(read(text.as_bytes()).damaged);
    }

    proptest! {
        #[test]
        fn damage_costs_no_more_than_what_stands_behind_it(at in 0..400_usize, byte: u8) {
            let good = text_of(&[("a", Some(1), Held::Merged), ("b", None, Held::Fetched), ("c", Some(3), Held::Rejected)]);
            let mut text = good.clone().into_bytes();
            let at = at % text.len();
            text[at] = byte;
            let (manifest, whole) = (read(&text), read(good.as_bytes()));
            for entry in manifest.files.iter() {
                prop_assert_eq!(whole.files.find(entry.path), Some(entry));
            }
            let cut = read(&good.as_bytes()[..at]);
            prop_assert!(cut.files.iter().all(|entry| whole.files.find(entry.path) == Some(entry)));
        }
    }
}
