//! One file of a metalink, as it is put together.

use std::collections::HashSet;
use std::sync::Arc;

use super::error::{BadMetalink, Fault, shown};
use super::read::Version;
use super::xml::{Cursor, Tag};
use super::{LAST_PRIORITY, MAX_URLS, MetaFile, MetaUrl};
use crate::core::digest::{Algorithm, BadPieces, Expected, Pieces};
use crate::core::name::SafeName;
use crate::core::range::Length;
use crate::core::url::MirrorUrl;

/// A file that is being read.
#[derive(Debug)]
pub(super) struct Draft {
    version: Version,
    size: Option<Length>,
    digests: Vec<Expected>,
    pieces: Option<Pieces>,
    pieces_left_out: Option<BadPieces>,
    urls: Vec<MetaUrl>,
    urls_seen: usize,
    urls_left_out: usize,
}

impl Draft {
    /// A file of which nothing is known yet.
    pub(super) const fn new(version: Version) -> Self {
        Self {
            version,
            size: None,
            digests: Vec::new(),
            pieces: None,
            pieces_left_out: None,
            urls: Vec::new(),
            urls_seen: 0,
            urls_left_out: 0,
        }
    }

    /// Reads the children of `<file>`, or of version 3's `<verification>` and `<resources>` in it.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), BadMetalink> {
        while let Some((name, tag)) = cursor.child()? {
            match (self.version, &*name) {
                (_, "size") => self.read_size(cursor, &tag)?,
                (_, "hash") => self.read_digest(cursor, &tag)?,
                (_, "pieces") => self.read_pieces(cursor, &tag)?,
                (_, "url") => self.read_url(cursor, &tag)?,
                (Version::Three, "verification" | "resources") => self.read(cursor)?,
                _ => cursor.skip()?,
            }
        }
        Ok(())
    }

    /// The file as it is given away: the best URL first, each once; pieces only where they fit the size.
    pub(super) fn finish(mut self, name: SafeName) -> MetaFile {
        // Stable: of one priority, the first named is the first asked.
        self.urls.sort_by_key(|u| u.priority);
        let mut seen = HashSet::new();
        self.urls.retain(|u| seen.insert(u.url.clone()));
        if let (Some(pieces), Some(size)) = (&self.pieces, self.size)
            && let Err(bad) = pieces.check_count(size)
        {
            (self.pieces, self.pieces_left_out) = (None, Some(bad));
        }
        MetaFile {
            name,
            size: self.size,
            digests: self.digests,
            pieces: self.pieces.map(Arc::new),
            urls: self.urls,
            urls_left_out: self.urls_left_out,
            pieces_left_out: self.pieces_left_out,
        }
    }

    fn read_size(&mut self, cursor: &mut Cursor<'_>, tag: &Tag<'_>) -> Result<(), BadMetalink> {
        let text = cursor.text(tag)?;
        let size = number(&text).map(Length).filter(|n| *n <= Length::LARGEST_FILE);
        let size = size.ok_or_else(|| cursor.bad(tag.at, Fault::Size { text: shown(&text) }))?;
        if self.size.is_some_and(|known| known != size) {
            return Err(cursor.bad(tag.at, Fault::TwoSizes));
        }
        self.size = Some(size);
        Ok(())
    }

    fn read_digest(&mut self, cursor: &mut Cursor<'_>, tag: &Tag<'_>) -> Result<(), BadMetalink> {
        let Some(algorithm) = algorithm(cursor, tag)? else { return cursor.skip() };
        let text = cursor.text(tag)?;
        let digest = Expected::from_hex(algorithm, &text).map_err(|e| cursor.bad(tag.at, e.into()))?;
        match self.digests.iter().find(|d| d.algorithm == algorithm) {
            None => self.digests.push(digest),
            Some(known) if *known == digest => {}
            Some(_) => return Err(cursor.bad(tag.at, Fault::TwoDigests { algorithm })),
        }
        Ok(())
    }

    fn read_pieces(&mut self, cursor: &mut Cursor<'_>, tag: &Tag<'_>) -> Result<(), BadMetalink> {
        let Some(algorithm) = algorithm(cursor, tag)? else { return cursor.skip() };
        let text = cursor.attribute(tag, "length")?.unwrap_or_default();
        let length = number(text.trim()).map(Length);
        let length = length.ok_or_else(|| cursor.bad(tag.at, Fault::PieceLength { text: shown(&text) }))?;
        match pieces(cursor, algorithm)?.and_then(|bytes| Pieces::new(algorithm, length, bytes)) {
            Ok(pieces) if self.pieces.as_ref().is_none_or(|known| is_stronger(&pieces, known)) => {
                self.pieces = Some(pieces);
            }
            Ok(_) => {}
            Err(bad) => self.pieces_left_out = Some(bad),
        }
        Ok(())
    }

    fn read_url(&mut self, cursor: &mut Cursor<'_>, tag: &Tag<'_>) -> Result<(), BadMetalink> {
        self.urls_seen += 1;
        if self.urls_seen > MAX_URLS {
            return Err(cursor.bad(tag.at, Fault::Urls));
        }
        let kind = cursor.attribute(tag, "type")?;
        let priority = match self.version {
            Version::Four => cursor.attribute(tag, "priority")?.and_then(|t| priority(&t)),
            Version::Three => cursor.attribute(tag, "preference")?.and_then(|t| priority_of_preference(&t)),
        };
        let location = cursor.attribute(tag, "location")?.and_then(|t| country(&t));
        let text = cursor.text(tag)?;
        // Version 3 gives a torrent an http URL too, and says by its type what it is.
        let is_file = self.version == Version::Four || kind.is_none_or(|k| matches!(&*k, "http" | "https"));
        match MirrorUrl::parse(&text) {
            Ok(url) if is_file => {
                self.urls.push(MetaUrl { url, priority: priority.unwrap_or(LAST_PRIORITY), location });
            }
            _ => self.urls_left_out += 1,
        }
        Ok(())
    }
}

/// The digests inside `<pieces>`, one behind the other; of too many, no more than tell that they are.
fn pieces(cursor: &mut Cursor<'_>, algorithm: Algorithm) -> Result<Result<Vec<u8>, BadPieces>, BadMetalink> {
    let (mut bytes, mut n, mut in_order) = (Vec::new(), 0_u64, true);
    while let Some((name, tag)) = cursor.child()? {
        if name != "hash" {
            cursor.skip()?;
            continue;
        }
        // Version 3 numbers them.
        in_order &= cursor.attribute(&tag, "piece")?.is_none_or(|t| number(t.trim()) == Some(n));
        n += 1;
        let text = cursor.text(&tag)?;
        let digest = Expected::from_hex(algorithm, &text).map_err(|e| cursor.bad(tag.at, e.into()))?;
        if bytes.len() <= Pieces::MAX_BYTES {
            bytes.extend(digest.bytes);
        }
    }
    Ok(if in_order { Ok(bytes) } else { Err(BadPieces::Disorder) })
}

fn is_stronger(one: &Pieces, other: &Pieces) -> bool {
    one.algorithm().strength() > other.algorithm().strength()
}

/// The algorithm that the attribute `type` names, where we know it.
fn algorithm(cursor: &Cursor<'_>, tag: &Tag<'_>) -> Result<Option<Algorithm>, BadMetalink> {
    Ok(cursor.attribute(tag, "type")?.and_then(|name| Algorithm::from_name(name.trim())))
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Version 4: from 1, the best, to 999999.
fn priority(text: &str) -> Option<u32> {
    u32::try_from(number(text.trim())?).ok().filter(|n| (1..=LAST_PRIORITY).contains(n))
}

/// Version 3: from 100, the best, down to 0.
fn priority_of_preference(text: &str) -> Option<u32> {
    u32::try_from(number(text.trim())?).ok().map(|n| 101 - n.min(100))
}

fn country(text: &str) -> Option<String> {
    let text = text.trim();
    (text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphabetic())).then(|| text.to_ascii_lowercase())
}
