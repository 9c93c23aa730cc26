//! A storm of lies: downloads from servers that draw every answer from the whole bank of faults, killed at random and
//! begun again. Exit status 0 with wrong bytes, a hang, a panic or a status without a meaning is a defect.
//!
//! Some sixty downloads run always; `tests/long` runs two thousand (`PERSXFER_LIAR`). A failure prints the seed; with
//! `PERSXFER_LIAR=1 PERSXFER_LIAR_SEED=n` that download is lived again: the servers draw the same, only moments differ.
//! `PERSXFER_LIAR_RUNS` sets how many runs a download under a digest has,
//! `PERSXFER_LIAR_X` sets the number of connections; 0 leaves it to the program.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::print_stderr, reason = "what is needed to repeat a failure is told")]

#[path = "support/liar/mod.rs"]
mod liar;
mod support;

use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use liar::{Liar, Plan, Proof};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use support::rig::lock;
use support::{Px, Ran, Rig, World, digest, ms};

/// So many downloads at a time.
const AT_ONCE: usize = 6;
/// So often lies are told before servers repent, where no digest is known.
const RUNS_OF_LIES: u32 = 6;
/// Then so many runs must be enough.
const RUNS_OF_TRUTH: u32 = 4;
/// So many runs must be enough where a digest is known and one answer in ten is honest.
const RUNS_UNDER_A_DIGEST: u64 = 200;

#[test]
fn no_lie_is_ever_called_a_success() {
    storm("no_lie_is_ever_called_a_success", Proof::Nothing);
}

#[test]
fn a_digest_and_one_honest_answer_in_ten_are_enough() {
    storm("a_digest_and_one_honest_answer_in_ten_are_enough", Proof::Digest);
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|t| t.parse().ok())
}

fn storm(test: &str, proof: Proof) {
    let count = number("PERSXFER_LIAR").unwrap_or(60).div_ceil(2);
    let first = number("PERSXFER_LIAR_SEED").unwrap_or_else(|| u64::from(std::process::id()) * 100_000);
    eprintln!("{test}: {count} downloads, PERSXFER_LIAR_SEED={first}");
    let (next, failures, runs) = (AtomicU64::new(0), Mutex::new(Vec::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    if n >= count {
                        return;
                    }
                    let mut life = Life::new(first + n, proof);
                    // A hang and a panic of the program end as panics of the rig.
                    if let Err(why) = catch_unwind(AssertUnwindSafe(|| life.live())) {
                        let why = why.downcast_ref::<String>().cloned().unwrap_or_else(|| "see above".to_owned());
                        lock(&failures).push(life.told(test, &why));
                    }
                    runs.fetch_add(u64::from(life.runs), Ordering::SeqCst);
                }
            });
        }
    });
    let failures = lock(&failures);
    eprintln!("{} runs for {count} downloads, {} failed", runs.load(Ordering::SeqCst), failures.len());
    for failure in failures.iter() {
        eprintln!("{failure}");
    }
    assert!(failures.is_empty(), "{} of {count} downloads", failures.len());
}

/// One download, over all its runs.
struct Life {
    liar: Arc<Liar>,
    rigs: Vec<Rig>,
    w: World,
    rng: StdRng,
    connections: Option<u64>,
    runs: u32,
    /// A run was killed, so what it would have said is not known.
    killed: bool,
    last: String,
}

impl Life {
    fn new(seed: u64, proof: Proof) -> Self {
        let mut rng = StdRng::seed_from_u64(seed ^ 0xC0FFEE);
        let liar = Liar::new(Plan::draw(seed, proof));
        let rig = |mirror| {
            let liar = Arc::clone(&liar);
            Rig::start(move |asked| liar.answer(mirror, asked))
        };
        let rigs: Vec<_> = (0..liar.plan.homes.len()).map(rig).collect();
        liar.lives_at(rigs.iter().map(|rig| rig.url("/f")).collect());
        let connections = connections(&mut rng, &liar.plan);
        Self { liar, rigs, w: World::new(), rng, connections, runs: 0, killed: false, last: String::new() }
    }

    fn live(&mut self) {
        match self.liar.plan.proof {
            Proof::Nothing => self.live_without_a_digest(),
            Proof::Digest => self.live_under_a_digest(),
        }
    }

    fn live_without_a_digest(&mut self) {
        for _ in 0..RUNS_OF_LIES {
            if self.run() {
                if self.rng.random_bool(0.6) {
                    return;
                }
                // The same command again: the finished file is asked after, and may be replaced.
                self.liar.is_known();
            }
        }
        self.liar.repent();
        for _ in 0..RUNS_OF_TRUTH {
            if self.run() && std::fs::read(&self.w.out).unwrap() == **self.liar.plan.truth() {
                return;
            }
        }
        panic!("the servers are honest now, and it does not end");
    }

    fn live_under_a_digest(&mut self) {
        for _ in 0..number("PERSXFER_LIAR_RUNS").unwrap_or(RUNS_UNDER_A_DIGEST) {
            if self.run() {
                return;
            }
        }
        panic!("one honest answer in ten was not enough");
    }

    /// One run, killed at some moment or not. Is it a success?
    fn run(&mut self) -> bool {
        self.runs += 1;
        let dies = (self.runs < 8 && self.rng.random_bool(0.3)).then(|| ms(self.rng.random_range(5..400)));
        let running = self.command().start();
        if let Some(after) = dies {
            std::thread::sleep(after);
            running.signal(Signal::KILL);
        }
        let ran = running.end();
        let said = ran.stderr.lines().rfind(|l| !l.starts_with("to continue")).unwrap_or_default();
        self.liar.note(format!("--- run {} ended: {}: {said}", self.runs, ran.status));
        self.last = ran.to_string();
        self.judge(&ran, dies.is_some());
        self.killed |= ran.status.signal().is_some();
        ran.succeeded()
    }

    fn command(&mut self) -> Px<'_> {
        let sync = ["none", "none", "full"][self.rng.random_range(0..3)];
        let mut px = self.w.download(&self.rigs[0].url("/f")).delays("1ms", "5ms").give_up("2s");
        px = px.args(&["--stall-timeout", "500ms", "--first-byte-timeout", "900ms", "--sync", sync]);
        for rig in &self.rigs[1..] {
            px = px.mirror(&rig.url("/f"));
        }
        if self.liar.plan.proof == Proof::Digest {
            px = px.args(&["--checksum", &digest("sha-256", self.liar.plan.truth())]);
        }
        if let Some(n) = self.connections {
            px = px.args(&["--connections", &n.to_string()]);
        }
        px
    }

    /// The status means something, and what stands under the final name is right, whatever the status.
    fn judge(&self, ran: &Ran, to_be_killed: bool) {
        match ran.status.code() {
            Some(0 | 3) => {}
            // A Content-Length that no disk has room for.
            Some(5) => _ = ran.says(&["space", "room"]),
            Some(code) => panic!("exit {code}"),
            None => assert!(to_be_killed && ran.status.signal() == Some(9), "{}", ran.status),
        }
        match std::fs::read(&self.w.out) {
            Ok(held) => self.judge_bytes(&held, ran),
            Err(_) => assert!(!ran.succeeded(), "a success without a file"),
        }
    }

    fn judge_bytes(&self, held: &[u8], ran: &Ran) {
        let plan = &self.liar.plan;
        if plan.proof == Proof::Digest {
            return assert!(held == **plan.truth(), "not the bytes of the digest: {}", self.describe(held));
        }
        if plan.versions.iter().any(|version| held == **version) {
            return;
        }
        let cut = plan.versions.iter().any(|version| version.starts_with(held));
        assert!(cut && self.liar.has_cut_unseen(), "a file that no server has: {}", self.describe(held));
        let told = ["length unverified", "nothing vouches"].iter().any(|words| ran.stderr.contains(words));
        assert!(told || self.killed || !ran.succeeded(), "cut, and called verified");
    }

    /// Which bytes are whose.
    fn describe(&self, held: &[u8]) -> String {
        let mut text = format!("{} bytes", held.len());
        for (n, version) in self.liar.plan.versions.iter().enumerate() {
            let head = held.iter().zip(version.iter()).take_while(|(a, b)| a == b).count();
            let tail = held.iter().rev().zip(version.iter().rev()).take_while(|(a, b)| a == b).count();
            text += &format!("; v{n} has {}, the first {head} and the last {tail} equal", version.len());
        }
        text
    }

    /// What is needed to understand a failure, and to have it again.
    fn told(&self, test: &str, why: &str) -> String {
        let plan = &self.liar.plan;
        let sizes: Vec<_> = plan.versions.iter().map(|v| v.len()).collect();
        format!(
            "=== {why}\nagain: PERSXFER_LIAR=1 PERSXFER_LIAR_SEED={} cargo test --test liar_storm {test}\n\
             {:?} {:?} {:?} versions {sizes:?} homes {:?} manners {:?} pace {:?} connections {:?}\n{}\n{}\n{}",
            plan.seed,
            plan.proof,
            plan.tags,
            plan.sizes,
            plan.homes,
            plan.manners,
            plan.pace,
            self.connections,
            self.liar.story(),
            self.last,
            std::fs::read_to_string(&self.w.state).unwrap_or_default()
        )
    }
}

/// How many connections a download has: none said is the default, one a mirror.
fn connections(rng: &mut StdRng, plan: &Plan) -> Option<u64> {
    let unsaid = plan.homes.len() > 1 && rng.random_bool(0.3);
    let drawn = if plan.pace.is_some() { rng.random_range(2..=6) } else { rng.random_range(1..=4) };
    match number("PERSXFER_LIAR_X") {
        Some(0) => None,
        Some(n) => Some(n),
        None => (!unsaid).then_some(drawn),
    }
}
