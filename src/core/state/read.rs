//! From the bytes of a state file to its [`Document`]: whose it is, and which transfer has which identity.

use std::str;

use bytes::Bytes;

use super::FORMAT;
use super::damage::Damage;
use super::document::{Document, Kind, Part};
use super::index::{Index, Keys};
use super::scan::{Scan, scan};

/// Our synthetic project: BOINC drops files that stand before any.
const PROJECT: &str = "
<project>
    <master_url>https://persxfer.invalid/</master_url>
    <project_name>persxfer</project_name>
</project>";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Document {
    /// A file of ours without transfers.
    pub fn fresh() -> Self {
        Self::assemble(Scan::default(), &Bytes::new())
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// The first place at which it is no state file. Bytes that are no UTF-8 are damage too, except in the file of a BOINC
    /// client, which writes names as it gets them.
    pub fn parse(bytes: &[u8]) -> Result<Self, Damage> {
        Self::from_bytes(Bytes::copy_from_slice(bytes))
    }

    /// Reads a whole file and keeps its buffer. See [`Document::parse`].
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn from_bytes(mut bytes: Bytes) -> Result<Self, Damage> {
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes = bytes.slice(BYTE_ORDER_MARK.len()..);
        }
        match str::from_utf8(&bytes) {
            Ok(text) => Ok(Self::assemble(scan(text)?, &bytes)),
            Err(error) => Self::from_other_bytes(&bytes, error.valid_up_to()),
        }
    }

    /// A file that is no UTF-8 from `bad` on.
    fn from_other_bytes(bytes: &[u8], bad: usize) -> Result<Self, Damage> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let document = scan(&text).map(|scan| Self::assemble(scan, &Bytes::from(text.clone())));
        match document {
            Ok(document) if document.kind == Kind::Foreign => Ok(document),
            Err(damage) if damage.offset < bad => Err(damage),
            _ => Err(Damage::at(&text, bad, "text in UTF-8", "other bytes")),
        }
    }

    fn assemble(scan: Scan, bytes: &Bytes) -> Self {
        let kind = match (scan.header.is_some() || scan.marked, scan.projects > 0 || scan.host_info) {
            (true, _) => Kind::Ours,
            (false, true) => Kind::Foreign,
            (false, false) => Kind::Other,
        };
        let mut document = Self {
            kind,
            format: if scan.header.is_some() { scan.format } else { FORMAT },
            generation: scan.generation,
            hosts: scan.hosts,
            history: scan.history,
            mode: scan.mode,
            reports: scan.reports,
            report_to: None,
            header: scan.header.map_or_else(Bytes::new, |range| bytes.slice(range)),
            head: Vec::with_capacity(scan.parts.len() + 1),
            tail: Vec::new(),
            index: Index::default(),
            changed: false,
            fault: None,
        };
        if scan.projects == 0 {
            document.head.push(Part::Other(Bytes::from_static(PROJECT.as_bytes())));
        }
        let last = scan.parts.iter().rposition(|part| part.keys.is_some());
        let mut nameless = Vec::new();
        for (i, part) in scan.parts.into_iter().enumerate() {
            let raw = bytes.slice(part.range);
            match part.keys {
                Some(keys) => document.adopt(raw, keys, &mut nameless),
                None if last.is_some_and(|last| i > last) => document.tail.push(raw),
                None => document.head.push(Part::Other(raw)),
            }
        }
        document.name_the_nameless(nameless);
        document
    }

    /// Takes up a transfer as it was read. Where it has no identity, or a copied one, it gets one when all others have theirs.
    fn adopt(&mut self, raw: Bytes, keys: Keys, nameless: &mut Vec<(u32, Keys)>) {
        let slot = self.next_slot();
        match keys.id.filter(|id| self.index.slot(*id).is_none()) {
            Some(id) => {
                self.head.push(Part::Transfer(id, raw));
                self.index.insert(id, &keys, slot);
            }
            None => {
                self.head.push(Part::Transfer(keys.derived, raw));
                nameless.push((slot, keys));
            }
        }
    }

    fn name_the_nameless(&mut self, nameless: Vec<(u32, Keys)>) {
        for (slot, keys) in nameless {
            let free = self.index.free(keys.derived);
            if let Some(Part::Transfer(id, _)) = self.head.get_mut(slot as usize) {
                *id = free;
                self.index.insert(free, &keys, slot);
            }
        }
    }
}
