//! What an attempt of a transfer came to, as the ledger is told it.

use crate::core::ledger::class::Class;
use crate::core::ledger::fail::Failed;
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::verdict;

/// One session of an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// How.
    pub class: verdict::Class,
    /// The server asked to wait so long.
    pub asked: Option<Delay>,
    /// The mirror, as it was given.
    pub url: String,
}

/// The classes, by how soon they let a file be tried again: of several mirrors the one that leaves most hope speaks for all. Wrong
/// bytes come first: the mirror that sent them is left out from then on, and the others are asked at once.
const HOPE: [Class; 8] = [
    Class::Corrupt,
    Class::Interrupted,
    Class::Throttled,
    Class::Unreachable,
    Class::Missing,
    Class::Unsupported,
    Class::Gone,
    Class::Denied,
];

/// What an attempt in which all of this failed, and that holds so many bytes, came to. None where nothing is known to have failed.
pub fn of_misses(misses: &[Miss], held: Length) -> Option<Failed> {
    let of = |class: Class| misses.iter().filter(move |miss| Class::of(miss.class) == Some(class));
    let class = HOPE.into_iter().find(|class| of(*class).next().is_some())?;
    let asked = of(class).filter_map(|miss| miss.asked).min();
    let mirror = of(class).next().map(|miss| miss.url.clone());
    Some(Failed { class, asked, mirror, bytes_done: held })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(class: verdict::Class, asked: Option<u32>, url: &str) -> Miss {
        Miss { class, asked: asked.map(|s| Delay::from_secs(s.into())), url: url.to_owned() }
    }

    #[test]
    fn the_mirror_that_leaves_most_hope_speaks_for_all() {
        use verdict::Class::{Aborted, Changed, Denied, GaveUp, LocalFault, Missing, Throttled};
        let misses = [
            miss(Missing, None, "a"),
            miss(Throttled, Some(900), "b"),
            miss(Throttled, Some(60), "c"),
            miss(Denied, None, "d"),
            miss(LocalFault, None, "e"),
            miss(Aborted, None, "f"),
        ];
        let failed = of_misses(&misses, Length(7)).expect("something failed");
        assert_eq!((failed.class, failed.asked), (Class::Throttled, Some(Delay::from_secs(60))));
        assert_eq!((failed.mirror.as_deref(), failed.bytes_done), (Some("b"), Length(7)));
        let odd = of_misses(&[misses[0].clone(), miss(Changed, None, "g")], Length::ZERO).expect("something failed");
        assert_eq!((odd.class, odd.mirror.as_deref()), (Class::Corrupt, Some("g")));
        assert_eq!(of_misses(&[miss(GaveUp, None, "h")], Length::ZERO).map(|f| f.class), Some(Class::Unreachable));
        assert_eq!(of_misses(&misses[4..], Length::ZERO), None, "nothing of the file's");
        assert_eq!(of_misses(&[], Length::ZERO), None);
    }
}
