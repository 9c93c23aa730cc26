//! The loop between the ledger and the engine.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use super::held::{Held, Made, job_of};
use super::{AGAIN, LOOK, Me, Tally, Until, WorkerError, WorkerJob, WorkerNotice};
use crate::core::ledger::class::Class;
use crate::core::ledger::fail::Failed;
use crate::core::ledger::lease::{Company, LeaseLost};
use crate::core::ledger::record::{Key, Owner, Record, Token};
use crate::core::pers_xfer::record::XferId;
use crate::core::pers_xfer::sharing::OwnerId;
use crate::core::printable::printable;
use crate::core::range::Length;
use crate::core::time::{Delay, Mono, Now};
use crate::engine::{EngineError, Feed, Notice, Report, Stop, run_fed};
use crate::io::clock::Clock;
use crate::io::durable;
use crate::io::entropy::system_rng;
use crate::io::owner::{self, LifeSign};
use crate::io::part;
use crate::io::store::{LedgerStore, StoreError, Turn, Want, Word};

/// How often the wish to stop is looked for.
const STOP_LOOK: Delay = Delay::from_millis(100);
/// What is due so soon is waited for.
const SOON: Delay = Delay::from_secs(5);
/// So often an end without an answer of the ledger is tried again before its leases are left to end.
const LAST_TRIES: u32 = 3;

/// The worker at its desk.
pub(super) struct Desk<'a> {
    job: WorkerJob,
    store: &'a mut dyn LedgerStore,
    tell: &'a mut dyn FnMut(WorkerNotice<'_>),
    clock: Clock,
    rng: Box<dyn rand::Rng>,
    me: Me,
    _lives: LifeSign,
    /// What is claimed, by where its file goes.
    held: BTreeMap<PathBuf, Held>,
    paths: BTreeMap<XferId, PathBuf>,
    /// Claimed, and to be worked on alone.
    alone: VecDeque<(Record, Token)>,
    /// What is to be said to the ledger.
    words: Vec<(Key, Token, Word)>,
    tally: Tally,
    next_claim: Mono,
    next_beat: Mono,
    next_words: Mono,
    /// Nothing was due when it was last asked.
    is_idle: bool,
}

/// The engine on its thread.
struct Engine {
    feed: Feed,
    stop: Stop,
    heard: Receiver<Notice>,
    thread: JoinHandle<Result<(), EngineError>>,
}

impl Engine {
    fn start(job: &WorkerJob) -> Result<Self, WorkerError> {
        let (feed, stop) = (Feed::new(), Stop::new());
        let (says, heard): (Sender<Notice>, _) = channel();
        let (settings, fed, stopped) = (job.settings.clone(), feed.clone(), stop.clone());
        let run = move || {
            run_fed(settings, fed, &stopped, &mut |notice| {
                // Where nobody listens any more, the run is about to be told to stop.
                let _ = says.send(notice);
            })
        };
        let thread = std::thread::Builder::new().name("transfers".into()).spawn(run).map_err(WorkerError::Thread)?;
        Ok(Self { feed, stop, heard, thread })
    }
}

impl<'a> Desk<'a> {
    pub(super) fn open(
        job: WorkerJob,
        store: &'a mut dyn LedgerStore,
        tell: &'a mut dyn FnMut(WorkerNotice<'_>),
    ) -> Result<Self, WorkerError> {
        let mut rng = system_rng().map_err(EngineError::from)?;
        let (me, lives) = loop {
            let me = OwnerId(rand::RngExt::random(&mut rng));
            match LifeSign::begin(&marks(&job), me) {
                Ok(lives) => break (Me(me), lives),
                Err(crate::core::failure::LocalFault::InUse { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        };
        let clock = Clock::system();
        let now = clock.now().mono;
        Ok(Self {
            job,
            store,
            tell,
            clock,
            rng: Box::new(rng),
            me,
            _lives: lives,
            held: BTreeMap::new(),
            paths: BTreeMap::new(),
            alone: VecDeque::new(),
            words: Vec::new(),
            tally: Tally::default(),
            next_claim: now,
            next_beat: now,
            next_words: now,
            is_idle: false,
        })
    }

    pub(super) fn run(mut self, stop: &Stop) -> Result<Tally, WorkerError> {
        // A ledger that cannot be spoken with is told before anything is begun.
        self.take_over()?;
        let engine = Engine::start(&self.job)?;
        let mut is_running = true;
        while is_running && !stop.is_requested() && !self.is_over() {
            let now = self.clock.now();
            self.beat(now, &engine.feed);
            self.claim(now, &engine.feed);
            is_running = self.listen(&engine);
            self.speak();
        }
        self.end(engine)
    }

    /// Nothing is due, and nothing is under way.
    fn is_over(&self) -> bool {
        let nothing = self.held.is_empty() && self.alone.is_empty() && self.words.is_empty();
        self.job.until == Until::Idle && self.is_idle && nothing
    }

    /// What dead workers of this machine held is as if it had never been claimed.
    fn take_over(&mut self) -> Result<(), StoreError> {
        let dead = owner::dead(&marks(&self.job));
        if dead.is_empty() {
            return Ok(());
        }
        let restored =
            self.with(|store, turn| store.restore(&mut |owner| dead.iter().any(|(id, _)| id.0 == owner.0), turn))?;
        dead.into_iter().for_each(|(_, mark)| mark.bury());
        if restored > 0 {
            self.say(&format!("{restored} records of workers that died here are due again"));
        }
        Ok(())
    }

    fn claim(&mut self, now: Now, feed: &Feed) {
        if now.mono < self.next_claim || !self.alone.is_empty() {
            return self.begin_alone(now, feed);
        }
        let room = self.job.settings.max_transfers.saturating_sub(self.held.len());
        if room == 0 {
            return;
        }
        let want = Want { owner: Owner(self.me.0.0), count: u32::try_from(room).unwrap_or(u32::MAX) };
        match self.with(|store, turn| store.claim(want, turn)) {
            Ok(handed) => {
                let came = handed.records.len();
                // What a gap or an allowance holds back for a moment is due all the same.
                let soon = SOON.max(self.job.rules.courtesy.gap.saturating_add(LOOK));
                self.is_idle = came == 0 && handed.not_before.is_none_or(|at| at.since(now.wall) > soon);
                let wait = handed.not_before.map_or(LOOK, |at| at.since(now.wall).min(LOOK));
                self.next_claim = now.mono + if came == room { Delay::ZERO } else { wait };
                for (record, token, company) in handed.records {
                    match company {
                        Company::Others => self.begin(&record, token, now, feed),
                        Company::Alone => self.alone.push_back((record, token)),
                    }
                }
                self.begin_alone(now, feed);
            }
            Err(error) => {
                self.next_claim = now.mono + AGAIN;
                self.trouble(&error);
            }
        }
    }

    /// Where one of them takes its holder along, it takes no other record along.
    fn begin_alone(&mut self, now: Now, feed: &Feed) {
        if self.held.is_empty()
            && let Some((record, token)) = self.alone.pop_front()
        {
            self.begin(&record, token, now, feed);
        }
    }

    fn begin(&mut self, record: &Record, token: Token, now: Now, feed: &Feed) {
        let held = Held::of(record, token);
        match job_of(record, &self.job.folder, &self.job.options, now.wall) {
            Made::Job(job, path) if !self.held.contains_key(&path) => {
                let made = path.parent().map_or(Ok(()), |above| durable::create_folder(above, durable::SHARED_FOLDER));
                if let Err(fault) = made {
                    self.say(&format!("{}: {}", shown(&held.key), printable(&fault.to_string())));
                    return self.says(held, failed(Class::LocalFault));
                }
                self.held.insert(path, held);
                feed.add(*job);
            }
            // Two records of one file, at once: the other one comes first.
            Made::Job(..) => self.says(held, failed(Class::Interrupted)),
            Made::Impossible(why) => {
                self.say(&format!("{}: {}", shown(&held.key), printable(&why)));
                self.says(held, failed(Class::Unsupported));
            }
        }
    }

    /// Says that the claims are worked on.
    fn beat(&mut self, now: Now, feed: &Feed) {
        if now.mono < self.next_beat {
            return;
        }
        self.next_beat = now.mono + self.job.rules.terms.beat().min(Delay::from_secs(30));
        if let Err(error) = self.take_over() {
            return self.trouble(&error);
        }
        let working = self.held.values().filter(|held| !held.is_lost).map(|held| (held.key.clone(), held.token));
        let waiting = self.alone.iter().map(|(record, token)| (record.key.clone(), *token));
        let claims: Vec<_> = working.chain(waiting).collect();
        if claims.is_empty() {
            return;
        }
        match self.with(|store, turn| store.beat(&claims, turn)) {
            Ok(told) => {
                for ((key, token), told) in claims.iter().zip(told) {
                    if let Err(lost) = told {
                        self.lost(&lost);
                        self.let_go(key, *token, feed);
                    }
                }
            }
            Err(error) => self.trouble(&error),
        }
    }

    /// Another has it: its transfer ends here, and what it holds stays.
    fn let_go(&mut self, key: &Key, token: Token, feed: &Feed) {
        self.alone.retain(|(record, _)| record.key != *key);
        let ours = |held: &&mut Held| held.key == *key && held.token == token;
        let path = self.held.iter_mut().find(|(_, held)| ours(held)).map(|(path, held)| {
            held.is_lost = true;
            path.clone()
        });
        path.into_iter().for_each(|path| feed.let_go(path));
    }

    /// Hears what the engine says, for a moment; false once it has ended.
    fn listen(&mut self, engine: &Engine) -> bool {
        let now = self.clock.now().mono;
        let wake = self.next_beat.min(self.next_claim.max(now + Delay::from_millis(1)));
        let wait =
            if self.held.len() < self.job.settings.max_transfers { wake.since(now) } else { self.next_beat.since(now) };
        match engine.heard.recv_timeout(wait.min(STOP_LOOK).as_std()) {
            Ok(notice) => self.heard(&notice),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        while let Ok(notice) = engine.heard.try_recv() {
            self.heard(&notice);
        }
        true
    }

    fn heard(&mut self, notice: &Notice) {
        match notice {
            Notice::Accepted { id, path: Some(path), .. } => {
                self.paths.insert(*id, path.clone());
            }
            Notice::Failed { id, url, failure, class, .. } => {
                let held = self.paths.get(id).and_then(|path| self.held.get_mut(path));
                held.into_iter().for_each(|held| held.missed(url, failure, *class));
            }
            Notice::Ended(report) => self.ended(report),
            _ => {}
        }
        (self.tell)(WorkerNotice::Transfer(notice));
    }

    fn ended(&mut self, report: &Report) {
        self.paths.remove(&report.id);
        let Some(path) = &report.path else { return };
        let Some(held) = self.held.remove(path) else { return };
        let word = held.word(report, self.clock.now().wall);
        if let Word::Done { .. } = word {
            // A worker that was killed may have left its mark; the state forgets old files, and nobody looks for it then.
            part::tidy(path);
        }
        self.says(held, word);
        self.next_claim = self.clock.now().mono;
    }

    fn says(&mut self, held: Held, word: Word) {
        // Whoever has it now has the last word.
        if !held.is_lost {
            self.words.push((held.key, held.token, word));
        }
    }

    /// Tells the ledger what came of claims.
    fn speak(&mut self) {
        let now = self.clock.now().mono;
        if self.words.is_empty() || now < self.next_words {
            return;
        }
        if let Err(error) = self.settle() {
            self.next_words = now + AGAIN;
            self.trouble(&error);
        }
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        let words = std::mem::take(&mut self.words);
        let told = self.with(|store, turn| store.settle(&words, turn));
        let told = match told {
            Ok(told) => told,
            Err(error) => {
                self.words = words;
                return Err(error);
            }
        };
        for ((_, _, word), told) in words.iter().zip(told) {
            match (told, word) {
                (Err(lost), _) => self.lost(&lost),
                (Ok(()), Word::Done { .. }) => self.tally.done += 1,
                (Ok(()), Word::Failed(_)) => self.tally.failed += 1,
                (Ok(()), Word::Released) => self.tally.released += 1,
            }
        }
        Ok(())
    }

    /// The engine ends, what is still claimed is given back.
    fn end(mut self, engine: Engine) -> Result<Tally, WorkerError> {
        let Engine { feed, stop, heard, thread } = engine;
        feed.close();
        stop.request();
        for notice in heard {
            self.heard(&notice);
        }
        let ran = thread.join();
        for held in std::mem::take(&mut self.held).into_values() {
            self.says(held, Word::Released);
        }
        for (record, token) in std::mem::take(&mut self.alone) {
            self.words.push((record.key, token, Word::Released));
        }
        let mut tries = 0;
        while !self.words.is_empty() {
            match self.settle() {
                Ok(()) => {}
                Err(error) if tries + 1 >= LAST_TRIES => return Err(error.into()),
                Err(error) => {
                    self.trouble(&error);
                    tries += 1;
                    std::thread::sleep(LOOK.as_std());
                }
            }
        }
        match ran {
            Ok(ran) => ran?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(self.tally)
    }

    fn with<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn LedgerStore, &mut Turn<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut turn = Turn { now: self.clock.now().wall, rules: &self.job.rules, rng: &mut *self.rng };
        ask(self.store, &mut turn)
    }

    fn lost(&mut self, lost: &LeaseLost) {
        self.tally.lost += 1;
        self.say(&printable(&lost.to_string()));
    }

    fn trouble(&mut self, error: &StoreError) {
        self.say(&format!("{}; it is tried again in {} s", printable(&error.to_string()), AGAIN.as_secs_f64()));
    }

    fn say(&mut self, text: &str) {
        (self.tell)(WorkerNotice::Ledger(text));
    }
}

fn failed(class: Class) -> Word {
    Word::Failed(Failed { class, asked: None, mirror: None, bytes_done: Length::ZERO })
}

fn shown(key: &Key) -> String {
    printable(key.as_str()).into_owned()
}

/// Beside which file the marks of this machine's workers stand.
fn marks(job: &WorkerJob) -> PathBuf {
    job.settings.state_file.with_file_name("worker")
}
