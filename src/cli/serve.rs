//! `run`: drives whatever the state file holds, until done or as a service.

use std::path::Path;

use crate::cli::args::{Global, Run};
use crate::cli::config::ConfigFile;
use crate::cli::doors;
use crate::cli::exit::{self, Exit, Signal};
use crate::cli::foreign;
use crate::cli::hooks::Words;
use crate::cli::ledger::Join;
use crate::cli::resume::Resume;
use crate::cli::screen::Screen;
use crate::cli::settings;
use crate::cli::signals::{self, Reload};
use crate::cli::transfer::Show;
use crate::cli::trouble::Trouble;
use crate::engine::{Served, Service, Steer};
use crate::io::store::open::Place;

/// Where a run finds what it needs.
pub(crate) struct Places<'a> {
    /// The state.
    pub(crate) state_file: &'a Path,
    /// The preferences.
    pub(crate) config: ConfigFile,
    /// The ledger, where one is configured.
    pub(crate) ledger: Option<&'a Place>,
}

/// Reads the preferences again. Where the file has a mistake by now, it is told, and what held before still does.
fn again(asked: &Run, config: ConfigFile, steer: &Steer, words: &Words, screen: &Screen) -> Reload {
    let (speed, steer, screen) = (asked.speed.clone(), steer.clone(), screen.clone());
    let (complete, failure, words) = (asked.on_complete.clone(), asked.on_failure.clone(), words.clone());
    let read = move || {
        let prefs = config.read()?;
        Ok::<_, Trouble>((settings::hooks(&complete, &failure, &prefs.hooks)?, prefs))
    };
    Box::new(move || match read() {
        Ok((hooks, prefs)) => {
            words.replace(hooks);
            steer.prefer(settings::effective(&prefs, &speed));
            screen.line("persxfer: the preferences were read again");
        }
        Err(trouble) => screen.line(&format!("persxfer: the preferences stay as they were: {trouble}")),
    })
}

/// Runs until nothing is left to do, or until told to stop.
pub(crate) fn run(
    asked: &Run,
    global: &Global,
    Places { state_file, config, ledger }: Places<'_>,
    resume: &dyn Fn() -> Resume,
    screen: &Screen,
) -> Result<Exit, Trouble> {
    let prefs = config.read()?;
    let run_settings = settings::of_run(asked, &prefs, state_file)?;
    let doors = doors::read(&asked.doors)?;
    let words = Words::new(settings::hooks(&asked.on_complete, &asked.on_failure, &prefs.hooks)?);
    let watch = signals::watch_and_reload(screen, again(asked, config, &run_settings.steer, &words, screen));
    let service = if asked.forever { Service::Forever } else { Service::UntilDone };
    let say = |weight, line: &str| screen.say(global.quiet, weight, line);
    let mut show = Show::new(global, screen, words, state_file, &say);
    show.join = ledger.map(|place| Join::open(place, &prefs.ledger)).transpose()?;
    let served = foreign::serve(run_settings, service, doors, watch.stop, &mut |notice| show.notice(&notice));
    let (left, quit, reports) = match served {
        Ok(Served { reports, left, told_to_quit }) => (left, told_to_quit, Ok(reports)),
        Err(error) => (0, false, Err(error)),
    };
    let signal = watch.caught.signal();
    let of_reports = |reports: &[_]| match (service, signal) {
        (Service::Forever, Some(Signal::Terminate)) => Exit::Complete,
        (Service::Forever, None) if quit => Exit::Complete,
        (Service::Forever, Some(Signal::Interrupt)) => Exit::Interrupted,
        (_, Some(Signal::Interrupt)) if left > 0 => Exit::Interrupted,
        _ if left > 0 => exit::worst([exit::of_run(reports, signal), Exit::Left]),
        _ => exit::of_run(reports, signal),
    };
    show.finish(reports, &of_reports, resume)
}
