//! The identity of the file that is sent: what is compared before every resume, so that two versions are never mixed.

use std::fmt;

use crate::core::digest::Expected;
use crate::core::range::Length;

/// What the file system says of the source, for the price of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its size.
    pub size: Length,
    /// Its time of last modification, in nanoseconds since the Unix epoch.
    pub mtime_ns: i128,
}

/// What no program can set back: a file that is edited gets another of these, whatever is done to its time of modification.
/// So does one that is moved to another disk, or whose mode is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The time of the last change of the inode, in nanoseconds since the Unix epoch.
    pub ctime_ns: i128,
    /// The inode's number.
    pub inode: u64,
}

/// What the file system says of the source while it is sent: of the file that is open, whose bytes go out, and of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Size and time of the open file.
    pub stamp: Stamp,
    /// Its time of change and inode, where they are known.
    pub mark: Option<Mark>,
    /// What its name leads to.
    pub name: Named,
}

/// What the name of the source leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The file that is open.
    Open,
    /// Another one.
    Another,
}

/// The identity of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Size and time.
    pub stamp: Stamp,
    /// Time of change and inode, where they are known.
    pub mark: Option<Mark>,
    /// A digest of the whole, where it has been computed.
    pub digest: Option<Expected>,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The size.
    Size,
    /// The time of modification, and no digest says that the content is the same all the same.
    Time,
    /// The content, by its digest.
    Content,
    /// The file itself: another one stands under its name.
    Replaced,
}

/// What a look at a source that is being sent shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// Nothing has touched it.
    Untouched,
    /// Only its time of change has moved, as that of a file that is linked to or whose mode is set; or it was edited, and
    /// its time of modification set back.
    Touched,
    /// It is another.
    Changed(Change),
}

/// How a source compares with the one that an upload was begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is the same, as far as is known on both sides.
    Same,
    /// It is another.
    Changed(Change),
    /// A digest of the old one is known and one of the new is not: compute it, by the same algorithm, then compare.
    AskDigest,
}

impl Source {
    /// Compares this source, as it is now, with `begun`. A digest decides where both have one by the same algorithm:
    /// a file that was only touched is the same, one that was edited in place with its time set back is not. Without, one
    /// that nobody has touched since is the same.
    pub fn likeness(&self, begun: &Self) -> Likeness {
        if self.stamp.size != begun.stamp.size {
            return Likeness::Changed(Change::Size);
        }
        match (&self.digest, &begun.digest) {
            (Some(now), Some(then)) if now.algorithm == then.algorithm && now == then => Likeness::Same,
            (Some(now), Some(then)) if now.algorithm == then.algorithm => Likeness::Changed(Change::Content),
            _ if self.is_untouched_since(begun) => Likeness::Same,
            (_, Some(_)) => Likeness::AskDigest,
            (_, None) if self.stamp != begun.stamp => Likeness::Changed(Change::Time),
            (_, None) if self.mark.is_some() && begun.mark.is_some() => Likeness::Changed(Change::Time),
            (_, None) => Likeness::Same,
        }
    }

    /// What has become of this source, which is being sent.
    pub(super) fn since(&self, seen: &Sight) -> Since {
        let moved = self.mark.zip(seen.mark).is_some_and(|(then, now)| then != now);
        match () {
            () if seen.stamp.size != self.stamp.size => Since::Changed(Change::Size),
            () if seen.name == Named::Another => Since::Changed(Change::Replaced),
            () if seen.stamp != self.stamp => Since::Changed(Change::Time),
            () if moved => Since::Touched,
            () => Since::Untouched,
        }
    }

    fn is_untouched_since(&self, begun: &Self) -> bool {
        self.stamp == begun.stamp && self.mark.is_some() && self.mark == begun.mark
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "its size is another",
            Self::Time => "its time of modification or of change is another",
            Self::Content => "its content is another although its size is the same",
            Self::Replaced => "another file stands under its name",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::digest::Algorithm;

    #[test]
    fn what_a_look_shows_while_it_is_sent() {
        let begun = source(1, Some(7), Some(1));
        let seen = Sight { stamp: begun.stamp, mark: begun.mark, name: Named::Open };
        let mark = |ctime_ns| Some(Mark { ctime_ns, inode: 5 });
        let stamp = |size, mtime_ns| Stamp { size: Length(size), mtime_ns };
        for (now, since) in [
            (seen, Since::Untouched),
            (Sight { mark: None, ..seen }, Since::Untouched),
            (Sight { mark: mark(8), ..seen }, Since::Touched),
            (Sight { stamp: stamp(9, 2), ..seen }, Since::Changed(Change::Time)),
            (Sight { stamp: stamp(8, 1), name: Named::Another, ..seen }, Since::Changed(Change::Size)),
            (Sight { name: Named::Another, ..seen }, Since::Changed(Change::Replaced)),
        ] {
            assert_eq!(begun.since(&now), since, "{now:?}");
        }
    }

    fn source(mtime_ns: i128, ctime_ns: Option<i128>, digest: Option<u8>) -> Source {
        Source {
            stamp: Stamp { size: Length(9), mtime_ns },
            mark: ctime_ns.map(|ctime_ns| Mark { ctime_ns, inode: 5 }),
            digest: digest.map(|byte| Expected { algorithm: Algorithm::Blake3, bytes: vec![byte; 32] }),
        }
    }

    #[test]
    fn what_tells_two_versions_apart() {
        let (same, time, content) =
            (Likeness::Same, Likeness::Changed(Change::Time), Likeness::Changed(Change::Content));
        let rows = [
            // Nothing but size and time is known.
            (source(1, None, None), source(1, None, None), same),
            (source(2, None, None), source(1, None, None), time),
            // Edited, and the time of modification set back.
            (source(1, Some(8), None), source(1, Some(7), None), time),
            (source(1, Some(7), None), source(1, Some(7), None), same),
            (source(1, Some(8), None), source(1, Some(7), Some(1)), Likeness::AskDigest),
            (source(1, Some(8), Some(1)), source(1, Some(7), Some(1)), same),
            (source(1, Some(8), Some(2)), source(1, Some(7), Some(1)), content),
            // Untouched: the digest need not be computed again.
            (source(1, Some(7), None), source(1, Some(7), Some(1)), same),
            (source(2, Some(7), None), source(1, Some(7), Some(1)), Likeness::AskDigest),
        ];
        for (n, (now, begun, likeness)) in rows.into_iter().enumerate() {
            assert_eq!(now.likeness(&begun), likeness, "row {n}");
        }
        let longer = Source { stamp: Stamp { size: Length(10), mtime_ns: 1 }, ..source(1, Some(7), Some(1)) };
        assert_eq!(longer.likeness(&source(1, Some(7), Some(1))), Likeness::Changed(Change::Size));
    }
}
