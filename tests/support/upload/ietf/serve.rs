//! The requests of the draft: creation, append, offset, cancellation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use super::super::door::Way;
use super::super::faults::lock;
use super::super::visit::Visit;
use super::fields::{Fields, boolean, completes, problem};
use super::{IetfFault, Interim, State, Upload};

const PROBLEM: (&str, &str) = ("Content-Type", "application/problem+json");

/// A body that is to be appended.
struct Append {
    id: String,
    /// Where it begins.
    from: u64,
    /// Is the upload complete with it?
    last: bool,
    fault: IetfFault,
    /// Is this the request that created the upload?
    creates: bool,
}

/// How taking a body ended.
enum Ended {
    Whole,
    Broken,
    /// The fault ended it.
    Due,
}

impl State {
    pub(super) fn serve(&self, visit: &mut Visit) -> Way {
        let speaks = match self.manners.interop {
            Some(n) => visit.header("upload-draft-interop-version") == Some(n.to_string().as_str()),
            None => visit.header("upload-draft-interop-version").is_none(),
        };
        let id = visit.path().strip_prefix("/uploads/").map(str::to_owned);
        match (visit.method.as_str(), id) {
            ("OPTIONS", _) => visit.answer(204, &[self.version(), self.announced()].concat(), ""),
            ("POST" | "PUT", None) if speaks && boolean(visit, "upload-complete").is_some() => self.create(visit),
            ("POST" | "PUT", None) => self.plain(visit),
            (method, Some(id)) => {
                if !speaks {
                    self.complain(&format!("{method} without the interop version that was agreed on"));
                }
                self.on_upload(visit, &id)
            }
            _ => visit.answer(405, &[], ""),
        }
    }

    /// A server that knows nothing of the draft takes it as it is.
    fn plain(&self, visit: &mut Visit) -> Way {
        let id = self.new_upload(visit.number("content-length"));
        let append = Append { id: id.clone(), from: 0, last: true, fault: self.faults.take(), creates: false };
        match self.take_body(visit, &append, None) {
            Ok(Ended::Whole) => {
                self.change(&id, |upload| upload.complete = true);
                visit.answer(201, &[], "taken\n")
            }
            _ => {
                lock(&self.uploads).remove(&id);
                Way::Close
            }
        }
    }

    fn new_upload(&self, length: Option<u64>) -> String {
        let mut created = lock(&self.created);
        *created += 1;
        let id = format!("u{:06}", *created);
        File::create(self.path(&id)).expect("the folder can be written");
        lock(&self.uploads).insert(id.clone(), Upload { length, ..Upload::default() });
        id
    }

    fn create(&self, visit: &mut Visit) -> Way {
        let last = boolean(visit, "upload-complete") == Some(true);
        let (told, sent) = (visit.number("upload-length"), visit.number("content-length"));
        let length = told.or(sent.filter(|_| last));
        if last && told.is_some() && sent.is_some() && told != sent {
            return self.refuse(visit, 400, &problem("inconsistent-upload-length", ""));
        }
        let limits = self.manners.limits;
        if length.zip(limits.max_size).is_some_and(|(n, max)| n > max) {
            return self.refuse(visit, 413, &problem("about:blank", ""));
        }
        if length.zip(limits.min_size).is_some_and(|(n, min)| n < min) {
            return self.refuse(visit, 400, &problem("about:blank", ""));
        }
        let fault = self.faults_of(visit, last);
        if let IetfFault::Answers(status) = fault {
            return visit.drain().map_or(Way::Close, |_| self.refuse(visit, status, ""));
        }
        let id = self.new_upload(length);
        self.append(visit, &Append { id, from: 0, last, fault, creates: true })
    }

    /// A fault that is to come once waits for a body, or for the end of an upload.
    fn faults_of(&self, visit: &Visit, last: bool) -> IetfFault {
        if visit.has_body() || last { self.faults.take() } else { self.faults.standing() }
    }

    fn refuse(&self, visit: &mut Visit, status: u16, body: &str) -> Way {
        let kind = (PROBLEM.0, PROBLEM.1.to_owned());
        visit.answer(status, &[self.version(), self.limits(), vec![kind]].concat(), body)
    }

    fn on_upload(&self, visit: &mut Visit, id: &str) -> Way {
        if self.known(id).is_none() {
            let status = lock(&self.gone).unwrap_or(404);
            return visit.answer(status, &self.version(), "");
        }
        // Only one transfer at a time: an older one that still runs is ended.
        if let Some(Upload { busy: Some(connection), .. }) = self.known(id) {
            visit.end_connection(connection);
            let from = Instant::now();
            while self.known(id).is_some_and(|upload| upload.busy.is_some()) && from.elapsed() < Duration::from_secs(10)
            {
                thread::sleep(Duration::from_millis(2));
            }
        }
        let Some(upload) = self.known(id) else { return visit.answer(404, &self.version(), "") };
        match visit.method.as_str() {
            "HEAD" | "GET" => self.offset(visit, id, &upload),
            "PATCH" => self.patch(visit, id, &upload),
            "DELETE" => {
                lock(&self.uploads).remove(id);
                visit.answer(204, &self.version(), "")
            }
            _ => visit.answer(405, &self.version(), ""),
        }
    }

    fn offset(&self, visit: &mut Visit, id: &str, upload: &Upload) -> Way {
        if visit.header("upload-offset").is_some() || visit.header("upload-complete").is_some() {
            self.complain("a request for the offset tells one");
            return self.refuse(visit, 400, "");
        }
        let mut fields = vec![
            ("Upload-Offset", upload.offset.to_string()),
            completes(upload.complete),
            ("Cache-Control", "no-store".to_owned()),
        ];
        fields.extend(upload.length.map(|n| ("Upload-Length", n.to_string())));
        if upload.complete {
            fields.extend(self.digest(id));
        }
        visit.answer(204, &[self.version(), self.limits(), fields].concat(), "")
    }

    fn patch(&self, visit: &mut Visit, id: &str, upload: &Upload) -> Way {
        let Some((from, last)) = visit.number("upload-offset").zip(boolean(visit, "upload-complete")) else {
            self.complain("PATCH without Upload-Offset or Upload-Complete");
            return self.refuse(visit, 400, "");
        };
        if visit.header("content-type") != Some("application/partial-upload") {
            self.complain("PATCH without application/partial-upload");
            return self.refuse(visit, 415, "");
        }
        if upload.complete {
            return self.refuse(visit, 400, &problem("completed-upload", ""));
        }
        let fault = self.faults_of(visit, last);
        if from != upload.offset || fault == IetfFault::Conflict {
            return self.conflict(visit, upload.offset, from);
        }
        if let IetfFault::Answers(status) = fault {
            return visit.drain().map_or(Way::Close, |_| self.refuse(visit, status, ""));
        }
        if let Some(refused) = self.beyond_limits(visit, upload, last) {
            return refused;
        }
        self.append(visit, &Append { id: id.to_owned(), from, last, fault, creates: false })
    }

    fn conflict(&self, visit: &mut Visit, expected: u64, provided: u64) -> Way {
        let members = format!(",\"expected-offset\":{expected},\"provided-offset\":{provided}");
        let fields = vec![("Upload-Offset", expected.to_string()), completes(false), (PROBLEM.0, PROBLEM.1.to_owned())];
        visit.answer(409, &[self.version(), fields].concat(), &problem("mismatching-upload-offset", &members))
    }

    /// The answer to a body that no limit allows.
    fn beyond_limits(&self, visit: &mut Visit, upload: &Upload, last: bool) -> Option<Way> {
        let size = visit.number("content-length")?;
        let limits = self.manners.limits;
        if limits.max_append.is_some_and(|max| size > max) {
            self.complain("a body is larger than max-append-size");
            return Some(self.refuse(visit, 413, ""));
        }
        if !last && limits.min_append.is_some_and(|min| size < min) {
            self.complain("a body that is not the last is smaller than min-append-size");
            return Some(self.refuse(visit, 400, ""));
        }
        if upload.length.is_some_and(|length| upload.offset + size > length) {
            return Some(self.refuse(visit, 400, &problem("inconsistent-upload-length", "")));
        }
        None
    }

    fn append(&self, visit: &mut Visit, append: &Append) -> Way {
        let (id, from) = (append.id.as_str(), append.from);
        if append.creates && visit.has_body() && self.manners.interim != Interim::Never {
            // Before the client is told to go on.
            let fields = [self.interim_version(append), vec![self.location(visit, id)], self.limits()].concat();
            if visit.interim(104, &fields).is_err() {
                return Way::Close;
            }
        }
        let connection = visit.connection();
        self.change(id, |upload| upload.busy = Some(connection));
        let progress = match self.manners.interim {
            Interim::Progress { every } => Some(every),
            _ => None,
        };
        let ended = self.take_body(visit, append, progress);
        if matches!((&ended, append.fault), (Ok(Ended::Due), IetfFault::Stall { .. })) {
            visit.hang();
        }
        let lost = matches!(append.fault, IetfFault::Loses { .. }) && !matches!(ended, Ok(Ended::Whole));
        self.change(id, |upload| {
            upload.busy = None;
            if lost {
                upload.offset = from;
            }
        });
        match (ended, append.fault) {
            (Ok(Ended::Whole), _) | (Ok(Ended::Due), IetfFault::TakesPart { .. }) => self.appended(visit, append),
            (Ok(Ended::Due), IetfFault::Cut { .. } | IetfFault::Loses { .. }) => Way::Reset,
            _ => Way::Close,
        }
    }

    fn interim_version(&self, append: &Append) -> Fields {
        match append.fault {
            IetfFault::OtherInterop(n) => vec![("Upload-Draft-Interop-Version", n.to_string())],
            _ => self.version(),
        }
    }

    /// Stores the body as it comes.
    fn take_body(&self, visit: &mut Visit, append: &Append, progress: Option<u64>) -> io::Result<Ended> {
        let mut left = match append.fault {
            IetfFault::Cut { after } | IetfFault::Loses { after } | IetfFault::Stall { after } => after,
            IetfFault::TakesPart { bytes } => bytes,
            _ => u64::MAX,
        };
        let file = File::options().write(true).open(self.path(&append.id))?;
        let (mut at, mut buffer) = (append.from, vec![0; 64 << 10]);
        let mut told = at;
        while visit.has_body() {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if most == 0 {
                return Ok(Ended::Due);
            }
            let Ok(n) = visit.take(&mut buffer[..most]) else { return Ok(Ended::Broken) };
            file.write_all_at(&buffer[..n], at)?;
            at += n as u64;
            left -= n as u64;
            self.change(&append.id, |upload| upload.offset = at);
            if progress.is_some_and(|every| at - told >= every) {
                told = at;
                let offset = vec![("Upload-Offset", at.to_string())];
                visit.interim(104, &[self.interim_version(append), offset].concat())?;
            }
        }
        Ok(Ended::Whole)
    }

    /// What is answered when the body is stored.
    fn appended(&self, visit: &mut Visit, append: &Append) -> Way {
        let id = append.id.as_str();
        let Some(upload) = self.known(id) else { return Way::Close };
        let partial = matches!(append.fault, IetfFault::TakesPart { .. }) && visit.drain().is_ok_and(|n| n > 0);
        let closes = append.last && !partial;
        if closes && upload.length.is_some_and(|length| length != upload.offset) {
            return self.refuse(visit, 400, &problem("inconsistent-upload-length", ""));
        }
        if closes {
            self.change(id, |upload| upload.complete = true);
        }
        if append.fault == IetfFault::AnswerLost {
            return Way::Close;
        }
        let mut fields = [self.version(), vec![completes(closes)], self.limits()].concat();
        if append.creates {
            fields.push(self.location(visit, id));
        }
        if self.manners.tells_offset || partial {
            fields.push(("Upload-Offset", upload.offset.to_string()));
        }
        if !closes {
            return visit.answer(if append.creates { 201 } else { 204 }, &fields, "");
        }
        fields.extend(self.digest(id));
        let (status, body) = lock(&self.application).clone();
        visit.answer(status, &fields, &body)
    }
}
