//! Who runs a transfer, and what others want of it: `<owner>` and `<wish>` in our element of a transfer.

use super::decode::{text, time};
use super::node::Node;
use super::scalar;
use super::shape::Shape;
use super::tree::Element;
use crate::core::pers_xfer::record::Record;
use crate::core::pers_xfer::sharing::{OwnerId, Wanted, Wish};
use crate::core::url::MirrorUrl;

/// Both, as far as there are any.
pub(super) fn encode(record: &Record) -> Vec<Node> {
    let owner = record.owner.map(|owner| Node::plain("owner", owner));
    owner.into_iter().chain(record.wishes.iter().map(wish)).collect()
}

fn wish(wish: &Wish) -> Node {
    let mut nodes = vec![
        Node::plain("serial", format_args!("{:016x}", wish.serial)),
        Node::plain("time", wish.at),
        Node::plain("what", wish.what.word()),
    ];
    if let Wanted::Mirrors(urls) = &wish.what {
        nodes.extend(urls.iter().map(|url| Node::text("url", url.secret_url().as_str())));
    }
    Node::parent("wish", Shape::Wish, nodes)
}

/// The owner that our element names.
pub(super) fn owner(ours: Option<&Element<'_>>) -> Option<OwnerId> {
    serial(&text(ours?, "owner")?).map(OwnerId)
}

/// The wishes in our element; one that we do not know how to obey is none.
pub(super) fn wishes(ours: Option<&Element<'_>>) -> Vec<Wish> {
    ours.into_iter().flat_map(|ours| ours.all("wish")).filter_map(read_wish).collect()
}

fn read_wish(element: &Element<'_>) -> Option<Wish> {
    let urls = || element.all("url").filter_map(|e| MirrorUrl::parse(&e.text()).ok()).collect();
    let what = match text(element, "what")?.as_str() {
        "retry" => Wanted::Retry,
        "suspend" => Wanted::Suspend,
        "resume" => Wanted::Resume,
        "abort" => Wanted::Abort,
        "mirrors" => Wanted::Mirrors(urls()),
        _ => return None,
    };
    Some(Wish { serial: serial(&text(element, "serial")?)?, at: time(Some(element), "time").unwrap_or_default(), what })
}

/// 16 hex digits, like an identity.
fn serial(text: &str) -> Option<u64> {
    scalar::id(text).map(|id| id.0)
}
