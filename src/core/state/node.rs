//! Elements to be written, and how they are written over older ones without losing what others put there.

use std::fmt::{Display, Write as _};

use super::scalar::Escaped;
use super::shape::Shape;
use super::tree::{Element, Item};

/// An element to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    name: &'static str,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Flag,
    Text(Escaped),
    Children(Shape, Vec<Node>),
}

/// A part of an older element that we do not know, and the element that it followed.
struct Stranger<'a> {
    after: Option<(&'a str, usize)>,
    raw: &'a str,
}

impl Node {
    /// `<name/>`
    pub(super) const fn flag(name: &'static str) -> Self {
        Self { name, content: Content::Flag }
    }
    /// Any text.
    pub(super) fn text(name: &'static str, text: &str) -> Self {
        Self { name, content: Content::Text(Escaped::text(text)) }
    }
    /// A text with nothing to escape: numbers, times, words.
    pub(super) fn plain(name: &'static str, value: impl Display) -> Self {
        Self { name, content: Content::Text(Escaped { text: value.to_string(), attributes: None }) }
    }
    /// A path.
    pub(super) fn path(name: &'static str, path: &std::path::Path) -> Self {
        Self { name, content: Content::Text(Escaped::path(path)) }
    }
    /// Elements.
    pub(super) const fn parent(name: &'static str, shape: Shape, children: Vec<Self>) -> Self {
        Self { name, content: Content::Children(shape, children) }
    }

    /// Writes it at the end of `out`, each element on a line of its own (no newline after the last), indented by four
    /// blanks a level from `depth` on. What `old`, the element that it replaces, held and we do not know, keeps its place.
    pub(super) fn write(&self, old: Option<&Element<'_>>, depth: usize, out: &mut String) {
        indent(depth, out);
        match &self.content {
            Content::Flag => push(out, format_args!("<{}/>", self.name)),
            Content::Text(Escaped { text, attributes: None }) => {
                push(out, format_args!("<{0}>{text}</{0}>", self.name))
            }
            Content::Text(Escaped { text, attributes: Some(a) }) => {
                push(out, format_args!("<{0} {a}>{text}</{0}>", self.name));
            }
            Content::Children(shape, children) => self.write_children(*shape, children, old, depth, out),
        }
    }

    fn write_children(
        &self,
        shape: Shape,
        children: &[Self],
        old: Option<&Element<'_>>,
        depth: usize,
        out: &mut String,
    ) {
        let mut strangers = old.map_or_else(Vec::new, |old| placed(shape, children, old)).into_iter().peekable();
        if children.is_empty() && strangers.peek().is_none() {
            return push(out, format_args!("<{}/>", self.name));
        }
        // A record keeps the name that it had.
        let name = old.map_or(self.name, |old| old.name);
        push(out, format_args!("<{name}>\n"));
        for (i, child) in children.iter().enumerate() {
            // One that is not listed would be a stranger at the next writing, and stand there twice.
            debug_assert!(shape.order().contains(&child.name), "{} is listed in {shape:?}", child.name);
            while let Some((_, raw)) = strangers.next_if(|(before, _)| *before <= i) {
                stranger(raw, depth + 1, out);
            }
            child.write(old.and_then(|old| child.partner(shape, i, children, old)), depth + 1, out);
            out.push('\n');
        }
        strangers.for_each(|(_, raw)| stranger(raw, depth + 1, out));
        indent(depth, out);
        push(out, format_args!("</{name}>"));
    }

    /// The element inside `old` that this one, child `i` of its parent, replaces.
    fn partner<'o, 'a>(
        &self,
        parent: Shape,
        i: usize,
        siblings: &[Self],
        old: &'o Element<'a>,
    ) -> Option<&'o Element<'a>> {
        let Content::Children(shape, _) = &self.content else { return None };
        debug_assert!(matches!(parent.of(self.name), Some(s) if s == *shape), "{} has its place", self.name);
        let Some(key) = shape.key() else {
            let ordinal = siblings[..i].iter().filter(|s| s.name == self.name).count();
            return old.elements().filter(|e| e.name == self.name).nth(ordinal);
        };
        let wanted = self.text_of(key)?;
        // Of several with the same key, each has its own: the downloads and the uploads of a host.
        let before = siblings[..i].iter().filter(|s| s.name == self.name && s.text_of(key) == Some(wanted)).count();
        old.elements()
            .filter(|e| e.name == self.name)
            .filter(|e| e.child(key).is_some_and(|k| Escaped::text(&super::scalar::text(k)) == *wanted))
            .nth(before)
    }

    /// The text of the child of that name.
    fn text_of(&self, child: &str) -> Option<&Escaped> {
        let Content::Children(_, children) = &self.content else { return None };
        let found = children.iter().find(|c| c.name == child)?;
        if let Content::Text(text) = &found.content { Some(text) } else { None }
    }
}

/// The strangers in `old`, each with the number of the new child that it stands before.
fn placed<'a>(shape: Shape, children: &[Node], old: &Element<'a>) -> Vec<(usize, &'a str)> {
    let mut strangers: Vec<_> =
        strangers(shape, old).into_iter().map(|s| (place(shape, children, s.after), s.raw)).collect();
    // Stable: those at one place keep their order.
    strangers.sort_by_key(|(place, _)| *place);
    strangers
}

fn strangers<'a>(shape: Shape, old: &Element<'a>) -> Vec<Stranger<'a>> {
    let (mut found, mut after) = (Vec::new(), None::<(&str, usize)>);
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for item in &old.items {
        match item {
            Item::Element(known) if shape.knows(known) => {
                let ordinal = seen.iter().rev().find(|(name, _)| *name == known.name).map_or(0, |(_, n)| n + 1);
                seen.push((known.name, ordinal));
                after = Some((known.name, ordinal));
            }
            Item::Element(unknown) => found.push(Stranger { after, raw: unknown.raw }),
            Item::Other(raw) => found.push(Stranger { after, raw }),
        }
    }
    found
}

/// The number of the new child before which something goes that followed `after` so far: directly behind the same
/// element, or else behind the last of those that are written before it.
fn place(shape: Shape, children: &[Node], after: Option<(&str, usize)>) -> usize {
    let Some((name, ordinal)) = after else { return 0 };
    let same = children.iter().enumerate().filter(|(_, c)| c.name == name).nth(ordinal);
    if let Some((i, _)) = same {
        return i + 1;
    }
    let rank = |name: &str| shape.order().iter().position(|known| *known == name);
    children.iter().rposition(|c| rank(c.name) <= rank(name)).map_or(0, |i| i + 1)
}

fn stranger(raw: &str, depth: usize, out: &mut String) {
    indent(depth, out);
    out.push_str(raw.trim_matches(super::tree::BLANK));
    out.push('\n');
}

fn indent(depth: usize, out: &mut String) {
    (0..depth).for_each(|_| out.push_str("    "));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a String never fails.
    let _ = out.write_fmt(text);
}
