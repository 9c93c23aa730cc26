//! Tests of the pacer and the stall rule.

use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::core::range::Length;

fn at(millis: u64) -> Mono {
    Mono::from_micros(millis * 1_000)
}

fn rate(bytes: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(bytes)
}

/// Every grant that a greedy reader gets: it takes its pieces as early as it may, after pauses of its own.
fn greedy(pacer: &mut Pacer, pieces: &[(u64, u64)]) -> Vec<(Mono, u64)> {
    let mut now = Mono::ZERO;
    let mut grants = Vec::new();
    for &(pause, bytes) in pieces {
        now = now + Delay::from_micros(pause);
        while let Grant::Wait(delay) = pacer.take(now, bytes) {
            assert!(delay > Delay::ZERO, "a wait that is none would spin");
            now = now + delay;
        }
        grants.push((now, bytes));
    }
    grants
}

proptest! {
    /// Over any window: at most rate times window, one burst, and the excess of one piece over the burst.
    #[test]
    fn never_above_the_rate(
        bytes_per_second in 1u64..50_000_000,
        pieces in prop::collection::vec((0u64..2_000_000, 0u64..500_000), 1..40),
    ) {
        let mut pacer = Pacer::new(rate(bytes_per_second), Mono::ZERO);
        let grants = greedy(&mut pacer, &pieces);
        let excess = pieces.iter().map(|p| p.1).max().unwrap_or(0).saturating_sub(pacer.burst());
        for from in 0..grants.len() {
            let mut sum = 0u128;
            for (when, bytes) in &grants[from..] {
                sum += u128::from(*bytes);
                let window = u128::from(when.since(grants[from].0).as_micros());
                let allowed = window * u128::from(bytes_per_second) / 1_000_000
                    + u128::from(pacer.burst() + excess) + 1;
                prop_assert!(sum <= allowed, "{sum} bytes in {window} us, {allowed} allowed");
            }
        }
    }

    /// A reader that always wants more gets the whole rate: no wait is longer than it must be.
    #[test]
    fn never_much_below_the_rate(bytes_per_second in 1_000u64..50_000_000, piece in 1u64..300_000) {
        let mut pacer = Pacer::new(rate(bytes_per_second), Mono::ZERO);
        let grants = greedy(&mut pacer, &[(0, piece); 50]);
        let took = u128::from(grants[49].0.as_micros());
        // One microsecond of rounding a piece.
        let ideal = u128::from(piece) * 49 * 1_000_000 / u128::from(bytes_per_second) + 50;
        prop_assert!(took <= ideal, "{took} us for what takes {ideal} us");
    }
}

#[test]
fn no_rate_grants_everything() {
    let mut pacer = Pacer::new(None, Mono::ZERO);
    assert_eq!(pacer.take(Mono::ZERO, u64::MAX), Grant::Now);
    assert_eq!(pacer.take(Mono::ZERO, u64::MAX), Grant::Now);
}

#[test]
fn a_new_rate_holds_at_once() {
    let mut pacer = Pacer::new(rate(1_000), Mono::ZERO);
    assert_eq!(pacer.take(at(0), 10_024), Grant::Now);
    assert_eq!(pacer.take(at(0), 1_000), Grant::Wait(Delay::from_secs(10)));
    pacer.set_rate(at(0), rate(1_000_000));
    assert_eq!(pacer.take(at(0), 1_000), Grant::Wait(Delay::from_millis(10)));
    pacer.set_rate(at(0), None);
    assert_eq!(pacer.take(at(0), 1 << 40), Grant::Now);
    pacer.set_rate(at(0), rate(1_000));
    assert_eq!(pacer.take(at(0), 1_000), Grant::Wait(Delay::from_secs(1)), "no burst is given as a present");
}

#[test]
fn a_clock_that_goes_back_gives_nothing() {
    let mut pacer = Pacer::new(rate(1_024), at(5_000));
    assert_eq!(pacer.take(at(5_000), 1_024), Grant::Now);
    assert_eq!(pacer.take(at(1_000), 1_024), Grant::Wait(Delay::from_secs(1)));
    assert_eq!(pacer.take(at(5_500), 1_024), Grant::Wait(Delay::from_millis(500)));
}

/// Feeds the meter once a second; `Some(second)` in which it tripped.
fn trips(meter: &mut StallMeter, bytes_at: impl Fn(u64) -> u64, seconds: std::ops::Range<u64>) -> Option<u64> {
    seconds.into_iter().find(|s| meter.feed(at(s * 1_000), bytes_at(*s)) == Flow::Stalled)
}

#[test]
fn silence_trips_after_the_window() {
    let mut meter = StallMeter::new(10, Delay::from_secs(60));
    assert_eq!(trips(&mut meter, |s| if s == 0 { 1 } else { 0 }, 0..200), Some(60));
}

#[test]
fn the_floor_itself_is_fast_enough_and_just_below_is_not() {
    let mut meter = StallMeter::new(10, Delay::from_secs(60));
    assert_eq!(trips(&mut meter, |_| 10, 0..1_000), None);
    let mut meter = StallMeter::new(10, Delay::from_secs(60));
    assert_eq!(trips(&mut meter, |_| 9, 0..1_000), Some(60));
}

#[test]
fn a_burst_does_not_buy_a_second_window() {
    let mut meter = StallMeter::new(10, Delay::from_secs(60));
    assert_eq!(trips(&mut meter, |s| if s <= 1 { 1_000_000 } else { 0 }, 0..200), Some(61));
}

#[test]
fn time_before_the_first_byte_does_not_count() {
    let mut meter = StallMeter::new(10, Delay::from_secs(60));
    assert_eq!(trips(&mut meter, |_| 0, 0..500), None);
    assert_eq!(trips(&mut meter, |s| u64::from(s == 500), 500..700), Some(560));
}

#[test]
fn a_stopped_process_is_no_stalled_server() {
    let mut meter = StallMeter::new(10, Delay::from_secs(60));
    assert_eq!(trips(&mut meter, |s| u64::from(s == 0), 0..50), None);
    // Stopped from second 50 to 500, then silence goes on.
    assert_eq!(trips(&mut meter, |_| 0, 500..700), Some(560));
}

#[test]
fn not_reading_on_purpose_is_excused() {
    let mut meter = StallMeter::new(10, Delay::from_secs(60));
    assert_eq!(trips(&mut meter, |s| u64::from(s == 0), 0..50), None);
    meter.excuse(at(50_000));
    assert_eq!(trips(&mut meter, |_| 0, 51..200), Some(110));
}

#[test]
fn zero_switches_the_rule_off() {
    for (floor, window) in [(0, Delay::from_secs(60)), (10, Delay::ZERO)] {
        let mut meter = StallMeter::new(floor, window);
        assert_eq!(trips(&mut meter, |s| u64::from(s == 0), 0..500), None);
    }
}

/// Feeds the meter once a second with so many bytes; the second in which it was too slow, and by which rule.
fn too_slow(meter: &mut BodyMeter, bytes: u64, seconds: u64) -> Option<(u64, u64)> {
    (0..seconds).find_map(|s| meter.feed(at(s * 1_000), bytes).map(|slow| (s, slow.floor)))
}

#[test]
fn the_beginning_of_a_body_is_held_to_more_where_others_could_be_asked() {
    let meter = |beginning| BodyMeter::new(10, Delay::from_secs(60), beginning);
    assert_eq!(too_slow(&mut meter(None), 20, 1_000), None);
    let beginning = Some(Length(4_096));
    assert_eq!(too_slow(&mut meter(beginning), 20, 1_000), Some((15, 273)));
    assert_eq!(too_slow(&mut meter(beginning), 300, 1_000), None);
    // Once its beginning has come, the rule is what is left.
    let mut meter = meter(beginning);
    assert_eq!(meter.feed(at(0), 4_096), None);
    assert_eq!((1..1_000).find(|s| meter.feed(at(s * 1_000), 0).is_some()), Some(60));
    let mut off = BodyMeter::new(10, Delay::ZERO, beginning);
    assert_eq!(too_slow(&mut off, 1, 1_000), None);
}

#[test]
fn a_beginning_that_we_held_up_ourselves_is_excused() {
    let mut meter = BodyMeter::new(10, Delay::from_secs(60), Some(Length(4_096)));
    let slow = (0..100).any(|s| {
        let slow = meter.feed(at(s * 1_000), 20).is_some();
        meter.excuse(at(s * 1_000));
        slow
    });
    assert!(!slow);
}
