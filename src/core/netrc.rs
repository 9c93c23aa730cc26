//! The netrc file: user names and passwords by host, in the format of ftp(1) with the quotes that curl knows.
//!
//! Words are separated by blanks and line ends; a word that stands in quotes may hold blanks and `\"`, `\\`, `\n`,
//! `\r`, `\t`. `#` begins a comment where a keyword could stand. A `macdef` is passed over, up to the next empty line.
//! Words that are no keyword are passed over too.

use std::fmt;

/// What a netrc file says.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Netrc {
    entries: Vec<Entry>,
}

/// Why a text is no netrc file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNetrc {
    /// A quote without its end.
    #[error(
        "line {line}: the quoted value does not end on its line; close it with \" (and write \\\" for a quote inside)"
    )]
    OpenQuote {
        /// The line, from 1.
        line: usize,
    },
}

#[derive(Clone, PartialEq, Eq)]
struct Entry {
    host: Host,
    login: Option<String>,
    password: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
enum Host {
    Named(String),
    Default,
}

impl Netrc {
    /// Reads the text of a netrc file.
    pub fn parse(text: &str) -> Result<Self, BadNetrc> {
        let mut reader = Reader::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in (1..).zip(text.lines()) {
            reader.line(line).map_err(|OpenQuote| BadNetrc::OpenQuote { line: number })?;
        }
        Ok(reader.netrc)
    }

    /// Login and password for a host: those of the first entry of that name that has either, else of `default`. What an
    /// entry leaves out is empty. An IPv6 address may stand in brackets, here and there.
    pub fn lookup(&self, host: &str) -> Option<(&str, &str)> {
        let host = normal(host);
        let named = |entry: &&Entry| matches!(&entry.host, Host::Named(name) if *name == host);
        let default = |entry: &&Entry| entry.host == Host::Default;
        let usable = || self.entries.iter().filter(|entry| entry.login.is_some() || entry.password.is_some());
        let found = usable().find(named).or_else(|| usable().find(default))?;
        Some((found.login.as_deref().unwrap_or_default(), found.password.as_deref().unwrap_or_default()))
    }
}

/// Lower case, without a final dot, and without the brackets of an address.
fn normal(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

/// Shows which hosts there are, and nothing else.
impl fmt::Debug for Netrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |entry: &Entry| match &entry.host {
            Host::Named(name) => name.clone(),
            Host::Default => "(default)".to_owned(),
        };
        f.debug_list().entries(self.entries.iter().map(host)).finish()
    }
}

/// What the next word will be.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Next {
    #[default]
    Keyword,
    Machine,
    Login,
    Password,
    Account,
    MacroName,
}

#[derive(Default)]
struct Reader {
    netrc: Netrc,
    next: Next,
    in_macro: bool,
}

struct OpenQuote;

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), OpenQuote> {
        if self.in_macro {
            self.in_macro = !line.trim().is_empty();
            return Ok(());
        }
        let mut rest = line.trim_start();
        while !(rest.is_empty() || self.at_comment(rest)) {
            let word;
            (word, rest) = next_word(rest)?;
            self.word(word);
            if self.in_macro {
                break;
            }
            rest = rest.trim_start();
        }
        Ok(())
    }

    fn at_comment(&self, rest: &str) -> bool {
        self.next == Next::Keyword && rest.starts_with('#')
    }

    fn word(&mut self, word: String) {
        match std::mem::take(&mut self.next) {
            Next::Keyword => self.keyword(&word),
            Next::Machine => self.begin(Host::Named(normal(&word))),
            Next::Login => self.set(|entry| entry.login = Some(word)),
            Next::Password => self.set(|entry| entry.password = Some(word)),
            Next::Account => {}
            Next::MacroName => self.in_macro = true,
        }
    }

    fn keyword(&mut self, word: &str) {
        match word {
            "machine" => self.next = Next::Machine,
            "default" => self.begin(Host::Default),
            "login" => self.next = Next::Login,
            "password" => self.next = Next::Password,
            "account" => self.next = Next::Account,
            "macdef" => self.next = Next::MacroName,
            _ => {}
        }
    }

    fn begin(&mut self, host: Host) {
        self.netrc.entries.push(Entry { host, login: None, password: None });
    }

    /// A login before any machine belongs to nothing.
    fn set(&mut self, change: impl FnOnce(&mut Entry)) {
        self.netrc.entries.last_mut().map(change);
    }
}

/// The first word of a text that does not begin with a blank, and what follows it.
fn next_word(text: &str) -> Result<(String, &str), OpenQuote> {
    match text.strip_prefix('"') {
        Some(quoted) => quoted_word(quoted).ok_or(OpenQuote),
        None => {
            let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
            Ok((word.to_owned(), rest))
        }
    }
}

/// Up to the closing quote; `None` where there is none.
fn quoted_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((word, chars.as_str())),
            '\\' => word.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn netrc(text: &str) -> Netrc {
        Netrc::parse(text).expect(text)
    }

    #[test]
    fn machines_and_default() {
        let read = netrc(
            "# mine\nmachine Example.org login joe password s3cret\r\n\
             machine other.example\n\tlogin ann\n\taccount x\n\tpassword #1 # a comment, login nobody\n\
             default login anonymous password me@here",
        );
        assert_eq!(read.lookup("example.org"), Some(("joe", "s3cret")));
        assert_eq!(read.lookup("EXAMPLE.ORG."), Some(("joe", "s3cret")));
        assert_eq!(read.lookup("other.example"), Some(("ann", "#1")));
        assert_eq!(read.lookup("www.example.org"), Some(("anonymous", "me@here")));
    }

    #[test]
    fn quotes_and_values_that_are_keywords() {
        let read = netrc(r#"machine h login "joe doe" password "a\"b\\c\t#" machine g login login password machine"#);
        assert_eq!(read.lookup("h"), Some(("joe doe", "a\"b\\c\t#")));
        assert_eq!(read.lookup("g"), Some(("login", "machine")));
        assert_eq!(Netrc::parse("machine h\npassword \"open\nlogin x"), Err(BadNetrc::OpenQuote { line: 2 }));
    }

    #[test]
    fn a_macro_is_passed_over_up_to_an_empty_line() {
        let read = netrc("machine a login x\nmacdef init\nmachine b login evil\n\"cd /pub\n\nmachine b login good\n");
        assert_eq!(read.lookup("a"), Some(("x", "")));
        assert_eq!(read.lookup("b"), Some(("good", "")));
    }

    #[test]
    fn the_first_usable_entry_counts() {
        let read = netrc("login lost machine h machine h password pw machine h login late port 8 default");
        assert_eq!(read.lookup("h"), Some(("", "pw")));
        assert_eq!(read.lookup("x"), None);
        assert_eq!(netrc("").lookup("h"), None);
        assert_eq!(netrc("machine ::1 login v6").lookup("[::1]"), Some(("v6", "")));
    }

    #[test]
    fn passwords_are_never_shown() {
        let read = netrc("machine h login joe password SECRET default password SECRET");
        assert_eq!(format!("{read:?}"), "[\"h\", \"(default)\"]");
    }

    proptest! {
        #[test]
        fn anything_may_come(text in "(?s)((machine|default|login|password|macdef|\"|\\\\|#|\n| )[ a]?){0,20}|(?s).{0,80}") {
            if let Ok(read) = Netrc::parse(&text) {
                let _ = read.lookup("a");
            }
        }

        #[test]
        fn whatever_is_quoted_comes_back(password in "(?s)[^\n\r]{0,20}") {
            let quoted = password.replace('\\', "\\\\").replace('"', "\\\"");
            let read = netrc(&format!("machine h login \"j\" password \"{quoted}\""));
            prop_assert_eq!(read.lookup("h"), Some(("j", password.as_str())));
        }
    }
}
