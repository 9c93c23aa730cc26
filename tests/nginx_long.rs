//! The long proof: fifty downloads, each killed with -9 once at a random moment. Run by `tests/long`, which reads the
//! figures it prints.

mod support;

use std::hash::{BuildHasher, Hasher};
use std::io::Write;

use support::nginx::Nginx;
use support::{World, ms, noise};

/// Unless `PERSXFER_LONG_RUNS` says otherwise.
const RUNS: u64 = 50;
const SIZE: usize = 200_000_000;
/// At 50 MB/s the file takes four seconds.
const WHOLE_MS: u64 = 4_000;

#[test]
#[ignore = "takes five minutes; tests/long runs it"]
fn fifty_downloads_each_killed_once_at_a_random_moment() {
    let Some(nginx) = Nginx::start("nginx_long::fifty_downloads", "limit_rate 50000000;") else { return };
    let data = noise(230, SIZE);
    nginx.put("f", &data);
    let runs = std::env::var("PERSXFER_LONG_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(RUNS);
    let mut shares = Vec::new();
    let mut killed = 0;
    for run in 0..runs {
        let lines = nginx.log().len();
        let w = World::new();
        let moment = random() % WHOLE_MS;
        let first = w.download(&nginx.url("/f")).start();
        std::thread::sleep(ms(moment));
        drop(first);
        // A kill may come before the first request, or after the last byte; either is a moment too.
        killed += u32::from(!w.out.exists());
        w.download(&nginx.url("/f")).run().exits(0);
        w.holds(&data);
        std::thread::sleep(ms(200));
        let sent: u64 = nginx.log()[lines..].iter().map(|l| l.body_bytes).sum();
        let share = sent as f64 / SIZE as f64;
        say(&format!(
            "run {:2}: killed after {moment:4} ms, {sent} bytes on the wire, {share:.4} of the file",
            run + 1
        ));
        shares.push(share);
    }
    shares.sort_by(f64::total_cmp);
    let (median, worst) = (shares[shares.len() / 2], shares[shares.len() - 1]);
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    say(&format!("{runs} runs, {killed} killed before the end, every file right"));
    say(&format!("bytes on the wire as a share of the file: median {median:.4}, mean {mean:.4}, worst {worst:.4}"));
    assert!(worst <= 1.02, "more than 1.02 of the file went over the wire");
}

/// Past the test harness, which holds back what a passing test prints.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// From the operating system, by way of the standard library's hash keys: moments need no better randomness.
fn random() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
