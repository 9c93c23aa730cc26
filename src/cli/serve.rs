//! `run`: drives whatever the state file holds, until done or as a service.

use std::path::Path;

use crate::cli::args::{Global, Run};
use crate::cli::doors;
use crate::cli::exit::{self, Exit, Signal};
use crate::cli::foreign;
use crate::cli::resume::Resume;
use crate::cli::screen::Screen;
use crate::cli::settings;
use crate::cli::signals::Watch;
use crate::cli::transfer::Show;
use crate::cli::trouble::Trouble;
use crate::engine::{Served, Service};

/// Runs until nothing is left to do, or until told to stop.
pub(crate) fn run(
    asked: &Run,
    global: &Global,
    state_file: &Path,
    resume: &dyn Fn() -> Resume,
    screen: &Screen,
    watch: Watch,
) -> Result<Exit, Trouble> {
    let run_settings = settings::of_run(asked, state_file)?;
    let doors = doors::read(&asked.doors)?;
    let hooks = settings::hooks(&asked.on_complete, &asked.on_failure)?;
    let service = if asked.forever { Service::Forever } else { Service::UntilDone };
    let say = |weight, line: &str| screen.say(global.quiet, weight, line);
    let mut show = Show::new(global, screen, hooks, state_file, &say);
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
