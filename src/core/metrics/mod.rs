//! Metrics: numbers as Prometheus reads them, in its text format (version 0.0.4), and the one request that gets them. What is
//! measured is the engine's business.

mod http;

pub use http::{Asked, HttpAnswer, MAX_HEAD, Reach, asked};

use std::fmt::Write;

/// What the answer says it is.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A number that is measured, once for every set of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    samples: Vec<Sample>,
}

/// How a number moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It only grows, from the start of the process on.
    Counter,
    /// It goes up and down.
    Gauge,
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

impl Family {
    /// A number that only grows; by custom its name ends in `_total`.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Kind::Counter, samples: Vec::new() }
    }

    /// A number that goes up and down.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Kind::Gauge, samples: Vec::new() }
    }

    /// With this value for these labels, whose names are words.
    #[must_use]
    pub fn with<L: Into<String>>(mut self, labels: impl IntoIterator<Item = (&'static str, L)>, value: f64) -> Self {
        let labels = labels.into_iter().map(|(name, label)| (name, label.into())).collect();
        self.samples.push(Sample { labels, value });
        self
    }

    /// With this value, which has no labels.
    #[must_use]
    pub fn of(self, value: f64) -> Self {
        self.with::<String>([], value)
    }
}

/// All of them, as one text. A family without samples is left out.
pub fn text(families: &[Family]) -> String {
    let mut out = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        family.write(&mut out);
    }
    out
}

impl Family {
    fn write(&self, out: &mut String) {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // A String takes everything.
        let _ = writeln!(out, "# HELP {} {}\n# TYPE {0} {kind}", self.name, help(self.help));
        for sample in &self.samples {
            let labels: Vec<_> =
                sample.labels.iter().map(|(name, text)| format!("{name}=\"{}\"", label(text))).collect();
            let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(out, "{}{braces} {}", self.name, sample.value);
        }
    }
}

fn help(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn label(text: &str) -> String {
    help(text).replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_with_help_and_type() {
        let families = [
            Family::counter("px_bytes_total", "Bytes \\ by host,\nall of them")
                .with([("host", "a.example:80"), ("direction", "download")], 9_007_199_254_740_991.0)
                .with([("host", "odd\"\\\n")], 0.0),
            Family::gauge("px_empty", "Nothing"),
            Family::gauge("px_wake_seconds", "Until then").of(1.25),
        ];
        insta::assert_snapshot!(text(&families), @r##"
        # HELP px_bytes_total Bytes \\ by host,\nall of them
        # TYPE px_bytes_total counter
        px_bytes_total{host="a.example:80",direction="download"} 9007199254740991
        px_bytes_total{host="odd\"\\\n"} 0
        # HELP px_wake_seconds Until then
        # TYPE px_wake_seconds gauge
        px_wake_seconds 1.25
        "##);
    }
}
