//! Uploads by `boinc` through the built program, where something stands under the name that was not sent by this record, of
//! this very source: it is never gone on with, whatever its size (docs/testing-uploads.md).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs;

use rustix::process::Signal;
use support::noise;
use upload::{Boinc, BoincFault, FrontEnd, NAME, Sender};

/// The server has exactly the file, and every request was in form.
#[track_caller]
fn arrived(server: &Boinc, sender: &Sender, what: impl std::fmt::Debug) {
    let stored = server.stored(NAME).unwrap_or_default();
    let equal = stored.iter().zip(&sender.data[..]).take_while(|(a, b)| a == b).count();
    let (got, want) = (stored.len(), sender.data.len());
    assert!(stored == sender.data[..], "{what:?}: {got} bytes stored of {want}, the first {equal} equal");
    assert_eq!(server.complaints(), [""; 0]);
}

/// Bytes of the file that went into bodies, as the server counted them.
fn taken(server: &Boinc) -> u64 {
    server.seen().iter().map(|seen| seen.data).sum()
}

/// One session that fails for now.
#[track_caller]
fn fails_once(sender: &Sender, server: &Boinc) {
    sender.upload(&server.url()).arg("--once").run().exits(4);
}

/// What `state show` says of the end: the evidence, and what was there before.
fn ended(sender: &Sender) -> (String, u64) {
    let shown = sender.world.px(["state", "show", NAME, "--json"]).run();
    let story: serde_json::Value = serde_json::from_str(&shown.exits(0).stdout).unwrap();
    let finished = &story["finished"];
    (finished["evidence"].as_str().unwrap().to_owned(), finished["found_there"].as_u64().unwrap())
}

#[test]
fn what_was_there_before_the_first_byte_counts_for_nothing() {
    for size in [5000, 700_000] {
        let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(60, size));
        server.place(NAME, &vec![7; size]);
        let ran = sender.upload(&server.url()).args(&["--progress", "json"]).run();
        ran.exits(0);
        arrived(&server, &sender, "over one of this size");
        assert_eq!(taken(&server), size as u64);
        if size >= 8192 {
            ran.says(&["evidence: none, content not compared: a file that was no shorter was there before"]);
            assert!(ran.stdout.contains("\"evidence\":\"none\""), "{ran}");
            assert_eq!(ended(&sender), ("none".to_owned(), size as u64));
            sender.upload(&server.url()).run().exits(0).says(&["sent already to http://", "content not compared"]);
        }

        let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(61, size));
        server.place(NAME, &vec![7; 1000]);
        let ran = sender.upload(&server.url()).run();
        assert!(!ran.exits(0).stderr.contains("not compared"), "{ran}");
        arrived(&server, &sender, "over a shorter one");
        assert_eq!(ended(&sender), ("length".to_owned(), 0));
    }
}

#[test]
fn a_file_edited_after_it_was_sent_is_sent_over_the_old_one() {
    for (size, cut) in [(700_000, None), (900_000, None), (700_000, Some(300_000)), (900_000, Some(800_000))] {
        let (server, mut sender) = (Boinc::start(FrontEnd::NginxStreaming), Sender::new(64, 700_000));
        sender.upload(&server.url()).run().exits(0);
        sender.data = noise(65, size);
        fs::write(sender.world.path(NAME), &sender.data[..]).unwrap();
        if let Some(after) = cut {
            server.uploads().next(BoincFault::Cut { after });
        }
        sender.upload(&server.url()).run().exits(0);
        arrived(&server, &sender, (size, cut));
    }
}

#[test]
fn half_a_file_without_a_record_is_never_gone_on_with() {
    for how in ["forget", "abort", "another state file", "another spelling"] {
        let (server, mut sender) = (Boinc::start(FrontEnd::NginxStreaming), Sender::new(66, 900_000));
        server.uploads().next(BoincFault::Cut { after: 400_000 });
        server.queries().next(BoincFault::None);
        server.queries().next(BoincFault::Page(503));
        fails_once(&sender, &server);
        assert_eq!(server.stored(NAME).unwrap().len(), 400_000);
        let mut url = server.url();
        match how {
            "forget" => drop(sender.world.px(["state", "forget", NAME]).run().exits(0)),
            "abort" => drop(sender.world.px(["abort", NAME]).run()),
            "another state file" => sender.world.state = sender.world.path("state/other.xml"),
            _ => url = url.replace("127.0.0.1", "localhost"),
        }
        sender.edit(67);
        let again = sender.upload(&url);
        again.run().exits(0);
        arrived(&server, &sender, how);
    }
}

#[test]
fn an_alternate_with_the_same_store_gets_an_edited_file_whole() {
    let (server, mut sender) = (Boinc::start(FrontEnd::NginxStreaming), Sender::new(68, 900_000));
    let other = server.url().replace("127.0.0.1", "localhost");
    server.uploads().next(BoincFault::Cut { after: 400_000 });
    server.queries().next(BoincFault::None);
    server.queries().next(BoincFault::Page(503));
    fails_once(&sender, &server);
    sender.edit(69);
    // The first server's next body is cut before the place where the old one ended, and the alternate goes on.
    server.uploads().next(BoincFault::Cut { after: 300_000 });
    sender.upload(&server.url()).url(&other).run().exits(0);
    arrived(&server, &sender, "edited");
}

#[test]
fn segments_that_were_learned_do_not_keep_an_edited_file_from_arriving() {
    let (server, mut sender) = (Boinc::start(FrontEnd::NginxBuffering), Sender::new(70, 1_500_000));
    for _ in 0..3 {
        server.uploads().next(BoincFault::Cut { after: 200_000 });
    }
    // The second session finds that what it sent did not arrive, and sends it again in segments.
    for _ in 0..2 {
        fails_once(&sender, &server);
    }
    server.place(NAME, &sender.data[..]);
    sender.edit(71);
    sender.upload(&server.url()).run().exits(0);
    arrived(&server, &sender, "edited");
}

#[test]
fn a_reply_within_a_page_or_with_another_status_is_none() {
    for size in [100, 300_000] {
        let told = size as u64;
        for fault in [BoincFault::Wrapped(told), BoincFault::WithStatus(404, told), BoincFault::WithStatus(500, told)] {
            let (server, sender) = (Boinc::start(FrontEnd::Apache), Sender::new(72, size));
            server.queries().now(fault);
            server.uploads().now(fault);
            fails_once(&sender, &server);
            assert_ne!(sender.told()["status"], "done", "{fault:?} {size}");
        }
    }
}

#[test]
fn a_file_that_was_sent_is_known_by_its_digest_and_not_by_its_times() {
    let (server, mut sender) = (Boinc::start(FrontEnd::Apache), Sender::new(73, 100_000));
    sender.upload(&server.url()).run().exits(0);
    let before = server.seen().len();
    // Only touched: another time of change, and of modification.
    fs::write(sender.world.path(NAME), &sender.data[..]).unwrap();
    sender.upload(&server.url()).run().exits(0).says(&["sent already to http://"]);
    assert_eq!(server.seen().len(), before, "nothing is asked");
    // Edited, with its time set back.
    sender.edit(74);
    let ran = sender.upload(&server.url()).run();
    assert!(!ran.exits(0).stderr.contains("sent already"), "{ran}");
    arrived(&server, &sender, "edited");
}

/// The next session knows how far the body was when a person stopped it.
#[test]
fn after_an_interrupt_a_size_beyond_what_went_out_counts_for_nothing() {
    let (server, sender) = (Boinc::start(FrontEnd::NginxStreaming), Sender::new(68, 3_000_000));
    let running = sender.upload(&server.url()).args(&["--limit-rate", "500k"]).start();
    let ran = running.signal_when(Signal::INT, || server.door.received() >= 600_000).end();
    ran.exits(130).says(&["sent in this run: interrupted"]);
    // As a front end tells it that sets the size of a file before its bytes come.
    server.queries().next(BoincFault::SizeIs(3_000_000));
    let ran = sender.upload(&server.url()).run();
    ran.exits(0);
    arrived(&server, &sender, "all of it in one body");
    let whole = server.seen().iter().any(|seen| (seen.offset, seen.data) == (Some(0.0), 3_000_000));
    assert!(whole, "{ran}");
}
