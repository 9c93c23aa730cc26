//! BOINC's file_upload_handler as it was seen behind three front ends (facts of uploads, section 1).

use super::super::{Answer, Body};
use super::sim::{Request, Server, answer};

/// How the program stands behind its web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// A refusal before the body is read hangs up; a cut body is kept in blocks of 256 KiB.
    Apache,
    /// A refusal becomes 502 with a page; a cut body is lost.
    Nginx,
    /// Every answer arrives; a cut body is lost.
    Lighttpd,
}

#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) front: Front,
    pub(super) file: Option<Vec<u8>>,
    /// Signatures are wrong here.
    pub(super) bad_signature: bool,
    pub(super) max_nbytes: u64,
    /// Another handler holds the file for so many requests.
    pub(super) locked: u32,
    /// What the size query prints, in place of the size.
    pub(super) tells: Option<i64>,
    /// So many size queries are answered by a page.
    pub(super) pages: u32,
    /// Bodies are thrown away, and status 0 said.
    pub(super) read_only: bool,
    /// Bodies longer than this die without an answer, and nothing of them is kept.
    pub(super) dies_after: Option<u64>,
}

impl Handler {
    pub(super) fn new(front: Front) -> Self {
        let (file, bad_signature, max_nbytes, locked) = (None, false, u64::MAX, 0);
        Self {
            front,
            file,
            bad_signature,
            max_nbytes,
            locked,
            tells: None,
            pages: 0,
            read_only: false,
            dies_after: None,
        }
    }

    fn refuse(&self, with_data: bool, status: i64, message: &str) -> Option<Answer> {
        match self.front {
            Front::Apache if with_data => None,
            Front::Nginx if with_data => Some(answer(502, &[], b"<html>502 Bad Gateway</html>")),
            _ => Some(reply(status, "", message)),
        }
    }

    fn size_query(&mut self) -> Option<Answer> {
        if self.pages > 0 {
            self.pages -= 1;
            return Some(answer(200, &[], b"<html>maintenance</html>"));
        }
        if self.locked > 0 {
            self.locked -= 1;
            return Some(reply(1, "", "file f.bin is locked by file_upload_handler PID 1"));
        }
        let size = self.file.as_ref().map_or(0, Vec::len) as u64;
        let told = self.tells.unwrap_or_else(|| i64::from(size as u32 as i32));
        Some(reply(0, &format!("    <file_size>{told}</file_size>\n"), ""))
    }

    fn upload(&mut self, request: &Request, head: &str, data: &[u8]) -> Option<Answer> {
        let number = |tag: &str| -> Option<u64> {
            head.split_once(&format!("<{tag}>"))?.1.split_once('<').and_then(|(n, _)| n.parse().ok())
        };
        let announced = matches!(&request.ask.body, Body::Framed { range, .. } if !range.is_empty());
        let nbytes = number("nbytes").expect("nbytes");
        let offset = usize::try_from(number("offset").expect("offset")).expect("fits");
        let missing = usize::try_from(nbytes).expect("fits") - offset;
        if self.bad_signature {
            return self.refuse(announced, -1, "invalid signature");
        }
        if nbytes > self.max_nbytes {
            return Some(reply(-1, "", "file size too big"));
        }
        let size = self.file.as_ref().map_or(0, Vec::len);
        if offset > size {
            return self.refuse(announced, 1, &format!("length of file f.bin {size} bytes < offset {offset} bytes"));
        }
        if self.locked > 0 {
            self.locked -= 1;
            return self.refuse(announced, 1, "can't lock file: locked by PID 1");
        }
        if self.dies_after.is_some_and(|most| data.len() as u64 > most) {
            return None;
        }
        if self.read_only {
            return Some(reply(0, "", ""));
        }
        let kept = match (request.cut, self.front) {
            (true, Front::Apache) => data.len() / (256 << 10) * (256 << 10),
            (true, _) => 0,
            (false, _) => data.len().min(missing),
        };
        if kept > 0 || nbytes == 0 {
            let file = self.file.get_or_insert_default();
            file.resize(file.len().max(offset + kept), 0);
            file[offset..offset + kept].copy_from_slice(&data[..kept]);
        }
        if kept < missing {
            return Some(reply(1, "", &format!("EOF on socket read : asked for {missing}, got {kept}")));
        }
        Some(reply(0, "", ""))
    }
}

pub(super) fn reply(status: i64, more: &str, message: &str) -> Answer {
    let message = if message.is_empty() { String::new() } else { format!("    <message>{message}</message>\n") };
    let text = format!("<data_server_reply>\n    <status>{status}</status>\n{more}{message}</data_server_reply>\n");
    answer(200, &[], text.as_bytes())
}

impl Server for Handler {
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        let mark = b"<data>\n";
        let at = request.body.windows(mark.len()).position(|w| w == mark);
        match at {
            None => self.size_query(),
            Some(at) => {
                let (head, data) = request.body.split_at(at + mark.len());
                let head = String::from_utf8(head.to_vec()).expect("text");
                self.upload(request, &head, data)
            }
        }
    }

    fn stored(&self) -> Option<&[u8]> {
        self.file.as_deref()
    }
}
