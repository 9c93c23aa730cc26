//! A word to an upload that runs, by signals, limits and commands of another process: what a server holds of it is cleaned up or
//! gone on with, as was asked.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Ran, World, eventually, ms, noise};
use upload::{Dav, FILE, Mischief, Proxy, Tus, TusLine, TusNode, sends, story, with_file};

const LARGE: usize = 4_000_000;
const SLOW: Mischief = Mischief::Paces { bytes: 50_000, rest: ms(15) };

fn both() -> [Tus; 2] {
    [TusNode::default().start(), Tus::python(100_000_000)]
}

fn status(w: &World) -> String {
    w.list(&["--all"]).first().map(|t| t["status"].as_str().unwrap().to_owned()).unwrap_or_default()
}

/// Runs the command that the last run printed.
#[track_caller]
fn as_told(w: &World, ran: &Ran) -> Ran {
    let line =
        ran.stderr.lines().find_map(|line| line.strip_prefix("to continue: persxfer ")).expect("a line to go on");
    let script = format!("exec \"$PERSXFER\" {line}");
    let out = Command::new("/bin/sh")
        .args(["-c", &script])
        .env("PERSXFER", env!("CARGO_BIN_EXE_persxfer"))
        .env("HOME", w.path("home"))
        .current_dir(w.path(""))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { status: out.status, stdout: text(&out.stdout), stderr: text(&out.stderr) }
}

#[test]
fn an_interrupt_leaves_a_line_that_goes_on_with_the_upload() {
    let data = noise(50, LARGE);
    for (signal, exits) in [(Signal::INT, 130), (Signal::TERM, 4), (Signal::HUP, 4)] {
        let line = TusLine::node(&data);
        line.proxy.now(SLOW);
        let running = line.sends(&[]).start().signal_when(signal, || line.has_passed(2_500_000));
        let ran = running.end();
        ran.exits(exits).says(&["to continue: persxfer upload"]);
        line.proxy.door.kill();
        line.proxy.now(Mischief::None);
        line.proxy.door.revive();
        let ran = as_told(&line.w, &ran);
        line.ends_right(&data, &ran);
        let again = line.proxy.door.received() - data.len() as u64;
        assert!(line.count("POST") == 1 && again <= 1_200_000, "{again} bytes twice\n{}", line.story());
        assert_eq!(line.count("DELETE"), 0, "{}", line.story());
    }
}

#[test]
fn the_time_that_was_given_ends_a_run_and_the_next_goes_on() {
    let data = noise(51, LARGE);
    for server in both() {
        let line = TusLine::new(server, &data);
        line.proxy.now(Mischief::Paces { bytes: 20_000, rest: ms(30) });
        let ran = line.sends(&["--max-time", "3s"]).run();
        ran.exits(4).says(&["to continue"]);
        assert!(line.has_passed(1), "{}", line.story());
        line.proxy.door.kill();
        line.proxy.now(Mischief::None);
        line.proxy.door.revive();
        let ran = line.sends(&[]).run();
        line.ends_right(&data, &ran);
        assert_eq!(line.count("POST"), 1, "{}", line.story());
    }
}

#[test]
fn an_abort_from_another_process_reaches_the_server() {
    let data = noise(52, LARGE);
    for server in both() {
        let line = TusLine::new(server, &data);
        line.proxy.now(SLOW);
        let running = line.sends(&[]).start();
        eventually("it is on its way", || line.has_passed(1_000_000));
        line.w.px(["abort", FILE]).run().exits(0);
        let ran = running.end();
        ran.exits(3);
        eventually(&format!("it is deleted: {ran}\n{}", line.story()), || {
            line.count("DELETE") == 1 && line.server.stored().is_empty()
        });
        support::same_file(&line.w.path(FILE), &data);
        assert_eq!(status(&line.w), "failed", "{ran}");
    }
}

#[test]
fn an_upload_that_was_stopped_is_cleaned_up_by_abort_and_by_forget() {
    let data = noise(53, LARGE);
    for words in [&["abort", FILE][..], &["state", "forget", FILE]] {
        let line = TusLine::node(&data);
        line.proxy.now(SLOW);
        line.sends(&[]).start().kill_when(|| line.has_passed(1_000_000));
        line.proxy.door.kill();
        line.proxy.now(Mischief::None);
        line.proxy.door.revive();
        let ran = line.w.px(words.iter().copied()).run();
        ran.exits(0);
        let gone = || line.count("DELETE") == 1 && line.server.stored().is_empty();
        if words[0] == "abort" {
            // Or when it is next looked at.
            if !gone() {
                line.w.px(["state", "forget", FILE]).run().exits(0);
            }
        }
        assert!(gone(), "{words:?}: {ran}\n{}", line.story());
        support::same_file(&line.w.path(FILE), &data);
    }
}

#[test]
fn a_server_that_is_gone_does_not_keep_a_record_from_being_forgotten() {
    let data = noise(54, LARGE);
    let line = TusLine::node(&data);
    line.proxy.now(SLOW);
    line.sends(&[]).start().kill_when(|| line.has_passed(1_000_000));
    line.proxy.door.kill();
    line.w.px(["state", "forget", FILE]).run().exits(0);
    assert_eq!(line.w.list(&["--all"]).len(), 0);
}

#[test]
fn an_aborted_put_leaves_no_temporary_file() {
    let data = noise(55, LARGE);
    for (kind, protocol) in [(Dav::Apache, "put-range"), (Dav::Rclone, "put"), (Dav::Wsgidav, "put")] {
        let server = kind.start();
        let proxy = Proxy::before(server.daemon.port());
        proxy.now(SLOW);
        let w = with_file(&data);
        let running = sends(&w, &["--protocol", protocol], &[&proxy.url(&server.url(""))]).start();
        eventually("it is on its way", || proxy.door.received() > 1_000_000);
        assert!(!server.names().is_empty(), "half a file is there");
        w.px(["abort", FILE]).run().exits(0);
        let ran = running.end();
        ran.exits(3);
        let told = || format!("{kind:?}: {:?} {ran}\n{}", server.names(), story(&proxy.door.log()));
        eventually(&format!("nothing is left: {}", told()), || server.names().is_empty());
    }
}

#[test]
fn an_upload_is_suspended_and_resumed() {
    let data = noise(56, LARGE);
    let line = TusLine::node(&data);
    line.proxy.now(SLOW);
    let running = line.sends(&[]).start();
    eventually("it is on its way", || line.has_passed(1_000_000));
    line.w.px(["suspend", FILE]).run().exits(0).says(&["was told to suspend"]);
    eventually("it is suspended", || status(&line.w) == "suspended");
    let requests = line.proxy.door.log().len();
    std::thread::sleep(ms(400));
    assert_eq!(line.proxy.door.log().len(), requests, "{}", line.story());
    line.proxy.now(Mischief::None);
    line.w.px(["resume", FILE]).run().exits(0);
    let ran = running.end();
    line.ends_right(&data, &ran);
    assert_eq!((line.count("POST"), line.count("DELETE")), (1, 0), "{}", line.story());
}

#[test]
fn a_limit_of_the_rate_holds_roughly() {
    let data = noise(57, 1_200_000);
    for (server, protocol) in [(None, "tus"), (Some(Dav::Apache.start()), "put")] {
        let tus = TusNode::default().start();
        let url = server.as_ref().map_or_else(|| tus.url(), |dav| dav.url(FILE));
        let time = |rate: &str| {
            let w = with_file(&data);
            let from = Instant::now();
            sends(&w, &["--protocol", protocol, "--limit-rate", rate], &[&url]).run().exits(0);
            from.elapsed()
        };
        let (slow, fast) = (time("200k"), time("800k"));
        // 1.2 MB take 6 s and 1.5 s; something may go ahead of its time.
        assert!(slow >= Duration::from_secs(4) && fast >= ms(800), "{protocol}: {slow:?} and {fast:?}");
        assert!(slow >= fast + ms(500), "{protocol}: {slow:?} and {fast:?}");
    }
}

#[test]
fn the_same_command_after_the_end_asks_nothing_until_the_file_is_another() {
    let data = noise(58, LARGE);
    let line = TusLine::node(&data);
    line.sends(&[]).run().uploaded("length");
    let requests = line.proxy.door.log().len();
    line.sends(&[]).run().exits(0);
    assert_eq!(line.proxy.door.log().len(), requests, "{}", line.story());
    let edited = noise(59, LARGE);
    std::fs::write(line.w.path(FILE), &edited[..]).unwrap();
    let ran = line.sends(&[]).run();
    ran.uploaded("length");
    assert!(line.server.stored().iter().any(|held| held[..] == edited[..]), "{ran}\n{}", line.story());
    assert!(line.server.stored().iter().any(|held| held[..] == data[..]), "what was uploaded stays: {}", line.story());
}

/// A server that refuses to drop what it has: told in one line that says what to do, kept, and asked again by the same word.
#[test]
fn a_server_that_does_not_clean_up_is_told_and_asked_again() {
    let data = noise(54, LARGE);
    let line = TusLine::node(&data);
    line.proxy.now(SLOW);
    line.sends(&[]).start().kill_when(|| line.has_passed(1_000_000));
    line.proxy.door.kill();
    line.proxy.now(Mischief::Answers { status: 403, retry_after: None });
    line.proxy.door.revive();
    let abort = || line.w.px(["abort", FILE]).run();
    let ran = abort();
    ran.exits(0).says(&["did not drop what it has", "403", "may still lie there: `persxfer abort "]);
    assert!(!line.server.stored().is_empty() && line.w.state_text().contains("<upload_session>"), "{ran}");
    let ran = abort();
    ran.exits(0).says(&["did not drop what it has"]);
    line.proxy.now(Mischief::None);
    let ran = abort();
    assert!(!ran.exits(0).stderr.contains("did not drop"), "{ran}");
    assert!(line.server.stored().is_empty() && !line.w.state_text().contains("<upload_session>"), "{ran}");
    let asked = line.count("DELETE");
    abort().exits(0);
    assert_eq!((asked, line.count("DELETE")), (3, 3), "nothing is left to ask for\n{}", line.story());
}

/// The same of what another server has, when the file has arrived elsewhere.
#[test]
fn leftovers_at_other_servers_are_told_and_abort_asks_again() {
    let data = noise(55, LARGE);
    let (line, other) = (TusLine::node(&data), Dav::Apache.start());
    line.proxy.now(Mischief::Stalls { after: 1_000_000 });
    line.sends(&[]).start().kill_when(|| line.has_passed(1_000_000));
    line.proxy.door.kill();
    line.proxy.now(Mischief::Answers { status: 403, retry_after: None });
    line.proxy.door.revive();
    let put = other.url(FILE);
    let ran = line.sends(&["--progress", "json"]).url(&put).run();
    ran.exits(0);
    let remark = ran.stdout.lines().find(|l| l.contains("\"event\":\"remark\"") && l.contains("did not drop"));
    assert!(remark.is_some_and(|l| l.contains("persxfer abort ")), "{ran}\n{}", line.story());
    support::same_file(&other.path(FILE), &data);
    line.proxy.now(Mischief::None);
    let ran = line.w.px(["abort", FILE]).run();
    ran.exits(0).says(&["sent already"]);
    assert!(line.server.stored().is_empty() && !line.w.state_text().contains("<upload_session>"), "{ran}");
}
