//! What a transfer needs, from what was typed: every text read, every name resolved, every mistake found here ends the
//! command with exit status 2 before anything is touched.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::args::{self, Download, Upload};
use crate::cli::foreign;
use crate::cli::jobs::{self, Asked};
use crate::cli::ledger;
use crate::cli::network;
use crate::cli::target;
use crate::cli::trouble::Trouble;
use crate::cli::upload;
use crate::core::ledger::Rules;
use crate::core::prefs::{Hooks, Preferences};
use crate::core::shell;
use crate::core::time::Delay;
use crate::engine::{Job, Rounds, Settings, Steer, SyncMode, Target};
use crate::io::store::open::Place;

/// Transfers at once, where nobody says how many (BOINC's number).
const MAX_TRANSFERS: usize = 8;
/// The same, with one host.
const MAX_PER_HOST: usize = 2;

/// Everything that one `download` or `upload` needs.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What holds for all transfers.
    pub(crate) settings: Settings,
    /// The transfers.
    pub(crate) jobs: Vec<Job>,
    /// Commands to run around them.
    pub(crate) hooks: HookWords,
    /// What was left out of what was read, a line each.
    pub(crate) remarks: Vec<String>,
    /// It is only to be told.
    pub(crate) dry_run: bool,
    /// The ledger that remembers what fails, where one is configured.
    pub(crate) ledger: Option<Place>,
    /// Its rules.
    pub(crate) rules: Rules,
}

/// The words of `--on-complete` and `--on-failure`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HookWords {
    /// After each transfer that is complete.
    pub(crate) complete: Option<Vec<String>>,
    /// After each that failed.
    pub(crate) failure: Option<Vec<String>>,
}

/// Reads everything that was typed; `cwd` is absolute, `stdin` is read where `-` stands for a file.
pub(crate) fn plan(
    asked: &Download,
    prefs: &Preferences,
    state_file: &Path,
    cwd: &Path,
    stdin: &mut dyn Read,
) -> Result<Plan, Trouble> {
    habits(&asked.around)?;
    let net = network::read(&asked.requests, &asked.patience, &prefs.travel, cwd)?;
    let round = Round::of(&asked.patience)?;
    let Asked { jobs, remarks } = jobs::read(asked, net, cwd, stdin)?;
    Ok(Plan {
        settings: settings(&asked.speed, prefs, asked.sync, state_file, round)?,
        jobs: apart_from_the_state(jobs, state_file)?,
        hooks: hooks(&asked.around.on_complete, &asked.around.on_failure, &prefs.hooks)?,
        remarks,
        dry_run: asked.around.dry_run,
        ledger: asked.ledger.as_deref().map(|given| ledger::place(Some(given), state_file, cwd)),
        rules: prefs.ledger.clone(),
    })
}

/// The same of an upload. It writes nothing but the state, which is always flushed.
pub(crate) fn plan_upload(asked: &Upload, prefs: &Preferences, state_file: &Path, cwd: &Path) -> Result<Plan, Trouble> {
    habits(&asked.around)?;
    let net = network::read(&asked.requests, &asked.patience, &prefs.travel, cwd)?;
    Ok(Plan {
        settings: settings(&asked.speed, prefs, args::Sync::Full, state_file, Round::of(&asked.patience)?)?,
        hooks: hooks(&asked.around.on_complete, &asked.around.on_failure, &prefs.hooks)?,
        // Last, because only here what was asked for may be right and cannot be had.
        jobs: vec![upload::read(asked, net, cwd)?],
        remarks: Vec::new(),
        dry_run: asked.around.dry_run,
        ledger: None,
        rules: prefs.ledger.clone(),
    })
}

/// How often, and for how long in all.
struct Round(Rounds, Option<Delay>);

impl Round {
    fn new(once: bool, max_time: Option<&str>) -> Result<Self, Trouble> {
        let rounds = if once { Rounds::Once } else { Rounds::UntilDone };
        Ok(Self(rounds, delay("--max-time", max_time)?))
    }

    fn of(patience: &args::Patience) -> Result<Self, Trouble> {
        Self::new(patience.once, patience.max_time.as_deref())
    }
}

/// What a `run` needs.
pub(crate) fn of_run(asked: &args::Run, prefs: &Preferences, state_file: &Path) -> Result<Settings, Trouble> {
    settings(&asked.speed, prefs, asked.sync, state_file, Round::new(asked.once, asked.max_time.as_deref())?)
}

/// What a `sync` needs. How eagerly its files are flushed is its own matter.
pub(crate) fn of_sync(asked: &args::SyncArgs, prefs: &Preferences, state_file: &Path) -> Result<Settings, Trouble> {
    settings(&asked.speed, prefs, args::Sync::Full, state_file, Round::of(&asked.patience)?)
}

/// What a `worker` needs.
pub(crate) fn of_worker(asked: &args::WorkerArgs, prefs: &Preferences, state_file: &Path) -> Result<Settings, Trouble> {
    settings(&asked.speed, prefs, args::Sync::Full, state_file, Round::of(&asked.patience)?)
}

fn settings(
    speed: &args::Speed,
    prefs: &Preferences,
    sync: args::Sync,
    state_file: &Path,
    Round(rounds, max_time): Round,
) -> Result<Settings, Trouble> {
    let prefs = effective(prefs, speed);
    Ok(Settings {
        state_file: state_file.to_owned(),
        rounds,
        max_time,
        max_transfers: prefs.sessions.all.unwrap_or(MAX_TRANSFERS),
        max_per_host: prefs.sessions.per_host.unwrap_or(MAX_PER_HOST),
        limit_rate: rate("--limit-rate", speed.limit_rate.as_deref())?,
        sync: match sync {
            args::Sync::Full => SyncMode::Full,
            args::Sync::None => SyncMode::None,
        },
        prefs: Arc::new(prefs),
        steer: Steer::new(),
    })
}

/// Preferences in which what was typed comes first.
pub(crate) fn effective(prefs: &Preferences, speed: &args::Speed) -> Preferences {
    let mut prefs = prefs.clone();
    let (typed, sessions) = (|n: Option<u16>| n.map(usize::from), &mut prefs.sessions);
    sessions.all = typed(speed.max_transfers).or(sessions.all);
    sessions.per_host = typed(speed.max_transfers_per_host).or(sessions.per_host);
    prefs
}

/// No download may go where the state is kept.
fn apart_from_the_state(jobs: Vec<Job>, state_file: &Path) -> Result<Vec<Job>, Trouble> {
    let clash = jobs.iter().find_map(|job| match &job.target {
        Target::File(path) if target::is_of_state(path, state_file) => Some(path),
        _ => None,
    });
    match clash {
        Some(path) => {
            let why = "the client state is kept under that name; give another one, or another --state-file";
            Err(Trouble::option("the output", path.to_string_lossy(), why))
        }
        None => Ok(jobs),
    }
}

/// The state file's path: as given, else in the folder where state belongs (XDG Base Directory).
pub(crate) fn state_file(given: Option<&Path>, cwd: &Path) -> Result<PathBuf, Trouble> {
    use etcetera::BaseStrategy;
    if let Some(given) = given {
        let path = target::absolute(cwd, given)?;
        return match std::fs::metadata(&path) {
            Ok(m) if m.is_dir() => {
                Err(Trouble::option("--state-file", given.to_string_lossy(), "it is a folder; name a file in it"))
            }
            _ => Ok(path),
        };
    }
    let folder = etcetera::choose_base_strategy().ok().and_then(|dirs| dirs.state_dir());
    let folder = folder
        .ok_or_else(|| Trouble::Usage("there is no home folder to keep the state in; give --state-file PATH".into()))?;
    Ok(folder.join("persxfer").join("client_state.xml"))
}

/// `-C -` is accepted; `-C 1000` asks for what we never do.
fn habits(around: &args::Around) -> Result<(), Trouble> {
    match around.continue_at.as_deref() {
        None | Some("-") => Ok(()),
        Some(other) => Err(Trouble::option(
            "--continue-at",
            other,
            "an offset cannot be given, transfers find theirs by themselves; leave it out",
        )),
    }
}

/// The words of the commands that are run around transfers.
pub(crate) fn hooks(
    complete: &Option<String>,
    failure: &Option<String>,
    preferred: &Hooks,
) -> Result<HookWords, Trouble> {
    let words = |option, text: &Option<String>, preferred: &[String]| {
        let typed = text.as_deref().map(|t| shell::split(t).map_err(|e| Trouble::option(option, t, e))).transpose()?;
        Ok::<_, Trouble>(typed.or_else(|| Some(preferred.to_vec()).filter(|words| !words.is_empty())))
    };
    Ok(HookWords {
        complete: words("--on-complete", complete, &preferred.complete)?,
        failure: words("--on-failure", failure, &preferred.failure)?,
    })
}

/// A duration, where one was given.
pub(crate) fn delay(option: &'static str, text: Option<&str>) -> Result<Option<Delay>, Trouble> {
    text.map(|t| foreign::parse_delay(t).map_err(|why| Trouble::option(option, t, why))).transpose()
}

/// A duration that must be longer than nothing.
pub(crate) fn positive(option: &'static str, text: &str) -> Result<Delay, Trouble> {
    match foreign::parse_delay(text) {
        Ok(Delay::ZERO) => Err(Trouble::option(option, text, "it must be longer than nothing, such as 30s")),
        Ok(delay) => Ok(delay),
        Err(why) => Err(Trouble::option(option, text, why)),
    }
}

/// A rate, where one was given; 0 is none.
fn rate(option: &'static str, text: Option<&str>) -> Result<Option<u64>, Trouble> {
    let rate = text.map(|t| foreign::parse_rate(t).map_err(|why| Trouble::option(option, t, why))).transpose()?;
    Ok(rate.filter(|rate| *rate > 0))
}

/// A size, where one was given.
pub(crate) fn size(option: &'static str, text: Option<&str>) -> Result<Option<u64>, Trouble> {
    text.map(|t| foreign::parse_size(t).map_err(|why| Trouble::option(option, t, why))).transpose()
}

#[cfg(test)]
mod tests;
