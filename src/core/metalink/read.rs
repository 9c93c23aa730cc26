//! From a document to its files: which version it is, and what stands where in it.
//!
//! Version 4 (RFC 5854): `metalink > file`, with `size`, `hash`, `pieces` and `url` directly inside. Version 3
//! (metalinker.org): `metalink > files > file`, with `size`, `verification > hash, pieces` and `resources > url`.

use std::collections::HashSet;

use super::error::{BadMetalink, Fault, shown};
use super::file::Draft;
use super::xml::{Cursor, Tag};
use super::{MAX_BYTES, MAX_FILES, MetaFile, Metalink};
use crate::core::name::{Giver, SafeName};

/// The namespace of version 4 (RFC 5854 3).
const SPACE_4: &str = "urn:ietf:params:xml:ns:metalink";
/// The namespace of version 3.
const SPACE_3: &str = "http://www.metalinker.org/";

/// The version of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// metalinker.org.
    Three,
    /// RFC 5854.
    Four,
}

/// Reads a whole document.
pub(super) fn metalink(bytes: &[u8]) -> Result<Metalink, BadMetalink> {
    if bytes.len() > MAX_BYTES {
        return Err(BadMetalink::at("", 0, Fault::TooLarge));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| not_utf8(bytes, e.valid_up_to()))?;
    let mut cursor = Cursor::new(text.trim_start_matches('\u{feff}'));
    let root = cursor.root("metalink")?;
    let version = version(&cursor, &root)?;
    let mut files = Files::default();
    while let Some((name, tag)) = cursor.child()? {
        match (version, &*name) {
            (Version::Four, "file") => files.read(&mut cursor, &tag, version)?,
            (Version::Three, "files") => files.read_all(&mut cursor)?,
            _ => cursor.skip()?,
        }
    }
    cursor.end()?;
    if files.list.is_empty() {
        return Err(cursor.bad(root.at, Fault::NoFile));
    }
    Ok(Metalink { files: files.list })
}

fn not_utf8(bytes: &[u8], at: usize) -> BadMetalink {
    let before = String::from_utf8_lossy(&bytes[..at]);
    BadMetalink::at(&before, before.len(), Fault::NotUtf8)
}

/// By the namespace; documents of version 3 are also known without one, by their `version="3.0"`.
fn version(cursor: &Cursor<'_>, root: &Tag<'_>) -> Result<Version, BadMetalink> {
    let said = cursor.attribute(root, "version")?.unwrap_or_default();
    match &*cursor.space().name {
        SPACE_4 => Ok(Version::Four),
        SPACE_3 => Ok(Version::Three),
        "" if said.starts_with("3.") => Ok(Version::Three),
        other => {
            let found = format!("a <metalink> of the namespace \"{}\"", shown(other));
            Err(cursor.bad(root.at, Fault::NotMetalink { found }))
        }
    }
}

/// The files read so far.
#[derive(Default)]
struct Files {
    list: Vec<MetaFile>,
    names: HashSet<SafeName>,
}

impl Files {
    /// The children of version 3's `<files>`.
    fn read_all(&mut self, cursor: &mut Cursor<'_>) -> Result<(), BadMetalink> {
        while let Some((name, tag)) = cursor.child()? {
            match &*name {
                "file" => self.read(cursor, &tag, Version::Three)?,
                _ => cursor.skip()?,
            }
        }
        Ok(())
    }

    fn read(&mut self, cursor: &mut Cursor<'_>, tag: &Tag<'_>, version: Version) -> Result<(), BadMetalink> {
        if self.list.len() >= MAX_FILES {
            return Err(cursor.bad(tag.at, Fault::Files));
        }
        let raw = cursor.attribute(tag, "name")?.ok_or_else(|| cursor.bad(tag.at, Fault::NoName))?;
        let no_name = || cursor.bad(tag.at, Fault::Name { text: shown(&raw) });
        let name = SafeName::new(&raw, Giver::Server).ok_or_else(no_name)?;
        if !self.names.insert(name.clone()) {
            return Err(cursor.bad(tag.at, Fault::SameName { name }));
        }
        let mut draft = Draft::new(version);
        draft.read(cursor)?;
        self.list.push(draft.finish(name));
        Ok(())
    }
}
