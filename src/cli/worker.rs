//! `worker`: fetches what is due in a ledger, and says what came of it.

use std::path::Path;
use std::sync::Arc;

use crate::cli::args::{Global, WorkerArgs};
use crate::cli::exit::{Exit, Signal};
use crate::cli::foreign::{self, Tally, Until, WorkerJob, WorkerNotice};
use crate::cli::hooks::Words;
use crate::cli::ledger;
use crate::cli::report::Weight;
use crate::cli::resume::Resume;
use crate::cli::screen::Screen;
use crate::cli::transfer::Show;
use crate::cli::trouble::Trouble;
use crate::cli::{jobs, network, settings, signals, target};
use crate::core::prefs::Preferences;
use crate::core::time::Delay;
use crate::engine::{Options, Rounds};

/// What a worker stands on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    /// The client-state file.
    pub(crate) state_file: &'a Path,
    /// What relative paths are meant from.
    pub(crate) cwd: &'a Path,
    /// What the user prefers of transfers.
    pub(crate) prefs: &'a Preferences,
}

/// Works until told to stop, or until nothing is due.
pub(crate) fn run(
    asked: &WorkerArgs,
    global: &Global,
    places: Places<'_>,
    resume: &dyn Fn() -> Resume,
    screen: &Screen,
) -> Result<Exit, Trouble> {
    let job = job(asked, places)?;
    let place = ledger::place(asked.ledger.as_deref(), places.state_file, places.cwd);
    let mut store = ledger::open(&place, &job.rules)?;
    target::create_folder(&job.folder)?;
    let say = |weight, line: &str| screen.say(global.quiet, weight, line);
    let watch = signals::watch(screen);
    let mut show = Show::new(global, screen, Words::new(settings::HookWords::default()), places.state_file, &say);
    let worked = foreign::work(job, &mut *store, &watch.stop, &mut |notice| match notice {
        WorkerNotice::Transfer(notice) => show.notice(notice),
        WorkerNotice::Ledger(text) => say(Weight::Matters, &format!("persxfer: {text}")),
    });
    let exit = match (&worked, watch.caught.signal()) {
        (_, Some(Signal::Interrupt)) => Exit::Interrupted,
        (_, Some(Signal::Terminate)) | (Ok(Tally { failed: 0, .. }), None) => Exit::Complete,
        _ => Exit::Left,
    };
    let tally = worked?;
    if asked.until_idle {
        let Tally { done, failed, released, lost } = tally;
        say(Weight::News, &format!("{done} done, {failed} failed and wait, {released} given back, {lost} leases lost"));
    }
    show.finish(Ok(Vec::new()), &|_| exit, resume)
}

fn job(asked: &WorkerArgs, places: Places<'_>) -> Result<WorkerJob, Trouble> {
    let net = network::read(&asked.requests, &asked.patience, &places.prefs.travel, places.cwd)?;
    // It is the ledger that waits, and it never gives up.
    let options = Options { give_up: Delay::MAX, ..jobs::patient(&asked.patience, net)? };
    let mut settings = settings::of_worker(asked, places.prefs, places.state_file)?;
    settings.rounds = Rounds::Once;
    let mut rules = places.prefs.ledger.clone();
    ledger::prefer(&mut rules, asked.lease.as_deref(), asked.gap.as_deref())?;
    if places.prefs.sessions.per_host.is_some() || asked.speed.max_transfers_per_host.is_some() {
        rules.courtesy.at_once = u32::try_from(settings.max_per_host).unwrap_or(u32::MAX);
    }
    settings.max_per_host = rules.courtesy.at_once as usize;
    Ok(WorkerJob {
        folder: target::absolute(places.cwd, &asked.dir)?,
        settings,
        options: Arc::new(options),
        rules,
        until: if asked.until_idle || asked.patience.once { Until::Idle } else { Until::Told },
    })
}
