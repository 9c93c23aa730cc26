//! Reports that are still to be sent, in the file's own `<persxfer>` element: one `<report>` each.

use super::decode::{count, span, text, time};
use super::encode::positive;
use super::node::Node;
use super::scalar;
use super::shape::Shape;
use super::tree::Element;
use super::{backoff, options, sharing};
use crate::core::backoff::Backoff;
use crate::core::pers_xfer::options::Options;
use crate::core::report::ErrorReport;
use crate::core::time::Delay;
use crate::core::url::MirrorUrl;

/// The elements inside `<report>`, in order.
pub(super) const ORDER: &[&str] = &[
    "id",
    "url",
    "name",
    "error_code",
    "error_msg",
    "options",
    "num_retries",
    "backoff",
    "next_request_time",
    "patience_used",
    "patience_at",
    "owner",
];

/// The `<report>` element of a report.
pub(super) fn encode(report: &ErrorReport) -> Node {
    let mut nodes = vec![
        Node::plain("id", report.id),
        Node::text("url", report.url.secret_url().as_str()),
        Node::text("name", &report.name),
        Node::plain("error_code", report.code),
        Node::text("error_msg", &report.message),
    ];
    let patience = Options { policy: report.policy.clone(), give_up: report.window, ..Options::default() };
    nodes.extend(options::encode(&patience));
    nodes.extend(positive("num_retries", report.tries));
    nodes.extend(backoff::element(&report.backoff));
    nodes.extend(report.next.map(|t| Node::plain("next_request_time", t)));
    nodes.extend((report.used > Delay::ZERO).then(|| Node::plain("patience_used", report.used)));
    nodes.extend(report.at.map(|t| Node::plain("patience_at", t)));
    nodes.extend(report.owner.map(|owner| Node::plain("owner", owner)));
    Node::parent("report", Shape::Report, nodes)
}

/// The report of a `<report>` element; `None` where it does not say of what, or to whom.
pub(super) fn decode(element: &Element<'_>) -> Option<ErrorReport> {
    let options = element.child("options").map(options::decode).unwrap_or_default();
    Some(ErrorReport {
        id: scalar::id(&text(element, "id")?)?,
        url: MirrorUrl::parse(&text(element, "url")?).ok()?,
        name: text(element, "name").unwrap_or_default(),
        code: text(element, "error_code").and_then(|t| t.trim().parse().ok())?,
        message: text(element, "error_msg").unwrap_or_default(),
        policy: options.policy,
        window: options.give_up,
        tries: count(Some(element), "num_retries"),
        backoff: element.child("backoff").map_or_else(Backoff::default, backoff::decode),
        next: time(Some(element), "next_request_time"),
        used: span(Some(element), "patience_used"),
        at: time(Some(element), "patience_at"),
        owner: sharing::owner(Some(element)),
    })
}
