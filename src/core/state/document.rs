//! Document: a whole client state file in memory.

use std::path::Path;
use std::str;

use bytes::Bytes;

use super::damage::Damage;
use super::index::{self, Index};
use super::node::Node;
use super::shape::Shape;
use super::tree::Element;
use super::{FORMAT, OURS, decode, encode, scalar, sharing};
use super::{history, hosts, mode, reports};
use crate::core::civil::Day;
use crate::core::hosts::{HostKey, HostRecord};
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::pers_xfer::sharing::OwnerId;
use crate::core::report::ErrorReport;
use crate::core::schedule::{History, SaidMode};
use crate::core::url::MirrorUrl;

/// A client state file.
#[derive(Clone, Debug)]
pub struct Document {
    pub(super) kind: Kind,
    pub(super) format: u32,
    pub(super) generation: u64,
    pub(super) hosts: Vec<HostRecord>,
    pub(super) history: History,
    pub(super) mode: Option<SaidMode>,
    pub(super) reports: Vec<ErrorReport>,
    /// Who is told of failures, where a transfer does not say.
    pub(super) report_to: Option<MirrorUrl>,
    /// Our element of the top level as it was read; empty where there was none.
    pub(super) header: Bytes,
    /// Everything up to the last transfer; new ones are added here.
    pub(super) head: Vec<Part>,
    /// What follows the last transfer.
    pub(super) tail: Vec<Bytes>,
    pub(super) index: Index,
    pub(super) changed: bool,
    pub(super) fault: Option<String>,
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a mark of ours: a `<persxfer>` element at top level or in a transfer.
    Ours,
    /// A BOINC client's: a `<project>` or `<host_info>`, and no mark of ours. Listed, never written.
    Foreign,
    /// Neither; ours to write.
    Other,
}

/// What a user's word for a transfer leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// One transfer.
    One(XferId),
    /// Several, in the order of the file.
    Many(Vec<XferId>),
    /// None.
    None,
}

/// A part of the file.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A transfer.
    Transfer(XferId, Bytes),
    /// An element that we do not know, a comment, a project.
    Other(Bytes),
    /// A transfer was here.
    Gone,
}

impl Document {
    /// Whose file it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The version of its form; above [`FORMAT`], a later program's.
    pub fn format(&self) -> u32 {
        self.format
    }

    /// How often it has been written.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Counts one more writing.
    pub fn next_generation(&mut self) {
        self.generation = self.generation.saturating_add(1);
    }

    /// Something was changed since it was read, or since [`Document::mark_saved`].
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// The changes are on disk.
    pub fn mark_saved(&mut self) {
        self.changed = false;
    }

    /// Why a record could not be taken up: it is beyond the limits of the form. Such a document must not be written.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// How many transfers.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// No transfers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every transfer, in the order of the file, each parsed when its turn comes.
    pub fn transfers(&self) -> impl Iterator<Item = Record> {
        self.head.iter().filter_map(|part| match part {
            Part::Transfer(id, raw) => Some(decode::record(&element(raw), *id)),
            _ => None,
        })
    }

    /// Their identities, in the order of the file.
    pub fn ids(&self) -> impl Iterator<Item = XferId> {
        self.head.iter().filter_map(|part| match part {
            Part::Transfer(id, _) => Some(*id),
            _ => None,
        })
    }

    /// There is a transfer of that identity.
    pub fn contains(&self, id: XferId) -> bool {
        self.index.slot(id).is_some()
    }

    /// One transfer.
    pub fn get(&self, id: XferId) -> Option<Record> {
        let raw = self.raw(self.index.slot(id)?)?;
        Some(decode::record(&element(raw), id))
    }

    /// Puts a transfer in the place of the one with the same identity, or behind the last one. What the old one held and
    /// we do not know stays where it was.
    pub fn put(&mut self, record: &Record) {
        let slot = self.index.slot(record.id);
        let old = slot.and_then(|slot| self.raw(slot)).cloned();
        let text = written(&encode::record(record), old.as_ref().map(element).as_ref());
        let keys = match Element::parse(&text) {
            Ok(element) => index::keys(&element, 0),
            Err(limit) => return self.refuse(&record.name, &limit),
        };
        if old.as_ref().is_some_and(|old| *old == text) {
            return;
        }
        self.owe_report(record, old.as_ref());
        if let (Some(slot), Some(old)) = (slot, &old) {
            self.index.remove(record.id, &index::keys(&element(old), 0), slot);
        }
        let slot = slot.unwrap_or_else(|| self.next_slot());
        let part = Part::Transfer(record.id, Bytes::from(text));
        match self.head.get_mut(slot as usize) {
            Some(place) => *place = part,
            None => self.head.push(part),
        }
        self.index.insert(record.id, &keys, slot);
        self.changed = true;
    }

    fn refuse(&mut self, name: &str, limit: &Damage) {
        let why = format!("the transfer {name:?} does not fit into the state file: {limit}");
        self.fault.get_or_insert(why);
    }

    /// Takes a transfer out; false where there is none of that identity.
    pub fn remove(&mut self, id: XferId) -> bool {
        let Some(slot) = self.index.slot(id) else { return false };
        let part = self.head.get_mut(slot as usize).map(|part| std::mem::replace(part, Part::Gone));
        if let Some(Part::Transfer(_, raw)) = part {
            self.index.remove(id, &index::keys(&element(&raw), 0), slot);
        }
        self.changed = true;
        true
    }

    /// Takes out the finished transfers beyond the newest `most`.
    pub fn prune_finished(&mut self, most: usize) {
        for id in self.index.outdated(most) {
            self.remove(id);
        }
    }

    /// The transfers in which somebody left a wish, in the order of the file. Cheap: nothing is parsed.
    pub fn with_wishes(&self) -> impl Iterator<Item = XferId> {
        self.holding(b"<wish>")
    }

    /// The transfers that go, or went, into a folder under a name of the server's. Cheap: nothing is parsed.
    pub fn for_a_folder(&self) -> impl Iterator<Item = XferId> {
        self.holding(b"<folder")
    }

    /// The transfers that are neither complete nor failed, or in which somebody left a wish, in the order of the file; and
    /// perhaps others. Cheap: nothing is parsed.
    pub fn perhaps_unfinished(&self) -> impl Iterator<Item = XferId> {
        self.head.iter().filter_map(|part| match part {
            Part::Transfer(id, raw) if !looks_over(raw) || holds(raw, b"<wish>") => Some(*id),
            _ => None,
        })
    }

    /// The hosts that a transfer is about, in the order of its URLs, and which way its bytes go.
    pub fn hosts_of(&self, id: XferId) -> Vec<HostKey> {
        let raw = self.index.slot(id).and_then(|slot| self.raw(slot));
        raw.map(|raw| decode::hosts(&element(raw))).unwrap_or_default()
    }

    /// The process that runs a transfer, if that is alive.
    pub fn owner(&self, id: XferId) -> Option<OwnerId> {
        let raw = self.raw(self.index.slot(id)?)?;
        sharing::owner(element(raw).child(OURS))
    }

    fn holding(&self, word: &'static [u8]) -> impl Iterator<Item = XferId> {
        self.head.iter().filter_map(move |part| match part {
            Part::Transfer(id, raw) if holds(raw, word) => Some(*id),
            _ => None,
        })
    }

    /// The transfers that a user can mean by this word: a name, an absolute path, or an identity.
    pub fn find(&self, word: &str) -> Found {
        let mut slots: Vec<u32> = self.named(word).chain(self.with_path(Path::new(word))).collect();
        slots.extend(scalar::id(word).and_then(|id| self.index.slot(id)));
        slots.sort_unstable();
        slots.dedup();
        let ids: Vec<XferId> = slots.into_iter().filter_map(|slot| self.id(slot)).collect();
        match ids.as_slice() {
            [] => Found::None,
            [one] => Found::One(*one),
            _ => Found::Many(ids),
        }
    }

    /// The transfers with this path, in the order of the file: the identity of a download is its absolute target.
    pub fn at_path(&self, path: &Path) -> Vec<XferId> {
        self.with_path(path).filter_map(|slot| self.id(slot)).collect()
    }

    /// A name that no transfer has: the one wanted, or with `~2`, `~3` and so on behind it. What XML cannot hold in it
    /// becomes `_`.
    pub fn unique_name(&mut self, wanted: &str) -> String {
        let wanted = wanted.trim().replace(char::is_control, "_");
        self.index.unique_name(if wanted.is_empty() { "unnamed" } else { &wanted })
    }

    /// Hosts that back off as a whole.
    pub fn hosts(&self) -> &[HostRecord] {
        &self.hosts
    }

    /// Replaces the hosts that back off.
    pub fn set_hosts(&mut self, hosts: Vec<HostRecord>) {
        self.changed |= self.hosts != hosts;
        self.hosts = hosts;
    }

    /// How many bytes passed on which day.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// So many more have passed; what is too old to matter on this day is forgotten.
    pub fn count(&mut self, more: &History, today: Day) {
        let before = self.history.clone();
        self.history.add(more);
        self.history.forget(today);
        self.changed |= self.history != before;
    }

    /// The whole file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.chunks().collect::<Vec<_>>().concat()
    }

    /// The whole file in pieces, one after the other: untouched ones are those that were read.
    pub fn chunks(&self) -> impl Iterator<Item = Bytes> {
        let head = self.head.iter().filter_map(|part| match part {
            Part::Transfer(_, raw) | Part::Other(raw) => Some(raw),
            Part::Gone => None,
        });
        let start = Bytes::from(format!("<client_state>{}", self.header_text()));
        let end = Bytes::from_static(b"\n</client_state>\n");
        let parts = head.chain(&self.tail).flat_map(|raw| [line_break_before(raw), raw.clone()]);
        std::iter::once(start).chain(parts).chain(std::iter::once(end))
    }

    fn header_text(&self) -> String {
        let mut nodes =
            vec![Node::plain("format", self.format.max(FORMAT)), Node::plain("generation", self.generation)];
        nodes.extend(self.mode.map(mode::encode));
        nodes.extend(self.hosts.iter().map(hosts::encode));
        nodes.extend(self.history.days().map(history::encode));
        nodes.extend(self.reports.iter().map(reports::encode));
        let old = (!self.header.is_empty()).then(|| element(&self.header));
        written(&Node::parent(OURS, Shape::Top, nodes), old.as_ref())
    }

    fn named(&self, name: &str) -> impl Iterator<Item = u32> {
        let is_it = move |slot: &u32| {
            self.raw(*slot).is_some_and(|raw| decode::text(&element(raw), "name").as_deref() == Some(name))
        };
        self.index.named(name).filter(is_it)
    }

    fn with_path(&self, path: &Path) -> impl Iterator<Item = u32> {
        let is_it = move |slot: &u32| {
            let Some(raw) = self.raw(*slot) else { return false };
            let found = element(raw).child(OURS).and_then(|o| o.child("path")).map(scalar::path);
            found.as_deref() == Some(path)
        };
        self.index.at_path(path).filter(is_it)
    }

    fn raw(&self, slot: u32) -> Option<&Bytes> {
        match self.head.get(slot as usize)? {
            Part::Transfer(_, raw) => Some(raw),
            _ => None,
        }
    }

    fn id(&self, slot: u32) -> Option<XferId> {
        match self.head.get(slot as usize)? {
            Part::Transfer(id, _) => Some(*id),
            _ => None,
        }
    }

    pub(super) fn next_slot(&self) -> u32 {
        // A file of at most a gigabyte holds far fewer parts.
        u32::try_from(self.head.len()).unwrap_or(u32::MAX)
    }
}

/// A transfer that has failed or is complete, as we write it.
fn looks_over(raw: &[u8]) -> bool {
    let uploads = || holds(raw, b"<upload_url>") && !holds(raw, b"<uploaded/>");
    holds(raw, b"<status>-") || holds(raw, b"<status>1</status>") && !uploads()
}

/// Does the text hold this word?
fn holds(raw: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(raw, word).is_some()
}

/// A node on a line of its own.
fn written(node: &Node, old: Option<&Element<'_>>) -> String {
    let mut out = String::from("\n");
    node.write(old, 0, &mut out);
    out
}

/// Parts that shared a line when they were read, or stood outside the root, get one of their own: BOINC's readers like
/// it better.
fn line_break_before(raw: &[u8]) -> Bytes {
    Bytes::from_static(if raw.first().is_some_and(u8::is_ascii_whitespace) { b"" } else { b"\n" })
}

/// The element that a part consists of.
#[expect(clippy::expect_used, reason = "every part was parsed as UTF-8 and as one element when it was taken up")]
pub(super) fn element(raw: &Bytes) -> Element<'_> {
    let text = str::from_utf8(raw).expect("a part is UTF-8");
    Element::parse(text).expect("a part is one sound element")
}
