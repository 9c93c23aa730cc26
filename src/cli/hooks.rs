//! `--on-complete` and `--on-failure`: commands that are run after a transfer, one at a time, while others go on.
//!
//! No shell is involved. What there is to know stands in the environment (`docs/events.md`), and `{path}` and `{name}` in
//! the words are filled in. Standard output carries our data only, so what a command prints there goes to standard error.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use crate::cli::foreign::{plain_error, printable};
use crate::cli::settings::HookWords;
use crate::core::pers_xfer::record::Direction;
use crate::engine::{Ending, Report};

/// The words that hold, which may become others while a run goes on; clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Arc<Mutex<HookWords>>);

impl Words {
    /// These, for now.
    pub(crate) fn new(words: HookWords) -> Self {
        Self(Arc::new(Mutex::new(words)))
    }

    /// Others hold for transfers that end from now on.
    pub(crate) fn replace(&self, words: HookWords) {
        *self.lock() = words;
    }

    fn lock(&self) -> MutexGuard<'_, HookWords> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The commands of one run.
#[derive(Debug)]
pub(crate) struct Hooks {
    words: Words,
    state_file: std::path::PathBuf,
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    queue: mpsc::Sender<Ready>,
    thread: JoinHandle<Vec<String>>,
}

/// A command that is to be run, and the name of the transfer that it is for.
#[derive(Debug)]
struct Ready {
    command: Command,
    transfer: String,
}

impl Hooks {
    /// With these words; nothing runs yet.
    pub(crate) fn new(words: Words, state_file: &std::path::Path) -> Self {
        Self { words, state_file: state_file.to_owned(), worker: None }
    }

    /// A transfer ended: its command, where there is one, is queued.
    pub(crate) fn ended(&mut self, report: &Report) {
        let Some(command) = self.command(report) else { return };
        let worker = self.worker.get_or_insert_with(|| {
            let (queue, commands) = mpsc::channel();
            Worker { queue, thread: std::thread::spawn(move || commands.into_iter().filter_map(run).collect()) }
        });
        // The thread takes commands for as long as the queue is open.
        let _ = worker.queue.send(Ready { command, transfer: printable(&report.name) });
    }

    /// Waits for the commands that still run; answers what went wrong with them.
    pub(crate) fn finish(self) -> Vec<String> {
        let Some(Worker { queue, thread }) = self.worker else { return Vec::new() };
        drop(queue);
        thread.join().unwrap_or_else(|_| vec!["a command after a transfer could not be waited for".into()])
    }

    fn command(&self, report: &Report) -> Option<Command> {
        let held = self.words.lock();
        let words = match report.ending {
            Ending::Complete { .. } => held.complete.as_ref()?,
            Ending::Failed { .. } | Ending::Local(_) => held.failure.as_ref()?,
            Ending::Unchanged { .. } | Ending::Stopped { .. } => return None,
        };
        let path = report.path.as_ref().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let mut filled = words.iter().map(|word| word.replace("{path}", &path).replace("{name}", &report.name));
        let mut command = Command::new(filled.next()?);
        command.args(filled).stdin(Stdio::null()).stdout(std::io::stderr()).envs(facts(report));
        command
            .env("PERSXFER_STATE_FILE", &self.state_file)
            .env("PERSXFER_PATH", report.path.as_deref().unwrap_or("".as_ref()));
        Some(command)
    }
}

/// What a command may want to know.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let (evidence, class, message) = match &report.ending {
        Ending::Complete { evidence } | Ending::Unchanged { evidence } => (evidence.word(), "", String::new()),
        Ending::Failed { class, message } => ("", class.word(), message.clone()),
        Ending::Stopped { why, .. } => ("", "", why.clone()),
        Ending::Local(fault) => ("", "local-fault", fault.to_string()),
    };
    vec![
        ("PERSXFER_ID", report.id.to_string()),
        ("PERSXFER_NAME", report.name.clone()),
        ("PERSXFER_DIRECTION", if report.direction == Direction::Upload { "upload" } else { "download" }.into()),
        ("PERSXFER_URL", report.url.to_string()),
        ("PERSXFER_SIZE", report.total.map(|t| t.to_string()).unwrap_or_default()),
        ("PERSXFER_STATUS", report.ending.word().into()),
        ("PERSXFER_EVIDENCE", evidence.into()),
        ("PERSXFER_CLASS", class.into()),
        ("PERSXFER_MESSAGE", message),
    ]
}

/// Runs one command to its end; answers what went wrong.
fn run(ready: Ready) -> Option<String> {
    let Ready { mut command, transfer } = ready;
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{transfer}: the command {name} ended with {}", how(status))),
        Err(e) => Some(format!("{transfer}: the command {name} cannot be run: {}", plain_error(&e))),
    }
}

/// `exit status 1`, or the signal that ended it.
fn how(status: std::process::ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit status {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples;
    use crate::core::shell;

    fn ran(complete: &str, failure: &str, ending: Ending) -> Vec<String> {
        let words = |text: &str| shell::split(text).ok();
        let words = HookWords { complete: words(complete), failure: words(failure) };
        let mut hooks = Hooks::new(Words::new(words), "/state.xml".as_ref());
        hooks.ended(&samples::report(ending));
        hooks.finish()
    }

    #[test]
    fn a_command_gets_the_path_and_the_facts() {
        let dir = tempfile::tempdir().expect("a folder");
        let seen = dir.path().join("seen");
        let script = format!(
            "sh -c 'echo \"$1 $PERSXFER_STATUS $PERSXFER_EVIDENCE $PERSXFER_URL\" > {}' x {{path}}",
            seen.display()
        );
        assert_eq!(ran(&script, "false", samples::complete()), [""; 0]);
        let text = std::fs::read_to_string(seen).expect("it ran");
        assert_eq!(text, "/data/out.bin complete digest http://a.example:8080/f1.bin?token=***\n");
    }

    #[test]
    fn a_command_that_fails_or_is_not_there_is_told() {
        assert_eq!(ran("true", "", samples::stopped()), [""; 0], "nothing is run for a stop");
        assert!(ran("", "false", samples::failed())[0].contains("false"));
        assert!(ran("", "/no/such/command", samples::local())[0].contains("/no/such/command"));
    }
}
