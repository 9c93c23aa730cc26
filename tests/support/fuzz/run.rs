//! The runs: so many executions of a target, each watched; what fails is made small and told.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::mutate::{Dice, mutate};
use super::{Target, corpus, number};

/// An execution that takes so long hangs.
const HANGS: Duration = Duration::from_secs(90);
/// The most inputs that are kept for being new.
const MOST_KEPT: usize = 4096;
/// So many attempts to make a failing input smaller.
const ATTEMPTS: usize = 3000;

/// Runs a target on its seeds and on what comes of them.
///
/// # Panics
/// Where the target does, with an input that is as small as it could be made.
pub(crate) fn fuzz(target: &Target) {
    fuzz_for(target, number("PERSXFER_FUZZ").unwrap_or(target.runs));
}

/// The same, with so many executions.
pub(crate) fn fuzz_for(target: &Target, executions: u64) {
    let seed = number("PERSXFER_FUZZ_SEED").unwrap_or(1);
    let mut pool = corpus(target.name);
    let seeds = pool.len();
    let most = pool.iter().map(Vec::len).max().unwrap_or(0).max(256) * 2;
    let mut dice = Dice(seed);
    let mut seen: HashSet<u32> = HashSet::new();
    let watch = Watch::begin(target.name);
    let begun = Instant::now();
    let mut input = Vec::new();
    for n in 0..executions.max(seeds as u64) {
        match pool.get(n as usize).filter(|_| n < seeds as u64) {
            Some(seed) => input.clone_from(seed),
            None => {
                input.clone_from(dice.of(&pool));
                mutate(&mut input, &pool, target.words, most, &mut dice);
            }
        }
        watch.now(&input);
        let outcome = run(target, &input);
        if seen.insert(outcome) && n >= seeds as u64 && pool.len() < MOST_KEPT {
            pool.push(input.clone());
        }
    }
    let (kept, took) = (pool.len() - seeds, begun.elapsed().as_secs_f64());
    eprintln!(
        "{}: {executions} executions in {took:.1} s, seed {seed}, {} outcomes, {kept} kept",
        target.name,
        seen.len()
    );
}

fn run(target: &Target, input: &[u8]) -> u32 {
    match catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        Ok(outcome) => outcome,
        Err(_) => {
            let small = smaller(target, input);
            let text = small.escape_ascii();
            panic!("{} fails (its message is above) on b\"{text}\", from b\"{}\"", target.name, input.escape_ascii());
        }
    }
}

/// The smallest input found that fails too.
fn smaller(target: &Target, input: &[u8]) -> Vec<u8> {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let fails = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err();
    let (mut small, mut attempts) = (input.to_vec(), 0);
    let mut size = (small.len() / 2).max(1);
    while attempts < ATTEMPTS {
        let mut shrunk = false;
        let mut at = 0;
        while at < small.len() && attempts < ATTEMPTS {
            let mut less = small.clone();
            less.drain(at..(at + size).min(small.len()));
            attempts += 1;
            if fails(&less) {
                (small, shrunk) = (less, true);
            } else {
                at += size;
            }
        }
        match (shrunk, size) {
            (false, 1) => break,
            (true, 1) => {}
            _ => size = size.div_ceil(2),
        }
    }
    set_hook(hook);
    small
}

/// Knows what is being executed, and ends the process where that hangs.
struct Watch {
    input: Arc<Mutex<Vec<u8>>>,
    count: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Watch {
    fn begin(name: &'static str) -> Self {
        let watch = Self { input: Arc::default(), count: Arc::default(), over: Arc::default() };
        let (input, count, over) = (Arc::clone(&watch.input), Arc::clone(&watch.count), Arc::clone(&watch.over));
        std::thread::spawn(move || {
            let (mut last, mut since) = (0, Instant::now());
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                let now = count.load(Ordering::Relaxed);
                if now != last {
                    (last, since) = (now, Instant::now());
                } else if since.elapsed() > HANGS {
                    let input = input.lock().unwrap_or_else(PoisonError::into_inner);
                    eprintln!("{name} hangs on b\"{}\"", input.escape_ascii());
                    std::process::abort();
                }
            }
        });
        watch
    }

    fn now(&self, input: &Vec<u8>) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).clone_from(input);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
