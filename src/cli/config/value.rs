//! Values of the file, each with its name and its line, read as what they must be. No value is repeated in a message that
//! may be a secret.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cli::foreign;
use crate::core::civil::TimeOfDay;
use crate::core::prefs::Rate;
use crate::core::range::Length;
use crate::core::time::Delay;

/// Why something in the file makes no sense: one line that names it.
pub(super) type Why = String;

/// A file of preferences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl<'a> Page<'a> {
    /// The whole, as a table.
    pub(super) fn table(&self) -> Result<Spanned<DeTable<'a>>, Why> {
        DeTable::parse(self.text).map_err(|error| self.fault(error.span(), error.message()))
    }

    fn fault(&self, span: Option<Range<usize>>, why: &str) -> Why {
        let file = foreign::printable(&self.path.display().to_string());
        let line = span.map(|span| self.text.bytes().take(span.start).filter(|b| *b == b'\n').count() + 1);
        let why = foreign::printable(why.trim()).replace('\n', " ");
        match line {
            Some(line) => format!("{file}, line {line}: {why}"),
            None => format!("{file}: {why}"),
        }
    }
}

/// A table, and which of its keys have been asked for.
#[derive(Debug)]
pub(super) struct Table<'a> {
    page: Page<'a>,
    name: String,
    table: &'a DeTable<'a>,
    asked: RefCell<BTreeSet<&'static str>>,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Value<'a> {
    page: Page<'a>,
    name: String,
    at: Range<usize>,
    value: &'a DeValue<'a>,
}

impl<'a> Table<'a> {
    /// The whole file.
    pub(super) fn top(page: Page<'a>, table: &'a DeTable<'a>) -> Self {
        Self { page, name: String::new(), table, asked: RefCell::default() }
    }

    /// The value of a key, where it stands there.
    pub(super) fn get(&self, key: &'static str) -> Option<Value<'a>> {
        self.asked.borrow_mut().insert(key);
        self.table.get(key).map(|value| self.value(key, value))
    }

    /// The same, read.
    pub(super) fn read<T>(
        &self,
        key: &'static str,
        how: impl FnOnce(&Value<'a>) -> Result<T, Why>,
    ) -> Result<Option<T>, Why> {
        self.get(key).map(|value| how(&value)).transpose()
    }

    /// All entries, whatever their keys are.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, Value<'a>)> {
        self.table.iter().map(|(key, value)| (key.get_ref().to_string(), self.value(key.get_ref(), value)))
    }

    /// Nothing stands there that was not asked for.
    pub(super) fn done(&self) -> Result<(), Why> {
        let asked = self.asked.borrow();
        let unknown = self.table.iter().filter(|(key, _)| !asked.contains(key.get_ref().as_ref()));
        // The first in the file, not by the alphabet.
        let Some((key, _)) = unknown.min_by_key(|(key, _)| key.span().start) else { return Ok(()) };
        let known: Vec<&str> = asked.iter().copied().collect();
        let place = if self.name.is_empty() { "here".to_owned() } else { format!("in [{}]", self.name) };
        let why = format!("{:?} is no key {place}; there are {}", key.get_ref(), known.join(", "));
        Err(self.page.fault(Some(key.span()), &why))
    }

    fn value(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Value<'a> {
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        Value { page: self.page, name, at: value.span(), value: value.get_ref() }
    }
}

impl<'a> Value<'a> {
    /// It makes no sense, and why.
    pub(super) fn fault(&self, why: &str) -> Why {
        self.page.fault(Some(self.at.clone()), &format!("{}: {why}", self.name))
    }

    fn should_be(&self, what: &str) -> Why {
        let is = self.value.type_str();
        self.fault(&format!("it should be {what}, and is {} {is}", if is.starts_with(['a', 'i']) { "an" } else { "a" }))
    }

    pub(super) fn table(&self) -> Result<Table<'a>, Why> {
        let table = self.value.as_table().ok_or_else(|| self.should_be("a table"))?;
        Ok(Table { page: self.page, name: self.name.clone(), table, asked: RefCell::default() })
    }

    pub(super) fn text(&self) -> Result<&'a str, Why> {
        let text = self.value.as_str().ok_or_else(|| self.should_be("a text in quotes"))?;
        if text.is_empty() { Err(self.fault("it is empty; leave it out, or say something")) } else { Ok(text) }
    }

    pub(super) fn yes(&self) -> Result<bool, Why> {
        self.value.as_bool().ok_or_else(|| self.should_be("true or false"))
    }

    /// Texts: the words of a command, headers.
    pub(super) fn texts(&self) -> Result<Vec<String>, Why> {
        let words = self.value.as_array().ok_or_else(|| self.should_be("an array of texts"))?;
        let word = |word: &'a Spanned<DeValue<'a>>| word.get_ref().as_str().map(str::to_owned);
        words.iter().map(word).collect::<Option<_>>().ok_or_else(|| self.fault("it should hold texts in quotes only"))
    }

    /// A path, absolute, or meant from the folder of the file.
    pub(super) fn path(&self) -> Result<PathBuf, Why> {
        let text = self.text()?;
        Ok(self.page.path.parent().map_or_else(|| PathBuf::from(text), |folder| folder.join(text)))
    }

    /// A whole number in a range.
    pub(super) fn number<T: TryFrom<i64>>(&self, range: RangeInclusive<i64>) -> Result<T, Why> {
        let number = self.integer().ok_or_else(|| self.should_be("a whole number"))?;
        let fits = Some(number).filter(|n| range.contains(n)).and_then(|n| T::try_from(n).ok());
        fits.ok_or_else(|| self.fault(&format!("it should be from {} to {}", range.start(), range.end())))
    }

    fn integer(&self) -> Option<i64> {
        let number = self.value.as_integer()?;
        i64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    fn float(&self) -> Option<f64> {
        let float = self.value.as_float().and_then(|float| float.as_str().parse().ok());
        // BOINC's numbers are small.
        float.or_else(|| self.integer().map(|n| n as f64))
    }

    /// An hour: `22`, `7.5`, or `"07:30"`.
    pub(super) fn hour(&self) -> Result<TimeOfDay, Why> {
        let time = match self.value.as_str() {
            Some(text) => TimeOfDay::parse(text),
            None => self.float().and_then(TimeOfDay::from_hours),
        };
        time.ok_or_else(|| self.fault("it is no hour of the day; write it as 22, 7.5 or \"07:30\", up to 24"))
    }

    /// A rate: `"512k"`, or bytes per second; nothing for no limit.
    pub(super) fn rate(&self) -> Result<Rate, Why> {
        let rate = match self.value.as_str() {
            Some(text) => foreign::parse_rate(text).map_err(|why| self.fault(&why))?,
            None => self.amount()?,
        };
        Ok(std::num::NonZeroU64::new(rate))
    }

    fn amount(&self) -> Result<u64, Why> {
        // BOINC writes whole numbers with decimals.
        let number = self.float().filter(|n| (0.0..1e15).contains(n));
        // A little is a little, and not no limit.
        number.map(|n| n.ceil() as u64).ok_or_else(|| self.should_be("a rate such as \"512k\", or bytes per second"))
    }

    /// So many MiB; nothing for no limit.
    pub(super) fn mebibytes(&self) -> Result<Option<Length>, Why> {
        let number = self.float().filter(|n| (0.0..1e9).contains(n));
        let bytes = number.map(|n| (n * f64::from(1_u32 << 20)).ceil() as u64);
        let bytes = bytes.ok_or_else(|| self.should_be("a number of MiB below a thousand million"))?;
        Ok(Some(Length(bytes)).filter(|bytes| bytes.0 > 0))
    }

    /// A duration longer than nothing.
    pub(super) fn duration(&self) -> Result<Delay, Why> {
        match foreign::parse_delay(self.text()?) {
            Ok(Delay::ZERO) => Err(self.fault("it must be longer than nothing, such as \"30s\"")),
            Ok(delay) => Ok(delay),
            Err(why) => Err(self.fault(&why)),
        }
    }
}
