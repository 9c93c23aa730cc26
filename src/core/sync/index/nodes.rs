//! CollecTor's `index.json`: folders that hold files and folders (B3). Fields that are not known are passed over.
//!
//! CollecTor tells the path of a folder before what is in it. Others may sort their keys; then what is in a folder is held
//! until the folder's path is known.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::gather::{Gather, Said};
use super::json::{Token, Tokens};
use super::{BadIndex, MAX_ENTRIES};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::Length;
use crate::core::sync::path::check_name;
use crate::core::sync::stamp;
use crate::core::time::Epoch;

#[derive(Debug)]
pub(super) struct Nodes {
    tokens: Tokens,
    walk: Walk,
}

/// Where in the document we are.
#[derive(Debug, Default)]
struct Walk {
    /// What is open, the root first.
    open: Vec<Node>,
    key: Key,
    /// How deep within something that is passed over.
    skipped: usize,
    file: File,
    /// The root has `files` or `directories`.
    is_index: bool,
}

#[derive(Debug)]
enum Node {
    Folder(Folder),
    Files,
    Folders,
    File,
}

/// A folder that is open.
#[derive(Debug, Default)]
struct Folder {
    /// Its own name, once told.
    name: Option<String>,
    place: Place,
    /// What came before its place was known.
    held: Vec<Held>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Its name, or that of a folder around it, has not been told yet.
    #[default]
    Unknown,
    At(String),
    /// Refused, or nothing of ours can be in it.
    Nowhere,
}

/// A file, or (without a file) a folder, in a folder whose place is not known yet.
#[derive(Debug)]
struct Held {
    /// The folders that lead to it, the last first.
    folders: Vec<String>,
    file: Option<File>,
}

/// The last key of an object of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    Path,
    Size,
    Modified,
    Sha256,
    Files,
    Folders,
    Created,
}

/// The file that is being read.
#[derive(Debug, Default)]
struct File {
    name: Option<String>,
    size: Option<Length>,
    modified: Option<Epoch>,
    digest: Option<Expected>,
    fault: Option<&'static str>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self { tokens: Tokens::new(), walk: Walk::default() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], gather: &mut Gather) -> Result<(), BadIndex> {
        let walk = &mut self.walk;
        self.tokens.feed(bytes, &mut |token| walk.take(token, gather))
    }

    pub(super) fn finish(self, gather: &mut Gather) -> Result<(), BadIndex> {
        let mut walk = self.walk;
        self.tokens.finish(&mut |token| walk.take(token, gather))?;
        match walk.is_index {
            true => Ok(()),
            false => Err(BadIndex::Shape { what: "it has neither files nor directories" }),
        }
    }
}

impl Walk {
    fn take(&mut self, token: Token<'_>, gather: &mut Gather) -> Result<(), BadIndex> {
        if self.skipped > 0 {
            match token {
                Token::BeginObject | Token::BeginArray => self.skipped += 1,
                Token::EndObject | Token::EndArray => self.skipped -= 1,
                _ => {}
            }
            return Ok(());
        }
        match token {
            Token::BeginObject => return self.begin_object(gather),
            Token::BeginArray => return self.begin_array(),
            Token::EndObject | Token::EndArray => return self.end(gather),
            Token::Key(key) => self.key = Key::of(key, self.open.len()),
            Token::Text(text) => return self.text(text, gather),
            Token::Number(text) if self.key == Key::Size => self.file.number(text),
            Token::Number(_) | Token::Word => self.value_of_no_use(),
        }
        Ok(())
    }

    fn begin_object(&mut self, gather: &mut Gather) -> Result<(), BadIndex> {
        match self.open.last() {
            None => {
                gather.folder("");
                let place = Place::At(String::new());
                self.open.push(Node::Folder(Folder { place, ..Folder::default() }));
            }
            Some(Node::Files) => {
                self.file = File::default();
                self.open.push(Node::File);
            }
            Some(Node::Folders) => self.open.push(Node::Folder(Folder::default())),
            Some(Node::Folder(_) | Node::File) => {
                self.value_of_no_use();
                self.skipped = 1;
            }
        }
        self.key = Key::Other;
        Ok(())
    }

    fn begin_array(&mut self) -> Result<(), BadIndex> {
        self.is_index |= self.open.len() == 1 && matches!(self.key, Key::Files | Key::Folders);
        match (self.open.last(), self.key) {
            (None, _) => return Err(BadIndex::Shape { what: "it is a list" }),
            (Some(Node::Folder(Folder { place: Place::Nowhere, .. })), _) => self.skipped = 1,
            (Some(Node::Folder(_)), Key::Files) => self.open.push(Node::Files),
            (Some(Node::Folder(_)), Key::Folders) => self.open.push(Node::Folders),
            _ => {
                self.value_of_no_use();
                self.skipped = 1;
            }
        }
        Ok(())
    }

    fn end(&mut self, gather: &mut Gather) -> Result<(), BadIndex> {
        self.key = Key::Other;
        match self.open.pop() {
            Some(Node::File) => self.end_file(gather),
            Some(Node::Folder(folder)) => self.end_folder(folder, gather),
            _ => Ok(()),
        }
    }

    fn end_file(&mut self, gather: &mut Gather) -> Result<(), BadIndex> {
        let file = std::mem::take(&mut self.file);
        match self.folder() {
            Some(Folder { place: Place::At(path), .. }) => file.give(path, gather),
            Some(folder) => folder.hold(Held { folders: Vec::new(), file: Some(file) }),
            None => Ok(()),
        }
    }

    /// Where its place is still not known, what is in it waits for that of the folder around it.
    fn end_folder(&mut self, folder: Folder, gather: &mut Gather) -> Result<(), BadIndex> {
        if folder.place != Place::Unknown {
            return Ok(());
        }
        let Some(name) = folder.name else {
            gather.refuse("", "a directory in it has no path");
            return Ok(());
        };
        let Some(around) = self.folder() else { return Ok(()) };
        let itself = Held { folders: Vec::new(), file: None };
        folder.held.into_iter().chain([itself]).try_for_each(|mut held| {
            held.folders.push(name.clone());
            around.hold(held)
        })
    }

    /// The innermost folder that is open.
    fn folder(&mut self) -> Option<&mut Folder> {
        self.open.iter_mut().rev().find_map(|node| match node {
            Node::Folder(folder) => Some(folder),
            _ => None,
        })
    }

    fn text(&mut self, text: &str, gather: &mut Gather) -> Result<(), BadIndex> {
        let root = self.open.len() == 1;
        match (self.open.last(), self.key) {
            (Some(Node::Folder(_)), Key::Path) if root => gather.claimed_base = Some(text.to_owned()),
            (Some(Node::Folder(_)), Key::Created) if root => gather.created = stamp::parse(text),
            (Some(Node::Folder(_)), Key::Path) => return self.place(text, gather),
            (Some(Node::File), key) => self.file.text(key, text),
            _ => {}
        }
        Ok(())
    }

    /// The innermost folder has told its name: where the one around it is known, so is its place.
    fn place(&mut self, name: &str, gather: &mut Gather) -> Result<(), BadIndex> {
        let Some(Node::Folder(mut folder)) = self.open.pop() else { return Ok(()) };
        if folder.name.is_none() {
            folder.name = Some(name.to_owned());
            if let Err(why) = check_name(name) {
                gather.refuse(name, why);
                folder.place = Place::Nowhere;
            } else if let Some(Folder { place: Place::At(around), .. }) = self.folder() {
                folder.place = gather.below(around, name).map_or(Place::Nowhere, Place::At);
            }
        }
        let held = std::mem::take(&mut folder.held);
        if let Place::At(path) = &folder.place {
            gather.folder(path);
            held.into_iter().try_for_each(|held| held.give(path, gather))?;
        } else if folder.place == Place::Unknown {
            folder.held = held;
        }
        self.open.push(Node::Folder(folder));
        Ok(())
    }

    /// A number where a text belongs, and the like: of a file it is a fault, elsewhere it is passed over.
    fn value_of_no_use(&mut self) {
        if matches!(self.open.last(), Some(Node::File)) {
            self.file.odd(self.key);
        }
    }
}

impl Folder {
    fn hold(&mut self, held: Held) -> Result<(), BadIndex> {
        if self.held.len() >= MAX_ENTRIES {
            return Err(BadIndex::TooMany { limit: MAX_ENTRIES });
        }
        self.held.push(held);
        Ok(())
    }
}

impl Held {
    /// The place of the folder that held it is known.
    fn give(self, folder: &str, gather: &mut Gather) -> Result<(), BadIndex> {
        let mut path = folder.to_owned();
        for name in self.folders.iter().rev() {
            let Some(joined) = gather.below(&path, name) else { return Ok(()) };
            path = joined;
        }
        gather.folder(&path);
        self.file.map_or(Ok(()), |file| file.give(&path, gather))
    }
}

impl Key {
    fn of(key: &str, depth: usize) -> Self {
        match key {
            "path" => Self::Path,
            "size" => Self::Size,
            "last_modified" => Self::Modified,
            "sha256" => Self::Sha256,
            "files" => Self::Files,
            "directories" => Self::Folders,
            "index_created" if depth == 1 => Self::Created,
            _ => Self::Other,
        }
    }
}

impl File {
    /// It is complete, and lies in this folder.
    fn give(self, folder: &str, gather: &mut Gather) -> Result<(), BadIndex> {
        let Some(name) = self.name else {
            gather.refuse("", self.fault.unwrap_or("a file in it has no path"));
            return Ok(());
        };
        if let Some(fault) = self.fault {
            gather.refuse(&name, fault);
            return Ok(());
        }
        let said = Said { size: self.size, modified: self.modified, digest: self.digest.as_ref() };
        gather.file(folder, &name, &said)
    }

    fn text(&mut self, key: Key, text: &str) {
        match key {
            Key::Path => self.name = Some(text.to_owned()),
            // An unreadable time says nothing; size and digest still do.
            Key::Modified => self.modified = stamp::parse(text),
            Key::Sha256 => match sha256(text) {
                Some(digest) => self.digest = Some(digest),
                None => self.fault = Some("its sha256 cannot be read"),
            },
            Key::Size => self.number(text),
            _ => {}
        }
    }

    fn number(&mut self, text: &str) {
        match text.parse() {
            Ok(size) => self.size = Some(Length(size)),
            Err(_) => self.fault = Some("its size is no number of bytes"),
        }
    }

    fn odd(&mut self, key: Key) {
        match key {
            Key::Path => self.fault = Some("its path is no text"),
            Key::Size => self.fault = Some("its size is no number of bytes"),
            Key::Sha256 => self.fault = Some("its sha256 cannot be read"),
            _ => {}
        }
    }
}

/// In base64, as CollecTor writes it, or in hex.
fn sha256(text: &str) -> Option<Expected> {
    if let Ok(digest) = Expected::from_hex(Algorithm::Sha256, text) {
        return Some(digest);
    }
    let bytes = STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()?;
    Expected::from_bytes(Algorithm::Sha256, bytes)
}
