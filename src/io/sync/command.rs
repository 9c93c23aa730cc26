//! Commands of the user's: a module that is run first, criteria whose exit status decides. No shell; what there is to know
//! stands in the environment, and what they print goes to standard error.

use std::process::{Command, ExitStatus, Stdio};

use crate::core::printable::plain_error;
use crate::core::sync::criteria::{Candidate, Choice, Copy, Keep, Replace, Verdict};
use crate::core::sync::stamp;

/// A Keep criterion that is a command: status 0 accepts, any other rejects.
#[derive(Clone, Debug)]
pub struct CommandKeep {
    /// Its name.
    pub name: String,
    /// Its words.
    pub words: Vec<String>,
}

/// A Replace criterion that is a command: status 0 takes the candidate, any other keeps the local copy.
#[derive(Clone, Debug)]
pub struct CommandReplace {
    /// Its name.
    pub name: String,
    /// Its words.
    pub words: Vec<String>,
}

impl Keep for CommandKeep {
    fn judge(&self, candidate: &Candidate<'_>) -> Verdict {
        match asked(&self.words, candidate, None) {
            Ok(status) if status.success() => Verdict::Accept,
            Ok(status) => Verdict::Reject(format!("{} says no ({})", self.name, how(status))),
            Err(why) => Verdict::Reject(format!("{} cannot be run: {why}", self.name)),
        }
    }
}

impl Replace for CommandReplace {
    fn choose(&self, local: &Copy, candidate: &Candidate<'_>) -> Choice {
        match asked(&self.words, candidate, Some(local)) {
            Ok(status) if status.success() => Choice::Take(format!("{} says so", self.name)),
            _ => Choice::KeepLocal,
        }
    }
}

/// Runs the command of a module.
///
/// # Errors
/// In words: that it could not be run, or how it ended.
pub fn run_hook(words: &[String], module: &str) -> Result<(), String> {
    let Some(mut command) = command(words) else { return Ok(()) };
    match command.env("PERSXFER_MODULE", module).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {}", words[0], how(status))),
        Err(error) => Err(format!("{} cannot be run: {}", words[0], plain_error(&error))),
    }
}

fn asked(words: &[String], candidate: &Candidate<'_>, local: Option<&Copy>) -> Result<ExitStatus, String> {
    let Some(mut command) = command(words) else { return Err("it has no words".to_owned()) };
    command
        .env("PERSXFER_PATH", candidate.path)
        .env("PERSXFER_SOURCE", candidate.source)
        .env("PERSXFER_KIND", candidate.kind);
    facts(&mut command, "CANDIDATE", candidate.copy);
    if let Some(local) = local {
        facts(&mut command, "LOCAL", local);
    }
    command.status().map_err(|error| plain_error(&error))
}

fn facts(command: &mut Command, of: &str, copy: &Copy) {
    let date = copy.facts.date.map(stamp::second).unwrap_or_default();
    command
        .env(format!("PERSXFER_{of}"), &copy.place)
        .env(format!("PERSXFER_{of}_DATE"), date)
        .env(format!("PERSXFER_{of}_SIZE"), copy.size.0.to_string())
        .env(format!("PERSXFER_{of}_SIGNATURES"), copy.facts.signatures.to_string())
        .env(format!("PERSXFER_{of}_SHA256"), hex::encode(copy.sha256));
}

fn command(words: &[String]) -> Option<Command> {
    let (program, rest) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(std::io::stderr());
    Some(command)
}

/// `exit status 1`, or the signal that ended it.
fn how(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit status {code}"))
}
