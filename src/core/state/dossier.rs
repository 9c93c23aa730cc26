//! What a transfer knows of its file's versions, in its `<dossier>` element.

use super::decode::{count, length, text, time};
use super::encode::positive;
use super::node::Node;
use super::shape::Shape;
use super::tree::Element;
use super::{scalar, words};
use crate::core::file_xfer::dossier::{Dossier, Draft, IfRange, Joints, OriginNotes, Ranges};
use crate::core::range::Length;
use crate::core::url::Origin;
use crate::core::validator::Validators;

/// The element of a dossier; none where nothing is known.
pub(super) fn encode(dossier: &Dossier) -> Option<Node> {
    let mut nodes = Vec::new();
    nodes.extend((dossier.part != Draft::default()).then(|| draft("part", &dossier.part)));
    nodes.extend(dossier.rival.as_ref().map(|rival| draft("rival", rival)));
    nodes.extend(dossier.origins.iter().map(origin_notes));
    nodes.extend(positive("changes", dossier.changes));
    (!nodes.is_empty()).then(|| Node::parent("dossier", Shape::Dossier, nodes))
}

/// The dossier of a `<dossier>` element.
pub(super) fn decode(element: &Element<'_>) -> Dossier {
    Dossier {
        part: element.child("part").map(read_draft).unwrap_or_default(),
        rival: element.child("rival").map(read_draft),
        origins: element.all("origin_notes").filter_map(read_origin_notes).collect(),
        changes: count(Some(element), "changes"),
    }
}

fn draft(name: &'static str, draft: &Draft) -> Node {
    let mut nodes = Vec::new();
    nodes.extend((draft.held > Length::ZERO).then(|| Node::plain("held", draft.held)));
    nodes.extend((draft.beyond > Length::ZERO).then(|| Node::plain("beyond", draft.beyond)));
    nodes.extend(draft.total.map(|n| Node::plain("total", n)));
    nodes.extend(draft.validators.iter().map(|(origin, v)| validators("validators", origin, v)));
    nodes.extend(draft.reserve.iter().map(|(origin, v)| validators("reserve", origin, v)));
    nodes.extend(draft.last_origin.as_ref().map(|o| Node::text("last_origin", o.as_str())));
    nodes.extend(draft.content_type.as_ref().map(|t| Node::text("content_type", t)));
    nodes.extend(draft.coding.as_ref().map(|t| Node::text("coding", t)));
    nodes.extend(draft.inode.map(|n| Node::plain("inode", n)));
    nodes.extend((draft.joints != Joints::default()).then(|| Node::plain("joints", words::joints(draft.joints))));
    nodes.extend(draft.vouched.iter().map(|d| Node::plain("vouched", words::digest(d))));
    Node::parent(name, Shape::Draft, nodes)
}

fn read_draft(element: &Element<'_>) -> Draft {
    Draft {
        held: length(Some(element), "held").unwrap_or_default(),
        beyond: length(Some(element), "beyond").unwrap_or_default(),
        total: length(Some(element), "total"),
        validators: element.all("validators").filter_map(read_validators).collect(),
        reserve: element.all("reserve").filter_map(read_validators).collect(),
        last_origin: text(element, "last_origin").and_then(|t| Origin::parse(&t)),
        content_type: text(element, "content_type"),
        coding: text(element, "coding"),
        inode: text(element, "inode").and_then(|t| t.parse().ok()),
        joints: text(element, "joints").map_or_else(Joints::default, |w| words::read_joints(&w)),
        vouched: element.all("vouched").filter_map(|e| words::read_digest(&e.text())).collect(),
    }
}

fn validators(name: &'static str, origin: &Origin, validators: &Validators) -> Node {
    let mut nodes = vec![Node::text("origin", origin.as_str())];
    nodes.extend(validators.etag.as_ref().map(|tag| Node::text("etag", &words::etag(tag))));
    nodes.extend(validators.last_modified.map(|t| Node::plain("last_modified", t)));
    nodes.extend(validators.date.map(|t| Node::plain("date", t)));
    Node::parent(name, Shape::Validators, nodes)
}

fn read_validators(element: &Element<'_>) -> Option<(Origin, Validators)> {
    let validators = Validators {
        etag: text(element, "etag").map(|t| words::read_etag(&t)),
        last_modified: time(Some(element), "last_modified"),
        date: time(Some(element), "date"),
    };
    Some((Origin::parse(&text(element, "origin")?)?, validators))
}

fn origin_notes(notes: &OriginNotes) -> Node {
    let mut nodes = vec![Node::text("origin", notes.origin.as_str())];
    nodes.extend((notes.ranges != Ranges::default()).then(|| Node::plain("ranges", words::ranges(notes.ranges))));
    nodes.extend(
        (notes.if_range != IfRange::default()).then(|| Node::plain("if_range", words::if_range(notes.if_range))),
    );
    nodes.extend(notes.etags_lie.then(|| Node::flag("etags_lie")));
    nodes.extend(notes.most.map(|n| Node::plain("connections", n)));
    nodes.extend(notes.part_digests_lie.then(|| Node::flag("part_digests_lie")));
    Node::parent("origin_notes", Shape::Origin, nodes)
}

fn read_origin_notes(element: &Element<'_>) -> Option<OriginNotes> {
    Some(OriginNotes {
        origin: Origin::parse(&text(element, "origin")?)?,
        ranges: text(element, "ranges").map(|w| words::read_ranges(&w)).unwrap_or_default(),
        if_range: text(element, "if_range").map(|w| words::read_if_range(&w)).unwrap_or_default(),
        etags_lie: scalar::flag(element.child("etags_lie")),
        most: text(element, "connections").and_then(|t| t.parse().ok()),
        part_digests_lie: scalar::flag(element.child("part_digests_lie")),
    })
}
