//! What must be true between two lives of the program, and in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use persxfer::core::pers_xfer::record::{Direction, Record, Status, XferId};
use persxfer::engine::{Ending, Report};
use persxfer::io::effects::failpoints::Recording;
use persxfer::io::part::{PartState, inspect};
use persxfer::io::state_file::StateFile;

use super::host::{DAY, T};
use super::lives::{DAWN, Sim};

/// A host that is well from then on leaves every transfer time enough.
const SOON: Duration = Duration::from_secs(6 * DAY);

/// What the state file is known to hold.
#[derive(Debug, Default)]
pub(super) struct Known {
    records: BTreeMap<XferId, Record>,
    /// Bytes that a part file holds by its journal, after whatever death.
    held: BTreeMap<XferId, u64>,
}

impl Known {
    /// Is this file's transfer in the state?
    pub(super) fn has(&self, file: usize) -> bool {
        self.of(file).is_some()
    }

    /// Is it there, and not over?
    pub(super) fn is_open(&self, file: usize) -> bool {
        self.of(file).is_some_and(|record| record.status.is_open())
    }

    fn of(&self, file: usize) -> Option<&Record> {
        self.records.values().find(|record| file_of(record) == file)
    }
}

fn file_of(record: &Record) -> usize {
    let name = record.path.as_ref().and_then(|path| path.file_name()?.to_str()).expect("a name");
    name.trim_start_matches('f').parse().expect("one of our files")
}

impl Sim {
    pub(super) fn broken(&self, what: &str) -> ! {
        panic!("seed {}, after {:?}: {what}\n{:#?}\n{:#?}", self.seed, self.t, self.story, self.trail)
    }

    /// A process that ended by itself has said how everything ended.
    pub(super) fn heard_out(&mut self, reports: &[Report]) {
        for report in reports {
            match &report.ending {
                Ending::Complete { .. } | Ending::Unchanged { .. } => {
                    let path = report.path.as_ref().expect("a name");
                    let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
                    let file: usize = name.trim_start_matches('f').parse().expect("one of our files");
                    if report.direction == Direction::Upload {
                        self.check_stored(file, &report.name);
                        continue;
                    }
                    let bytes = std::fs::read(path).unwrap_or_default();
                    if !self.net.lock().files[file].is(&bytes) {
                        self.broken(&format!("{} is said to be complete, and its bytes are wrong", report.name));
                    }
                }
                Ending::Local(fault) => self.broken(&format!("{} met trouble on this machine: {fault}", report.name)),
                Ending::Failed { .. } | Ending::Stopped { .. } => {}
            }
        }
    }

    /// After every life.
    pub(super) fn check_between(&mut self) {
        let broken = std::mem::take(&mut self.net.lock().watch.broken);
        if let Some(first) = broken.first() {
            self.broken(first);
        }
        let recording = Recording::of(&self.home);
        let loaded = match StateFile::at(self.home.join("state/client_state.xml")).load() {
            Ok(loaded) => loaded,
            Err(error) => self.broken(&format!("the state cannot be read: {error}")),
        };
        recording.effects().iter().for_each(|effect| self.disk.take(effect));
        let found: BTreeMap<XferId, Record> = loaded.document.transfers().map(|r| (r.id, r)).collect();
        if let Some((id, lost)) = self.known.records.iter().find(|(id, _)| !found.contains_key(id)) {
            self.broken(&format!("{} ({id}) is forgotten", lost.name));
        }
        for record in found.values() {
            self.check_record(record);
        }
        self.check_held(&found);
        self.known.records = found;
    }

    /// What was held once, after a death too, is held until the file is complete, while every host has the same bytes.
    fn check_held(&mut self, found: &BTreeMap<XferId, Record>) {
        let mut held = BTreeMap::new();
        let is_open = |r: &&Record| r.status.is_open() && r.direction == Direction::Download;
        for record in found.values().filter(is_open) {
            let now = match inspect(&self.target(file_of(record)), &record.dossier) {
                // It has its final name already, of which the state has not been told.
                Ok(seen) if seen.part == PartState::Published => continue,
                Ok(seen) => seen.held.length().0,
                Err(fault) => self.broken(&format!("the part file of {} cannot be read: {fault}", record.name)),
            };
            let before = self.known.held.get(&record.id).copied().unwrap_or(0);
            if self.constant && now < before {
                self.broken(&format!("{} held {before} bytes, and holds {now}", record.name));
            }
            self.story.held += now;
            held.insert(record.id, now);
        }
        self.known.held = held;
    }

    fn check_record(&self, record: &Record) {
        let file = file_of(record);
        let next = record.next_request_time.filter(|_| record.status.is_open()).map(|at| {
            let true_micros = at.as_micros() - (DAWN + self.skew) * 1_000_000;
            T::from_micros(u64::try_from(true_micros).unwrap_or(0))
        });
        let mut outside = self.net.lock();
        outside.watch.stored(file, next.filter(|_| !self.jumps));
        if record.first_request_time.is_some() {
            // A death may have come between what was stored and the request.
            let began = outside.life_began();
            outside.watch.progress[file].get_or_insert(began);
        }
        drop(outside);
        if record.direction == Direction::Upload {
            return self.check_upload(file, record);
        }
        let Ok(bytes) = std::fs::read(self.target(file)) else {
            if record.status == Status::Done {
                self.broken(&format!("{} is done, and its file is not there", record.name));
            }
            return;
        };
        if !self.net.lock().files[file].is(&bytes) {
            self.broken(&format!("what stands under the name of {} is none of its versions", record.name));
        }
        // A second life of a failed record begins with its old file gone.
        if let Status::Failed { message, .. } = &record.status {
            self.broken(&format!("{} failed ({message}), and its file is there", record.name));
        }
    }

    /// Nothing is confirmed that no server holds, and what is done is there, whole.
    fn check_upload(&self, file: usize, record: &Record) {
        let most = self.net.lock().stores.iter().map(|store| store.most_of(file)).max().unwrap_or(0);
        let held = record.held();
        if held.0 > most as u64 {
            self.broken(&format!("{} has {held} bytes confirmed, and no server has more than {most}", record.name));
        }
        if record.status == Status::Done {
            self.check_stored(file, &record.name);
        }
    }

    fn check_stored(&self, file: usize, name: &str) {
        let outside = self.net.lock();
        let bytes = &outside.files[file].versions[0].1;
        if !outside.stores.iter().any(|store| store.has(file, bytes)) {
            drop(outside);
            self.broken(&format!("{name} is said to be uploaded, and no server has it"));
        }
    }

    /// When all is over.
    pub(super) fn judge(&mut self) {
        self.story.days = self.t.as_secs_f64() / DAY as f64;
        self.story.requests = self.net.lock().watch.requests.iter().sum();
        for file in 0..self.asked.len() {
            let Some(record) = self.known.of(file).cloned() else {
                self.broken(&format!("file {file} was never entered"))
            };
            match &record.status {
                Status::Done => {
                    self.story.complete += 1;
                    self.story.uploaded += usize::from(record.direction == Direction::Upload);
                }
                Status::Failed { message, .. } => {
                    self.story.failed += 1;
                    self.check_failure(file, &record, message);
                }
                open => self.broken(&format!("{} is not over: {open:?}", record.name)),
            }
            let ends = self.net.lock().watch.ends[file];
            let deaths = self.story.kills + self.story.crashes;
            if ends > 1 + deaths || (ends == 0 && deaths == 0) {
                self.broken(&format!("{} was said {ends} times to be over", record.name));
            }
        }
    }

    fn check_failure(&self, file: usize, record: &Record, message: &str) {
        let outside = self.net.lock();
        let asked = &self.asked[file];
        let reliable = asked.hosts.iter().filter_map(|host| outside.hosts[*host].reliable_from()).min();
        let patient = asked.give_up.as_std() >= Duration::from_secs(14 * DAY);
        if patient && reliable.is_some_and(|from| from <= SOON) {
            drop(outside);
            self.broken(&format!("{} failed ({message}), though a host of its is well: {record:#?}", record.name));
        }
        let (progress, ended) = (outside.watch.progress[file], outside.watch.ended[file]);
        drop(outside);
        if let (true, Some(progress), Some(ended)) = (message.contains("gave up"), progress, ended) {
            // A short grace apart. Where somebody sets the clock between two lives, up to one longest wait may count as
            // passed that did not.
            let waited = ended.saturating_sub(progress);
            if !self.jumps && waited.as_secs_f64() < 0.98 * asked.give_up.as_std().as_secs_f64() {
                self.broken(&format!("{} gave up ({message}) {waited:?} after its last progress", record.name));
            }
        }
    }
}
