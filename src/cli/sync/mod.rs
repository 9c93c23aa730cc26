//! `sync`: whole trees of files, as a configuration says, once or again and again.

mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cli::args::{Global, Progress, SyncArgs};
use crate::cli::exit::{self, Exit, Signal};
use crate::cli::foreign::{self, Depth, ModuleReport, Outcome, SyncJob, SyncNotice, printable};
use crate::cli::out::Out;
use crate::cli::report::{self, Digests, Weight};
use crate::cli::screen::Screen;
use crate::cli::trouble::Trouble;
use crate::cli::view::View;
use crate::cli::{jobs, network, settings, signals, target};
use crate::core::prefs::Preferences;
use crate::core::sync::config::{SyncConfig, Syntax};
use crate::core::time::{Delay, Mono};
use crate::engine::{Ending, Notice};

/// The largest configuration, in bytes.
const MAX_CONFIG: u64 = 1 << 20;
/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(200);

/// What a run stands on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    /// The client-state file.
    pub(crate) state_file: &'a Path,
    /// What relative paths are meant from.
    pub(crate) cwd: &'a Path,
    /// What the user prefers of transfers.
    pub(crate) prefs: &'a Preferences,
}

/// Does what was asked.
pub(crate) fn run(asked: &SyncArgs, global: &Global, places: Places<'_>, screen: &Screen) -> Result<Exit, Trouble> {
    let say = |weight, line: &str| screen.say(global.quiet, weight, line);
    let every = asked.every.as_deref().map(|text| settings::positive("--every", text)).transpose()?;
    let job = job(asked, places, &say)?;
    let watch = signals::watch(screen);
    loop {
        let begun = foreign::now().mono;
        let mut show = Show::new(asked, global, screen, &say);
        let reports = foreign::sync(&job, &watch.stop, &mut |notice| show.notice(&notice))?;
        let exit = exit_of(&reports);
        show.view
            .finish(exit, foreign::now())
            .map_err(|e| Trouble::io("write to", Path::new("standard output"), &e))?;
        print(asked, &reports, job.depth)?;
        tell_endings(&reports, &say);
        match (watch.caught.signal(), every) {
            (Some(Signal::Interrupt), _) => return Ok(Exit::Interrupted),
            (Some(Signal::Terminate), Some(_)) => return Ok(Exit::Complete),
            (Some(Signal::Terminate), None) => return Ok(exit::worst([exit, Exit::Left])),
            (None, None) => return Ok(exit),
            (None, Some(every)) => rest(begun + every, &watch.stop),
        }
    }
}

/// Everything that is needed, from what was typed and what is configured.
fn job(asked: &SyncArgs, places: Places<'_>, say: &dyn Fn(Weight, &str)) -> Result<SyncJob, Trouble> {
    let config = read(&target::absolute(places.cwd, &asked.file)?)?;
    for (line, key) in &config.left_alone {
        say(
            Weight::News,
            &format!("{}, line {line}: {key} is no key of sync, and is left alone", asked.file.display()),
        );
    }
    if let Some(name) = asked.module.as_ref().filter(|name| config.modules.iter().all(|m| m.name != **name)) {
        let names: Vec<_> = config.modules.iter().map(|module| module.name.as_str()).collect();
        return Err(Trouble::option(
            "--module",
            name,
            format!("there is no such module; there are {}", names.join(", ")),
        ));
    }
    let net = network::read(&asked.requests, &asked.patience, &places.prefs.travel, places.cwd)?;
    Ok(SyncJob {
        config,
        settings: settings::of_sync(asked, places.prefs, places.state_file)?,
        options: Arc::new(jobs::patient(&asked.patience, net)?),
        only: asked.module.clone(),
        depth: if asked.dry_run { Depth::Plan } else { Depth::Full },
    })
}

/// Reads a configuration; its paths become absolute, meant from its own folder.
fn read(path: &Path) -> Result<SyncConfig, Trouble> {
    use std::io::Read as _;
    let shown = printable(&path.display().to_string());
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| Trouble::io("read", path, &e))?;
    file.take(MAX_CONFIG + 1).read_to_string(&mut text).map_err(|e| Trouble::io("read", path, &e))?;
    if text.len() as u64 > MAX_CONFIG {
        return Err(Trouble::Usage(format!("{shown}: a configuration has at most {MAX_CONFIG} bytes")));
    }
    let is_toml = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
    let syntax = if is_toml { Syntax::Toml } else { Syntax::Properties };
    let mut config = SyncConfig::parse(&text, syntax).map_err(|bad| Trouble::Usage(format!("{shown}: {bad}")))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let absolute = |path: &mut PathBuf| *path = folder.join(&*path);
    absolute(&mut config.sync_folder);
    config.recent.iter_mut().chain(&mut config.index).for_each(absolute);
    config.modules.iter_mut().for_each(|module| absolute(&mut module.out));
    Ok(config)
}

/// What is shown while it runs.
struct Show<'s> {
    view: View,
    say: &'s dyn Fn(Weight, &str),
}

impl<'s> Show<'s> {
    fn new(asked: &SyncArgs, global: &Global, screen: &Screen, say: &'s dyn Fn(Weight, &str)) -> Self {
        let progress = match global.progress {
            // Standard output is the report's; and a line for each of thousands of files would say nothing.
            Progress::Json if asked.json => Progress::None,
            Progress::Auto if !Screen::can_draw() => Progress::None,
            other => other,
        };
        Self { view: View::new(&Global { progress, ..global.clone() }, screen), say }
    }

    fn notice(&mut self, notice: &SyncNotice) {
        match notice {
            SyncNotice::Transfer(notice) => {
                self.view.notice(notice, foreign::now());
                if let Notice::Ended(report) = &**notice
                    && !matches!(report.ending, Ending::Complete { .. } | Ending::Unchanged { .. })
                {
                    let (_, line) = report::line(report, &Digests::default(), None, foreign::now());
                    (self.say)(Weight::News, &line);
                }
            }
            SyncNotice::Warning(line) => (self.say)(Weight::Matters, &format!("warning: {line}")),
            SyncNotice::News(line) => (self.say)(Weight::News, line),
        }
    }
}

fn print(asked: &SyncArgs, reports: &[ModuleReport], depth: Depth) -> Result<(), Trouble> {
    let text = if asked.json { table::json(reports, depth) } else { table::text(reports, depth) };
    Out::stdout().write(text.as_bytes()).map_err(|e| Trouble::io("write to", Path::new("standard output"), &e))
}

/// What ended a module before its end.
fn tell_endings(reports: &[ModuleReport], say: &dyn Fn(Weight, &str)) {
    for report in reports {
        match &report.outcome {
            Outcome::Done | Outcome::Off => {}
            Outcome::Busy(fault) => {
                say(Weight::Matters, &format!("{}: busy: {}", report.name, printable(&fault.to_string())))
            }
            Outcome::Stopped => say(Weight::Matters, &format!("{}: stopped; run the same command again", report.name)),
            Outcome::Local(fault) => {
                say(Weight::Matters, &format!("{}: {}", report.name, printable(&fault.to_string())))
            }
        }
    }
}

fn exit_of(reports: &[ModuleReport]) -> Exit {
    exit::worst(reports.iter().map(|report| match report.outcome {
        Outcome::Busy(_) | Outcome::Local(_) => Exit::Local,
        _ if report.is_complete() => Exit::Complete,
        _ => Exit::Left,
    }))
}

/// Waits until then, or until told to stop.
fn rest(until: Mono, stop: &foreign::Stop) {
    while !stop.is_requested() {
        let left = until.since(foreign::now().mono);
        if left == Delay::ZERO {
            return;
        }
        std::thread::sleep(left.as_std().min(LOOK));
    }
}
