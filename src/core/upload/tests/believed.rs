//! What is believed of a server: never more than can have left this machine, and never a yes that came before that.

use super::super::*;
use super::sim::{Came, MIB, Request, Server, Sim, answer, broke, bytes, digest_of};
use crate::core::digest::Algorithm;
use crate::core::range::Offset;

type Says = Box<dyn FnMut(&Request) -> Option<Answer>>;

/// A server that says what a test wants it to.
struct Liar(Says);

impl Server for Liar {
    fn serve(&mut self, request: &Request) -> Option<Answer> {
        (self.0)(request)
    }

    fn stored(&self) -> Option<&[u8]> {
        None
    }
}

const SIZE: u64 = 4 * MIB;
const SIZED: &str = "4194304";

/// The first body is cut after one MiB.
fn lied_to(protocol: Protocol, to: &str, says: impl FnMut(&Request) -> Option<Answer> + 'static) -> Sim<Liar> {
    let make = move || -> Box<dyn UploadProtocol> {
        match protocol {
            Protocol::Boinc => Box::new(Boinc::new(Length(1 << 40), None)),
            Protocol::Put => Box::new(Put::default()),
            Protocol::PutRange => Box::new(PutRange::default()),
            Protocol::Tus => Box::new(Tus::default()),
            Protocol::Ietf => Box::new(Ietf::new(Interop::Eight)),
            Protocol::S3 => Box::new(SignedPut::new()),
        }
    };
    let mut sim = Sim::new(Liar(Box::new(says)), to, bytes(SIZE, 4), make);
    sim.cuts = [MIB].into();
    sim
}

/// Its answer to a body that it did not wait for arrives.
fn hasty(protocol: Protocol, to: &str, says: impl FnMut(&Request) -> Option<Answer> + 'static) -> Sim<Liar> {
    Sim { early: true, ..lied_to(protocol, to, says) }
}

#[track_caller]
fn failed(sim: &mut Sim<Liar>) -> UpFailure {
    match sim.session() {
        Came::End(UpEnd::Failed(failure)) => failure,
        other => panic!("{other:?}: {:?}", sim.log),
    }
}

/// Three passes: transient enough for that, and never done.
#[track_caller]
fn never_done(sim: &mut Sim<Liar>, is: fn(&UpFailure) -> bool) {
    for _ in 0..3 {
        sim.cuts = [sim.sent + MIB].into();
        let failure = failed(sim);
        assert!(is(&failure), "{failure}");
        assert_eq!(judge(&failure).scope, UpScope::Doubtful, "{failure}");
        sim.now = sim.now + Delay::from_days(2);
    }
}

fn early(failure: &UpFailure) -> bool {
    matches!(failure, UpFailure::Early { whole: Length(SIZE), .. })
}

fn overclaimed(failure: &UpFailure) -> bool {
    matches!(failure, UpFailure::Overclaimed { told: Length(SIZE), sent: Length(sent) } if *sent < SIZE)
}

fn created(fields: &[(&str, &str)]) -> Option<Answer> {
    let location = [("location", "/u/1")];
    Some(answer(201, &[&location, fields].concat(), b""))
}

#[test]
fn a_yes_before_the_body_is_through_is_none_where_nobody_can_be_asked() {
    let no_head = |status| {
        move |r: &Request| match r.ask.method {
            Method::Head => Some(answer(405, &[], b"")),
            Method::Post => created(&[]),
            _ => Some(answer(status, &[("upload-complete", "?1")], b"")),
        }
    };
    for (protocol, to) in [
        (Protocol::Put, "http://up.example/d/f"),
        (Protocol::Put, "http://up.example/d/f?signed"),
        (Protocol::S3, "http://up.example/b/f?X-Amz-Signature=s"),
    ] {
        never_done(&mut hasty(protocol, to, no_head(200)), early);
    }
    // An upload that is there and cannot be asked about is none to go on with.
    let mut ietf = hasty(Protocol::Ietf, "http://up.example/new", no_head(200));
    let failure = failed(&mut ietf);
    assert!(early(&failure) && judge(&failure).scope == UpScope::Doubtful, "{failure}");
    assert!(matches!(failed(&mut ietf), UpFailure::Status { code: 405, .. }));
}

#[test]
fn a_yes_before_the_body_is_through_is_asked_about_and_a_size_that_was_set_beforehand_is_none() {
    let whole = |r: &Request| match r.ask.method {
        Method::Head => Some(answer(200, &[("content-length", SIZED), ("upload-offset", SIZED)], b"")),
        Method::Post => created(&[]),
        Method::Options => Some(answer(204, &[], b"")),
        Method::Patch => Some(answer(204, &[("upload-offset", SIZED)], b"")),
        _ => Some(answer(201, &[], b"")),
    };
    never_done(&mut hasty(Protocol::Put, "http://up.example/d/f", whole), early);
    for protocol in [Protocol::Tus, Protocol::Ietf] {
        let mut sim = hasty(protocol, "http://up.example/new", whole);
        sim.cuts = (0..9).map(|n| MIB + n * MIB).collect();
        assert!(overclaimed(&failed(&mut sim)), "{protocol:?}");
        assert!(sim.sent <= 4 * MIB, "three new uploads at most: {}", sim.sent);
    }
}

#[test]
fn after_a_cut_no_server_holds_more_than_went_out() {
    let mut put = lied_to(Protocol::Put, "http://up.example/d/f", |r| match r.ask.method {
        Method::Head => Some(answer(200, &[("content-length", SIZED)], b"")),
        Method::Put => Some(answer(201, &[], b"")),
        _ => Some(answer(204, &[], b"")),
    });
    for _ in 0..2 {
        put.cuts = [put.sent + MIB].into();
        assert!(matches!(failed(&mut put), UpFailure::Transfer(_)), "in the first session and in the next");
    }
    put.cuts.clear();
    assert_eq!(put.session(), Came::End(UpEnd::Stored { confirmed: Proof::Size }), "the whole went out at last");
    assert_eq!(put.sent, SIZE + 2 * MIB);

    let mut ietf = lied_to(Protocol::Ietf, "http://up.example/new", |r| match r.ask.method {
        Method::Post => created(&[]),
        _ => Some(answer(204, &[("upload-complete", "?1"), ("upload-offset", SIZED)], b"")),
    });
    ietf.cuts = (0..9).map(|n| MIB + n * MIB).collect();
    assert!(overclaimed(&failed(&mut ietf)));
}

#[test]
fn boincs_size_beyond_what_went_out_counts_only_after_one_whole_body() {
    use super::boinc_server::reply;
    let mut asked = 0;
    let mut sim = lied_to(Protocol::Boinc, "http://up.example/fuh", move |r| {
        asked += 1;
        let held = if asked == 1 { 0 } else { SIZE };
        let is_query = r.ask.body.range().is_none();
        Some(if is_query { reply(0, &format!("<file_size>{held}</file_size>"), "") } else { reply(0, "", "") })
    });
    for _ in 0..2 {
        sim.cuts = [sim.sent + MIB].into();
        assert!(matches!(failed(&mut sim), UpFailure::Transfer(_)));
    }
    sim.cuts.clear();
    // A size that stood there before tells nothing of what was sent since.
    assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Status }));
    assert_eq!(sim.bodies.last().map(|b| (b.start, b.end)), Some((Offset(0), Offset(SIZE))), "from the start again");
}

#[test]
fn a_prefix_up_to_what_went_out_is_believed_also_by_the_next_process() {
    let mut sim = lied_to(Protocol::Tus, "http://up.example/new", |r| match r.ask.method {
        Method::Post => created(&[]),
        Method::Options => Some(answer(204, &[], b"")),
        Method::Head => Some(answer(200, &[("upload-offset", "1048576")], b"")),
        _ => Some(answer(503, &[], b"")),
    });
    assert!(matches!(failed(&mut sim), UpFailure::Status { code: 503, .. }));
    assert_eq!(sim.bodies.iter().map(|b| b.start.0).collect::<Vec<_>>(), [0, MIB], "it went on from there");
    assert_eq!(sim.disk.as_ref().map(|disk| disk.confirmed), Some(Offset(MIB)));
}

#[test]
fn a_creation_that_claims_more_than_it_carried_is_refused() {
    for extensions in ["creation", "creation,creation-with-upload"] {
        let mut sim = lied_to(Protocol::Tus, "http://up.example/new", move |r| match r.ask.method {
            Method::Post => created(&[("upload-offset", SIZED)]),
            Method::Options => Some(answer(204, &[("tus-extension", extensions)], b"")),
            _ => Some(answer(204, &[("upload-offset", SIZED)], b"")),
        });
        sim.cuts.clear();
        match (extensions, sim.session()) {
            ("creation", Came::End(UpEnd::Stored { .. })) => assert_eq!(sim.sent, SIZE, "it is not listened to there"),
            (_, Came::End(UpEnd::Failed(failure))) => assert!(overclaimed(&failure), "{failure}"),
            (_, other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_upload_is_complete_only_where_the_whole_was_sent_and_ended() {
    let limit = ("upload-limit", "max-append-size=1048576");
    // Said of a part: it is asked, and the rest is sent.
    let (mut held, mut closed) = (0, false);
    let mut parts = lied_to(Protocol::Ietf, "http://up.example/new", move |r| match r.ask.method {
        Method::Post => created(&[limit]),
        Method::Head => {
            let offset = held.to_string();
            let complete = if closed { "?1" } else { "?0" };
            Some(answer(204, &[limit, ("upload-offset", &offset), ("upload-complete", complete)], b""))
        }
        _ => {
            held += r.body.len();
            closed = r.ask.field("upload-complete") == Some("?1");
            Some(answer(200, &[("upload-complete", "?1")], b""))
        }
    });
    parts.cuts.clear();
    assert_eq!(parts.session(), Came::End(UpEnd::Stored { confirmed: Proof::Status }));
    assert_eq!((parts.sent, parts.bodies.len()), (SIZE, 4));
    // Said of the whole, with an offset that contradicts it.
    let mut short = lied_to(Protocol::Ietf, "http://up.example/new", |r| match r.ask.method {
        Method::Post => created(&[]),
        _ => Some(answer(200, &[("upload-complete", "?1"), ("upload-offset", "1048576")], b"")),
    });
    short.cuts.clear();
    assert_eq!(failed(&mut short), UpFailure::WrongSize { told: Some(Length(MIB)), ours: Length(SIZE) });
}

#[test]
fn a_refusal_of_boinc_that_does_not_wait_for_the_body_is_heard() {
    use super::boinc_server::reply;
    let mut sim = hasty(Protocol::Boinc, "http://up.example/fuh", |r| {
        let is_query = r.ask.body.range().is_none();
        Some(if is_query { reply(0, "<file_size>0</file_size>", "") } else { reply(-1, "", "no such user") })
    });
    assert_eq!(failed(&mut sim), UpFailure::Never { message: "no such user".to_owned() });
    assert_eq!(sim.bodies.len(), 1);
}

/// One session with a server that takes all; the source is as it is told when a look comes.
fn watched(protocol: Protocol, seen: impl Fn(usize, Sight) -> Sight + 'static) -> (UpEnd, usize, bool) {
    let mut sim = lied_to(protocol, "http://up.example/new", |r| {
        Some(match r.ask.method {
            Method::Post => created(&[])?,
            Method::Head => answer(404, &[], b""),
            _ => answer(200, &[("upload-complete", "?1"), ("etag", "\"opaque\"")], b""),
        })
    });
    sim.mark = Some(Mark { ctime_ns: 5, inode: 1 });
    sim.digest = Some(digest_of(Algorithm::Sha256, &sim.source));
    let mut xfer = sim.xfer();
    let (mut step, mut looks, mut digests) = (xfer.start(sim.now), 0, 0);
    loop {
        let event = match step.next {
            Next::Look => {
                looks += 1;
                Event::Looked(seen(looks, sim.sight()))
            }
            Next::Digest { algorithm, .. } => {
                digests += usize::from(algorithm == Algorithm::Sha256);
                Event::Digested(digest_of(algorithm, &sim.source))
            }
            Next::Ask(ask) => {
                let sent = ask.body.length();
                let request = Request { ask, body: Vec::new(), cut: false, now: sim.now };
                let said = sim.server.serve(&request);
                said.map_or_else(|| broke(0), |said| Event::Answer(Box::new(Answer { sent, ..said })))
            }
            Next::End(end) => return (end, digests, xfer.take_touched()),
            other => panic!("{other:?}"),
        };
        step = xfer.handle(event, sim.now);
    }
}

#[test]
fn the_source_is_looked_at_once_more_before_an_upload_is_called_done() {
    // Nothing changes until the last byte has gone.
    let late = |_: usize, sight: Sight| {
        let size = sight.stamp.size + Length(5);
        Sight { stamp: Stamp { size, ..sight.stamp }, ..sight }
    };
    for protocol in [Protocol::Ietf, Protocol::S3] {
        let looks = if protocol == Protocol::S3 { 3 } else { 2 };
        let (end, ..) = watched(protocol, move |n, sight| if n < looks { sight } else { late(n, sight) });
        assert_eq!(end, UpEnd::Failed(UpFailure::SourceChanged(Change::Size)), "{protocol:?}");
        let (end, ..) = watched(protocol, move |n, sight| if n <= looks { sight } else { late(n, sight) });
        assert!(matches!(end, UpEnd::Stored { .. }), "{protocol:?}: {end:?}");
    }
}

#[test]
fn a_source_whose_time_of_change_alone_moved_is_read_again() {
    let touched = |_: usize, sight: Sight| Sight { mark: Some(Mark { ctime_ns: 6, inode: 1 }), ..sight };
    let (end, digests, said) = watched(Protocol::Ietf, touched);
    assert!(matches!(end, UpEnd::Stored { .. }), "{end:?}");
    assert_eq!((digests, said), (1, true), "once, and it is said");
    let another = |_: usize, sight: Sight| Sight { name: Named::Another, ..sight };
    let (end, ..) = watched(Protocol::Ietf, another);
    assert_eq!(end, UpEnd::Failed(UpFailure::SourceChanged(Change::Replaced)));
}

#[test]
fn a_source_edited_in_place_with_its_time_set_back_is_another() {
    for known in [true, false] {
        let mut sim = lied_to(Protocol::Ietf, "http://up.example/new", |_| created(&[]));
        sim.mark = Some(Mark { ctime_ns: 5, inode: 1 });
        sim.digest = known.then(|| digest_of(Algorithm::Sha256, &sim.source));
        let mut xfer = sim.xfer();
        xfer.start(sim.now);
        xfer.handle(Event::Answer(Box::new(created(&[]).expect("an answer"))), sim.now);
        sim.mark = Some(Mark { ctime_ns: 6, inode: 1 });
        let mut step = xfer.handle(Event::Looked(sim.sight()), sim.now);
        if known {
            assert!(matches!(step.next, Next::Digest { .. }), "{step:?}");
            step = xfer.handle(Event::Digested(digest_of(Algorithm::Sha256, b"edited")), sim.now);
        }
        let change = if known { Change::Content } else { Change::Time };
        assert_eq!(step.next, Next::End(UpEnd::Failed(UpFailure::SourceChanged(change))));
        assert_eq!(xfer.session().source.digest, None, "whatever it is made to be, it does not fit any more");
    }
}

#[test]
fn what_is_no_http_passes() {
    use crate::core::failure::{BadAnswer, Failure};
    let garbled = Failure::BadAnswer(BadAnswer::Framing { detail: "no status line".to_owned() });
    assert_eq!(judge(&UpFailure::Transfer(garbled)).scope, UpScope::Transient { floor: None });
}

/// A large file is read while it goes out: what was read counts where nobody has touched the file meanwhile.
#[test]
fn a_digest_that_comes_while_a_body_flows_counts_of_an_untouched_source() {
    for untouched in [true, false] {
        let mut sim = lied_to(Protocol::Tus, "http://up.example/new", |_| None);
        sim.mark = Some(Mark { ctime_ns: 5, inode: 1 });
        let mut xfer = sim.xfer();
        xfer.start(sim.now);
        xfer.handle(Event::Answer(Box::new(answer(204, &[], b""))), sim.now);
        xfer.handle(Event::Answer(Box::new(created(&[]).expect("an answer"))), sim.now);
        xfer.handle(Event::Looked(sim.sight()), sim.now);
        let touched = Some(Mark { ctime_ns: 6, inode: 1 });
        let sight = Sight { mark: if untouched { sim.mark } else { touched }, ..sim.sight() };
        let digest = digest_of(Algorithm::Sha256, &sim.source);
        let step = xfer.handle(Event::Known { digest: digest.clone(), sight }, sim.now);
        let persist = if untouched { Persist::Now } else { Persist::Not };
        assert_eq!(step, Step { persist, next: Next::Await }, "{untouched}");
        assert_eq!(xfer.session().source.digest, untouched.then_some(digest));
        sim.mark = touched;
        let sent = Answer { sent: Length(SIZE), ..answer(204, &[("upload-offset", SIZED)], b"") };
        xfer.handle(Event::Answer(Box::new(sent)), sim.now);
        let next = xfer.handle(Event::Looked(sim.sight()), sim.now).next;
        let is_read = matches!(next, Next::Digest { .. });
        let is_refused = next == Next::End(UpEnd::Failed(UpFailure::SourceChanged(Change::Time)));
        assert_eq!((is_read, is_refused), (untouched, !untouched), "{next:?}");
    }
}
