//! Uploads by `boinc` through the built program: what BOINC's handler and its front ends answer, row by row
//! (docs/testing-uploads.md), and what the client makes of it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};

use support::{Ran, eventually, ms, noise};
use upload::boinc::Seen;
use upload::{Boinc, BoincFault, FrontEnd, Mischief, NAME, Proxy, Sender, Signatures};

const ALL: [FrontEnd; 4] = [FrontEnd::Apache, FrontEnd::Lighttpd, FrontEnd::NginxBuffering, FrontEnd::NginxStreaming];
const SIGNATURE: &str = "0123456789abcdef\nfedcba9876543210\n.\n";

/// Requests that had a byte of the file with them.
fn bodies(server: &Boinc) -> Vec<Seen> {
    server.seen().into_iter().filter(|seen| seen.query.is_none() && seen.data > 0).collect()
}

/// The server has exactly the file, every request was in form, and none had the offset that makes a handler lie.
#[track_caller]
fn arrived(server: &Boinc, sender: &Sender, what: impl std::fmt::Debug) {
    let stored = server.stored(NAME).unwrap_or_default();
    let equal = stored.iter().zip(&sender.data[..]).take_while(|(a, b)| a == b).count();
    let (got, want) = (stored.len(), sender.data.len());
    assert!(stored == sender.data[..], "{what:?}: {got} bytes stored of {want}, the first {equal} equal");
    in_form(server);
}

#[track_caller]
fn in_form(server: &Boinc) {
    assert_eq!(server.complaints(), [""; 0]);
    for seen in server.seen() {
        let beyond = seen.nbytes.zip(seen.offset).is_some_and(|(nbytes, offset)| offset >= nbytes && nbytes > 0.0);
        assert!(!beyond, "an offset at or beyond the end: {seen:?}");
    }
}

/// One session that fails for now.
#[track_caller]
fn fails_once(sender: &Sender, server: &Boinc) -> Ran {
    let ran = sender.upload(&server.url()).arg("--once").run();
    ran.exits(4);
    ran
}

#[test]
fn a_file_arrives_in_one_piece_and_its_size_is_asked_before_and_after() {
    for front in ALL {
        for size in [1, 8191, 8192, 700_000] {
            let (server, sender) = (Boinc::start(front), Sender::new(1, size));
            sender.upload(&server.url()).run().exits(0);
            arrived(&server, &sender, (front, size));
            let asked: Vec<_> = server.seen().iter().map(|seen| seen.query.is_some()).collect();
            let want = if size < 8192 { vec![false, true] } else { vec![true, false, true] };
            assert_eq!(asked, want, "{front:?} {size}: a small file is sent without a question");
            sender.upload(&server.url()).run().exits(0);
            assert_eq!(server.seen().len(), want.len(), "sent already: nothing is asked");
        }
    }
}

#[test]
fn an_empty_file_is_made_by_an_empty_body() {
    for front in ALL {
        let (server, sender) = (Boinc::start(front), Sender::new(1, 0));
        sender.upload(&server.url()).run().exits(0);
        assert_eq!(server.stored(NAME).as_deref(), Some(&[][..]), "{front:?}");
        assert_eq!(server.complaints(), [""; 0]);
    }
}

#[test]
fn a_refusal_that_no_answer_brings_is_found_without_data_and_is_final() {
    for front in ALL {
        for size in [100, 700_000] {
            let (server, sender) = (Boinc::with(front, Signatures::Only(SIGNATURE.to_owned())), Sender::new(2, size));
            let signature = sender.world.path("run.sig");
            fs::write(&signature, "ffff\n.\n").unwrap();
            let ran = sender.upload(&server.url()).arg("--boinc-signature").arg(&signature).run();
            ran.exits(3).says(&["invalid signature"]);
            assert!(server.stored(NAME).is_none_or(|data| data.is_empty()), "{front:?}");
            assert!(bodies(&server).len() <= 2, "{front:?}: {:?}", bodies(&server));
            if front != FrontEnd::Lighttpd {
                let last = server.seen().pop().unwrap();
                assert_eq!((last.data, last.reply), (0, Some(-1)), "{front:?}: the last request has no data");
            }
            in_form(&server);
            assert_eq!(sender.told()["failure"]["class"].as_str().unwrap_or("denied"), "denied");
        }
    }
}

#[test]
fn a_refusal_after_everything_was_read_is_final_at_once() {
    let (server, sender) = (Boinc::start(FrontEnd::Lighttpd), Sender::new(3, 700_000));
    server.uploads().next(BoincFault::BadSignature);
    sender.upload(&server.url()).run().exits(3).says(&["invalid signature"]);
    assert_eq!(bodies(&server).len(), 1);
}

#[test]
fn a_file_above_the_signed_limit_is_not_sent_at_all() {
    let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(4, 10_000));
    sender.upload(&server.url()).args(&["--max-nbytes", "9999"]).run().exits(2).says(&["more than this limit"]);
    assert_eq!(server.seen().len(), 0);
    let sender = Sender::new(4, 10_000);
    sender.upload(&server.url()).args(&["--max-nbytes", "10000"]).run().exits(0);
    assert_eq!(server.seen()[1].max_nbytes, Some(10_000.0));
}

#[test]
fn a_page_or_nothing_instead_of_a_reply_is_transient() {
    for fault in [BoincFault::Page(502), BoincFault::Page(404), BoincFault::Page(200), BoincFault::EmptyReply] {
        let (server, sender) = (Boinc::start(FrontEnd::NginxBuffering), Sender::new(5, 300_000));
        for faults in [server.queries(), server.uploads()] {
            faults.now(fault);
            fails_once(&sender, &server);
            faults.now(BoincFault::None);
        }
        assert_eq!(server.stored(NAME), None, "{fault:?}");
        server.queries().next(fault);
        server.uploads().next(fault);
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, fault);
    }
}

#[test]
fn a_file_that_another_handler_writes_is_waited_for() {
    for front in ALL {
        let (server, sender) = (Boinc::start(front), Sender::new(6, 300_000));
        server.queries().next(BoincFault::Locked);
        server.uploads().next(BoincFault::Locked);
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, front);
        assert_eq!(sender.told()["status"], "done", "{}", sender.told());
    }
}

#[test]
fn uploads_that_are_switched_off_are_tried_again_later() {
    for front in ALL {
        let (server, sender) = (Boinc::start(front), Sender::new(7, 300_000));
        server.queries().now(BoincFault::Stopped);
        fails_once(&sender, &server).says(&["switched off"]);
        assert_eq!(bodies(&server).len(), 0, "{front:?}");
        server.queries().now(BoincFault::None);
        server.uploads().next(BoincFault::Stopped);
        server.uploads().next(BoincFault::Stopped);
        server.uploads().next(BoincFault::Stopped);
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, front);
    }
}

#[test]
fn a_full_disk_is_transient_and_what_it_took_stays() {
    let (server, sender) = (Boinc::start(FrontEnd::NginxStreaming), Sender::new(8, 700_000));
    server.uploads().next(BoincFault::DiskFull { after: 400_000 });
    sender.upload(&server.url()).run().exits(0);
    arrived(&server, &sender, "full");
    assert_eq!(bodies(&server)[1].offset, Some(400_000.0));
    server.queries().now(BoincFault::DiskFull { after: 0 });
    let other = Sender::new(9, 700_000);
    fails_once(&other, &server).says(&["disk is full"]);
}

/// A file with a hole of `at` bytes and then `tail`.
fn with_hole(sender: &Sender, at: u64, tail: &[u8]) {
    let file = File::create(sender.world.path(NAME)).unwrap();
    file.write_all_at(tail, at).unwrap();
}

#[test]
fn a_size_that_wrapped_to_a_negative_number_is_understood() {
    const AT: u64 = (2 << 30) + 1_000_000;
    let (server, sender, tail) = (Boinc::start(FrontEnd::NginxStreaming), Sender::new(10, 1), noise(11, 500_000));
    with_hole(&sender, AT, &tail);
    server.uploads().next(BoincFault::Cut { after: 1000 });
    server.queries().next(BoincFault::None);
    server.queries().next(BoincFault::Page(503));
    fails_once(&sender, &server);
    // As if so much had gone out before the cut: two gigabytes of it would take long here.
    sender.world.edit_state("reached", &AT.to_string());
    server.place_hole(NAME, AT);
    sender.upload(&server.url()).run().exits(0);
    let sent = bodies(&server);
    assert_eq!((sent.len(), sent[1].offset, sent[1].data), (2, Some(AT as f64), 500_000));
    let (mut end, stored) = (vec![0; tail.len()], File::open(server.path(NAME)).unwrap());
    stored.read_exact_at(&mut end, AT).unwrap();
    assert!(end == tail[..] && stored.metadata().unwrap().len() == AT + 500_000);
}

#[test]
fn a_size_that_wrapped_to_a_small_one_is_never_taken_for_done() {
    let (server, sender) = (Boinc::start(FrontEnd::NginxStreaming), Sender::new(12, 20_000));
    server.place_hole(NAME, (4 << 30) + 5);
    let ran = fails_once(&sender, &server);
    ran.says(&["confirms no further byte"]);
    assert_ne!(sender.told()["status"], "done");
}

#[test]
fn what_is_thrown_away_is_never_done() {
    for size in [100, 300_000] {
        let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(13, size));
        server.uploads().now(BoincFault::ReadOnly);
        fails_once(&sender, &server).says(&["confirms no further byte"]);
        assert_ne!(sender.told()["status"], "done");
        let times = bodies(&server).len();
        assert!(times <= 3, "thrown away {times} times in one session");
        // A file that cannot be written, with part of ours in it.
        let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(14, size));
        server.place(NAME, &sender.data[..size / 2]);
        fs::set_permissions(server.path(NAME), fs::Permissions::from_mode(0o400)).unwrap();
        fails_once(&sender, &server);
        fails_once(&sender, &server);
        assert_ne!(sender.told()["status"], "done");
        // It can be written again.
        fs::set_permissions(server.path(NAME), fs::Permissions::from_mode(0o600)).unwrap();
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, size);
    }
}

#[test]
fn a_longer_file_under_the_name_is_a_conflict_or_counts_where_that_is_wanted() {
    for size in [100, 20_000] {
        let longer = noise(16, size + 1);
        let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(15, size));
        server.place(NAME, &longer);
        sender.upload(&server.url()).run().exits(3).says(&["it is another file"]);
        assert_ne!(sender.told()["status"], "done");
        let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(15, size));
        server.place(NAME, &longer);
        sender.upload(&server.url()).args(&["--surplus", "done"]).run().exits(0);
        assert_eq!(server.stored(NAME).unwrap().len(), longer.len());
        if size >= 8192 {
            assert_eq!(server.stored(NAME).as_ref(), Some(&*longer), "nothing of it was overwritten");
            assert_eq!(bodies(&server).len(), 0);
        }
    }
}

#[test]
fn a_lost_answer_after_the_whole_body_is_asked_for_and_nothing_is_sent_twice() {
    for front in ALL {
        for size in [100, 300_000] {
            let (server, sender) = (Boinc::start(front), Sender::new(17, size));
            server.uploads().next(BoincFault::AnswerLost);
            sender.upload(&server.url()).run().exits(0);
            arrived(&server, &sender, (front, size));
            // Nobody asked before a small one what was there.
            let times = if size < 8192 { 2 } else { 1 };
            assert_eq!(bodies(&server).len(), times, "{front:?} {size}");
        }
    }
}

#[test]
fn a_size_that_lags_costs_a_question_and_not_the_file() {
    for front in ALL {
        let (server, sender) = (Boinc::start(front), Sender::new(18, 300_000));
        // The query before the body is not to lag: nothing has been sent.
        server.lag(2);
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, front);
        assert_eq!(bodies(&server).len(), 1, "{front:?}: asked again, not sent again");
    }
}

/// What stays of the first bytes of a connection that died.
fn stays(front: FrontEnd, sent: u64) -> u64 {
    match front {
        FrontEnd::Apache => sent - sent % (256 << 10),
        FrontEnd::Lighttpd | FrontEnd::NginxBuffering => 0,
        FrontEnd::NginxStreaming => sent,
    }
}

#[test]
fn a_cut_goes_on_from_what_stayed() {
    for front in ALL {
        let (server, sender) = (Boinc::start(front), Sender::new(19, 1_500_000));
        server.uploads().next(BoincFault::Cut { after: 1_000_000 });
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, front);
        let sent = bodies(&server);
        let want = stays(front, 1_000_000);
        assert_eq!((sent.len(), sent[1].offset), (2, Some(want as f64)), "{front:?}");
        assert_eq!(sent[1].data, 1_500_000 - want, "{front:?}");
    }
}

#[test]
fn a_server_that_dies_and_comes_back_gets_the_rest() {
    for front in [FrontEnd::Apache, FrontEnd::NginxStreaming] {
        let (server, sender) = (Boinc::start(front), Sender::new(20, 2_000_000));
        let proxy = Proxy::before(server.door.port());
        proxy.now(Mischief::Paces { bytes: 50_000, rest: ms(20) });
        let running = sender.upload(&proxy.url(&server.url())).start();
        eventually("a part of it has come", || fs::metadata(server.path(NAME)).is_ok_and(|m| m.len() >= 524_288));
        server.door.kill();
        let kept = fs::metadata(server.path(NAME)).unwrap().len();
        assert!(kept < 2_000_000, "it was to be killed under way");
        server.door.revive();
        running.end().exits(0);
        arrived(&server, &sender, front);
        let offsets: Vec<_> = server.seen().iter().filter_map(|seen| seen.offset).collect();
        assert_eq!(offsets, [0.0, kept as f64], "{front:?}");
    }
}

#[test]
fn a_client_that_was_killed_goes_on_from_what_stayed() {
    for front in ALL {
        // Held back by the client itself, so that no buffer on the way holds the rest when it dies.
        let (server, sender) = (Boinc::start(front), Sender::new(21, 2_000_000));
        let first = sender.upload(&server.url()).args(&["--limit-rate", "2m"]).start();
        first.kill_when(|| server.door.received() > 1_000_000);
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, front);
        let offsets: Vec<_> = server.seen().iter().filter_map(|seen| seen.offset).collect();
        let resumed = offsets.last().copied().unwrap_or_default();
        match front {
            FrontEnd::Apache | FrontEnd::NginxStreaming => assert!(resumed >= 786_432.0, "{front:?}: {offsets:?}"),
            FrontEnd::Lighttpd | FrontEnd::NginxBuffering => assert_eq!(resumed, 0.0, "{front:?}: {offsets:?}"),
        }
    }
}

#[test]
fn the_signature_passes_through_byte_for_byte() {
    for text in [SIGNATURE, "ab\n.\n"] {
        let (server, sender) =
            (Boinc::with(FrontEnd::Apache, Signatures::Only(text.to_owned())), Sender::new(22, 20_000));
        fs::write(sender.world.path("run.sig"), text).unwrap();
        sender.upload(&server.url()).args(&["--boinc-signature", "run.sig"]).run().exits(0);
        arrived(&server, &sender, text);
    }
}

#[test]
fn the_signature_of_a_state_file_passes_through_too() {
    // The second is what no tool writes: blanks, a tab and an empty line within are the project's affair.
    for text in [SIGNATURE, "01 23\tab\n\n  zz=\n.\n"] {
        let (server, sender) =
            (Boinc::with(FrontEnd::Apache, Signatures::Only(text.to_owned())), Sender::new(23, 20_000));
        let w = &sender.world;
        fs::write(w.path("run.sig"), "ffff\n.\n").unwrap();
        let add = w.px(["add", "upload", NAME, "--boinc-signature", "run.sig"]).delays("20ms", "100ms");
        add.url(&server.url()).run().exits(0);
        w.edit_state("xml_signature", &format!("\n{text}"));
        let ran = w.px(["run"]).run();
        assert_eq!(server.seen().iter().find_map(|seen| seen.signature.clone()).as_deref(), Some(text));
        ran.exits(0);
        arrived(&server, &sender, text);
    }
}

#[test]
fn a_file_edited_in_place_between_two_sessions_is_sent_anew() {
    for front in ALL {
        let (server, mut sender) = (Boinc::start(front), Sender::new(24, 1_500_000));
        server.uploads().next(BoincFault::Cut { after: 1_000_000 });
        server.queries().next(BoincFault::None);
        server.queries().next(BoincFault::Page(503));
        fails_once(&sender, &server);
        sender.edit(25);
        sender.upload(&server.url()).run().exits(0).says(&["the file changed since its upload"]);
        arrived(&server, &sender, front);
        let offsets: Vec<_> = server.seen().iter().filter_map(|seen| seen.offset).collect();
        assert_eq!(offsets, [0.0, 0.0], "{front:?}: from the start");
    }
}

#[test]
fn what_was_sent_already_is_told_with_the_server_that_holds_it() {
    let (first, second) = (Boinc::start(FrontEnd::Apache), Boinc::start(FrontEnd::Apache));
    let sender = Sender::new(63, 100_000);
    first.uploads().now(BoincFault::BadSignature);
    let run = || sender.upload(&first.url()).url(&second.url()).run();
    run().exits(0).says(&[&format!("uploaded to {}", second.url())]);
    let again = run();
    again.exits(0).says(&[&format!("sent already to {} and not changed since", second.url())]);
}
