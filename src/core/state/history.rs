//! What passed on which day, in the file's own `<persxfer>` element: one `<day>` each, with BOINC's words
//! (`daily_xfer_history.xml`).

use super::decode::text;
use super::node::Node;
use super::shape::Shape;
use super::tree::Element;
use crate::core::civil::Day;
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::PerDirection;
use crate::core::schedule::History;

/// The `<day>` element of a day.
pub(super) fn encode((day, bytes): (Day, PerDirection<u64>)) -> Node {
    let nodes = vec![Node::plain("when", day.0), Node::plain("up", bytes.up), Node::plain("down", bytes.down)];
    Node::parent("day", Shape::Day, nodes)
}

/// The history that `<day>` elements tell; one that cannot be read tells nothing.
pub(super) fn decode<'a>(days: impl Iterator<Item = &'a Element<'a>>) -> History {
    let mut history = History::default();
    for element in days {
        let number = |name: &str| text(element, name).and_then(|text| text.parse::<u64>().ok());
        let Some(day) = text(element, "when").and_then(|text| text.parse().ok()) else { continue };
        history.count(Day(day), Direction::Upload, number("up").unwrap_or(0));
        history.count(Day(day), Direction::Download, number("down").unwrap_or(0));
    }
    history
}
