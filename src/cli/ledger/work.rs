//! Claims, and what their holders say.

use super::ask::{json_line, understood};
use super::lines::{self, Line, WordLine};
use super::{Desk, delay, key};
use crate::cli::args::Claimed;
use crate::cli::exit::Exit;
use crate::cli::foreign::printable;
use crate::cli::trouble::Trouble;
use crate::core::ledger::class::Class;
use crate::core::ledger::fail::Failed;
use crate::core::ledger::lease::{Company, LeaseLost};
use crate::core::ledger::record::{Key, Owner, Token};
use crate::core::range::Length;
use crate::io::store::{Want, Word};

/// What a command says of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Done,
    Failed,
    Released,
}

/// How an attempt failed, as it was typed; none where lines say it.
pub(super) fn failed(
    class: Option<&str>,
    retry_after: Option<&str>,
    mirror: Option<String>,
    bytes: u64,
) -> Result<Option<Failed>, Trouble> {
    let Some(word) = class else { return Ok(None) };
    let class = Class::of_word(word).filter(|class| *class != Class::Crash);
    let class = class.ok_or_else(|| Trouble::option("--class", word, no_class(word)))?;
    let asked = retry_after.map(|text| delay("--retry-after", text)).transpose()?;
    Ok(Some(Failed { class, asked, mirror, bytes_done: Length(bytes) }))
}

/// The word is no class of failures.
pub(super) fn no_class(word: &str) -> String {
    let known = Class::ALL.into_iter().filter(|class| *class != Class::Crash).map(Class::word);
    format!("{word:?} is no class of failures; known are {}", known.collect::<Vec<_>>().join(", "))
}

impl Desk<'_> {
    pub(super) fn claim(&mut self, keys: &[String], count: u32, owner: Owner) -> Result<Exit, Trouble> {
        let mut records = Vec::new();
        if keys.is_empty() {
            let handed = self.on(|s, t| s.claim(Want { owner, count }, t))?;
            records = handed.records;
        }
        for text in keys {
            let key = key(text)?;
            match self.on(|s, t| s.claim_early(&key, owner, t))? {
                Some(claimed) => records.push(claimed),
                None => (self.say)(&format!("{}: it is unknown, done, or worked on", printable(text))),
            }
        }
        let line =
            |(record, token, company): &_| json_line(&Line::of(record, Some(*token), *company == Company::Alone));
        let text: String = records.iter().map(line).collect();
        self.print(&text)?;
        Ok(if keys.len() > records.len() { Exit::Left } else { Exit::Complete })
    }

    pub(super) fn heartbeat(&mut self, claim: &Claimed) -> Result<Exit, Trouble> {
        self.each(claim, |line| line.claim(), |desk, claims| desk.on(|s, t| s.beat(&claims, t)))
    }

    pub(super) fn complete(
        &mut self,
        claim: &Claimed,
        size: Option<u64>,
        checksum: Option<&str>,
    ) -> Result<Exit, Trouble> {
        let digest = checksum.map(lines::digest).transpose();
        let digest = digest.map_err(|why| Trouble::option("--checksum", checksum.unwrap_or_default(), why))?;
        self.says(claim, Said::Done, Some(Word::Done { size: size.map(Length), digest }))
    }

    pub(super) fn fail(&mut self, claim: &Claimed, failed: Option<Failed>) -> Result<Exit, Trouble> {
        self.says(claim, Said::Failed, failed.map(Word::Failed))
    }

    pub(super) fn release(&mut self, claim: &Claimed) -> Result<Exit, Trouble> {
        self.says(claim, Said::Released, Some(Word::Released))
    }

    pub(super) fn release_all(&mut self, of: Owner) -> Result<Exit, Trouble> {
        let released = self.on(|s, t| s.restore(&mut |owner| owner == of, t))?;
        (self.say)(&format!("{released} given back"));
        Ok(Exit::Complete)
    }

    fn says(&mut self, claim: &Claimed, said: Said, typed: Option<Word>) -> Result<Exit, Trouble> {
        if let (Some(name), Some(token), Some(word)) = (&claim.key, claim.token, typed) {
            let words = [(key(name)?, Token(token), word)];
            let told = self.on(|s, t| s.settle(&words, t))?;
            return Ok(self.tell(&told));
        }
        let meaning = |line: WordLine| {
            let (key, token) = line.claim()?;
            Ok((key, token, line.says(said)?))
        };
        self.each_line(claim, meaning, |desk, words| desk.on(|s, t| s.settle(&words, t)))
    }

    fn each(
        &mut self,
        claim: &Claimed,
        meaning: impl FnMut(WordLine) -> Result<(Key, Token), String>,
        tell: impl Fn(&mut Self, Vec<(Key, Token)>) -> Result<Vec<Result<(), LeaseLost>>, Trouble>,
    ) -> Result<Exit, Trouble> {
        if let (Some(name), Some(token)) = (&claim.key, claim.token) {
            let told = tell(self, vec![(key(name)?, Token(token))])?;
            return Ok(self.tell(&told));
        }
        self.each_line(claim, meaning, tell)
    }

    fn each_line<T>(
        &mut self,
        claim: &Claimed,
        mut meaning: impl FnMut(WordLine) -> Result<T, String>,
        tell: impl Fn(&mut Self, Vec<T>) -> Result<Vec<Result<(), LeaseLost>>, Trouble>,
    ) -> Result<Exit, Trouble> {
        if !claim.lines {
            return Err(Trouble::Usage(
                "say which claim: its KEY and TOKEN, or --lines with JSON lines on standard input".into(),
            ));
        }
        let (mut number, mut exit) = (0, Exit::Complete);
        loop {
            let read = self.lines(number)?;
            let Some((last, _)) = read.last() else { return Ok(exit) };
            number = *last;
            let (understood, bad) = understood(read, &mut meaning);
            let told = tell(self, understood)?;
            if self.tell(&told) != Exit::Complete {
                exit = Exit::Left;
            }
            if let Some(bad) = bad {
                return Err(bad);
            }
        }
    }

    /// Says which leases are lost: then what was done has no effect.
    fn tell(&self, told: &[Result<(), LeaseLost>]) -> Exit {
        let lost = told.iter().filter_map(|told| told.as_ref().err());
        lost.clone().for_each(|lost| (self.say)(&format!("persxfer: {}", printable(&lost.to_string()))));
        if lost.count() > 0 { Exit::Left } else { Exit::Complete }
    }
}
