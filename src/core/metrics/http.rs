//! The request for the metrics: the head of one HTTP/1 request in, the head of an answer out. There is one page, and every
//! connection gets one answer.

use std::net::IpAddr;

use crate::core::metrics::CONTENT_TYPE;

/// A longer head of a request is not read.
pub const MAX_HEAD: usize = 8 * 1024;

/// Who can connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine: then no name but this machine's own stands in a request. Another one is a web page that had its
    /// name lead here.
    ThisMachine,
    /// Others too.
    Network,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The metrics.
    Metrics,
    /// The head of that answer alone.
    Head,
    /// Something that there is not.
    Nothing(HttpAnswer),
}

/// An answer by its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpAnswer {
    /// Here it is.
    Ok,
    /// That is no request.
    Bad,
    /// There is no such page.
    NotFound,
    /// It can only be read.
    NotAllowed,
    /// Not under that name.
    Misdirected,
    /// The head is too long.
    TooLong,
    /// The program is about to end.
    Unavailable,
}

/// What this head of a request asks for; `None` while its end has not come.
pub fn asked(head: &[u8], reach: Reach) -> Option<Asked> {
    let end = memchr::memmem::find(head, b"\r\n\r\n").or_else(|| memchr::memmem::find(head, b"\n\n"));
    let Some(end) = end.filter(|end| *end < MAX_HEAD) else {
        return (head.len() >= MAX_HEAD).then_some(Asked::Nothing(HttpAnswer::TooLong));
    };
    let text = String::from_utf8_lossy(&head[..end]);
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Some(Asked::Nothing(HttpAnswer::Bad));
    };
    Some(match (method, target.split('?').next().unwrap_or_default()) {
        _ if !version.starts_with("HTTP/1.") => Asked::Nothing(HttpAnswer::Bad),
        _ if reach == Reach::ThisMachine && !lines.all(is_for_this_machine) => Asked::Nothing(HttpAnswer::Misdirected),
        ("GET", "/metrics") => Asked::Metrics,
        ("HEAD", "/metrics") => Asked::Head,
        (_, "/metrics") => Asked::Nothing(HttpAnswer::NotAllowed),
        _ => Asked::Nothing(HttpAnswer::NotFound),
    })
}

/// A line of the head that names no host, or an address, or this machine by its own name.
fn is_for_this_machine(line: &str) -> bool {
    let Some((field, host)) = line.split_once(':') else { return true };
    if !field.trim().eq_ignore_ascii_case("host") {
        return true;
    }
    let host = host.trim();
    let name = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

impl HttpAnswer {
    /// The whole answer; it carries `body` where it is [`HttpAnswer::Ok`], else its own words.
    pub fn to_bytes(self, body: &str) -> Vec<u8> {
        let (kind, body) = match self {
            Self::Ok => (CONTENT_TYPE, body.to_owned()),
            _ => ("text/plain; charset=utf-8", format!("{}; the metrics are at /metrics\n", self.status())),
        };
        let allow = if self == Self::NotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
        let length = body.len();
        let status = self.status();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n{allow}\
             Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }

    const fn status(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::Bad => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::NotAllowed => "405 Method Not Allowed",
            Self::Misdirected => "421 Misdirected Request",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Option<Asked> {
        asked(head.as_bytes(), Reach::ThisMachine)
    }

    #[test]
    fn one_page_is_there() {
        for (head, wanted) in [
            ("GET /metrics HTTP/1.1\r\nHost: localhost:9\r\n\r\n", Asked::Metrics),
            ("GET /metrics?x=1 HTTP/1.0\n\n", Asked::Metrics),
            ("GET /metrics HTTP/1.1\r\nHOST: [::1]:9\r\nX: y\r\n\r\nmore", Asked::Metrics),
            ("HEAD /metrics HTTP/1.1\r\nhost:127.0.0.1\r\n\r\n", Asked::Head),
            ("POST /metrics HTTP/1.1\r\n\r\n", Asked::Nothing(HttpAnswer::NotAllowed)),
            ("GET / HTTP/1.1\r\n\r\n", Asked::Nothing(HttpAnswer::NotFound)),
            ("GET /metrics\r\n\r\n", Asked::Nothing(HttpAnswer::Bad)),
            ("GET /metrics HTTP/2 x\r\n\r\n", Asked::Nothing(HttpAnswer::Bad)),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", Asked::Nothing(HttpAnswer::Misdirected)),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: 127.0.0.1\r\n\r\n", Asked::Nothing(HttpAnswer::Misdirected)),
        ] {
            assert_eq!(of(head), Some(wanted), "{head:?}");
        }
        let named = "GET /metrics HTTP/1.1\r\nHost: box.example\r\n\r\n";
        assert_eq!(asked(named.as_bytes(), Reach::Network), Some(Asked::Metrics));
    }

    #[test]
    fn a_head_has_an_end() {
        let head = "GET /metrics HTTP/1.1\r\nHost: [::1]\r\n\r\n";
        (0..head.len()).for_each(|n| assert_eq!(of(&head[..n]), None, "{n}"));
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "y".repeat(MAX_HEAD));
        assert_eq!(of(&long), Some(Asked::Nothing(HttpAnswer::TooLong)));
        assert_eq!(of(&(long + "\r\n\r\n")), Some(Asked::Nothing(HttpAnswer::TooLong)));
    }

    #[test]
    fn answers_are_whole() {
        let text = |answer: HttpAnswer| String::from_utf8(answer.to_bytes("a 1\n")).expect("text");
        assert_eq!(
            text(HttpAnswer::Ok),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 4\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\na 1\n"
        );
        let refused = text(HttpAnswer::NotAllowed);
        assert!(refused.contains("\r\nAllow: GET, HEAD\r\n") && refused.ends_with("are at /metrics\n"), "{refused}");
    }
}
