//! How time grows with the input: eight times the input may take a few times eight times the time, not sixty-four.
//!
//! Nothing is said about how long anything takes, only about the proportion of two times on the processor, and one even attempt is
//! enough.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::{Target, corpus, number};

/// How much larger the other one is.
const FACTOR: usize = 8;
/// An input so many times as large takes as long as so many small ones; eight times as long would be the square.
const TOO_MUCH: u32 = 3;
/// Times below this are noise.
const NOISE: Duration = Duration::from_millis(4);
/// An unlucky moment is no proof.
const ATTEMPTS: usize = 20;

/// Repeats every word, and every line of a seed, within every frame.
///
/// # Panics
/// Where time grows out of proportion.
pub(crate) fn grows_evenly(target: &Target) {
    let size = number("PERSXFER_FUZZ_SIZE").map_or(target.grows_from, |n| n as usize);
    let mut units: Vec<Vec<u8>> = target.words.iter().map(|word| word.as_bytes().to_vec()).collect();
    for seed in corpus(target.name) {
        units.extend(seed.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec));
        units.push(seed);
    }
    units.retain(|unit| !unit.is_empty() && unit.len() <= 1024);
    units.sort_unstable();
    units.dedup();
    for (before, behind) in target.frames {
        for unit in &units {
            let input = |size: usize| {
                let middle = unit.repeat(size / unit.len());
                [before.as_bytes(), &middle, behind.as_bytes()].concat()
            };
            let (small, large) = (input(size), input(size * FACTOR));
            let even = (0..ATTEMPTS).any(|_| is_even(target, &small, &large));
            let shown = unit.escape_ascii();
            assert!(even, "{}: time grows out of proportion for {before}{shown}...{behind}", target.name);
        }
    }
}

fn is_even(target: &Target, small: &[u8], large: &[u8]) -> bool {
    let once = time_of(target, large, 1);
    once < NOISE || once < time_of(target, small, FACTOR) * TOO_MUCH
}

/// What this thread had of the processor meanwhile: others may be busy as well.
fn time_of(target: &Target, input: &[u8], times: usize) -> Duration {
    let begun = on_the_processor();
    for _ in 0..times {
        std::hint::black_box((target.run)(input));
    }
    on_the_processor().saturating_sub(begun)
}

fn on_the_processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
