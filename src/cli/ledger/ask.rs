//! What is entered, what is seen, and what is looked at.

use std::fmt::Write;

use super::lines::{self, AddLine, Line, ObserveLine};
use super::{Desk, bad_line, key};
use crate::cli::exit::Exit;
use crate::cli::foreign::{human_delay, human_size, printable};
use crate::cli::trouble::Trouble;
use crate::core::ledger::class::Kind;
use crate::core::ledger::record::{Fact, Record, State};
use crate::core::ledger::wake::{Seen, Woken};
use crate::io::store::{Added, Observation, Page, Sighting, Stats, Whom};

/// Of which files something was seen.
pub(super) struct Of<'a> {
    pub(super) keys: &'a [String],
    pub(super) host: Option<&'a str>,
    pub(super) all: bool,
}

/// So many records are read at once.
const PAGE: u32 = 1_000;

impl Desk<'_> {
    pub(super) fn add(
        &mut self,
        files: &[String],
        named: Option<&str>,
        checksum: Option<&str>,
        size: Option<u64>,
    ) -> Result<Exit, Trouble> {
        if files == ["-"] {
            return self.add_lines();
        }
        let line = |urls: Vec<String>, key: Option<String>| AddLine { key, urls, ..AddLine::default() };
        let entries: Vec<AddLine> = match named {
            Some(key) => {
                let one = line(files.to_vec(), Some(key.to_owned()));
                vec![AddLine { checksum: checksum.map(str::to_owned), size, ..one }]
            }
            None => files
                .iter()
                .map(|file| match file.contains("://") {
                    true => line(vec![file.clone()], None),
                    false => line(Vec::new(), Some(file.clone())),
                })
                .collect(),
        };
        let additions = entries.into_iter().map(AddLine::addition).collect::<Result<Vec<_>, _>>();
        let additions = additions.map_err(Trouble::Usage)?;
        let mut told = Told::default();
        told.add(&self.on(|s, t| s.add(&additions, t))?);
        (self.say)(&told.line());
        Ok(Exit::Complete)
    }

    fn add_lines(&mut self) -> Result<Exit, Trouble> {
        let (mut told, mut number) = (Told::default(), 0);
        loop {
            let read = self.lines(number)?;
            let Some((last, _)) = read.last() else { break };
            number = *last;
            let (additions, bad) = understood(read, |line: AddLine| line.addition());
            told.add(&self.on(|s, t| s.add(&additions, t))?);
            if let Some(bad) = bad {
                (self.say)(&told.line());
                return Err(bad);
            }
        }
        (self.say)(&told.line());
        Ok(Exit::Complete)
    }

    pub(super) fn observe(
        &mut self,
        of: Of<'_>,
        kind: &str,
        mirrors: &[String],
        source: &str,
    ) -> Result<Exit, Trouble> {
        let mut told: Vec<(Woken, u64)> = Vec::new();
        if of.keys == ["-"] {
            let mut number = 0;
            loop {
                let read = self.lines(number)?;
                let Some((last, _)) = read.last() else { break };
                number = *last;
                let now = self.now;
                let (sightings, bad) = understood(read, |line: ObserveLine| line.sighting(now));
                told.extend(self.on(|s, t| s.observe(&sightings, t))?);
                if let Some(bad) = bad {
                    return Err(bad);
                }
            }
        } else {
            let kind = Kind::of_word(kind).ok_or_else(|| Trouble::option("--kind", kind, lines::no_kind(kind)))?;
            let facts =
                mirrors.iter().map(|url| lines::parsed(url).map(|u| Fact::Mirror(u.secret_url().as_str().to_owned())));
            let facts = facts.collect::<Result<Vec<_>, _>>().map_err(Trouble::Usage)?;
            let whom = match (of.host, of.all) {
                (Some(host), _) => vec![Whom::Host(host.to_owned())],
                (None, true) => vec![Whom::All],
                (None, false) => of.keys.iter().map(|k| key(k).map(Whom::Key)).collect::<Result<_, _>>()?,
            };
            let seen = Seen { kind, at: self.now };
            let sighting = |of| Sighting { of, seen, source: source.to_owned(), facts: facts.clone() };
            let sightings: Vec<_> = whom.into_iter().map(sighting).collect();
            told = self.on(|s, t| s.observe(&sightings, t))?;
        }
        let of = |wanted: &[Woken]| told.iter().filter(|(w, _)| wanted.contains(w)).map(|(_, n)| n).sum::<u64>();
        let (sooner, rest) = (of(&[Woken::Sooner, Woken::Later]), told.iter().map(|(_, n)| n).sum::<u64>());
        (self.say)(&format!("{sooner} of {rest} known files are tried sooner"));
        Ok(Exit::Complete)
    }

    pub(super) fn list(&mut self, state: Option<&str>, json: bool) -> Result<Exit, Trouble> {
        let now = self.now;
        let wanted = |record: &Record| match (state, &record.state) {
            (None, _) | (Some("waiting"), State::Waiting) | (Some("parked"), State::Parked) => true,
            (Some("leased"), State::Leased(_)) | (Some("done"), State::Done) => true,
            (Some("due"), State::Waiting | State::Parked) => record.due_at <= now,
            _ => false,
        };
        if let Some(word) = state.filter(|word| !["waiting", "due", "leased", "parked", "done"].contains(word)) {
            let why = "no record is that; known are waiting, due, leased, parked, done";
            return Err(Trouble::option("--state", word, why));
        }
        let mut after = None;
        loop {
            let page = self.on(|s, _| s.page(Page { after: after.as_ref(), most: PAGE }))?;
            let Some(last) = page.last() else { return Ok(Exit::Complete) };
            after = Some(last.key.clone());
            let shown = page.iter().filter(|record| wanted(record));
            let text: String = match json {
                true => shown.map(|record| json_line(&Line::of(record, None, false))).collect(),
                false => shown.map(|record| table_line(record, self)).collect(),
            };
            self.print(&text)?;
            if !self.out.is_open() {
                return Ok(Exit::Complete);
            }
        }
    }

    pub(super) fn show(&mut self, text: &str, json: bool) -> Result<Exit, Trouble> {
        let key = key(text)?;
        let record = self.on(|s, _| s.get(&key))?.ok_or_else(|| unknown(text))?;
        let seen = self.on(|s, _| s.observations(&key))?;
        let text = match json {
            true => json_line(&Line::of(&record, None, false)),
            false => whole(&record, &seen, self),
        };
        self.print(&text)?;
        Ok(Exit::Complete)
    }

    pub(super) fn stats(&mut self, json: bool) -> Result<Exit, Trouble> {
        let now = self.now;
        let stats = self.on(|s, _| s.stats(now))?;
        let text = if json { stats_json(&stats) } else { stats_text(&stats, self) };
        self.print(&text)?;
        Ok(Exit::Complete)
    }

    pub(super) fn forget(&mut self, keys: &[String]) -> Result<Exit, Trouble> {
        let keys = keys.iter().map(|k| key(k)).collect::<Result<Vec<_>, _>>()?;
        let gone = self.on(|s, _| s.forget(&keys))?;
        (self.say)(&format!("{gone} forgotten"));
        let all = u64::try_from(keys.len()).is_ok_and(|n| n == gone);
        Ok(if all { Exit::Complete } else { Exit::Usage })
    }

    pub(super) fn import(&mut self) -> Result<Exit, Trouble> {
        let (mut entered, mut number) = (0, 0);
        loop {
            let read = self.lines(number)?;
            let Some((last, _)) = read.last() else { break };
            number = *last;
            let (records, bad) = understood(read, Line::record);
            entered += self.on(|s, t| s.import(&records, t))?;
            if let Some(bad) = bad {
                return Err(bad);
            }
        }
        (self.say)(&format!("{entered} files entered"));
        Ok(Exit::Complete)
    }
}

/// What lines mean, up to the first that means nothing.
pub(super) fn understood<L: serde::de::DeserializeOwned, T>(
    lines: Vec<(u64, String)>,
    mut meaning: impl FnMut(L) -> Result<T, String>,
) -> (Vec<T>, Option<Trouble>) {
    let mut understood = Vec::with_capacity(lines.len());
    for (number, text) in lines.into_iter().filter(|(_, text)| !text.trim().is_empty()) {
        let read = serde_json::from_str::<L>(&text).map_err(|e| e.to_string());
        match read.and_then(&mut meaning) {
            Ok(meaning) => understood.push(meaning),
            Err(why) => return (understood, Some(bad_line(number, &printable(&why)))),
        }
    }
    (understood, None)
}

/// How many files became what.
#[derive(Default)]
struct Told {
    new: usize,
    richer: usize,
    known: usize,
}

impl Told {
    fn add(&mut self, added: &[Added]) {
        for one in added {
            match one {
                Added::New => self.new += 1,
                Added::Richer => self.richer += 1,
                Added::Known => self.known += 1,
            }
        }
    }

    fn line(&self) -> String {
        format!("{} entered, {} known with something new, {} known", self.new, self.richer, self.known)
    }
}

fn unknown(key: &str) -> Trouble {
    Trouble::Usage(format!(
        "the ledger knows no file by the key \"{}\"; `persxfer ledger list` shows them",
        printable(key)
    ))
}

pub(super) fn json_line(line: &impl serde::Serialize) -> String {
    // A line of numbers and texts can always be written.
    serde_json::to_string(line).unwrap_or_default() + "\n"
}

/// When a record is due, for people.
fn due(record: &Record, desk: &Desk<'_>) -> String {
    let wait = record.due_at.since(desk.now);
    match &record.state {
        State::Done => "done".to_owned(),
        State::Leased(_) => format!("worked on, lease ends in {}", human_delay(wait)),
        _ if record.due_at <= desk.now => "due now".to_owned(),
        State::Waiting => format!("due in {}", human_delay(wait)),
        State::Parked => format!("parked, probed in {}", human_delay(wait)),
    }
}

fn table_line(record: &Record, desk: &Desk<'_>) -> String {
    let class =
        record.class.map_or_else(String::new, |class| format!(", {} times, last {}", record.failures, class.word()));
    format!("{}: {}{class}\n", printable(record.key.as_str()), due(record, desk))
}

fn whole(record: &Record, seen: &[Observation], desk: &Desk<'_>) -> String {
    let mut text = table_line(record, desk);
    // Writing to a string cannot fail.
    let mut line = |name: &str, value: String| _ = writeln!(text, "  {name}: {value}");
    record.mirrors.iter().for_each(|mirror| {
        let bad = mirror.bad_until.filter(|until| *until > desk.now);
        let bad = bad.map_or_else(String::new, |until| {
            format!(" (sent wrong bytes; not asked for {})", human_delay(until.since(desk.now)))
        });
        let shown = lines::parsed(&mirror.url).map_or_else(|_| mirror.url.clone(), |url| url.to_string());
        line("mirror", format!("{}{bad}", printable(&shown)));
    });
    if let Some(size) = record.size {
        line("size", human_size(size.0));
    }
    if let Some(digest) = &record.digest {
        line("checksum", printable(digest));
    }
    for (class, rung) in record.rungs.iter() {
        line("rung", format!("{rung} of {}", class.word()));
    }
    if record.bytes_done.0 > 0 {
        line("held at last", human_size(record.bytes_done.0));
    }
    line("known for", human_delay(desk.now.since(record.first_seen)));
    for Observation { at, kind, source } in seen {
        line("seen", format!("{} {} ago, by {}", kind.word(), human_delay(desk.now.since(*at)), printable(source)));
    }
    text
}

fn stats_json(stats: &Stats) -> String {
    let classes: serde_json::Map<_, _> =
        stats.classes.iter().map(|(c, n)| (c.word().to_owned(), (*n).into())).collect();
    json_line(&serde_json::json!({
        "schema": 1, "waiting": stats.waiting, "due": stats.due, "leased": stats.leased, "parked": stats.parked,
        "done": stats.done, "hosts": stats.hosts, "classes": classes,
        "next_due": stats.next_due.map(|at| at.as_secs_f64()), "paused_until": stats.paused_until.map(|at| at.as_secs_f64()),
    }))
}

fn stats_text(stats: &Stats, desk: &Desk<'_>) -> String {
    let mut text = format!(
        "{} waiting ({} due), {} worked on, {} parked, {} done, {} hosts\n",
        stats.waiting, stats.due, stats.leased, stats.parked, stats.done, stats.hosts
    );
    for (class, n) in &stats.classes {
        _ = writeln!(text, "  {n} {}", class.word());
    }
    if let Some(next) = stats.next_due {
        _ = writeln!(text, "  the next one is due in {}", human_delay(next.since(desk.now)));
    }
    if let Some(until) = stats.paused_until {
        _ = writeln!(text, "  paused for {}, for trouble on this machine", human_delay(until.since(desk.now)));
    }
    text
}
