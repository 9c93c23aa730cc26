//! The messages of BOINC's file_upload_handler: lines with one tag each, as its reader wants them.

use crate::core::printable::printable;
use crate::core::range::{Length, Offset};
use crate::core::upload::ask::Answer;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Found, Turn};
use crate::core::upload::protocol::Protocol;

/// The version of BOINC's client that is spoken.
const OPENING: &str = "<data_server_request>\n\
    <core_client_major_version>8</core_client_major_version>\n\
    <core_client_minor_version>2</core_client_minor_version>\n\
    <core_client_release>0</core_client_release>\n";

/// The handler reads lines of 255 characters.
const LONGEST_NAME: usize = 200;

/// Can a name stand in a line of its own, and would the handler take it?
pub(super) fn can_carry(name: &str) -> bool {
    let fits = !name.is_empty() && name.len() <= LONGEST_NAME && !name.starts_with('/') && !name.contains("..");
    fits && !name.chars().any(|c| c.is_control() || matches!(c, '<' | '>' | '&'))
}

/// How much of this file is there?
pub(super) fn size_query(name: &str) -> String {
    format!("{OPENING}<get_file_size>{name}</get_file_size>\n</data_server_request>\n")
}

/// What stands before the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) name: &'a str,
    pub(super) signature: Option<&'a str>,
    pub(super) max_nbytes: Length,
    pub(super) nbytes: Length,
    pub(super) md5: Option<&'a str>,
    pub(super) offset: Offset,
}

impl Head<'_> {
    /// Its text; the tags that it opens are closed by nobody.
    pub(super) fn text(&self) -> String {
        let Self { name, max_nbytes, nbytes, offset, .. } = self;
        let mut text = format!("{OPENING}<file_upload>\n<file_info>\n<name>{name}</name>\n");
        if let Some(signature) = self.signature {
            let signature = signature.trim_matches(['\n', '\r']);
            text.push_str(&format!("<xml_signature>\n{signature}\n</xml_signature>\n"));
        }
        text.push_str(&format!("<max_nbytes>{max_nbytes}</max_nbytes>\n</file_info>\n<nbytes>{nbytes}</nbytes>\n"));
        if let Some(md5) = self.md5 {
            text.push_str(&format!("<md5_cksum>{md5}</md5_cksum>\n"));
        }
        text.push_str(&format!("<offset>{offset}</offset>\n<data>\n"));
        text
    }
}

/// The handler's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// 0 good, 1 not now, -1 never.
    pub(super) status: i64,
    /// The answer to a size query: the lower 32 bits as a signed number, from most servers.
    pub(super) file_size: Option<i64>,
    /// Its message, made printable.
    pub(super) message: String,
}

impl Reply {
    /// Reads an answer. The handler answers 200 and nothing beside its reply: what comes with another status, or within a
    /// page, is none, and is judged by its status; a page with 200 is no success.
    pub(super) fn of(answer: &Answer) -> Result<Self, Turn> {
        match Self::read(&String::from_utf8_lossy(&answer.body)) {
            Some(reply) if answer.status == 200 => Ok(reply),
            _ if answer.is_success() => {
                let (code, what) = (answer.status, "it holds no <data_server_reply> with a status");
                Err(Turn::failed(UpFailure::Foreign { protocol: Protocol::Boinc, code, what }))
            }
            _ => Err(Turn::status(answer)),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (reply, _) = text.trim_start().strip_prefix("<data_server_reply>")?.split_once("</data_server_reply>")?;
        let status = value(reply, "status")?.parse().ok()?;
        let file_size = value(reply, "file_size").and_then(|t| t.parse().ok());
        let message = printable(value(reply, "message").unwrap_or_default()).into_owned();
        Some(Self { status, file_size, message })
    }

    /// Another handler writes the file.
    pub(super) fn is_locked(&self) -> bool {
        self.message.contains("locked")
    }

    /// The offset is beyond what is there.
    pub(super) fn is_beyond(&self) -> bool {
        self.message.contains("offset")
    }

    /// What it means where it is no success; an unknown status is not now.
    pub(super) fn refusal(self) -> Turn {
        match self.status {
            -1 => Turn::failed(UpFailure::Never { message: self.message }),
            _ if self.is_locked() => Turn::Found(Found::Busy),
            _ => Turn::failed(UpFailure::Later { message: self.message }),
        }
    }
}

/// The text between the tags of that name.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, body: body.as_bytes().to_vec(), ..Answer::default() }
    }

    #[test]
    fn a_head_is_lines_that_nobody_closes() {
        let (max_nbytes, nbytes, offset) = (Length(5_000_000_000), Length(4_294_967_301), Offset(7));
        let head =
            Head { name: "run_1", signature: Some("ab\ncd\n.\n"), max_nbytes, nbytes, md5: Some("00ff"), offset };
        let want = format!(
            "{OPENING}<file_upload>\n<file_info>\n<name>run_1</name>\n<xml_signature>\nab\ncd\n.\n</xml_signature>\n\
             <max_nbytes>5000000000</max_nbytes>\n</file_info>\n<nbytes>4294967301</nbytes>\n\
             <md5_cksum>00ff</md5_cksum>\n<offset>7</offset>\n<data>\n"
        );
        assert_eq!(head.text(), want);
        assert!(head.text().lines().all(|line| line.len() < 255));
    }

    #[test]
    fn replies_are_read_as_they_come() {
        let reply = |body: &str| Reply::of(&answer(200, body));
        let text = "<data_server_reply>\n    <status>0</status>\n    <file_size>-1073741824</file_size>\n\
                    </data_server_reply>\n";
        let want = Reply { status: 0, file_size: Some(-1_073_741_824), message: String::new() };
        assert_eq!(reply(text), Ok(want));
        let text = "<data_server_reply><status>-1</status><message>invalid\x1b signature</message></data_server_reply>";
        let want = Reply { status: -1, file_size: None, message: "invalid\\u{1b} signature".to_owned() };
        assert_eq!(reply(text), Ok(want));
        let good = "<data_server_reply><status>0</status><file_size>9</file_size></data_server_reply>";
        assert!(reply(&format!("\n {good}\n")).is_ok());
        let (within, cut) = (format!("<html><body>{good}</body></html>"), &good[..good.len() - 1]);
        let none = "<data_server_reply></data_server_reply>";
        for page in ["", "<html>OK</html>", none, "<status>0</status>", &within, cut] {
            assert!(matches!(reply(page), Err(Turn::Found(Found::Failed(UpFailure::Foreign { .. })))), "{page:?}");
        }
        for (status, body) in [(502, "upstream closed"), (500, good), (404, good)] {
            let told = Reply::of(&answer(status, body));
            assert!(matches!(told, Err(Turn::Found(Found::Status(said))) if said.code == status));
        }
        assert!(Reply::of(&answer(202, good)).is_err(), "the handler says 200");
    }

    #[test]
    fn names_that_would_break_a_line_are_not_sent() {
        for name in ["run_0042_1", "a b", "ä"] {
            assert!(can_carry(name), "{name}");
        }
        for name in ["", "a\nb", "<x>", "a&b", "../a", "/a", &"x".repeat(201)] {
            assert!(!can_carry(name), "{name:?}");
        }
    }
}
