//! `download` and `upload`: runs the engine over the jobs, shows what it tells, and says how it went.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::cli::args::Global;
use crate::cli::exit::{self, Exit};
use crate::cli::foreign::{self, Engine};
use crate::cli::hooks::{Hooks, Words};
use crate::cli::jobs;
use crate::cli::ledger::Join;
use crate::cli::report::{self, Digests, Seen, Weight};
use crate::cli::resume::{self, Resume};
use crate::cli::screen::Screen;
use crate::cli::settings::Plan;
use crate::cli::signals::Watch;
use crate::cli::target;
use crate::cli::trouble::Trouble;
use crate::cli::view::View;
use crate::core::pers_xfer::record::XferId;
use crate::engine::{Notice, Report, WaitReason};

/// Runs all jobs to the end of this run.
pub(crate) fn run(
    plan: Plan,
    global: &Global,
    resume: &dyn Fn() -> Resume,
    screen: &Screen,
    watch: Watch,
    engine: Box<Engine<'_>>,
) -> Result<Exit, Trouble> {
    jobs::folders(&plan.jobs).iter().try_for_each(|folder| target::create_folder(folder))?;
    let say = |weight, line: &str| screen.say(global.quiet, weight, line);
    let mut show = Show::new(global, screen, Words::new(plan.hooks), &plan.settings.state_file, &say);
    show.digests = Digests::of(&plan.jobs);
    show.join = plan.ledger.as_ref().map(|place| Join::open(place, &plan.rules)).transpose()?;
    let run = engine(plan.settings, plan.jobs, watch.stop, &mut |notice| show.notice(&notice));
    show.finish(run, &|reports| exit::of_run(reports, watch.caught.signal()), resume)
}

/// Everything that looks on while the engine works.
pub(crate) struct Show<'a> {
    view: View,
    hooks: Hooks,
    digests: Digests,
    /// The ledger, where one is configured.
    pub(crate) join: Option<Join>,
    told: HashSet<XferId>,
    /// The latest session of those that have not ended.
    seen: HashMap<XferId, Seen>,
    /// The names of those that have not ended.
    names: HashMap<XferId, String>,
    /// The state file, where another than the usual one was asked for.
    state_file: Option<&'a Path>,
    say: &'a dyn Fn(Weight, &str),
}

impl<'a> Show<'a> {
    /// Nothing has happened yet.
    pub(crate) fn new(
        global: &'a Global,
        screen: &Screen,
        hooks: Words,
        state_file: &Path,
        say: &'a dyn Fn(Weight, &str),
    ) -> Self {
        Self {
            view: View::new(global, screen),
            hooks: Hooks::new(hooks, state_file),
            digests: Digests::default(),
            join: None,
            told: HashSet::new(),
            seen: HashMap::new(),
            names: HashMap::new(),
            state_file: global.state_file.as_deref(),
            say,
        }
    }

    /// Something happened.
    pub(crate) fn notice(&mut self, notice: &Notice) {
        self.view.notice(notice, foreign::now());
        match notice {
            Notice::Accepted { id, name, .. } => {
                // One that failed may be taken up again.
                self.told.remove(id);
                self.names.insert(*id, name.clone());
            }
            Notice::Session { id, number, url, .. } => {
                self.seen.insert(*id, Seen { sessions: *number, server: url.clone() });
            }
            Notice::Waiting { id, reason: WaitReason::Suspended, .. } => {
                let name = self.names.get(id).map_or_else(|| id.to_string(), Clone::clone);
                let how = resume::of_transfer(&name, self.state_file);
                (self.say)(Weight::News, &format!("{name}: suspended; to go on: {how}"));
            }
            Notice::Ended(report) => self.ended(report),
            _ => {}
        }
    }

    /// Says how a transfer ended, once each.
    fn ended(&mut self, report: &Report) {
        self.names.remove(&report.id);
        let seen = self.seen.remove(&report.id);
        if !self.told.insert(report.id) {
            return;
        }
        let (weight, line) = report::line(report, &self.digests, seen.as_ref(), foreign::now());
        (self.say)(weight, &line);
        let noted = self.join.as_mut().and_then(|join| join.ended(report));
        noted.into_iter().for_each(|line| (self.say)(Weight::News, &line));
        self.hooks.ended(report);
    }

    /// It is over, and that is the exit status.
    pub(crate) fn finish(
        mut self,
        run: Result<Vec<Report>, foreign::EngineError>,
        exit_of: &dyn Fn(&[Report]) -> Exit,
        resume: &dyn Fn() -> Resume,
    ) -> Result<Exit, Trouble> {
        let reports = match run {
            Ok(reports) => reports,
            Err(e) => {
                let trouble = Trouble::from(e);
                // One trouble is enough to tell.
                let _ = self.view.finish(trouble.exit(), foreign::now());
                return Err(trouble);
            }
        };
        for report in &reports {
            if !self.told.contains(&report.id) {
                self.notice(&Notice::Ended(report.clone()));
            }
        }
        let failures = self.hooks.finish();
        failures.iter().for_each(|line| (self.say)(Weight::Matters, line));
        let hooks = if failures.is_empty() { Exit::Complete } else { Exit::Local };
        let exit = exit::worst([exit_of(&reports), hooks]);
        let exit = match self.view.finish(exit, foreign::now()) {
            Ok(()) => exit,
            Err(e) => {
                (self.say)(
                    Weight::Matters,
                    &format!("events were lost: cannot write to standard output: {}", foreign::plain_error(&e)),
                );
                exit::worst([exit, Exit::Local])
            }
        };
        report::closing(&reports, exit, resume).iter().for_each(|(weight, line)| (self.say)(*weight, line));
        Ok(exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Progress;
    use crate::cli::foreign::{EngineError, Stop};
    use crate::cli::samples;
    use crate::cli::settings::HookWords;
    use crate::engine::{Ending, Rounds, Settings, Steer, SyncMode};
    use std::sync::Arc;

    fn plan(hooks: HookWords) -> Plan {
        let settings = Settings {
            state_file: "/nowhere/state.xml".into(),
            rounds: Rounds::Once,
            max_time: None,
            max_transfers: 1,
            max_per_host: 1,
            limit_rate: None,
            sync: SyncMode::None,
            prefs: Arc::default(),
            steer: Steer::new(),
        };
        Plan { settings, jobs: vec![], hooks, remarks: vec![], dry_run: false, ledger: None, rules: Default::default() }
    }

    fn exit_of(endings: &[Ending], hooks: HookWords) -> Result<Exit, Trouble> {
        let global = Global { state_file: None, config: None, quiet: true, verbose: 0, progress: Progress::None };
        let endings = endings.to_vec();
        let engine = move |_: Settings, _: Vec<_>, _: Stop, notices: &mut dyn FnMut(Notice)| {
            samples::story().into_iter().for_each(&mut *notices);
            let report = |(n, ending)| Report { id: samples::id(n), ..samples::report(ending) };
            let reports: Vec<_> = (1..).zip(endings).map(report).collect();
            // The first is told while it runs, the others only at the end.
            notices(Notice::Ended(reports[0].clone()));
            Ok(reports)
        };
        run(plan(hooks), &global, &Resume::default, &Screen::default(), Watch::default(), Box::new(engine))
    }

    #[test]
    fn the_endings_decide_the_status() {
        let none = HookWords::default();
        assert_eq!(exit_of(&[samples::complete()], none.clone()).expect("ran"), Exit::Complete);
        assert_eq!(exit_of(&[samples::complete(), samples::failed()], none.clone()).expect("ran"), Exit::Failed);
        assert_eq!(
            exit_of(&[samples::failed(), samples::local(), samples::stopped()], none).expect("ran"),
            Exit::Local
        );
    }

    #[test]
    fn every_ending_has_its_hook_once_and_a_failing_one_is_local_trouble() {
        let dir = tempfile::tempdir().expect("a folder");
        let seen = dir.path().join("seen");
        let word = |text: &str| text.to_owned();
        let script = format!("echo $PERSXFER_STATUS >> '{}'", seen.display());
        let hook = Some(vec![word("sh"), word("-c"), script]);
        let hooks = HookWords { complete: hook.clone(), failure: hook };
        let exit = exit_of(&[samples::complete(), samples::complete(), samples::failed()], hooks).expect("ran");
        assert_eq!(exit, Exit::Failed);
        assert_eq!(std::fs::read_to_string(&seen).expect("hooks ran"), "complete\ncomplete\nfailed\n");
        let failing = HookWords { complete: Some(vec![word("false")]), failure: None };
        assert_eq!(exit_of(&[samples::complete()], failing).expect("ran"), Exit::Local);
    }

    #[test]
    fn an_engine_that_cannot_run_is_local_trouble() {
        let global = Global { state_file: None, config: None, quiet: true, verbose: 0, progress: Progress::None };
        let engine = |_: Settings, _: Vec<_>, _: Stop, _: &mut dyn FnMut(Notice)| {
            Err(EngineError::Runtime(std::io::Error::other("damaged")))
        };
        let trouble = run(
            plan(HookWords::default()),
            &global,
            &Resume::default,
            &Screen::default(),
            Watch::default(),
            Box::new(engine),
        );
        assert_eq!(trouble.expect_err("it cannot").exit(), Exit::Local);
    }
}
