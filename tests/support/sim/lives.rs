//! One process after the other, and how each ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use persxfer::core::backoff::Policy;
use persxfer::core::digest::Expected;
use persxfer::core::pers_xfer::options::Options;
use persxfer::core::time::{Delay, Epoch};
use persxfer::core::upload::{Protocol, UploadOptions};
use persxfer::core::url::MirrorUrl;
use persxfer::engine::{
    Doors, EngineError, Job, Report, Rounds, Service, Settings, Steer, Stop, SyncMode, Target, World, run_in, serve_in,
};
use persxfer::io::clock::RuntimeClock;
use persxfer::io::effects::failpoints::{Recording, die_after, revive};
use persxfer::io::part::Boot;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::LocalSet;

use super::host::{DAY, Digests, HOUR, Host, T, Truth};
use super::net::{Net, url};
use super::store;
use super::verdict::Known;
use crate::disk::{Disk, LaidOut, memory};
use crate::disk_seed::Rng;

/// 2026-01-01 by the wall clock.
pub(super) const DAWN: i64 = 1_767_225_600;
/// Nobody needs longer.
const HORIZON: Duration = Duration::from_secs(300 * DAY);

/// What came of a world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) lives: usize,
    pub(crate) kills: usize,
    pub(crate) crashes: usize,
    pub(crate) requests: usize,
    pub(crate) complete: usize,
    pub(crate) failed: usize,
    pub(crate) days: f64,
    /// Bytes found held between two lives.
    pub(crate) held: u64,
    /// Of those that are complete, uploads.
    pub(crate) uploaded: usize,
}

/// One transfer that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) hosts: Vec<usize>,
    pub(crate) digest: bool,
    pub(crate) give_up: Delay,
    /// An upload, by this protocol.
    pub(super) upload: Option<Protocol>,
    options: Arc<Options>,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// By itself.
    Ends,
    /// It is told to stop.
    IsStopped(Duration),
    /// Killed.
    IsKilled(Duration),
    /// Killed between two effects on the disk.
    IsKilledAt(u64),
    /// The machine loses power.
    LosesPower(Duration),
    LosesPowerAt(u64),
}

/// The world.
pub(super) struct Sim {
    pub(super) seed: u64,
    rng: StdRng,
    disk_rng: Rng,
    dir: tempfile::TempDir,
    pub(super) home: PathBuf,
    pub(super) disk: Disk,
    pub(super) net: Net,
    pub(super) asked: Vec<Asked>,
    /// How many of them have been asked for.
    begun: usize,
    /// True time.
    pub(super) t: T,
    /// By how much the wall clock is wrong, in seconds.
    pub(super) skew: i64,
    pub(super) jumps: bool,
    /// Every host serves the same bytes for ever: nothing that is held is ever let go of.
    pub(super) constant: bool,
    boot: u8,
    pub(super) known: Known,
    pub(super) story: Story,
    /// How the lives ended, and when.
    pub(super) trail: Vec<(Fate, T)>,
}

/// Lives a world through. Panics, with the seed, where a promise is broken.
pub(crate) fn live(seed: u64) -> Story {
    let mut sim = Sim::new(seed);
    for _ in 0..sim.rng.random_range(0..6) {
        let fate = sim.draw_fate();
        sim.live(fate);
        sim.pause();
    }
    sim.live_out();
    sim.judge();
    sim.story
}

impl Sim {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let dir = tempfile::Builder::new().prefix("persxfer-sim-").tempdir_in(memory()).expect("a folder");
        let home = dir.path().join("home");
        std::fs::create_dir(&home).expect("made");
        let liars = rng.random_bool(0.3);
        let digests = if liars { Digests::OfAll } else { Digests::NotOfAll };
        let changes = !liars && rng.random_bool(0.3);
        let hosts: Vec<Host> = (0..rng.random_range(1..5)).map(|_| Host::draw(&mut rng, digests)).collect();
        let files: Vec<Truth> = (0..rng.random_range(1..5)).map(|_| Truth::draw(&mut rng, changes)).collect();
        let mut asked: Vec<Asked> = files.iter().map(|file| Asked::draw(&mut rng, hosts.len(), liars, file)).collect();
        if seed % 5 >= 3 {
            turn_round(seed, &mut asked);
        }
        for (file, truth) in files.iter().enumerate().filter(|(file, _)| asked[*file].upload.is_some()) {
            std::fs::write(dir.path().join(format!("f{file}")), &truth.versions[0].1).expect("written");
        }
        let net = Net::new(seed, hosts, files);
        net.lock().watch.most_at_host = MOST_PER_HOST;
        Self {
            seed,
            disk_rng: Rng::new(seed),
            disk: Disk::empty(&home),
            home,
            dir,
            net,
            asked,
            begun: 0,
            t: T::ZERO,
            skew: 0,
            jumps: rng.random_bool(0.2),
            constant: !liars && !changes,
            boot: 1,
            known: Known::default(),
            story: Story::default(),
            trail: Vec::new(),
            rng,
        }
    }

    fn draw_fate(&mut self) -> Fate {
        let rng = &mut self.rng;
        let seconds = match rng.random_range(0..4) {
            0 => rng.random_range(0.0..3.0),
            1 => rng.random_range(0.0..60.0),
            2 => rng.random_range(0.0..HOUR as f64 * 8.0),
            _ => rng.random_range(0.0..DAY as f64 * 4.0),
        };
        let (time, effects) = (Duration::from_secs_f64(seconds), rng.random_range(1..120));
        match rng.random_range(0..7) {
            0 => Fate::IsStopped(time),
            1 | 2 => Fate::IsKilled(time),
            3 => Fate::IsKilledAt(effects),
            4 | 5 => Fate::LosesPower(time),
            _ => Fate::LosesPowerAt(effects),
        }
    }

    /// One life of the program.
    fn live(&mut self, fate: Fate) {
        self.story.lives += 1;
        let recording = Recording::of(&self.home);
        match fate {
            Fate::IsKilledAt(effects) | Fate::LosesPowerAt(effects) => die_after(effects),
            _ => revive(),
        }
        let ended = self.on_an_event_loop(fate);
        revive();
        recording.effects().iter().for_each(|effect| self.disk.take(effect));
        drop(recording);
        match fate {
            Fate::Ends | Fate::IsStopped(_) => match ended {
                Some(Ok(reports)) => self.heard_out(&reports),
                Some(Err(error)) => self.broken(&format!("the program ended with: {error}")),
                None => self.broken("the program does not come to its end"),
            },
            Fate::IsKilled(_) | Fate::IsKilledAt(_) => self.story.kills += 1,
            Fate::LosesPower(_) | Fate::LosesPowerAt(_) => self.lose_power(),
        }
        self.trail.push((fate, self.t));
        self.check_between();
    }

    /// `None` for one that is killed.
    fn on_an_event_loop(&mut self, fate: Fate) -> Option<Result<Vec<Report>, EngineError>> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let (local, net, stop) = (LocalSet::new(), self.net.clone(), Stop::new());
        let (settings, jobs) = (self.settings(), self.jobs());
        let seed = self.rng.random();
        let (wall, boot, began) = (self.wall(), Boot::Id([self.boot; 16]), self.t);
        let ended = local.block_on(&runtime, async {
            let clock = RuntimeClock::at(wall);
            net.begin_life(began);
            let world =
                World::simulated(clock.clock(), Box::new(StdRng::seed_from_u64(seed)), boot, Arc::new(net.clone()));
            let listener = net.clone();
            let mut notices = |notice| {
                if !persxfer::io::effects::failpoints::is_dead() {
                    let mut outside = listener.lock();
                    let t = outside.t();
                    outside.watch.heard(t, &notice);
                }
            };
            let run = async {
                match jobs {
                    Some(jobs) => run_in(world, settings, jobs, &stop, &mut notices).await,
                    None => serve_in(world, settings, Service::UntilDone, Doors::default(), &stop, &mut notices)
                        .await
                        .map(|s| s.reports),
                }
            };
            let mut run = std::pin::pin!(run);
            let ended = tokio::select! {
                ended = &mut run => Some(ended),
                () = tokio::time::sleep(fate.time()) => None,
            };
            let ended = match (ended, fate) {
                (None, Fate::IsStopped(_)) => {
                    stop.request();
                    tokio::time::timeout(Duration::from_secs(30), run).await.ok()
                }
                (ended, _) => ended,
            };
            // What follows are destructors, which a killed process does not have.
            if fate.is_death() {
                die_after(0);
            }
            ended
        });
        self.t = {
            let _in = runtime.enter();
            net.t()
        };
        drop(local);
        drop(runtime);
        ended
    }

    /// The last lives, until all is over.
    fn live_out(&mut self) {
        self.begun = self.asked.len();
        // Whoever asked for something that is not in the state asks again.
        if (0..self.begun).any(|file| !self.known.has(file)) {
            self.live(Fate::Ends);
        }
        if (0..self.begun).any(|file| self.known.is_open(file)) {
            self.live(Fate::Ends);
        }
    }

    /// Time in which nothing runs; somebody may set the clock.
    fn pause(&mut self) {
        let long = if self.rng.random_bool(0.2) { 10 * DAY } else { HOUR };
        self.t += Duration::from_secs(self.rng.random_range(0..long));
        if self.jumps && self.rng.random_bool(0.5) {
            self.skew += self.rng.random_range(-30 * DAY as i64..30 * DAY as i64);
        }
        self.begun = (self.begun + self.rng.random_range(0..3)).min(self.asked.len());
    }

    fn lose_power(&mut self) {
        self.story.crashes += 1;
        self.boot += 1;
        let LaidOut { dir, disk, inodes } = self.disk.crashed(&mut self.disk_rng);
        std::fs::remove_dir_all(&self.home).expect("removed");
        std::fs::rename(dir.path(), &self.home).expect("moved");
        let _ = dir.keep();
        renumber_states(&self.home.join("state"), &inodes);
        self.disk = disk.at(&self.home);
    }

    fn settings(&self) -> Settings {
        Settings {
            state_file: self.home.join("state/client_state.xml"),
            rounds: Rounds::UntilDone,
            max_time: None,
            max_transfers: 3,
            max_per_host: MOST_PER_HOST,
            limit_rate: None,
            sync: SyncMode::Full,
            prefs: Arc::default(),
            steer: Steer::default(),
        }
    }

    /// What this life is started with; `None` for whatever the state holds.
    fn jobs(&mut self) -> Option<Vec<Job>> {
        let unknown = (0..self.begun).any(|file| !self.known.has(file));
        let again = self.rng.random_bool(0.3);
        let wanted = |file: &usize| !self.known.has(*file) || (again && self.known.is_open(*file));
        let wanted: Vec<usize> = (0..self.begun).filter(wanted).collect();
        // What somebody asks for is not put off.
        wanted.iter().for_each(|file| self.net.lock().watch.asked_for(*file));
        let jobs: Vec<Job> = wanted.into_iter().map(|file| self.job(file)).collect();
        (unknown || !jobs.is_empty()).then_some(jobs)
    }

    fn job(&self, file: usize) -> Job {
        let asked = &self.asked[file];
        let outside = self.net.lock();
        let truth = &outside.files[file].versions[0].1;
        let digests = if asked.digest && asked.upload.is_none() { vec![sha256(truth)] } else { Vec::new() };
        Job {
            urls: asked.urls(file),
            target: match asked.upload {
                Some(_) => Target::Source(self.dir.path().join(format!("f{file}"))),
                None => Target::File(self.target(file)),
            },
            digests,
            expected: None,
            pieces: None,
            max_filesize: None,
            xml_signature: None,
            options: Arc::clone(&asked.options),
        }
    }

    pub(super) fn target(&self, file: usize) -> PathBuf {
        self.home.join(format!("f{file}"))
    }

    fn wall(&self) -> Epoch {
        Epoch::from_micros((DAWN + self.skew) * 1_000_000 + i64::try_from(self.t.as_micros()).expect("in range"))
    }
}

const MOST_PER_HOST: usize = 2;

/// Makes uploads of some, by chance of its own: worlds that have none are what they were.
fn turn_round(seed: u64, asked: &mut [Asked]) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x7570_6c6f_6164_7321);
    for (file, asked) in asked.iter_mut().enumerate() {
        if !rng.random_bool(0.6) {
            continue;
        }
        let protocol = if rng.random_bool(0.5) { Protocol::Tus } else { Protocol::Put };
        asked.upload = Some(protocol);
        let protocols = asked.urls(file).into_iter().map(|url| (url, protocol)).collect();
        let upload = UploadOptions { protocols, ..UploadOptions::default() };
        asked.options = Arc::new(Options { upload, ..(*asked.options).clone() });
    }
}

impl Asked {
    fn draw(rng: &mut StdRng, hosts: usize, liars: bool, file: &Truth) -> Self {
        let mut order: Vec<usize> = (0..hosts).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        order.truncate(rng.random_range(1..=hosts));
        let names = ["boinc", "boinc-7", "tor", "ladder", "ranged"];
        let policy = Policy::parse(names[rng.random_range(0..names.len())]).expect("a policy");
        let give_up =
            if rng.random_bool(0.7) { Delay::from_days(14) } else { Delay::from_secs(rng.random_range(600..2 * DAY)) };
        let options = Options { policy, give_up, ..Options::default() };
        // A digest is that of one version.
        let digest = file.versions.len() == 1 && (liars || rng.random_bool(0.4));
        Self { hosts: order, digest, give_up, upload: None, options: Arc::new(options) }
    }

    fn urls(&self, file: usize) -> Vec<MirrorUrl> {
        let of = |host: &usize| if self.upload.is_some() { store::url(*host, file) } else { url(*host, file) };
        self.hosts.iter().map(of).collect()
    }
}

impl Fate {
    fn time(self) -> Duration {
        match self {
            Self::Ends => HORIZON,
            Self::IsStopped(time) | Self::IsKilled(time) | Self::LosesPower(time) => time,
            // It may never come to that many effects.
            Self::IsKilledAt(_) | Self::LosesPowerAt(_) => Duration::from_secs(6 * HOUR),
        }
    }

    fn is_death(self) -> bool {
        !matches!(self, Self::Ends | Self::IsStopped(_))
    }
}

fn sha256(bytes: &[u8]) -> Expected {
    let hex = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(bytes));
    Expected::parse(&format!("sha-256={hex}")).expect("a digest")
}

/// The state file tells files by their numbers, which are others now.
fn renumber_states(folder: &Path, inodes: &std::collections::BTreeMap<u64, u64>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let mut parts = text.split("<inode>");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (number, rest) = part.split_once("</inode>").unwrap_or((part, ""));
            let now = number.parse().ok().and_then(|n: u64| inodes.get(&n)).copied().unwrap_or(u64::MAX);
            out += &format!("<inode>{now}</inode>{rest}");
        }
        std::fs::write(entry.path(), out).expect("written");
    }
}
