//! Whose bytes are held goes first: it can tell whether the file is still that version before bytes of others are added.
//! Whoever is known to have another version goes last.

use crate::core::file_xfer::dossier::Draft;
use crate::core::pers_xfer::record::MirrorRecord;
use crate::core::url::Origin;

/// What a mirror has to do with the bytes that are held; those that have more go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Bytes of it are held, and it has said by what its version is known: a change there shows.
    Teller,
    /// Bytes of it are held.
    Source,
    /// None are.
    Stranger,
    /// It has another version.
    Reserve,
}

/// The positions of all mirrors in the order in which they are asked: `prefer`, where bytes of it are held, then those whose
/// bytes are held, then the others; among equals `prefer`, then as in `order`, then as given. Of how many bytes
/// are held, only the part file knows: a draft of which validators are known counts as held.
pub fn in_turn(mirrors: &[MirrorRecord], held: &Draft, prefer: Option<usize>, order: &[usize]) -> Vec<usize> {
    let mut turn: Vec<usize> = Vec::with_capacity(mirrors.len());
    for mirror in prefer.into_iter().chain(order.iter().copied()).chain(0..mirrors.len()) {
        if mirror < mirrors.len() && !turn.contains(&mirror) {
            turn.push(mirror);
        }
    }
    let key = |i: &usize| match part_of(&mirrors[*i], mirrors, held) {
        // It comes before others of its kind, for it stands before them.
        Part::Source if Some(*i) == prefer => Part::Teller,
        part => part,
    };
    turn.sort_by_key(key);
    turn
}

/// A new run begins: whose bytes are held may be asked in the pass under way, whatever it met in a former run, for much may have
/// happened since. Where no validators are known, a change would not show, and the pass goes on as it was.
pub fn ask_the_tellers_again(mirrors: &mut [MirrorRecord], held: &Draft) {
    let tells: Vec<bool> = mirrors.iter().map(|mirror| part_of(mirror, mirrors, held) == Part::Teller).collect();
    mirrors.iter_mut().zip(tells).filter(|(_, tells)| *tells).for_each(|(mirror, _)| mirror.tried = false);
}

fn part_of(mirror: &MirrorRecord, mirrors: &[MirrorRecord], held: &Draft) -> Part {
    let origin = mirror.url.origin();
    let said = held.validators.iter().find(|(known, _)| *known == origin).map(|(_, validators)| validators);
    match said {
        Some(validators) if !validators.is_empty() => Part::Teller,
        Some(_) => Part::Source,
        None if mirror.contributed && redirects(mirrors, held) => Part::Teller,
        None if mirror.contributed => Part::Source,
        None if held.keeps_in_reserve(&origin) => Part::Reserve,
        None => Part::Stranger,
    }
}

/// Does an origin vouch for the draft, by which a change would show, that no mirror's URL names?
fn redirects(mirrors: &[MirrorRecord], held: &Draft) -> bool {
    let named = |origin: &Origin| mirrors.iter().any(|mirror| mirror.url.origin() == *origin);
    held.validators.iter().any(|(origin, validators)| !validators.is_empty() && !named(origin))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::url::MirrorUrl;
    use crate::core::validator::{ETag, Validators};

    fn url(n: usize) -> MirrorUrl {
        MirrorUrl::parse(&format!("http://m{n}.example/f")).expect("a URL")
    }

    fn mirrors(n: usize) -> Vec<MirrorRecord> {
        (0..n).map(|i| MirrorRecord::new(url(i))).collect()
    }

    fn tagged() -> Validators {
        Validators { etag: ETag::parse("\"a\""), ..Validators::default() }
    }

    fn draft(tellers: &[usize], silent: &[usize], reserve: &[usize]) -> Draft {
        let tell = tellers.iter().map(|n| (url(*n).origin(), tagged()));
        let validators = tell.chain(silent.iter().map(|n| (url(*n).origin(), Validators::default()))).collect();
        let reserve = reserve.iter().map(|n| (url(*n).origin(), tagged())).collect();
        Draft { validators, reserve, ..Draft::default() }
    }

    #[test]
    fn where_nothing_is_held_the_order_is_that_of_the_ranking() {
        let held = Draft::default();
        assert_eq!(in_turn(&mirrors(4), &held, None, &[3, 1]), [3, 1, 0, 2]);
        assert_eq!(in_turn(&mirrors(4), &held, Some(0), &[3, 1]), [0, 3, 1, 2]);
    }

    #[test]
    fn whose_bytes_are_held_goes_first_and_who_has_another_version_last() {
        let held = draft(&[3], &[2], &[0]);
        assert_eq!(in_turn(&mirrors(5), &held, None, &[0, 1]), [3, 2, 1, 4, 0]);
    }

    #[test]
    fn of_several_whose_bytes_are_held_the_ranking_decides() {
        assert_eq!(in_turn(&mirrors(3), &draft(&[0, 2], &[], &[]), None, &[2, 1, 0]), [2, 0, 1]);
    }

    #[test]
    fn who_was_cut_goes_on_first_unless_no_byte_of_it_is_held() {
        assert_eq!(in_turn(&mirrors(3), &draft(&[0], &[1], &[]), Some(1), &[]), [1, 0, 2]);
        assert_eq!(in_turn(&mirrors(3), &draft(&[0], &[1], &[]), Some(2), &[]), [0, 1, 2]);
        assert_eq!(in_turn(&mirrors(3), &draft(&[0], &[], &[1]), Some(1), &[]), [0, 2, 1]);
    }

    #[test]
    fn in_a_new_run_whose_bytes_are_held_is_asked_again() {
        let mut list = mirrors(4);
        list.iter_mut().for_each(|mirror| mirror.tried = true);
        ask_the_tellers_again(&mut list, &draft(&[2], &[1], &[0]));
        assert_eq!(list.iter().map(|mirror| mirror.tried).collect::<Vec<_>>(), [true, true, false, true]);
    }

    #[test]
    fn a_redirector_is_known_by_what_it_brought() {
        let mut list = mirrors(3);
        list[2].contributed = true;
        let mut held = draft(&[], &[1], &[]);
        assert_eq!(in_turn(&list, &held, None, &[]), [1, 2, 0]);
        held.validators.push((url(9).origin(), tagged()));
        assert_eq!(in_turn(&list, &held, None, &[]), [2, 1, 0]);
    }

    proptest! {
        #[test]
        fn everybody_has_a_turn_once(
            n in 0_usize..6,
            tellers in proptest::collection::vec(0_usize..6, 0..4),
            silent in proptest::collection::vec(0_usize..6, 0..4),
            reserve in proptest::collection::vec(0_usize..6, 0..4),
            prefer in proptest::option::of(0_usize..8),
            order in proptest::collection::vec(0_usize..8, 0..8),
        ) {
            let turn = in_turn(&mirrors(n), &draft(&tellers, &silent, &reserve), prefer, &order);
            let mut sorted = turn.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            let place = |i: usize| turn.iter().position(|t| *t == i);
            for teller in tellers.iter().filter(|i| **i < n) {
                for other in (0..n).filter(|i| !tellers.contains(i) && !silent.contains(i)) {
                    prop_assert!(place(*teller) < place(other));
                }
            }
        }
    }
}
