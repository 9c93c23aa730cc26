//! BOINC's answers, row by row (facts of uploads, 1.3), and the wrap of its sizes.

use super::super::*;
use super::boinc_server::{Front, Handler, reply};
use super::sim::{Came, KIB, MIB, Request, Server, Sim, answer, bytes};
use crate::core::range::{ByteRange, Offset};

const STORED: Came = Came::End(UpEnd::Stored { confirmed: Proof::Size });

fn boinc(front: Front, size: u64) -> Sim<Handler> {
    let make = || -> Box<dyn UploadProtocol> { Box::new(Boinc::new(Length(1 << 40), Some("ab\n.\n".to_owned()))) };
    Sim::new(Handler::new(front), "http://up.example/cgi/file_upload_handler", bytes(size, 2), make)
}

fn failed(sim: &mut Sim<Handler>) -> UpFailure {
    match sim.session() {
        Came::End(UpEnd::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_resumed_upload_in_two_parts() {
    let mut sim = boinc(Front::Apache, 3 * MIB);
    sim.cuts = vec![MIB].into();
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.bodies.iter().map(|b| b.start.0).collect::<Vec<_>>(), [0, MIB]);
    assert_eq!(sim.server.file.as_ref(), Some(&sim.source));
}

#[test]
fn a_small_file_goes_at_once_and_is_asked_for_afterwards() {
    let mut sim = boinc(Front::Apache, 8191);
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.log.len(), 2);
    let mut sim = boinc(Front::Apache, 8192);
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.log.len(), 3);
}

#[test]
fn an_empty_file_is_created() {
    let mut sim = boinc(Front::Apache, 0);
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.server.file, Some(Vec::new()));
}

#[test]
fn a_refusal_that_hangs_up_is_found_by_asking_without_data() {
    for front in [Front::Apache, Front::Nginx] {
        let mut sim = boinc(front, MIB);
        sim.server.bad_signature = true;
        let first = failed(&mut sim);
        assert_eq!(judge(&first).scope, UpScope::Transient { floor: None }, "{front:?}: {first}");
        assert_eq!(failed(&mut sim), UpFailure::Never { message: "invalid signature".to_owned() }, "{front:?}");
    }
    let mut sim = boinc(Front::Lighttpd, MIB);
    sim.server.bad_signature = true;
    assert_eq!(failed(&mut sim), UpFailure::Never { message: "invalid signature".to_owned() });
}

#[test]
fn asking_without_data_changes_nothing_where_all_is_well() {
    let mut sim = boinc(Front::Nginx, MIB);
    sim.cuts = vec![200 * KIB, 400 * KIB, 600 * KIB].into();
    assert!(matches!(failed(&mut sim), UpFailure::Transfer(_)));
    assert!(matches!(failed(&mut sim), UpFailure::Transfer(_)));
    assert_eq!(sim.log.len(), 3 + 4, "size, body, size; and the same with a question");
    assert_eq!(sim.server.file, None);
    assert!(matches!(failed(&mut sim), UpFailure::Transfer(_)));
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.server.file.as_ref(), Some(&sim.source));
}

#[test]
fn too_large_is_never() {
    let mut sim = boinc(Front::Apache, MIB);
    sim.server.max_nbytes = 5;
    assert_eq!(failed(&mut sim), UpFailure::Never { message: "file size too big".to_owned() });
    let make = || -> Box<dyn UploadProtocol> { Box::new(Boinc::new(Length(5), None)) };
    let mut sim = Sim { make: Box::new(make), ..boinc(Front::Apache, MIB) };
    let why = FoundAtServer::AtMost(Length(5));
    assert_eq!(failed(&mut sim), UpFailure::Unsupported { protocol: Protocol::Boinc, why });
    assert_eq!(sim.log.len(), 0, "the limit is known before a byte is sent");
}

#[test]
fn a_lock_is_waited_for() {
    let mut sim = boinc(Front::Apache, MIB);
    sim.server.locked = 3;
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.rested, Delay::from_secs(1 + 2 + 4));
}

#[test]
fn more_than_the_file_has_is_another_file() {
    let mut sim = boinc(Front::Apache, MIB);
    sim.server.file = Some(bytes(MIB + 1, 5));
    let conflict = UpFailure::Conflict { told: Length(MIB + 1), ours: Length(MIB) };
    assert_eq!(failed(&mut sim), conflict);
    let make =
        || -> Box<dyn UploadProtocol> { Box::new(Boinc { surplus: Surplus::Done, ..Boinc::new(Length(MIB), None) }) };
    sim.make = Box::new(make);
    assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Status }));
}

/// What stands there before this record has sent anything, and how much of it is kept, whatever it is: nothing.
#[test]
fn what_nobody_sent_from_here_is_written_over_from_the_start() {
    let noise = bytes(MIB, 99);
    for (size, prior) in [(MIB, 700_000), (MIB, MIB), (5000, 3000), (5000, 5000)] {
        for cut in [None, Some(size / 2)] {
            let prior_bytes = &noise[..usize::try_from(prior).expect("fits")];
            let mut sim = boinc(Front::Apache, size);
            sim.server.file = Some(prior_bytes.to_vec());
            sim.cuts = cut.into_iter().collect();
            let end = sim.run(20);
            assert!(matches!(end, UpEnd::Stored { .. }), "{size} over {prior}, cut {cut:?}: {end:?}");
            assert!(sim.server.file.as_ref() == Some(&sim.source), "{size} over {prior}, cut {cut:?}");
        }
    }
}

/// The size is right before a byte is sent, so that it is no evidence afterwards.
#[test]
fn a_size_that_was_right_before_is_no_evidence() {
    for (prior, confirmed) in [(MIB, Proof::Status), (MIB - 1, Proof::Size)] {
        let mut sim = boinc(Front::Apache, MIB);
        sim.server.file = Some(bytes(prior, 99));
        assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed }), "{prior}");
        assert!(sim.server.file.as_ref() == Some(&sim.source));
    }
}

/// Bodies that die over an older version: a size never shows that a part has arrived, so that each segment is confirmed by
/// the handler's word, and it ends.
#[test]
fn segments_over_an_older_version_are_confirmed_one_by_one() {
    let mut sim = boinc(Front::Nginx, 4 * MIB);
    sim.server.file = Some(bytes(4 * MIB, 99));
    sim.server.dies_after = Some(MIB);
    let end = sim.run(40);
    assert!(matches!(end, UpEnd::Stored { .. }), "{end:?}");
    assert!(sim.server.file.as_ref() == Some(&sim.source));
    assert!(sim.bodies.iter().any(|body| body.start.0 > 0), "in segments");
}

#[test]
fn success_that_stores_nothing_is_not_believed() {
    let mut sim = boinc(Front::Apache, MIB);
    sim.server.read_only = true;
    assert_eq!(failed(&mut sim), UpFailure::NoGrowth { times: 2 });
}

#[test]
fn a_page_is_no_reply() {
    let mut sim = boinc(Front::Apache, MIB);
    sim.server.pages = 1;
    let failure = failed(&mut sim);
    assert!(matches!(failure, UpFailure::Foreign { code: 200, .. }), "{failure}");
    assert_eq!(judge(&failure).scope, UpScope::Transient { floor: None });
    assert_eq!(sim.session(), STORED);
}

#[test]
fn a_name_that_the_lines_cannot_carry() {
    let plan = |name: &str| {
        let sim = boinc(Front::Apache, MIB);
        let source = Source { stamp: sim.stamp, mark: None, digest: None };
        let (name, media_type, token) = (name.to_owned(), String::new(), String::new());
        let (protocol, server) = ((sim.make)(), sim.url.clone());
        let (read_back, stale) = (Length::ZERO, Offset::ZERO);
        Plan { protocol, server, saved: None, source, name, media_type, token, read_back, stale }
    };
    let now = crate::core::time::Epoch::from_secs(1);
    let step = UpXfer::new(plan("a\n</name>"), now).start(now);
    assert!(matches!(step.next, Next::End(UpEnd::Failed(UpFailure::Unsupported { why: FoundAtServer::Name, .. }))));
}

/// An edit starts from nothing, though the server still has the old version, of the same size.
#[test]
fn an_edited_file_is_sent_whole_over_the_old_one() {
    let mut sim = boinc(Front::Apache, 2 * MIB);
    sim.cuts = vec![MIB, MIB, MIB, MIB, MIB].into();
    sim.run(1);
    sim.cuts.clear();
    sim.server.file = Some(sim.source.clone());
    let mut record = sim.disk.clone().unwrap_or_else(|| {
        let source = Source { stamp: sim.stamp, mark: None, digest: None };
        UploadSession::new(Protocol::Boinc, sim.url.clone(), source, sim.now)
    });
    record.reached = Offset(2 * MIB);
    sim.disk = Some(record);
    sim.source = bytes(2 * MIB, 77);
    sim.stamp.mtime_ns = 9;
    sim.sent = 0;
    assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Status }));
    assert_eq!((sim.sent, sim.restarted), (2 * MIB, Some(Change::Time)));
    assert_eq!(sim.server.file.as_ref(), Some(&sim.source));
}

/// A machine with a file of this size, its record saying that so much was confirmed, told this size by the server: the
/// first byte that it sends then.
fn first_byte(size: u64, confirmed: u64, told: i64) -> Option<ByteRange> {
    let now = crate::core::time::Epoch::from_secs(1);
    let source = Source { stamp: Stamp { size: Length(size), mtime_ns: 1 }, mark: None, digest: None };
    let server = super::sim::url("http://up.example/cgi");
    let mut saved = UploadSession::new(Protocol::Boinc, server.clone(), source.clone(), now);
    (saved.confirmed, saved.reached) = (Offset(confirmed), Offset(size));
    let plan = Plan {
        protocol: Box::new(Boinc::new(Length(1 << 50), None)),
        server,
        saved: Some(saved),
        source: source.clone(),
        name: "n".to_owned(),
        media_type: String::new(),
        token: String::new(),
        read_back: Length::ZERO,
        stale: Offset::ZERO,
    };
    let mut xfer = UpXfer::new(plan, now);
    xfer.start(now);
    let told = reply(0, &format!("<file_size>{told}</file_size>\n"), "");
    let told = Answer { sent: Length(1 << 10), ..told };
    let step = xfer.handle(Event::Answer(Box::new(told)), now);
    let seen = Sight { stamp: source.stamp, mark: None, name: Named::Open };
    let step = if step.next == Next::Look { xfer.handle(Event::Looked(seen), now) } else { step };
    match step.next {
        Next::Ask(ask) => ask.body.range(),
        _ => None,
    }
}

#[test]
fn sizes_wrap_at_32_bits_and_too_small_is_safe() {
    const GIB: u64 = 1 << 30;
    let from = |size, confirmed, told| first_byte(size, confirmed, told).map(|r| r.start.0);
    assert_eq!(from(5 * GIB, 0, -1_073_741_824), Some(3 * GIB));
    assert_eq!(from(5 * GIB, 0, 5), Some(5), "4 GiB and 5 bytes, perhaps");
    assert_eq!(from(5 * GIB, 3 * GIB, 5), Some(4 * GIB + 5), "it never cuts a file");
    assert_eq!(from(5 * GIB, 0, i64::try_from(4 * GIB).expect("fits")), Some(4 * GIB), "a server that prints it all");
    assert_eq!(from(9 * GIB, 5 * GIB, 0), Some(8 * GIB));
}

/// A server that lost the file after confirming more than 4 GiB of it would be sent a gap; it says so, and is believed.
#[test]
fn a_gap_is_refused_and_the_smallest_size_taken() {
    let mut protocol = Boinc::new(Length(1 << 50), None);
    let sim = boinc(Front::Apache, 10);
    let mut xfer_job = Job {
        name: "n".to_owned(),
        media_type: String::new(),
        source: Source { stamp: Stamp { size: Length(9 << 30), mtime_ns: 1 }, mark: None, digest: None },
        session: sim.xfer().session().clone(),
        now: sim.now,
        token: String::new(),
        read_back: Length::ZERO,
    };
    (xfer_job.session.confirmed, xfer_job.session.reached) = (Offset(5 << 30), Offset(9 << 30));
    let size = reply(0, "<file_size>7</file_size>", "");
    let turn = protocol.answered(&mut xfer_job, Call::Probe, &size);
    assert_eq!(turn, Turn::Found(Found::Confirmed(Offset((8 << 30) + 7))));
    let range = ByteRange::new(Offset((8 << 30) + 7), Offset(9 << 30));
    let gap = reply(1, "", "length of file n 7 bytes < offset 8589934599 bytes");
    assert_eq!(protocol.answered(&mut xfer_job, Call::Send(range), &gap), Turn::Found(Found::Uncertain));
    let turn = protocol.answered(&mut xfer_job, Call::Probe, &size);
    assert_eq!(turn, Turn::Found(Found::Confirmed(Offset(7))));
}

#[test]
fn the_handler_of_the_tests_answers_as_the_real_one() {
    let mut handler = Handler::new(Front::Apache);
    let now = crate::core::time::Epoch::ZERO;
    let head = b"<file_upload>\n<nbytes>10</nbytes>\n<offset>0</offset>\n<data>\n";
    let ask = Ask::new(Method::Post, &super::sim::url("http://h/")).carrying(Body::Bytes(head.to_vec()));
    let short = handler.serve(&Request { ask, body: [&head[..], b"12345"].concat(), cut: false, now });
    assert!(short.expect("an answer").said().contains("EOF on socket read"));
    assert_eq!(handler.file.as_deref(), Some(&b"12345"[..]));
    assert_eq!(answer(200, &[], b" x ").said(), "x");
}
