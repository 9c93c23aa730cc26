//! Paths below a source: components that are safe to create, whatever an index says (B8.4 of the facts: names that are
//! empty, `.`, `..`, dot-led, `.tmp`-ended, over-long, or that hold a separator, NUL or a control character).
//!
//! Unlike a name for one download ([`crate::core::name::SafeName`]), a name in a tree is never made safe: it is the
//! identity of a file in every source and in every tree of ours, so that a bad one is refused.

use std::borrow::Borrow;
use std::fmt;

use crate::core::name::is_working_name;
use crate::core::printable::is_hidden;

/// The longest component, in bytes: what the systems take, less what stands behind it while a file is fetched.
pub const MAX_NAME: usize = 220;
/// The longest path, in bytes.
pub const MAX_PATH: usize = 1024;
/// The most components.
pub const MAX_COMPONENTS: usize = 32;

/// A path below the root of a tree: safe components with `/` between; at least one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(String);

/// The part of a tree that is a module's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    All,
    /// What lies below this folder.
    Below(TreePath),
}

/// Why a name, or a path, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Nothing, or nothing between two separators.
    #[error("a name in it is empty")]
    Empty,
    /// `.` or `..`.
    #[error("it leads out of its folder")]
    Dots,
    /// It begins with a dot.
    #[error("a name in it begins with a dot")]
    Hidden,
    /// It ends as temporary files do.
    #[error("it is the name of a temporary file")]
    Temporary,
    /// One of our own part files or journals.
    #[error("it is the name of a working file of this program")]
    Working,
    /// A separator within a name.
    #[error("a name in it holds a separator")]
    Separator,
    /// A character that is not seen.
    #[error("it holds a control character, or one that is not seen")]
    Control,
    /// Too long, or too deep.
    #[error("it is too long, or too deep")]
    TooLong,
}

/// Is this one component that may be created?
///
/// # Errors
/// Why not.
pub fn check_name(name: &str) -> Result<(), BadName> {
    match name {
        "" => return Err(BadName::Empty),
        "." | ".." => return Err(BadName::Dots),
        _ => {}
    }
    if name.contains(['/', '\\']) {
        Err(BadName::Separator)
    } else if name.contains(is_hidden) {
        Err(BadName::Control)
    } else if name.starts_with('.') {
        Err(BadName::Hidden)
    } else if name.to_ascii_lowercase().ends_with(".tmp") {
        Err(BadName::Temporary)
    } else if is_working_name(name) {
        Err(BadName::Working)
    } else if name.len() > MAX_NAME {
        Err(BadName::TooLong)
    } else {
        Ok(())
    }
}

impl TreePath {
    /// Reads a relative path.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        text.split('/').try_for_each(check_name)?;
        if text.len() > MAX_PATH || text.split('/').count() > MAX_COMPONENTS {
            return Err(BadName::TooLong);
        }
        Ok(Self(text.to_owned()))
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its last component.
    pub fn file_name(&self) -> &str {
        file_name(&self.0)
    }
}

impl Part {
    /// What of a path lies in this part, from its folder on; nothing where the path does not lie in it.
    pub fn of<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self {
            Self::All => Some(path),
            Self::Below(folder) => below(path, folder.as_str()),
        }
    }

    /// Is this folder in it, or does it lie in this folder? There its files may be.
    pub fn meets(&self, folder: &str) -> bool {
        let Self::Below(own) = self else { return true };
        let own = own.as_str();
        folder.is_empty() || folder == own || below(folder, own).is_some() || below(own, folder).is_some()
    }

    /// Have the two something in common?
    pub fn overlaps(&self, other: &Self) -> bool {
        match other {
            Self::All => true,
            Self::Below(folder) => self.meets(folder.as_str()),
        }
    }
}

/// The last component of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The folder of a path; empty where it has but one component.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// What of `path` lies below `folder`, by components: `exit-lists-old` is not below `exit-lists`.
pub fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl Borrow<str> for TreePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_are_refused_and_why() {
        for (text, why) in [
            ("", BadName::Empty),
            ("a//b", BadName::Empty),
            ("/etc/x", BadName::Empty),
            ("a/", BadName::Empty),
            ("../../x", BadName::Dots),
            ("a/../b", BadName::Dots),
            ("a/.", BadName::Dots),
            ("a\\b", BadName::Separator),
            (".hidden", BadName::Hidden),
            ("a/.ssh/b", BadName::Hidden),
            ("x.tmp", BadName::Temporary),
            ("x.TMP", BadName::Temporary),
            ("x\0y", BadName::Control),
            ("x\ny", BadName::Control),
            ("x\u{202e}y", BadName::Control),
            ("f.persxfer-part", BadName::Working),
        ] {
            assert_eq!(TreePath::parse(text), Err(why), "{text:?}");
        }
        assert_eq!(TreePath::parse(&"x".repeat(MAX_NAME + 1)), Err(BadName::TooLong));
        assert_eq!(TreePath::parse(&"x/".repeat(MAX_COMPONENTS)).err(), Some(BadName::Empty));
        assert_eq!(TreePath::parse(&["x"; MAX_COMPONENTS + 1].join("/")), Err(BadName::TooLong));
        assert!(TreePath::parse(&["x"; MAX_COMPONENTS].join("/")).is_ok());
    }

    #[test]
    fn components_count_and_not_letters() {
        assert_eq!(below("recent/exit-lists/a", "recent/exit-lists"), Some("a"));
        assert_eq!(below("recent/exit-lists-old/a", "recent/exit-lists"), None);
        assert_eq!(below("recent/exit-lists", "recent/exit-lists"), None);
        assert_eq!((folder("a/b/c"), file_name("a/b/c"), folder("c")), ("a/b", "c", ""));
    }

    #[test]
    fn parts_of_a_tree() {
        let part = |text: &str| Part::Below(TreePath::parse(text).expect(text));
        assert_eq!(
            (part("a/b").of("a/b/c/d"), part("a/b").of("a/bc/d"), Part::All.of("x")),
            (Some("c/d"), None, Some("x"))
        );
        for (folder, meets) in [("", true), ("a", true), ("a/b", true), ("a/b/c", true), ("a/bc", false), ("b", false)]
        {
            assert_eq!(part("a/b").meets(folder), meets, "{folder}");
        }
        assert!(
            part("a").overlaps(&part("a/b")) && part("a/b").overlaps(&part("a")) && !part("a").overlaps(&part("b"))
        );
        assert!(Part::All.overlaps(&part("b")) && part("b").overlaps(&Part::All));
    }

    proptest! {
        #[test]
        fn what_is_accepted_stays_where_it_is(text in "(?s)[a./\\\\b\0 \u{202e}]{0,12}(\\.tmp)?") {
            if let Ok(path) = TreePath::parse(&text) {
                let joined = std::path::Path::new("root").join(path.as_str());
                prop_assert!(joined.components().all(|c| matches!(c, std::path::Component::Normal(_))));
                let expected = format!("root/{path}");
                prop_assert_eq!(joined.to_str(), Some(expected.as_str()));
            }
        }
    }
}
