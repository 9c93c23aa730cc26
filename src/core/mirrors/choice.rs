//! Which mirror goes first: the one whose host has been fast of late, with some chance for its equals and for strangers.

use rand::RngExt;

/// Hosts within this part of the best rate are as good as the best: who of them goes first is drawn, so that not
/// everybody goes to the same one.
const NEAR_BEST: (u64, u64) = (4, 5);

/// One time in so many a host of which nothing is known goes first, beside hosts that are known.
const CURIOSITY: u32 = 8;

/// What is known of a mirror's host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What one connection brought of late, in bytes per second.
    pub rate: Option<u64>,
    /// Failures in a row.
    pub failures: u32,
}

/// The positions of the mirrors, best first. Where no rate is known, in the order given; hosts that have failed last come
/// behind all others.
pub fn rank(hosts: &[Known], rng: &mut dyn rand::Rng) -> Vec<usize> {
    let best = hosts.iter().filter(|host| host.failures == 0).filter_map(|host| host.rate).max().unwrap_or(0);
    let near = |rate: u64| rate >= best / NEAR_BEST.1 * NEAR_BEST.0;
    let curious = best > 0 && rng.random_range(0..CURIOSITY) == 0;
    let mut keyed: Vec<_> = hosts
        .iter()
        .enumerate()
        .map(|(i, host)| {
            let class = match host.rate {
                None if curious => 0,
                Some(rate) if near(rate) => 1,
                None => 2,
                Some(_) => 3,
            };
            // The draw decides among equals; the others go by their rate, or as they were given.
            let draw = if class == 1 { rng.random::<u32>() } else { 0 };
            let slower = if class == 3 { u64::MAX - host.rate.unwrap_or(0) } else { 0 };
            ((host.failures > 0, class, draw, slower, i), i)
        })
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, i)| i).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn known(rate: u64) -> Known {
        Known { rate: Some(rate), failures: 0 }
    }

    fn firsts(hosts: &[Known]) -> Vec<usize> {
        let mut rng = StdRng::seed_from_u64(1);
        let mut count = vec![0; hosts.len()];
        for _ in 0..8000 {
            let order = rank(hosts, &mut rng);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..hosts.len()).collect::<Vec<_>>(), "everybody is there once");
            count[order[0]] += 1;
        }
        count
    }

    #[test]
    fn strangers_go_in_the_order_given() {
        assert_eq!(firsts(&[Known::default(); 3]), [8000, 0, 0]);
    }

    #[test]
    fn the_fast_go_first_and_share() {
        let count = firsts(&[known(100), known(950), known(1000)]);
        assert_eq!(count[0], 0);
        assert!((3000..5000).contains(&count[1]), "{count:?}");
    }

    #[test]
    fn a_stranger_gets_its_chance() {
        let count = firsts(&[known(1000), Known::default()]);
        assert!((700..1300).contains(&count[1]), "{count:?}");
    }

    #[test]
    fn who_failed_last_goes_last() {
        let mut rng = StdRng::seed_from_u64(1);
        let failed = Known { rate: Some(5000), failures: 1 };
        for _ in 0..100 {
            assert_eq!(rank(&[failed, Known::default(), known(10)], &mut rng)[2], 0);
        }
    }
}
