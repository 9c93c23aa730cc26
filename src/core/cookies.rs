//! Cookies from a file in the Netscape format (`cookies.txt`), and which of them go to a URL (RFC 6265 5.1.3, 5.1.4,
//! 5.4).
//!
//! Seven fields a line, separated by tabs: domain, whether subdomains count, path, whether TLS is needed, expiry
//! (seconds since 1970; 0: none), name, value. `#HttpOnly_` before a domain is part of the format; other lines with
//! `#` are comments.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::core::time::Epoch;
use crate::core::url::MirrorUrl;

/// The cookies of a file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Cookies {
    all: Vec<Cookie>,
    skipped: usize,
}

#[derive(Clone, PartialEq, Eq)]
struct Cookie {
    /// Lower case, without a leading dot.
    domain: String,
    reach: Reach,
    path: String,
    channel: Channel,
    /// `None`: for a session, which a file makes endless.
    expires: Option<Epoch>,
    name: String,
    value: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    HostOnly,
    Subdomains,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Any,
    TlsOnly,
}

impl Cookies {
    /// Reads the text of a file. Lines that are no cookies are passed over and counted; of cookies with the same domain,
    /// path and name the last counts, wherever it may go.
    pub fn parse(text: &str) -> Self {
        let mut cookies = Self::default();
        let mut places: HashMap<(String, String, String), usize> = HashMap::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for line in text.lines() {
            let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            match read_cookie(line) {
                Some(cookie) => match places.entry(cookie.identity()) {
                    Entry::Occupied(place) => cookies.all[*place.get()] = cookie,
                    Entry::Vacant(place) => {
                        place.insert(cookies.all.len());
                        cookies.all.push(cookie);
                    }
                },
                None => cookies.skipped += 1,
            }
        }
        cookies
    }

    /// How many lines were no cookies: if it is all of them, the file is probably of another format.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The text of the Cookie header for a request; `None` where no cookie goes there. Longer paths come first.
    pub fn header_for(&self, url: &MirrorUrl, now: Epoch) -> Option<String> {
        let fresh = |cookie: &&Cookie| cookie.expires.is_none_or(|end| now < end);
        let mut chosen: Vec<&Cookie> = self.all.iter().filter(|cookie| cookie.goes_to(url)).filter(fresh).collect();
        chosen.sort_by_key(|cookie| Reverse(cookie.path.len()));
        let pairs: Vec<_> = chosen.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

impl Cookie {
    fn goes_to(&self, url: &MirrorUrl) -> bool {
        (self.channel == Channel::Any || url.is_https())
            && self.reaches(url.host().trim_end_matches('.'))
            && path_matches(url.secret_url().path(), &self.path)
    }

    /// An address has no subdomains: `4.3.2.1` does not lie within `3.2.1`.
    fn reaches(&self, host: &str) -> bool {
        match host.strip_suffix(self.domain.as_str()) {
            Some("") => true,
            Some(before) => self.reach == Reach::Subdomains && before.ends_with('.') && !is_address(host),
            None => false,
        }
    }

    /// What a newer one must share to take its place (RFC 6265 5.3).
    fn identity(&self) -> (String, String, String) {
        (self.domain.clone(), self.path.clone(), self.name.clone())
    }
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// RFC 6265 5.1.4: equal, or below.
fn path_matches(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with('/') || rest.starts_with('/'))
}

fn read_cookie(line: &str) -> Option<Cookie> {
    let mut fields = line.splitn(7, '\t').map(str::trim);
    let domain = fields.next()?;
    let subdomains = fields.next()?.eq_ignore_ascii_case("TRUE") || domain.starts_with('.');
    let path = fields.next()?;
    let secure = fields.next()?.eq_ignore_ascii_case("TRUE");
    let expires = fields.next()?.parse::<i64>().ok()?;
    let (name, value) = (fields.next()?, fields.next().unwrap_or_default());
    let domain = domain.strip_prefix('.').unwrap_or(domain).trim_end_matches('.').to_ascii_lowercase();
    let sound =
        !domain.is_empty() && !name.is_empty() && !name.contains('=') && fits_header(name) && fits_header(value);
    sound.then(|| Cookie {
        domain,
        reach: if subdomains { Reach::Subdomains } else { Reach::HostOnly },
        path: if path.starts_with('/') { path.to_owned() } else { "/".to_owned() },
        channel: if secure { Channel::TlsOnly } else { Channel::Any },
        expires: (expires != 0).then(|| Epoch::from_secs(expires)),
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

/// Neither ends the cookie nor the header.
fn fits_header(text: &str) -> bool {
    !text.contains(|c: char| c == ';' || c.is_control())
}

/// Shows for which domains there are cookies, and nothing else.
impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|cookie| &cookie.domain)).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Epoch = Epoch::from_secs(1_000);

    fn header(file: &str, url: &str) -> Option<String> {
        Cookies::parse(file).header_for(&MirrorUrl::parse(url).expect(url), NOW)
    }

    /// A line for example.org; `fields` with blanks in place of tabs.
    fn line(fields: &str) -> String {
        fields.replace(' ', "\t") + "\n"
    }

    #[test]
    fn a_file_as_browsers_export_it() {
        let file = "# Netscape HTTP Cookie File\r\n\r\n".to_owned()
            + &line(".example.org TRUE / FALSE 0 a 1")
            + &line("#HttpOnly_example.org FALSE /dir TRUE 2000 b x=y")
            + &line("example.org FALSE / FALSE 0 empty");
        assert_eq!(header(&file, "https://example.org/dir/x").as_deref(), Some("b=x=y; a=1; empty="));
        assert_eq!(header(&file, "http://example.org/dir/x").as_deref(), Some("a=1; empty="));
        assert_eq!(header(&file, "https://www.example.org/dir").as_deref(), Some("a=1"));
        assert_eq!(header(&file, "https://example.com/"), None);
        assert_eq!(Cookies::parse(&file).skipped(), 0);
    }

    #[test]
    fn domains() {
        let tail = line("example.org TRUE / FALSE 0 a 1");
        for (url, goes) in [
            ("http://example.org/", true),
            ("http://EXAMPLE.org./", true),
            ("http://a.b.example.org/", true),
            ("http://badexample.org/", false),
            ("http://example.org.evil.net/", false),
            ("http://org/", false),
        ] {
            assert_eq!(header(&tail, url).is_some(), goes, "{url}");
        }
        assert!(header(&line("3.2.1 TRUE / FALSE 0 a 1"), "http://4.3.2.1/").is_none());
        assert!(header(&line("127.0.0.1 FALSE / FALSE 0 a 1"), "http://127.0.0.1:8080/").is_some());
    }

    #[test]
    fn paths() {
        let of_path = |path: &str| line(&format!("h FALSE {path} FALSE 0 a 1"));
        for (path, url, goes) in [
            ("/dir", "http://h/dir", true),
            ("/dir", "http://h/dir/x", true),
            ("/dir/", "http://h/dir/x", true),
            ("/dir", "http://h/directory", false),
            ("/dir/", "http://h/dir", false),
            ("odd", "http://h/", true),
        ] {
            assert_eq!(header(&of_path(path), url).is_some(), goes, "{path} {url}");
        }
    }

    #[test]
    fn what_has_expired_stays_here() {
        for (expiry, goes) in
            [("0", true), ("1001", true), ("1000", false), ("-1", false), ("9223372036854775807", true)]
        {
            assert_eq!(
                header(&line(&format!("h FALSE / FALSE {expiry} a 1")), "http://h/").is_some(),
                goes,
                "{expiry}"
            );
        }
    }

    #[test]
    fn the_last_of_the_same_counts_even_if_expired() {
        let old = line("h FALSE / FALSE 0 a old");
        assert_eq!(header(&(old.clone() + &line("h FALSE / FALSE 0 a new")), "http://h/").as_deref(), Some("a=new"));
        assert_eq!(header(&(old + &line("h FALSE / FALSE 5 a new")), "http://h/"), None);
    }

    #[test]
    fn the_last_of_the_same_counts_even_where_it_does_not_go() {
        let old = line(".h.example TRUE / FALSE 0 a old");
        let secure = old.clone() + &line("h.example TRUE / TRUE 0 a new");
        assert_eq!(header(&secure, "https://h.example/").as_deref(), Some("a=new"));
        assert_eq!(header(&secure, "http://h.example/"), None, "the old one is gone, and the new one needs TLS");
        let narrow = old + &line("h.example FALSE / FALSE 0 a new");
        assert_eq!(header(&narrow, "http://www.h.example/"), None);
    }

    #[test]
    fn lines_that_are_no_cookies_are_counted() {
        let file = line("h FALSE / FALSE soon a 1")
            + &line("h FALSE / FALSE 0")
            + &line(". TRUE / FALSE 0 a 1")
            + "junk\n"
            + "h\tFALSE\t/\tFALSE\t0\ta\t1; b=2\nh\tFALSE\t/\tFALSE\t0\ta\tx\u{1b}\n"
            + "h\tFALSE\t/\tFALSE\t0\ta=b\tx\n";
        let read = Cookies::parse(&file);
        assert!(read.is_empty());
        assert_eq!(read.skipped(), 7);
    }

    #[test]
    fn values_are_never_shown() {
        assert_eq!(format!("{:?}", Cookies::parse(&line("h FALSE / FALSE 0 NAME SECRET"))), "[\"h\"]");
    }

    proptest! {
        #[test]
        fn anything_may_come(text in "(?s)((h|\\.|TRUE|/|0|a|#HttpOnly_|\t|\n|;|\r|.)){0,60}") {
            if let Some(header) = header(&text, "https://h/a") {
                prop_assert!(!header.contains(['\r', '\n', '\0']));
            }
        }
    }
}
