//! One pass over a whole state file: is it sound, and where does each part of it begin and end?

use std::ops::Range;

use super::damage::Damage;
use super::index::{self, Keys};
use super::shape::{self, Shape};
use super::tree::{BLANK, Cursor, Element, Token, What, is_blank};
use super::{MASTER_URL, OURS, scalar};
use super::{history, hosts, mode, reports};
use crate::core::hosts::HostRecord;
use crate::core::report::ErrorReport;
use crate::core::schedule::{History, SaidMode};

/// What the pass found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Our element of the top level.
    pub(super) header: Option<Range<usize>>,
    /// Its `<format>`; 0 where it is missing.
    pub(super) format: u32,
    /// Its `<generation>`; 0 where it is missing.
    pub(super) generation: u64,
    /// Its hosts.
    pub(super) hosts: Vec<HostRecord>,
    /// What passed on which day.
    pub(super) history: History,
    /// The network mode that a person set for good.
    pub(super) mode: Option<SaidMode>,
    /// Reports that are to be sent.
    pub(super) reports: Vec<ErrorReport>,
    /// Everything else inside `<client_state>`, in order, each with the blanks before it.
    pub(super) parts: Vec<Part>,
    /// A transfer has an element of ours.
    pub(super) marked: bool,
    /// How many `<project>`s there are.
    pub(super) projects: u32,
    /// How many of them are not our synthetic one: an identity that hangs on their number stays when we put ours in.
    others: u32,
    /// There is a `<host_info>`.
    pub(super) host_info: bool,
}

/// A part of the top level.
#[derive(Debug)]
pub(super) struct Part {
    /// Where it stands.
    pub(super) range: Range<usize>,
    /// For a transfer, what it is found by.
    pub(super) keys: Option<Keys>,
}

/// Reads a whole file.
pub(super) fn scan(text: &str) -> Result<Scan, Damage> {
    if let Some(damage) = Damage::too_large(text.len() as u64) {
        return Err(damage);
    }
    // Blocks of zeros are what some file systems leave after a power cut.
    if let Some(zero) = text.bytes().position(|b| b == 0) {
        return Err(Damage::here(text, zero, "text"));
    }
    let mut cursor = Cursor::new(text);
    let mut scan = Scan::default();
    if scan.prolog(text, &mut cursor)? {
        while scan.part(text, &mut cursor)? {}
    }
    scan.epilog(text, &mut cursor)?;
    Ok(scan)
}

impl Scan {
    /// Up to `<client_state>`; false where that is an empty tag. An XML declaration is dropped, for BOINC rejects it.
    fn prolog(&mut self, text: &str, cursor: &mut Cursor<'_>) -> Result<bool, Damage> {
        loop {
            let token = cursor.next()?;
            match token.what {
                What::Start("client_state") => return Ok(true),
                What::Empty("client_state") => return Ok(false),
                What::Other => self.push(token.at, cursor, None),
                What::Text if is_blank(token.raw) => {}
                What::Declaration => {}
                _ => return Err(Damage::here(text, token.at, "<client_state>")),
            }
        }
    }

    /// The next part; false at `</client_state>`.
    fn part(&mut self, text: &str, cursor: &mut Cursor<'_>) -> Result<bool, Damage> {
        let start = cursor.position();
        let mut token = cursor.next()?;
        while token.what == What::Text && is_blank(token.raw) {
            token = cursor.next()?;
        }
        match token.what {
            What::Start(_) | What::Empty(_) => self.element(text, start, token, cursor)?,
            What::Other => self.push(start, cursor, None),
            What::End => return Ok(false),
            What::Eof => return Err(cursor.ended("</client_state>")),
            _ => return Err(Damage::here(text, token.at, "an element or </client_state>")),
        }
        Ok(true)
    }

    fn element<'a>(
        &mut self,
        text: &str,
        start: usize,
        open: Token<'a>,
        cursor: &mut Cursor<'a>,
    ) -> Result<(), Damage> {
        let element = cursor.element(open)?;
        match element.name {
            OURS if self.header.is_none() => {
                numbers(text, Shape::Top, &element)?;
                self.read_header(&element);
                self.header = Some(element.at..cursor.position());
                return Ok(());
            }
            "file" | "file_info" => {
                if let Some(ours) = element.child(OURS) {
                    numbers(text, Shape::Ours, ours)?;
                    self.marked = true;
                }
                let keys = index::keys(&element, self.others);
                self.push(start, cursor, Some(keys));
                return Ok(());
            }
            "project" => {
                self.projects += 1;
                self.others += u32::from(element.child("master_url").is_none_or(|e| e.text() != MASTER_URL));
            }
            "host_info" => self.host_info = true,
            _ => {}
        }
        self.push(start, cursor, None);
        Ok(())
    }

    fn read_header(&mut self, element: &Element<'_>) {
        let text = |name: &str| element.child(name).map(|e| e.text());
        self.format = text("format").and_then(|t| scalar::count(&t)).unwrap_or(0);
        self.generation = text("generation").and_then(|t| scalar::length(&t)).unwrap_or_default().0;
        self.hosts = element.all("host").filter_map(hosts::decode).collect();
        self.history = history::decode(element.all("day"));
        self.mode = text("network_mode").and_then(|words| mode::decode(&words));
        self.reports = element.all("report").filter_map(reports::decode).collect();
    }

    /// From `</client_state>` to the end of the file: comments at most. They are kept, inside.
    fn epilog(&mut self, text: &str, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        loop {
            let token = cursor.next()?;
            match token.what {
                What::Eof => return Ok(()),
                What::Other => self.push(token.at, cursor, None),
                What::Text if is_blank(token.raw) => {}
                _ => return Err(Damage::here(text, token.at, "the end of the file after </client_state>")),
            }
        }
    }

    fn push(&mut self, start: usize, cursor: &Cursor<'_>, keys: Option<Keys>) {
        self.parts.push(Part { range: start..cursor.position(), keys });
    }
}

/// Every number in an element of ours is one. Nobody else writes them, so a malformed one is damage, and must not be
/// taken for "nothing held".
fn numbers(text: &str, shape: Shape, element: &Element<'_>) -> Result<(), Damage> {
    for child in element.elements() {
        if let Some(inner) = shape.of(child.name) {
            numbers(text, inner, child)?;
        } else if shape.order().contains(&child.name) {
            sound(text, child)?;
        }
    }
    Ok(())
}

fn sound(text: &str, leaf: &Element<'_>) -> Result<(), Damage> {
    let value = leaf.text();
    if leaf.name == "id" && scalar::id(&value).is_none() {
        return Err(Damage::here(text, leaf.at, "16 hex digits in <id>"));
    }
    let number = !value.trim_matches(BLANK).is_empty() && scalar::double(&value).is_some();
    if shape::is_number(leaf.name) && !number {
        return Err(Damage::here(text, leaf.at, format!("a number in <{}>", leaf.name)));
    }
    Ok(())
}
