//! `ledger`: the long memory, driven by hand or, in JSON lines, by a crawler in whatever language.
//!
//! | file | does |
//! |---|---|
//! | `lines` | records, claims and observations as JSON lines |
//! | `ask` | what is entered, seen, looked at |
//! | `work` | claims, and what their holders say |
//! | `join` | transfers that fail for good, or succeed, beside their record |

mod ask;
mod join;
mod lines;
mod work;

use std::io::BufRead;
use std::path::Path;

use rand::Rng;

use crate::cli::args::{Ledger, LedgerCommand};
use crate::cli::exit::Exit;
use crate::cli::foreign;
use crate::cli::out::Out;
use crate::cli::settings;
use crate::cli::trouble::Trouble;
use crate::core::ledger::Rules;
use crate::core::ledger::pace::Bucket;
use crate::core::ledger::record::{Key, Owner};
use crate::core::time::{Delay, Epoch};
use crate::io::store::open::Place;
use crate::io::store::{LedgerStore, StoreError, Turn};

pub(crate) use join::Join;

/// So many lines of standard input are one write.
const BATCH: usize = 1_000;
/// A line is longer than a record can be.
const LONGEST_LINE: u64 = 1 << 20;

/// What a ledger command works with.
pub(crate) struct Desk<'a> {
    store: Box<dyn LedgerStore>,
    rules: Rules,
    now: Epoch,
    rng: Box<dyn Rng>,
    out: Out,
    input: &'a mut dyn BufRead,
    say: &'a dyn Fn(&str),
}

/// Where the ledger is.
pub(crate) fn place(given: Option<&Path>, state_file: &Path, cwd: &Path) -> Place {
    match given.map(|given| Place::of(given.as_os_str())) {
        Some(Place::File(path)) => Place::File(cwd.join(path)),
        Some(server) => server,
        None => Place::File(state_file.with_file_name("ledger.db")),
    }
}

/// Does what was asked of the ledger.
pub(crate) fn run(
    asked: &Ledger,
    place: &Place,
    rules: Rules,
    input: &mut dyn BufRead,
    say: &dyn Fn(&str),
) -> Result<Exit, Trouble> {
    // Whoever claims by hand sets the pace; only hosts are spared.
    let mut rules = Rules { dispatch: Bucket::new(0.0, 1), ..rules };
    if let LedgerCommand::Claim { lease, per_host, gap, .. } = &asked.command {
        prefer(&mut rules, lease.as_deref(), gap.as_deref())?;
        rules.courtesy.at_once = per_host.unwrap_or(rules.courtesy.at_once);
    }
    if let LedgerCommand::Heartbeat { lease, .. } = &asked.command {
        prefer(&mut rules, lease.as_deref(), None)?;
    }
    let store = open(place, &rules)?;
    let (now, rng) = (foreign::now().wall, foreign::chance()?);
    let mut desk = Desk { store, rules, now, rng, out: Out::stdout(), input, say };
    desk.run(&asked.command)
}

/// What was typed comes before what the configuration says.
pub(crate) fn prefer(rules: &mut Rules, lease: Option<&str>, gap: Option<&str>) -> Result<(), Trouble> {
    if let Some(lease) = lease {
        rules.terms.lease = settings::positive("--lease", lease)?;
    }
    if let Some(gap) = gap {
        rules.courtesy.gap = delay("--gap", gap)?;
    }
    Ok(())
}

/// Opens the ledger, and makes it where there is none.
pub(crate) fn open(place: &Place, rules: &Rules) -> Result<Box<dyn LedgerStore>, Trouble> {
    if let Some(folder) = place.file().filter(|path| !path.exists()).and_then(Path::parent) {
        foreign::create_folder(folder)?;
    }
    let mut rng = foreign::chance()?;
    let turn = Turn { now: foreign::now().wall, rules, rng: &mut *rng };
    Ok(place.open(&turn)?)
}

impl Desk<'_> {
    fn run(&mut self, command: &LedgerCommand) -> Result<Exit, Trouble> {
        match command {
            LedgerCommand::Add { files, key, checksum, size } => {
                self.add(files, key.as_deref(), checksum.as_deref(), *size)
            }
            LedgerCommand::Observe { keys, kind, host, all, mirror, source } => {
                let of = ask::Of { keys, host: host.as_deref(), all: *all };
                self.observe(of, kind, mirror, source)
            }
            LedgerCommand::Claim { keys, count, owner, .. } => self.claim(keys, *count, owner_of(owner)),
            LedgerCommand::Heartbeat { claim, .. } => self.heartbeat(claim),
            LedgerCommand::Complete { claim, size, checksum } => self.complete(claim, *size, checksum.as_deref()),
            LedgerCommand::Fail { claim, class, retry_after, mirror, bytes } => {
                let failed = work::failed(class.as_deref(), retry_after.as_deref(), mirror.clone(), *bytes)?;
                self.fail(claim, failed)
            }
            LedgerCommand::Release { of: Some(name), .. } => self.release_all(owner_of(name)),
            LedgerCommand::Release { claim, of: None } => self.release(claim),
            LedgerCommand::List { state, json } => self.list(state.as_deref(), *json),
            LedgerCommand::Show { key, json } => self.show(key, *json),
            LedgerCommand::Stats { json } => self.stats(*json),
            LedgerCommand::Forget { keys } => self.forget(keys),
            LedgerCommand::Export => self.list(None, true),
            LedgerCommand::Import => self.import(),
            LedgerCommand::Backup { to } => {
                self.store.backup(to)?;
                Ok(Exit::Complete)
            }
        }
    }

    /// Does something with the store.
    fn on<T>(
        &mut self,
        work: impl FnOnce(&mut dyn LedgerStore, &mut Turn<'_>) -> Result<T, StoreError>,
    ) -> Result<T, Trouble> {
        let mut turn = Turn { now: self.now, rules: &self.rules, rng: &mut *self.rng };
        Ok(work(&mut *self.store, &mut turn)?)
    }

    fn print(&self, text: &str) -> Result<(), Trouble> {
        self.out.write(text.as_bytes()).map_err(|e| Trouble::io("write to", Path::new("standard output"), &e))
    }

    /// The next lines of standard input, with their numbers; none at its end.
    fn lines(&mut self, from: u64) -> Result<Vec<(u64, String)>, Trouble> {
        use std::io::Read;
        let (mut lines, mut number) = (Vec::new(), from);
        let stdin = Path::new("standard input");
        while lines.len() < BATCH {
            let mut line = Vec::new();
            let read = (&mut *self.input).take(LONGEST_LINE).read_until(b'\n', &mut line);
            if read.map_err(|e| Trouble::io("read", stdin, &e))? == 0 {
                break;
            }
            number += 1;
            let text = String::from_utf8(line).map_err(|_| bad_line(number, "it is no UTF-8"))?;
            // A blank line is counted, and says nothing.
            lines.push((number, text));
        }
        Ok(lines)
    }
}

/// A line of standard input that cannot be read.
fn bad_line(number: u64, why: &str) -> Trouble {
    Trouble::Usage(format!("standard input, line {number}: {why}; nothing of this line and those after it was entered"))
}

fn delay(option: &'static str, text: &str) -> Result<Delay, Trouble> {
    foreign::parse_delay(text).map_err(|why| Trouble::option(option, text, why))
}

fn key(text: &str) -> Result<Key, Trouble> {
    Key::parse(text).map_err(|why| Trouble::Usage(why.to_string()))
}

/// A claimant's name as the ledger keeps it.
fn owner_of(name: &str) -> Owner {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(name.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    Owner(u64::from_be_bytes(bytes))
}
