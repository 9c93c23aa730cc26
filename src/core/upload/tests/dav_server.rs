//! Servers that only know files, with the ways of those that were tried (facts of uploads, section 4).

use std::collections::BTreeMap;

use super::super::{Answer, Method};
use super::sim::{Request, Server, answer, path};

/// What becomes of Content-Range in a PUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranges {
    /// Honoured, on a file that is there.
    Appended,
    /// Refused with this status.
    Refused(u16),
    /// Not seen: the slice becomes the file.
    Ignored,
    /// Honoured for short bodies, ignored for longer ones: two servers behind one name.
    Fickle,
}

/// What a PUT leaves that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// What stood there before.
    Nothing,
    /// What came, in place of what stood there.
    Visible,
}

#[derive(Clone, Debug)]
pub(super) struct Dav {
    pub(super) files: BTreeMap<String, (u64, Vec<u8>)>,
    pub(super) name: String,
    pub(super) ranges: Ranges,
    pub(super) half: Half,
    /// The status of MOVE where it is refused.
    pub(super) no_move: Option<u16>,
    /// The status of HEAD and GET where they are refused.
    pub(super) no_head: Option<u16>,
    /// A body beyond this is refused with 413.
    pub(super) limit: Option<u64>,
    /// Folders that are there; `None` for all.
    pub(super) folders: Option<Vec<String>>,
    /// Names that may be written; `None` for all.
    pub(super) only: Option<(String, u16)>,
    /// Every stored byte at this place is changed.
    pub(super) spoil: Option<usize>,
    pub(super) etags: bool,
    /// HEAD of an empty file tells no length, as of Apache.
    pub(super) hides_empty: bool,
    /// Answers well, and keeps nothing.
    pub(super) forgets: bool,
    /// MOVE is answered well, and does nothing.
    pub(super) moves_not: bool,
    /// Only GET is refused.
    pub(super) no_get: Option<u16>,
    /// DELETE is refused, and nothing goes.
    pub(super) no_delete: bool,
    /// What a MOVE leaves is spoilt.
    pub(super) spoils_moved: bool,
    pub(super) counter: u64,
}

impl Dav {
    pub(super) fn new(ranges: Ranges, half: Half) -> Self {
        Self {
            files: BTreeMap::new(),
            name: "/d/f.bin".to_owned(),
            ranges,
            half,
            no_move: None,
            no_head: None,
            limit: None,
            folders: None,
            only: None,
            spoil: None,
            etags: true,
            hides_empty: false,
            forgets: false,
            moves_not: false,
            no_get: None,
            no_delete: false,
            spoils_moved: false,
            counter: 0,
        }
    }

    fn store(&mut self, name: &str, bytes: Vec<u8>) {
        self.counter += 1;
        if self.forgets {
            return;
        }
        self.files.insert(name.to_owned(), (self.counter, bytes));
    }

    fn put(&mut self, request: &Request, name: &str) -> Answer {
        if let Some((only, code)) = &self.only
            && only != name
        {
            return answer(*code, &[], b"");
        }
        let folder = name.rsplit_once('/').map_or("", |(f, _)| f).to_owned() + "/";
        if self.folders.as_ref().is_some_and(|known| !known.contains(&folder)) {
            return answer(409, &[], b"");
        }
        if self.limit.is_some_and(|limit| request.ask.body.length().0 > limit) {
            return answer(413, &[], b"");
        }
        let range = request.ask.field("content-range").map(str::to_owned);
        let there = self.files.get(name).map(|(_, bytes)| bytes.clone());
        let status = if there.is_some() { 204 } else { 201 };
        let mut body = request.body.clone();
        if let (Some(at), Some(byte)) = (self.spoil, self.spoil.and_then(|at| body.get(at))) {
            body[at] = byte ^ 1;
        }
        let honours = match self.ranges {
            Ranges::Appended => true,
            Ranges::Fickle => body.len() < 100 * 1024 && !request.cut,
            Ranges::Ignored | Ranges::Refused(_) => false,
        };
        match (range, self.ranges) {
            (Some(_), Ranges::Refused(code)) => return answer(code, &[], b""),
            (Some(range), _) if honours => {
                let Some(mut file) = there else { return answer(404, &[], b"") };
                let from: usize = range[6..range.find('-').expect("a range")].parse().expect("a number");
                file.resize(file.len().max(from + body.len()), 0);
                file[from..from + body.len()].copy_from_slice(&body);
                self.store(name, file);
            }
            _ if request.cut && self.half == Half::Nothing => {}
            _ => self.store(name, body),
        }
        answer(status, &[], b"")
    }
}

impl Server for Dav {
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        let name = path(&request.ask.url);
        Some(match request.ask.method {
            Method::Get if self.no_get.is_some() => answer(self.no_get.unwrap_or_default(), &[], b""),
            Method::Delete if self.no_delete => answer(403, &[], b""),
            Method::Move if self.moves_not => answer(201, &[], b""),
            Method::Put => self.put(request, &name),
            Method::Head | Method::Get => match (self.no_head, self.files.get(&name)) {
                (Some(code), _) => answer(code, &[], b""),
                (None, None) => answer(404, &[], b""),
                (None, Some((version, bytes))) => {
                    let (length, tag) = (bytes.len().to_string(), format!("\"{version}\""));
                    let mut fields = vec![("content-length", length.as_str())];
                    fields.retain(|_| !bytes.is_empty() || !self.hides_empty);
                    if self.etags {
                        fields.push(("etag", &tag));
                    }
                    let body: &[u8] = if request.ask.method == Method::Get { bytes } else { b"" };
                    answer(200, &fields, body)
                }
            },
            Method::Delete => answer(if self.files.remove(&name).is_some() { 204 } else { 404 }, &[], b""),
            Method::Move => match (self.no_move, self.files.remove(&name)) {
                (Some(code), file) => {
                    self.files.extend(file.map(|f| (name, f)));
                    answer(code, &[], b"")
                }
                (None, None) => answer(404, &[], b""),
                (None, Some((_, mut bytes))) => {
                    if self.spoils_moved {
                        bytes.reverse();
                    }
                    let to = super::sim::url(request.ask.field("destination").expect("a destination"));
                    self.store(&path(&to), bytes);
                    answer(201, &[], b"")
                }
            },
            Method::Mkcol => {
                let Some(folders) = &mut self.folders else { return Some(answer(405, &[], b"")) };
                folders.push(name);
                answer(201, &[], b"")
            }
            _ => answer(405, &[], b""),
        })
    }

    fn stored(&self) -> Option<&[u8]> {
        self.files.get(&self.name).map(|(_, bytes)| bytes.as_slice())
    }
}
