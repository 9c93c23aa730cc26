//! The request of BOINC's upload protocol as the handler reads it: lines of 255 characters, with one tag each.

use std::io;

use super::super::visit::Visit;

/// The handler's buffer holds so many characters of a line.
const LINE: usize = 255;

/// A request, as far as its head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Everything before the data, byte for byte.
    pub(crate) head: String,
    /// The name in a size query.
    pub(crate) query: Option<String>,
    pub(crate) name: Option<String>,
    /// What stands between the tags `<xml_signature>`, from the line behind the first, byte for byte.
    pub(crate) signature: Option<String>,
    pub(crate) max_nbytes: Option<f64>,
    pub(crate) nbytes: Option<f64>,
    pub(crate) md5: Option<String>,
    pub(crate) offset: Option<f64>,
    /// Was there a `<data>`?
    pub(crate) has_data: bool,
    /// Bytes behind it that were taken in.
    pub(crate) data: u64,
    /// The status in the reply; `None` where no reply of the protocol was sent.
    pub(crate) reply: Option<i32>,
    /// What a handler would not read as it was meant, or a real client would never send.
    pub(crate) complaints: Vec<String>,
}

impl Seen {
    /// Reads up to and with `<data>` and its line's end, or to the end of the body; and the bytes already read behind.
    ///
    /// # Errors
    /// The connection broke before.
    pub(super) fn read(visit: &mut Visit) -> io::Result<(Self, Vec<u8>)> {
        let (mut seen, mut raw, mut from) = (Self::default(), Vec::new(), 0);
        let mut buffer = vec![0; 8 << 10];
        loop {
            while let Some(end) = line_end(&raw[from..]) {
                let line = String::from_utf8_lossy(&raw[from..from + end]).into_owned();
                from += end;
                seen.line(&line);
                if seen.has_data {
                    let behind = raw.split_off(from);
                    return Ok((seen.close(visit, &raw), behind));
                }
            }
            let n = visit.take(&mut buffer)?;
            if n == 0 {
                let rest = String::from_utf8_lossy(&raw[from..]).into_owned();
                seen.line(&rest);
                return Ok((seen.close(visit, &raw), Vec::new()));
            }
            raw.extend_from_slice(&buffer[..n]);
        }
    }

    fn line(&mut self, line: &str) {
        if line.len() >= LINE && !line.ends_with('\n') {
            self.complaints.push(format!("a line is longer than {LINE} characters: {line}"));
        }
        if line.matches('<').count() > 2 {
            self.complaints.push(format!("more than one tag in a line: {}", line.trim_end()));
        }
        let text = |tag: &str| {
            let (_, rest) = line.split_once(&format!("<{tag}>"))?;
            Some(rest.split('<').next().unwrap_or_default().trim().to_owned())
        };
        let number = |tag: &str| text(tag).and_then(|n| n.parse().ok());
        self.query = text("get_file_size").or(self.query.take());
        self.name = text("name").or(self.name.take());
        self.md5 = text("md5_cksum").or(self.md5.take());
        self.max_nbytes = number("max_nbytes").or(self.max_nbytes);
        self.nbytes = number("nbytes").or(self.nbytes);
        self.offset = number("offset").or(self.offset);
        self.has_data = line.trim_end() == "<data>";
    }

    /// What can be said of the head as a whole.
    fn close(mut self, visit: &Visit, raw: &[u8]) -> Self {
        self.head = String::from_utf8_lossy(raw).into_owned();
        self.signature = between(&self.head, "<xml_signature>", "</xml_signature>");
        let asks = ["<core_client_major_version>", "<core_client_minor_version>", "<core_client_release>"];
        let lacks = asks.iter().filter(|tag| !self.head.contains(*tag));
        self.complaints.extend(lacks.map(|tag| format!("no {tag}")));
        if !self.head.starts_with("<data_server_request>\n") {
            self.complaints.push("it does not begin with <data_server_request>".to_owned());
        }
        if visit.header("content-length").is_none() {
            self.complaints.push("no Content-Length".to_owned());
        }
        if self.query.is_none() && self.name.is_none() {
            self.complaints.push("neither a size query nor an upload".to_owned());
        }
        self
    }

    /// The file that it is about.
    pub(crate) fn file(&self) -> Option<&str> {
        self.query.as_deref().or(self.name.as_deref())
    }
}

/// How long the first line is, with its end; one that is too long is cut.
fn line_end(rest: &[u8]) -> Option<usize> {
    let end = rest.iter().take(LINE).position(|b| *b == b'\n').map(|at| at + 1);
    end.or((rest.len() >= LINE).then_some(LINE))
}

/// Between the two tags; where the second is missing, up to the lone point that ends a signature.
fn between(text: &str, open: &str, close: &str) -> Option<String> {
    let (_, rest) = text.split_once(open)?;
    let rest = rest.strip_prefix('\n').unwrap_or(rest);
    let end = rest.find(close).or_else(|| rest.find("\n.\n").map(|at| at + 3));
    Some(rest[..end.unwrap_or(rest.len())].to_owned())
}
