//! Figures of downloads over several connections, against the ideal: every connection at its server's full rate from the
//! first byte to the last. Run by `tests/long`, in a release build; nothing but the bytes is asserted.

#![allow(clippy::disallowed_methods, reason = "clocks are read here to measure, never to decide")]

mod support;

use std::time::{Duration, Instant};

use support::nginx::Nginx;
use support::{Running, World, noise, say};

const MB: usize = 1 << 20;

/// Waits for the end, and tells the ratio.
fn figure(what: &str, from: Instant, run: Running, ideal: f64) {
    run.end().exits(0);
    let took = from.elapsed().as_secs_f64();
    say(&format!("{what}: {took:.2} s, ideal {ideal:.2} s, ratio {:.3}", took / ideal));
}

#[test]
#[ignore = "a figure; tests/long runs it"]
fn sixteen_connections_of_eight_mib_a_second() {
    let Some(nginx) = Nginx::start("segments_long::sixteen_connections", "limit_rate 8m;") else { return };
    let (w, data) = (World::new(), noise(1700, 1024 * MB));
    nginx.put("f", &data);
    let from = Instant::now();
    let run = w.download(&nginx.url("/f")).args(&["-x", "16"]).start();
    figure("16 connections x 8 MiB/s, 1 GiB", from, run, 8.0);
    w.holds(&data);
}

#[test]
#[ignore = "a figure; tests/long runs it"]
fn three_mirrors_of_sixteen_mib_a_second_and_one_that_dies_half_way() {
    let start = |_| Nginx::start("segments_long::three_mirrors", "limit_rate 16m;");
    let Some(mut mirrors) = [0, 1, 2].map(start).into_iter().collect::<Option<Vec<_>>>() else { return };
    let data = noise(1701, 256 * MB);
    mirrors.iter().for_each(|m| m.put_dated("f", &data));
    let urls: Vec<_> = mirrors.iter().map(|m| m.url("/f")).collect();
    for (what, dies) in [("3 mirrors x 16 MiB/s, 256 MiB", false), ("the same, one dies half-way", true)] {
        let w = World::new();
        let from = Instant::now();
        let run = w.download(&urls[0]).mirror(&urls[1]).mirror(&urls[2]).start();
        if dies {
            std::thread::sleep(Duration::from_secs_f64(256.0 / 48.0 / 2.0));
            mirrors[1].kill();
        }
        // Half at three times sixteen, then the rest at twice sixteen.
        let ideal = if dies { 128.0 / 48.0 + 128.0 / 32.0 } else { 256.0 / 48.0 };
        figure(what, from, run, ideal);
        w.holds(&data);
    }
}

#[test]
#[ignore = "a figure; tests/long runs it"]
fn killed_ten_times_over_four_connections() {
    let Some(nginx) = Nginx::start("segments_long::killed_ten_times", "limit_rate 24m;") else { return };
    let (w, data) = (World::new(), noise(1702, 1024 * MB));
    nginx.put("f", &data);
    for n in 0..10_u64 {
        let run = w.download(&nginx.url("/f")).args(&["-x", "4"]).start();
        std::thread::sleep(Duration::from_millis(300 + 71 * (n * 7 % 10)));
        drop(run);
        w.holds_nothing();
    }
    w.download(&nginx.url("/f")).args(&["-x", "4"]).run().exits(0);
    w.holds(&data);
    std::thread::sleep(Duration::from_millis(500));
    let sent: u64 = nginx.log().iter().map(|l| l.body_bytes).sum();
    let share = sent as f64 / data.len() as f64;
    say(&format!("1 GiB over 4 connections, killed ten times: {share:.4} of the file on the wire"));
}
