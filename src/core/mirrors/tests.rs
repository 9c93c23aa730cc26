//! The table, row by row: which mirror is asked next, and when a pass is over.

use super::*;
use proptest::prelude::*;

const NOW: Mono = Mono::from_micros(1_000_000);
const LATER: Mono = Mono::from_micros(2_000_000);
const LATEST: Mono = Mono::from_micros(3_000_000);

fn url(n: usize) -> MirrorUrl {
    MirrorUrl::parse(&format!("http://m{n}.example/f")).expect("a URL")
}

fn mirrors(n: usize) -> Vec<MirrorRecord> {
    (0..n).map(|i| MirrorRecord::new(url(i))).collect()
}

fn hold(until: Mono) -> Hold {
    Hold { until, by: HeldBy::Server }
}

fn choose(mirrors: &[MirrorRecord], holds: &Holds, prefer: Option<usize>) -> Next {
    next(mirrors, holds, prefer, &[], NOW)
}

#[test]
fn a_pass_goes_through_the_mirrors_in_the_order_given() {
    let mut list = mirrors(3);
    let holds = Holds::default();
    for i in 0..3 {
        assert_eq!(choose(&list, &holds, None), Next::Ask(i));
        list[i].failed();
    }
    assert_eq!(choose(&list, &holds, None), Next::PassOver);
}

#[test]
fn a_preferred_mirror_goes_first_unless_it_failed_or_is_refused() {
    let mut list = mirrors(3);
    let holds = Holds::default();
    assert_eq!(choose(&list, &holds, Some(2)), Next::Ask(2));
    list[2].failed();
    assert_eq!(choose(&list, &holds, Some(2)), Next::Ask(0));
    list[1].refuse(Class::Gone, "410");
    assert_eq!(choose(&list, &holds, Some(1)), Next::Ask(0));
    assert_eq!(choose(&list, &holds, Some(9)), Next::Ask(0));
}

#[test]
fn a_mirror_held_back_is_passed_over_and_does_not_hold_up_the_pass() {
    let mut list = mirrors(2);
    let mut holds = Holds::default();
    holds.add(0, hold(LATER));
    assert_eq!(choose(&list, &holds, None), Next::Ask(1));
    list[1].failed();
    assert_eq!(choose(&list, &holds, None), Next::PassOver);
    assert_eq!(next(&list, &holds, None, &[], LATER), Next::Ask(0));
}

#[test]
fn where_all_are_held_back_the_first_to_be_free_is_waited_for() {
    let mut list = mirrors(3);
    list[2].refuse(Class::Missing, "404");
    let mut holds = Holds::default();
    holds.add(0, hold(LATEST));
    holds.add(1, hold(LATER));
    assert_eq!(choose(&list, &holds, None), Next::Held(1, hold(LATER)));
    assert_eq!(holds.first_free(&list, LATER), None);
}

#[test]
fn nothing_is_left_when_every_mirror_is_refused() {
    let mut list = mirrors(2);
    for mirror in &mut list {
        assert_eq!(mirror.refuse(Class::Missing, "404"), Fate::Refused);
    }
    assert_eq!(choose(&list, &Holds::default(), None), Next::AllRefused);
}

#[test]
fn doubt_refuses_in_the_third_pass_in_a_row() {
    let mut mirror = MirrorRecord::new(url(0));
    assert_eq!(mirror.doubted(Class::Missing, "404"), Fate::Kept);
    assert_eq!(mirror.doubted(Class::Missing, "404"), Fate::Kept);
    mirror.failed();
    assert_eq!(mirror.doubted(Class::Missing, "404"), Fate::Kept, "the row was broken");
    assert_eq!(mirror.doubted(Class::Missing, "404"), Fate::Kept);
    assert_eq!(mirror.doubted(Class::Missing, "404"), Fate::Refused);
    assert!(!mirror.is_usable());
}

#[test]
fn the_second_wrong_digest_refuses() {
    let mut mirror = MirrorRecord::new(url(0));
    assert_eq!(mirror.served_wrong("wrong"), Fate::Kept);
    assert_eq!(mirror.served_wrong("wrong"), Fate::Refused);
}

#[test]
fn of_two_holds_the_later_stays_and_only_hosts_are_forgotten() {
    let mut holds = Holds::default();
    holds.add(1, hold(LATEST));
    holds.add(1, hold(LATER));
    assert_eq!(holds.of(1, NOW), Some(hold(LATEST)));
    holds.add(0, Hold { until: LATER, by: HeldBy::HostBackoff });
    holds.clear_host_backoffs();
    assert_eq!((holds.of(0, NOW), holds.of(1, NOW)), (None, Some(hold(LATEST))));
}

#[test]
fn a_list_puts_its_urls_first_and_keeps_what_is_known() {
    let mut list = mirrors(3);
    list[1].refuse(Class::Missing, "404");
    let mut holds = Holds::default();
    holds.add(2, hold(LATER));
    let merged = merge(&mut list, &mut holds, &[url(7), url(2)]);
    let order: Vec<_> = list.iter().map(|m| m.url.clone()).collect();
    assert_eq!(order, [url(7), url(2), url(0), url(1)]);
    assert_eq!(merged, Merged { fresh: Freshly::Listed, moved_to: vec![2, 3, 1] });
    assert!(!list[3].is_usable());
    assert_eq!((holds.of(1, NOW), holds.of(2, NOW)), (Some(hold(LATER)), None));
    assert_eq!(merge(&mut list, &mut holds, &[url(0)]).fresh, Freshly::Nothing);
}

#[test]
fn an_origins_word_concerns_its_other_mirrors_too() {
    let mut list = mirrors(2);
    list.push(MirrorRecord::new(MirrorUrl::parse("http://m1.example/other").expect("a URL")));
    let origin = url(1).origin();
    assert_eq!(of_origin(&list, 0, Some(&origin)), [0, 1, 2]);
    assert_eq!(of_origin(&list, 0, None), [0]);
}

proptest! {
    /// Whatever the standings, what is chosen may be asked; and a pass that is over has tried somebody.
    #[test]
    fn what_is_chosen_may_be_asked(state in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..5), prefer in proptest::option::of(0..6_usize)) {
        let mut list = mirrors(state.len());
        let mut holds = Holds::default();
        for (i, (refused, tried, held)) in state.iter().enumerate() {
            if *refused { list[i].refuse(Class::Gone, ""); }
            list[i].tried = *tried;
            if *held { holds.add(i, hold(LATER)); }
        }
        let usable = list.iter().filter(|m| m.is_usable()).count();
        match choose(&list, &holds, prefer) {
            Next::Ask(i) => prop_assert_eq!(state[i], (false, false, false)),
            Next::Held(i, h) => {
                prop_assert_eq!(state[i], (false, false, true));
                prop_assert_eq!(h.until, LATER);
            }
            Next::PassOver => prop_assert!(list.iter().any(|m| m.tried && m.is_usable())),
            Next::AllRefused => prop_assert_eq!(usable, 0),
        }
    }
}
