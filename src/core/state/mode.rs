//! The network mode that a person set for good, in the file's own `<persxfer>` element: that mode, and behind it what the
//! preferences said then.

use super::node::Node;
use crate::core::prefs::Mode;
use crate::core::schedule::SaidMode;

/// The `<network_mode>` element.
pub(super) fn encode(SaidMode { mode, over }: SaidMode) -> Node {
    Node::plain("network_mode", format_args!("{} {}", mode.word(), over.word()))
}

/// What its text says; nothing where it is none of these words.
pub(super) fn decode(text: &str) -> Option<SaidMode> {
    let (mode, over) = text.trim().split_once(' ')?;
    Some(SaidMode { mode: Mode::from_word(mode)?, over: Mode::from_word(over)? })
}
