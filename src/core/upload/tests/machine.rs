//! The rules that hold for every protocol: the source's identity, records before bytes, redirects, locks, lost sessions.

use super::super::*;
use super::dav_server::{Dav, Half, Ranges};
use super::sim::{Came, MIB, Request, Server, Sim, answer, bytes, digest_of, url};
use super::tus_server::TusServer;
use crate::core::digest::Algorithm;
use crate::core::failure::{Failure, RedirectFault};
use crate::core::range::Offset;
use crate::core::time::Epoch;

const STORED: Came = Came::End(UpEnd::Stored { confirmed: Proof::Size });

fn tus(server: TusServer) -> Sim<TusServer> {
    Sim::new(server, "http://up.example/files", bytes(4 * MIB, 1), || Box::new(Tus::default()))
}

/// A session that was cut after one MiB, and whose client was then stopped.
fn begun() -> Sim<TusServer> {
    let mut sim = tus(TusServer::new());
    let mut xfer = sim.xfer();
    let mut step = xfer.start(sim.now);
    let mut asked = 0;
    while asked < 3 {
        if step.persist != Persist::Not {
            sim.disk = Some(xfer.session().clone());
        }
        let event = match &step.next {
            Next::Look => Event::Looked(sim.sight()),
            Next::Ask(ask) => {
                asked += 1;
                let (cut, mib) = (asked == 3, usize::try_from(MIB).expect("fits"));
                let body = if cut { sim.source[..mib].to_vec() } else { Vec::new() };
                let answer = sim.server.serve(&Request { ask: ask.clone(), body, cut, now: sim.now });
                Event::Answer(Box::new(answer.expect("it answers")))
            }
            other => panic!("{other:?}"),
        };
        step = if asked == 3 {
            xfer.handle(Event::Stopped { sent: Length(MIB) }, sim.now)
        } else {
            xfer.handle(event, sim.now)
        };
    }
    assert_eq!(step.next, Next::End(UpEnd::Stopped));
    assert_eq!(sim.server.uploads[0].bytes.len() as u64, MIB);
    sim
}

#[test]
fn an_unchanged_source_goes_on() {
    let mut sim = begun();
    assert_eq!(sim.session(), STORED);
    assert_eq!((sim.sent, sim.restarted), (3 * MIB, None));
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
}

#[test]
fn a_source_edited_between_sessions_is_begun_anew() {
    for (change, size) in [(Change::Time, 4 * MIB), (Change::Size, 5 * MIB)] {
        let mut sim = begun();
        sim.source = bytes(size, 9);
        sim.stamp = Stamp { size: Length(size), mtime_ns: 2 };
        assert_eq!(sim.session(), STORED);
        assert_eq!((sim.sent, sim.restarted), (size, Some(change)));
        assert_eq!(sim.server.uploads[0].gone, Some(404), "the old upload is cleaned up");
        assert_eq!(sim.server.stored(), Some(&sim.source[..]));
    }
}

#[test]
fn a_digest_decides_over_times() {
    let mut sim = begun();
    let digest = digest_of(Algorithm::Sha256, &sim.source);
    sim.disk.as_mut().expect("a record").source.digest = Some(digest);
    let record = sim.disk.clone();
    // Only touched.
    sim.stamp.mtime_ns = 77;
    assert_eq!(sim.session(), STORED);
    assert_eq!((sim.sent, sim.restarted), (3 * MIB, None));
    // Edited in place, and its time set back.
    let mut sim = Sim { disk: record, ..begun() };
    sim.source[17] ^= 1;
    assert_eq!(sim.session(), STORED);
    assert_eq!((sim.sent, sim.restarted), (4 * MIB, Some(Change::Content)));
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
}

#[test]
fn a_source_that_changes_under_way_is_never_done() {
    for at in [2, 3] {
        let mut sim = tus(TusServer { takes: Some(1 << 20), ..TusServer::new() });
        sim.edit_at = Some(at);
        assert_eq!(sim.session(), Came::End(UpEnd::Failed(UpFailure::SourceChanged(Change::Time))));
        assert_eq!(sim.restarted, None);
        assert_eq!(sim.session(), STORED);
        assert_eq!(sim.restarted, Some(Change::Time), "what was mixed is not gone on with");
    }
}

#[test]
fn a_source_that_is_gone() {
    let sim = tus(TusServer::new());
    let mut xfer = sim.xfer();
    xfer.start(sim.now);
    let step = xfer.handle(Event::SourceGone("no such file".to_owned()), sim.now);
    assert!(matches!(step.next, Next::End(UpEnd::Failed(UpFailure::SourceGone { .. }))));
    let after = xfer.handle(Event::Rested, sim.now);
    assert_eq!(after, Step { persist: Persist::Not, next: Next::Await }, "nothing wakes it again");
}

#[test]
fn a_lock_is_waited_for_and_loses_nothing() {
    let mut sim = begun();
    sim.server.instead = [(Method::Head, 423); 5].into();
    assert_eq!(sim.session(), STORED);
    assert_eq!((sim.sent, sim.rested), (3 * MIB, Delay::from_secs(1 + 2 + 4 + 8 + 16)));
    let mut sim = begun();
    sim.server.instead = [(Method::Head, 423); 500].into();
    let Came::End(UpEnd::Failed(failure)) = sim.session() else { panic!("ten minutes") };
    assert!(matches!(failure, UpFailure::Busy { waited } if waited >= Delay::from_mins(10)));
    assert_eq!(sim.disk.as_ref().map(|d| d.handle.is_some()), Some(true), "the session is kept");
}

#[test]
fn only_gone_loses_a_session() {
    for code in [401, 403, 429, 500, 503, 0] {
        let mut sim = begun();
        sim.server.instead = [(Method::Head, code)].into();
        assert!(matches!(sim.session(), Came::End(UpEnd::Failed(_))), "{code}");
        assert_eq!(sim.session(), STORED, "{code}");
        assert_eq!((sim.sent, sim.server.uploads.len()), (3 * MIB, 1), "{code}");
    }
    for code in [404, 410] {
        let mut sim = begun();
        sim.server.uploads[0].gone = Some(code);
        assert_eq!(sim.session(), STORED);
        assert_eq!((sim.sent, sim.server.uploads.len()), (4 * MIB, 2));
    }
}

#[test]
fn a_server_that_keeps_forgetting_is_left_alone() {
    let mut sim = tus(TusServer::new());
    sim.server.instead = [(Method::Patch, 404); 20].into();
    let Came::End(UpEnd::Failed(failure)) = sim.session() else { panic!("for ever") };
    assert_eq!(failure, UpFailure::KeepsForgetting { times: MAX_LOST + 1 });
    let mut sim = tus(TusServer::new());
    sim.server.instead = [(Method::Patch, 404); 3].into();
    assert_eq!(sim.session(), STORED);
    let mut lost = Lost::default();
    let day = |n: i64| Epoch::from_secs(n * 90_000);
    assert!((1..9).all(|n| lost.another(day(n))), "one a day is borne");
}

#[test]
fn a_record_of_another_server_or_protocol_counts_for_nothing() {
    for change in [
        |r: &mut UploadSession| r.server = url("http://other.example/files"),
        |r: &mut UploadSession| r.protocol = Protocol::Ietf,
    ] {
        let mut sim = begun();
        change(sim.disk.as_mut().expect("a record"));
        assert_eq!(sim.session(), STORED);
        assert_eq!(sim.sent, 4 * MIB);
    }
}

#[test]
fn offsets_that_cannot_be_ours() {
    // More than was ever sent.
    let mut sim = begun();
    sim.disk.as_mut().expect("a record").reached = Offset(MIB / 2);
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.server.uploads.len(), 2, "begun anew");
    assert_eq!(sim.server.uploads[1].bytes, sim.source);
    // Less than was confirmed: sent again.
    let mut sim = begun();
    sim.disk.as_mut().expect("a record").confirmed = Offset(2 * MIB);
    assert_eq!(sim.session(), STORED);
    assert_eq!((sim.sent, sim.server.uploads.len()), (3 * MIB, 1));
    // Another length.
    let mut sim = begun();
    sim.server.uploads[0].length += 1;
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.server.uploads.len(), 2);
}

#[test]
fn cleaning_up_ends_with_any_answer_and_tells_one_that_says_no() {
    let sim = begun();
    let said = |code| Event::Answer(Box::new(answer(code, &[], b"")));
    for (event, gone) in [
        (said(204), true),
        (said(404), true),
        (said(410), true),
        (said(500), false),
        (said(405), false),
        (super::sim::broke(0), false),
    ] {
        let mut xfer = sim.xfer();
        let Next::Ask(ask) = xfer.abandon(sim.now).next else { panic!("a DELETE") };
        assert_eq!((ask.method, ask.patience), (Method::Delete, ABANDON_PATIENCE));
        let end = xfer.handle(event.clone(), sim.now).next;
        assert_eq!(matches!(end, Next::End(UpEnd::Abandoned)), gone, "{event:?}: {end:?}");
        assert_eq!(matches!(end, Next::End(UpEnd::NotAbandoned(_))), !gone, "{event:?}: {end:?}");
    }
}

/// The server still reads a body that was cut a moment ago.
#[test]
fn what_is_still_held_is_cleaned_up_again_and_not_for_ever() {
    let sim = begun();
    let mut xfer = sim.xfer();
    let mut next = xfer.abandon(sim.now).next;
    for _ in 0..8 {
        assert!(matches!(next, Next::Ask(_)), "{next:?}");
        let held = xfer.handle(Event::Answer(Box::new(answer(423, &[], b""))), sim.now).next;
        assert_eq!(held, Next::Rest(Delay::from_secs(1)));
        next = xfer.handle(Event::Rested, sim.now).next;
    }
    let end = xfer.handle(Event::Answer(Box::new(answer(423, &[], b""))), sim.now).next;
    assert!(matches!(end, Next::End(UpEnd::NotAbandoned(UpFailure::Status { code: 423, .. }))), "{end:?}");
}

/// A redirector before the real server.
struct Moved(Dav, u16, &'static str);

impl Server for Moved {
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        let old = request.ask.url.host() == "up.example";
        if old && request.ask.method == Method::Put {
            return Some(answer(self.1, &[("location", self.2)], b""));
        }
        self.0.serve(request)
    }
    fn stored(&self) -> Option<&[u8]> {
        self.0.stored()
    }
}

#[test]
fn redirects_that_keep_the_method_are_followed() {
    let end = |code, to: &'static str, from: &str| {
        let server = Moved(Dav::new(Ranges::Ignored, Half::Nothing), code, to);
        let mut sim = Sim::new(server, from, bytes(10, 1), || Box::new(Put::default()));
        sim.session()
    };
    let from = "http://up.example/d/f.bin?signed=1";
    assert_eq!(end(307, "http://new.example/d/f.bin", from), STORED);
    assert_eq!(end(308, "http://new.example/d/f.bin", from), STORED);
    let fault = |f| Came::End(UpEnd::Failed(UpFailure::Transfer(Failure::Redirect(f))));
    assert_eq!(end(302, "http://new.example/d/f.bin", from), fault(RedirectFault::NoLocation { code: 302 }));
    assert_eq!(end(307, "http://up.example/again", from), fault(RedirectFault::TooMany { limit: 20 }));
    let from = "https://up.example/d/f.bin?signed=1";
    assert_eq!(end(307, "http://new.example/d/f.bin", from), fault(RedirectFault::Downgrade));
}

#[test]
fn secrets_are_not_shown() {
    let mut sim = begun();
    let shown = format!("{:?}", sim.disk.as_ref().and_then(|d| d.handle.as_ref()));
    assert_eq!(shown, "Some(Url(***))");
    let mut ask = Ask::new(Method::Patch, &url("http://h/very/secret?x=1")).with("authorization", "hush");
    ask = ask.carrying(Body::Bytes(b"private".to_vec()));
    let shown = format!("{ask:?}");
    assert!(!["secret", "hush", "private", "x=1"].iter().any(|s| shown.contains(s)), "{shown}");
    sim.disk = None;
}
