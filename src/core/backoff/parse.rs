//! Retry policies as users write them: `NAME[:key=value]`.

use std::fmt;

use super::boinc::Form;
use super::tor::{Capping, INT_MAX, Tor};
use super::{Kind, Policy};
use crate::core::time::Delay;
use crate::core::units::human_delay;

/// Why a text is no retry policy, or why bounds do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPolicy {
    /// No policy has that name.
    #[error(
        "there is no retry policy {name:?}: choose boinc, boinc:exact, boinc-7, tor, tor:base=SECONDS, tor:spec, ladder or ranged"
    )]
    Name {
        /// The name as written.
        name: String,
    },
    /// The policy has no such option.
    #[error("the retry policy {policy} has no option {option:?}: {choices}")]
    Option {
        /// The policy.
        policy: &'static str,
        /// The option as written.
        option: String,
        /// What can be written.
        choices: &'static str,
    },
    /// The base of `tor` is no number of seconds.
    #[error("the base {text:?} is no whole number of seconds up to 2147483647: write it like tor:base=6")]
    Base {
        /// The value as written.
        text: String,
    },
    /// The shortest delay is longer than the longest.
    #[error("--min-delay ({}) is longer than --max-delay ({})", human_delay(*min), human_delay(*max))]
    Bounds {
        /// The shortest.
        min: Delay,
        /// The longest.
        max: Delay,
    },
    /// The longest delay would let a dead server be asked in a busy loop.
    #[error("--max-delay ({}) is too short: give at least 1ms", human_delay(*max))]
    TooShort {
        /// The longest delay.
        max: Delay,
    },
}

impl Policy {
    /// Reads a policy: `boinc`, `boinc:exact`, `boinc-7`, `tor`, `tor:base=SECONDS`, `tor:spec`,
    /// `tor:spec:base=SECONDS`, `ladder`, `ranged`. Its bounds are its own.
    ///
    /// # Errors
    /// Names the word that is wrong, and the choices.
    pub fn parse(text: &str) -> Result<Self, BadPolicy> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let kind = match name {
            "boinc" => Kind::Boinc(boinc_form(words)?),
            "boinc-7" => plain(Kind::Boinc7, "boinc-7", words)?,
            "tor" => Kind::Tor(tor_options(words)?),
            "ladder" => plain(Kind::Ladder, "ladder", words)?,
            "ranged" => plain(Kind::Ranged, "ranged", words)?,
            _ => return Err(BadPolicy::Name { name: name.to_owned() }),
        };
        Ok(Self { kind, min: None, max: None })
    }
}

/// The text it parses from; without the bounds, which are options of their own.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Boinc(Form::Spread) => f.write_str("boinc"),
            Kind::Boinc(Form::Exact) => f.write_str("boinc:exact"),
            Kind::Boinc7 => f.write_str("boinc-7"),
            Kind::Tor(tor) => tor.fmt(f),
            Kind::Ladder => f.write_str("ladder"),
            Kind::Ranged => f.write_str("ranged"),
        }
    }
}

impl fmt::Display for Tor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.capping == Capping::Draw { "tor:spec" } else { "tor" })?;
        if self.base > 0 { write!(f, ":base={}", self.base) } else { Ok(()) }
    }
}

impl std::str::FromStr for Policy {
    type Err = BadPolicy;
    fn from_str(text: &str) -> Result<Self, BadPolicy> {
        Self::parse(text)
    }
}

fn boinc_form<'a>(options: impl Iterator<Item = &'a str>) -> Result<Form, BadPolicy> {
    let mut form = Form::Spread;
    for option in options {
        match option {
            "exact" => form = Form::Exact,
            _ => return Err(unknown("boinc", option, "write boinc or boinc:exact")),
        }
    }
    Ok(form)
}

fn tor_options<'a>(options: impl Iterator<Item = &'a str>) -> Result<Tor, BadPolicy> {
    let mut tor = Tor { base: 0, capping: Capping::Range };
    for option in options {
        match option.split_once('=') {
            None if option == "spec" => tor.capping = Capping::Draw,
            Some(("base", seconds)) => tor.base = base(seconds)?,
            _ => return Err(unknown("tor", option, "write tor, tor:base=SECONDS or tor:spec")),
        }
    }
    Ok(tor)
}

fn base(text: &str) -> Result<u64, BadPolicy> {
    let bad = || BadPolicy::Base { text: text.to_owned() };
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    text.parse().ok().filter(|seconds| *seconds <= INT_MAX).ok_or_else(bad)
}

fn plain<'a>(kind: Kind, policy: &'static str, mut options: impl Iterator<Item = &'a str>) -> Result<Kind, BadPolicy> {
    match options.next() {
        None => Ok(kind),
        Some(option) => Err(unknown(policy, option, "it has none")),
    }
}

fn unknown(policy: &'static str, option: &str, choices: &'static str) -> BadPolicy {
    BadPolicy::Option { policy, option: option.to_owned(), choices }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_and_prints_as_itself() {
        for text in [
            "boinc",
            "boinc:exact",
            "boinc-7",
            "tor",
            "tor:base=6",
            "tor:base=2147483647",
            "tor:spec",
            "tor:spec:base=60",
            "ladder",
            "ranged",
        ] {
            assert_eq!(Policy::parse(text).expect(text).to_string(), text);
        }
        assert_eq!(Policy::parse("tor:base=0").expect("a policy").to_string(), "tor");
        assert_eq!(Policy::parse("tor:base=6:spec"), Policy::parse("tor:spec:base=6"));
        assert_eq!(Policy::default().to_string(), "boinc");
    }

    #[test]
    fn errors_name_the_bad_word_and_the_choices() {
        let error = |text: &str| Policy::parse(text).expect_err(text);
        for text in ["", "Boinc", "boinc7", "exponential", "boinc ", " ranged", "\u{1b}[31m"] {
            assert_eq!(error(text), BadPolicy::Name { name: text.to_owned() });
        }
        for (text, option) in [
            ("boinc:letter", "letter"),
            ("boinc:", ""),
            ("boinc:exact=1", "exact=1"),
            ("boinc-7:exact", "exact"),
            ("tor:base", "base"),
            ("tor:spec=1", "spec=1"),
            ("tor:cap=9", "cap=9"),
            ("ladder:x", "x"),
            ("ranged:a:b", "a"),
        ] {
            assert!(matches!(error(text), BadPolicy::Option { option: found, .. } if found == option), "{text}");
        }
        for value in ["", "-1", "+6", "1.5", "1e3", "6s", "2147483648", "99999999999999999999", "NaN"] {
            assert_eq!(error(&format!("tor:base={value}")), BadPolicy::Base { text: value.to_owned() });
        }
    }

    #[test]
    fn errors_are_one_printable_line() {
        for text in ["x\ny", "tor:\u{1b}", "tor:base=\r\n", "boinc:\u{9b}"] {
            let line = Policy::parse(text).expect_err(text).to_string();
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
        assert_eq!(
            Policy::parse("fast").expect_err("no policy").to_string(),
            "there is no retry policy \"fast\": choose boinc, boinc:exact, boinc-7, tor, tor:base=SECONDS, tor:spec, ladder or ranged"
        );
    }

    #[test]
    fn bounds_that_do_not_fit_are_refused() {
        let bounded = |min: Option<u64>, max: Option<u64>| {
            Policy::default().with_bounds(min.map(Delay::from_micros), max.map(Delay::from_micros))
        };
        assert!(matches!(bounded(Some(3_000), Some(2_000)), Err(BadPolicy::Bounds { .. })));
        assert!(matches!(bounded(None, Some(999)), Err(BadPolicy::TooShort { .. })));
        assert!(bounded(Some(2_000), Some(2_000)).is_ok());
        assert_eq!(bounded(Some(0), None).expect("bounds").shortest(), Delay::from_millis(1));
        assert_eq!(
            Policy::default()
                .with_bounds(Some(Delay::from_mins(5)), Some(Delay::from_mins(1)))
                .expect_err("bad")
                .to_string(),
            "--min-delay (5 min) is longer than --max-delay (1 min)"
        );
    }
}
