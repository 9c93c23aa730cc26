//! The face: what was typed ([`args`]), what is needed ([`settings`]), one file a command; bars, report, exit status.
//!
//! Standard output carries data only (tables, JSON, pages); everything for people goes to standard error. What a command
//! prints is decided by functions that are given the time and the data, so that tests read it as text. See design
//! sections 5 and 6, and `docs/events.md` and `docs/exit-status.md` for what programs may rely on.

mod add;
mod args;
mod bars;
mod board;
mod completions;
mod config;
mod control;
mod doors;
mod dry_run;
mod epilogue;
mod events;
mod exit;
mod foreign;
mod hooks;
mod input_file;
mod jobs;
mod ledger;
mod leftovers;
mod log;
mod man;
mod metalink;
mod network;
mod out;
mod panic;
mod rate;
mod report;
mod resume;
#[cfg(test)]
mod samples;
mod screen;
mod serve;
mod settings;
mod signals;
mod state;
mod sync;
mod target;
mod transfer;
mod trouble;
mod untold;
mod upload;
mod view;
mod worker;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::cli::args::{Add, Addable, Chosen, Cli, Command, Download, Upload};
use crate::cli::config::ConfigFile;
use crate::cli::control::Verb;
use crate::cli::exit::Exit;
use crate::cli::foreign::{LEAST_DESCRIPTORS, StateBook, descriptors};
use crate::cli::out::Out;
use crate::cli::report::Weight;
use crate::cli::screen::Screen;
use crate::cli::settings::Plan;
use crate::cli::trouble::Trouble;
use crate::core::prefs::Preferences;

/// Runs the program with these arguments, its own name first, to its exit status.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let screen = Screen::default();
    signals::outlive_file_limit();
    panic::guard(&screen, || run(words, &screen)).into()
}

fn run(words: impl IntoIterator<Item = OsString>, screen: &Screen) -> Exit {
    let parsed = Cli::command().try_get_matches_from(words).and_then(|m| Ok((Cli::from_arg_matches(&m)?, m)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(e) => return not_parsed(&e),
    };
    match dispatch(&cli, &matches, screen) {
        Ok(exit) => exit,
        Err(trouble) => {
            screen.line(&format!("persxfer: {trouble}"));
            trouble.exit()
        }
    }
}

/// Help and version are data, and success; anything else that clap says is wrong use.
fn not_parsed(error: &clap::Error) -> Exit {
    // Where neither output can be written there is nobody to tell.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Complete }
}

fn dispatch(cli: &Cli, matches: &ArgMatches, screen: &Screen) -> Result<Exit, Trouble> {
    log::start(cli.global.verbose, screen)?;
    match &cli.command {
        Command::Completions { shell } => print(&completions::script(*shell)),
        Command::Man { of } => print(&man::page(of)?),
        Command::State(state) => {
            let cwd = working_folder()?;
            let state_file = settings::state_file(cli.global.state_file.as_deref(), &cwd)?;
            // What is looked at is the state; a mistake elsewhere does not hide it.
            let prefs = config(cli)?.read().unwrap_or_else(|trouble| {
                screen.line(&format!("persxfer: warning: {trouble}"));
                Preferences::default()
            });
            let standing = || foreign::standing(&state_file, &prefs);
            state::run(&state.command, &StateBook::at(&state_file), &standing, &cwd, screen)
        }
        Command::Sync(asked) => {
            enough_descriptors()?;
            let (state_file, cwd) = places(cli)?;
            let prefs = config(cli)?.read()?;
            sync::run(asked, &cli.global, sync::Places { state_file: &state_file, cwd: &cwd, prefs: &prefs }, screen)
        }
        Command::Ledger(asked) => {
            let (state_file, cwd) = places(cli)?;
            let place = ledger::place(asked.ledger.as_deref(), &state_file, &cwd);
            let say = |line: &str| screen.say(cli.global.quiet, Weight::Matters, line);
            let rules = config(cli)?.read()?.ledger;
            ledger::run(asked, &place, rules, &mut std::io::stdin().lock(), &say)
        }
        Command::Worker(asked) => {
            enough_descriptors()?;
            let (state_file, cwd) = places(cli)?;
            let prefs = config(cli)?.read()?;
            let places = worker::Places { state_file: &state_file, cwd: &cwd, prefs: &prefs };
            worker::run(asked, &cli.global, places, &|| resume::command(matches), screen)
        }
        Command::Retry(chosen) => control(cli, Verb::Retry, chosen, screen),
        Command::Suspend(chosen) => control(cli, Verb::Suspend, chosen, screen),
        Command::Resume(chosen) => control(cli, Verb::Resume, chosen, screen),
        Command::Abort(chosen) => control(cli, Verb::Abort, chosen, screen),
        Command::Run(asked) => {
            enough_descriptors()?;
            let (state_file, cwd) = places(cli)?;
            let ledger = asked.ledger.as_deref().map(|given| ledger::place(Some(given), &state_file, &cwd));
            let resume = || resume::command(matches);
            serve::run(
                asked,
                &cli.global,
                serve::Places { state_file: &state_file, config: config(cli)?, ledger: ledger.as_ref() },
                &resume,
                screen,
            )
        }
        Command::Add(Add { what: Addable::Download(asked) }) => add(cli, &download(cli, asked, screen)?, screen),
        Command::Add(Add { what: Addable::Upload(asked) }) => add(cli, &upload(cli, asked)?, screen),
        Command::Download(asked) => transfer(cli, matches, download(cli, asked, screen)?, screen),
        Command::Upload(asked) => {
            let plan = upload(cli, asked)?;
            upload::can_sign(&plan.jobs)?;
            transfer(cli, matches, plan, screen)
        }
    }
}

fn download(cli: &Cli, asked: &Download, screen: &Screen) -> Result<Plan, Trouble> {
    let (state_file, cwd) = places(cli)?;
    let plan = settings::plan(asked, &config(cli)?.read()?, &state_file, &cwd, &mut std::io::stdin().lock())?;
    plan.remarks.iter().for_each(|line| screen.say(cli.global.quiet, Weight::News, line));
    Ok(plan)
}

fn upload(cli: &Cli, asked: &Upload) -> Result<Plan, Trouble> {
    let (state_file, cwd) = places(cli)?;
    settings::plan_upload(asked, &config(cli)?.read()?, &state_file, &cwd)
}

/// Where the preferences stand.
fn config(cli: &Cli) -> Result<ConfigFile, Trouble> {
    Ok(ConfigFile::find(cli.global.config.as_deref(), &working_folder()?))
}

/// The state file, and the folder that relative paths are meant from.
fn places(cli: &Cli) -> Result<(PathBuf, PathBuf), Trouble> {
    let cwd = working_folder()?;
    Ok((settings::state_file(cli.global.state_file.as_deref(), &cwd)?, cwd))
}

fn add(cli: &Cli, plan: &Plan, screen: &Screen) -> Result<Exit, Trouble> {
    if plan.dry_run {
        return dry_run(plan);
    }
    let say = |weight, line: &str| screen.say(cli.global.quiet, weight, line);
    add::run(plan, &|line| say(Weight::Matters, line), &|line| say(Weight::News, line))
}

fn transfer(cli: &Cli, matches: &ArgMatches, plan: Plan, screen: &Screen) -> Result<Exit, Trouble> {
    if plan.dry_run {
        return dry_run(&plan);
    }
    enough_descriptors()?;
    let resume = || resume::command(matches);
    transfer::run(plan, &cli.global, &resume, screen, signals::watch(screen), Box::new(foreign::run_engine))
}

/// With too few of them a run would end wherever the last one is taken, and the libraries below it in a panic.
fn enough_descriptors() -> Result<(), Trouble> {
    match descriptors() {
        Some(limit) if limit < LEAST_DESCRIPTORS => Err(Trouble::Descriptors { limit }),
        _ => Ok(()),
    }
}

fn dry_run(plan: &Plan) -> Result<Exit, Trouble> {
    let book = StateBook::at(&plan.settings.state_file);
    print(dry_run::tell(plan, &book, foreign::now())?.as_bytes())
}

fn control(cli: &Cli, verb: Verb, chosen: &Chosen, screen: &Screen) -> Result<Exit, Trouble> {
    let cwd = working_folder()?;
    let book = StateBook::at(&settings::state_file(cli.global.state_file.as_deref(), &cwd)?);
    control::run(verb, chosen, &control::Desk { book: &book, cwd: &cwd, say: &|line| screen.line(line) })
}

fn print(bytes: &[u8]) -> Result<Exit, Trouble> {
    let stdout = Path::new("standard output");
    Out::stdout().write(bytes).map(|()| Exit::Complete).map_err(|e| Trouble::io("write to", stdout, &e))
}

/// The folder that relative paths are meant from; empty where it was deleted, which [`target::absolute`] tells whoever
/// gives one.
fn working_folder() -> Result<PathBuf, Trouble> {
    match std::env::current_dir() {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(PathBuf::new()),
        other => other.map_err(|e| Trouble::io("find", Path::new("the current folder"), &e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Every help text, so that a change of one is seen in review.
    #[test]
    fn help() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        let mut texts = Vec::new();
        helps(&mut cli, &mut texts);
        insta::assert_snapshot!("help", texts.join("\n----\n"));
    }

    fn helps(command: &mut clap::Command, texts: &mut Vec<String>) {
        let text = command.render_help().to_string();
        texts.push(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"));
        command.get_subcommands_mut().for_each(|sub| helps(sub, texts));
    }
}
