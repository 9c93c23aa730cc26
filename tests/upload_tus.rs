//! `tus` by the built program against @tus/server and tuspyserver: what was confirmed is not sent again, a session is lost only
//! where the server says so, and whatever stands between, the bytes are right or the exit status says that they are not.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs::{self, File};

use support::{eventually, ms, noise};
use upload::{
    Door, FILE, Mischief, Proxy, Raw, Tus, TusLine, TusNode, Way, nginx_before, nginx_hiding, sends, with_file,
};

/// More than goes along with the request that creates an upload.
const LARGE: usize = 4_000_000;

/// Passed on slowly enough to be stopped on its way.
const SLOW: Mischief = Mischief::Paces { bytes: 50_000, rest: ms(10) };

fn both() -> [Tus; 2] {
    [TusNode::default().start(), Tus::python(100_000_000)]
}

const fn answers(status: u16) -> Mischief {
    Mischief::Answers { status, retry_after: None }
}

/// Stopped with -9 when so much has passed, as if with the whole machine: what it had handed to its system is lost, too. After
/// that, the proxy does nothing any more.
fn killed_after(line: &TusLine, bytes: u64) {
    line.proxy.now(SLOW);
    line.sends(&[]).start().kill_when(|| line.has_passed(bytes));
    line.proxy.door.kill();
    line.proxy.now(Mischief::None);
    line.proxy.door.revive();
}

#[test]
fn a_file_of_any_size_arrives_at_both_servers() {
    for server in both() {
        let name = server.daemon.said();
        let mut server = Some(server);
        for n in [0, 1, 300_000, LARGE] {
            let data = noise(20, n);
            let line = TusLine::new(server.take().expect("it comes back"), &data);
            let ran = line.sends(&[]).run();
            ran.uploaded("length");
            let there = line.server.stored().iter().filter(|held| held[..] == data[..]).count();
            assert_eq!(there, 1, "{n} bytes: {ran}\n{}{name}", line.story());
            assert!(line.proxy.door.received() as usize == n && line.count("POST") == 1, "{}", line.story());
            assert_eq!(line.w.leftovers().len(), 0, "nothing is written beside the file");
            server = Some(line.server);
        }
    }
}

#[test]
fn what_a_killed_client_had_sent_is_not_sent_again() {
    let data = noise(21, LARGE);
    for server in both() {
        let line = TusLine::new(server, &data);
        killed_after(&line, 3_000_000);
        let ran = line.sends(&[]).run();
        line.ends_right(&data, &ran);
        let again = line.proxy.door.received() - data.len() as u64;
        assert!(line.count("POST") == 1 && again <= 1_200_000, "{again} bytes twice\n{}", line.story());
    }
}

#[test]
fn a_location_without_a_host_is_taken_against_the_request() {
    let data = noise(22, LARGE);
    let line = TusLine::new(TusNode { relative_location: true, ..TusNode::default() }.start(), &data);
    killed_after(&line, 1_500_000);
    let ran = line.sends(&[]).run();
    line.ends_right(&data, &ran);
    let posts = line.proxy.door.by("POST");
    assert!(posts.len() == 1 && posts[0].answer_header("location").unwrap().starts_with('/'), "{}", line.story());
}

#[test]
fn an_upload_that_expired_is_begun_anew() {
    let data = noise(23, LARGE);
    let line = TusLine::new(TusNode { expiration: Some(ms(3_000)), ..TusNode::default() }.start(), &data);
    killed_after(&line, 1_500_000);
    let location = line.proxy.door.by("POST")[0].answer_header("location").unwrap().to_owned();
    eventually("it expires", || {
        Raw::new("HEAD", &location).header("Tus-Resumable", "1.0.0").send().status() == Some(410)
    });
    let ran = line.sends(&[]).run();
    ran.uploaded("length");
    assert!(line.server.stored().iter().any(|held| held[..] == data[..]), "{ran}\n{}", line.story());
    assert_eq!(line.count("POST"), 2, "{}", line.story());
}

#[test]
fn a_success_that_tells_a_smaller_offset_is_a_part() {
    let data = noise(24, LARGE);
    let line = TusLine::node(&data);
    line.proxy.next_of("PATCH", Mischief::Stalls { after: 2_000_000 });
    let running = line.sends(&[]).start();
    eventually("it stalls", || line.has_passed(2_000_000));
    // The server ends a request that holds the upload when somebody else wants it: with 204, and what it has.
    let location = line.proxy.door.by("POST")[0].answer_header("location").unwrap().to_owned();
    let path = location.trim_start_matches("http://").split_once('/').unwrap().1.to_owned();
    let direct = line.server.daemon.url(&format!("/{path}"));
    assert_eq!(Raw::new("HEAD", &direct).header("Tus-Resumable", "1.0.0").send().status(), Some(200));
    let ran = running.end();
    line.ends_right(&data, &ran);
    let first = &line.proxy.door.by("PATCH")[0];
    assert!(first.answer == Some(204) && !first.whole, "{}", line.story());
}

#[test]
fn refusals_of_a_body_that_are_none_of_the_upload_lose_nothing() {
    let data = noise(25, LARGE);
    for status in [400, 408, 409, 423, 425, 429, 460, 500, 502, 503, 504] {
        let line = TusLine::node(&data);
        line.proxy.next_of("PATCH", answers(status));
        let ran = line.sends(&[]).run();
        line.ends_right(&data, &ran);
        assert_eq!(line.count("POST"), 1, "{status}: {}", line.story());
    }
}

#[test]
fn refusals_of_the_question_keep_the_session() {
    let data = noise(26, LARGE);
    for status in [423, 429, 500, 502, 503] {
        let line = TusLine::node(&data);
        killed_after(&line, 2_500_000);
        line.proxy.next_of("HEAD", answers(status));
        let ran = line.sends(&[]).run();
        line.ends_right(&data, &ran);
        assert_eq!(line.count("POST"), 1, "{status}: {}", line.story());
    }
    for status in [401, 403] {
        let line = TusLine::node(&data);
        killed_after(&line, 2_500_000);
        line.proxy.next_of("HEAD", answers(status));
        line.sends(&["--once"]).run().exits(4).says(&[&status.to_string()]);
        let ran = line.sends(&["--once"]).run();
        let ran = if ran.succeeded() {
            ran
        } else {
            line.w.px(["retry", FILE]).run().exits(0);
            line.sends(&[]).run()
        };
        line.ends_right(&data, &ran);
        assert_eq!(line.count("POST"), 1, "{status}: {}", line.story());
    }
}

#[test]
fn a_refusal_that_stays_is_told_in_the_end() {
    let data = noise(27, LARGE);
    for (status, exits) in [(400, 3), (409, 3), (412, 3), (415, 3), (501, 3)] {
        let line = TusLine::node(&data);
        for _ in 0..40 {
            line.proxy.next_of("PATCH", answers(status));
        }
        let ran = line.sends(&[]).run();
        ran.exits(exits).says(&[&status.to_string()]);
        assert!(line.count("PATCH") < 10, "{}", line.story());
    }
}

#[test]
fn an_answer_without_the_offset_is_asked_again_and_named_where_it_stays() {
    let data = noise(28, LARGE);
    let line = TusLine::node(&data);
    line.proxy.next_of("HEAD", Mischief::Strips("upload-offset"));
    let ran = line.sends(&[]).run();
    line.ends_right(&data, &ran);
    let line = TusLine::node(&data);
    for _ in 0..100 {
        line.proxy.next_of("HEAD", Mischief::Strips("upload-offset"));
    }
    line.sends(&[]).run().exits(3).says(&["upload-offset"]);
    assert!(line.count("HEAD") < 10, "{}", line.story());
}

#[test]
fn a_lost_answer_is_asked_for_and_costs_no_byte() {
    let data = noise(29, LARGE);
    for server in both() {
        let line = TusLine::new(server, &data);
        line.proxy.next_of("PATCH", Mischief::LosesAnswer);
        let ran = line.sends(&[]).run();
        line.ends_right(&data, &ran);
        assert_eq!((line.count("POST"), line.proxy.door.received()), (1, data.len() as u64), "{}", line.story());
    }
}

#[test]
fn a_session_at_another_host_is_refused_unless_the_user_knows_better() {
    let data = noise(30, LARGE);
    let server = TusNode::default().start();
    let front = nginx_hiding(server.daemon.port());
    let url = format!("tus+{}", front.url("/files"));
    let w = with_file(&data);
    let ran = sends(&w, &[], &[&url]).run();
    ran.exits(3).says(&[&server.daemon.port().to_string()]);
    assert!(server.stored().iter().all(Vec::is_empty), "not a byte went there");
    let w = with_file(&data);
    let ran = sends(&w, &["--keep-authority"], &[&url]).run();
    ran.uploaded("length");
    assert!(server.stored().iter().any(|held| held[..] == data[..]), "{ran}");
}

#[test]
fn a_server_that_dies_and_comes_back_keeps_what_it_had() {
    let data = noise(31, LARGE);
    // Not tuspyserver: it notes an offset at the end of a request, and appends to what an earlier one left beyond it.
    for relative_location in [false, true] {
        let server = TusNode { relative_location, ..TusNode::default() }.start();
        let mut line = TusLine::new(server, &data);
        line.proxy.now(SLOW);
        let running = line.sends(&[]).start();
        eventually("it is on its way", || line.has_passed(2_500_000));
        line.server.daemon.kill();
        line.proxy.now(Mischief::None);
        eventually("it was missed", || line.proxy.door.log().iter().filter(|e| e.answer == Some(502)).count() > 1);
        line.server.daemon.revive();
        let ran = running.end();
        line.ends_right(&data, &ran);
        assert_eq!(line.count("POST"), 1, "{}", line.story());
    }
}

#[test]
fn behind_a_front_end_that_buffers_it_goes_on_in_segments() {
    let data = noise(32, 1_500_000);
    let server = TusNode::default().start();
    let front = nginx_before(server.daemon.port(), "0");
    // Whatever is longer than this breaks off, and the front end forgets it.
    let proxy = Proxy::before(front.port());
    proxy.now(Mischief::Cuts { after: 300_000, way: Way::Reset });
    let w = with_file(&data);
    let ran = sends(&w, &[], &[&format!("tus+{}", proxy.url(&server.url()))]).run();
    ran.uploaded("length");
    let log = proxy.door.log();
    assert!(server.stored() == [&data[..]], "{ran}\n{}", upload::story(&log));
    let shrank = log.iter().filter(|e| e.method == "PATCH" && !e.whole).count();
    assert!((5..=9).contains(&shrank), "{}", upload::story(&log));
}

#[test]
fn a_limit_of_a_front_end_makes_segments_and_no_session_is_lost() {
    let data = noise(33, LARGE);
    for server in both() {
        let front = nginx_before(server.daemon.port(), "1m");
        let proxy = Proxy::before(front.port());
        let w = with_file(&data);
        let ran = sends(&w, &[], &[&format!("tus+{}", proxy.url(&server.url()))]).run();
        ran.uploaded("length");
        let story = upload::story(&proxy.door.log());
        assert!(server.stored() == [&data[..]], "{ran}\n{story}");
        assert_eq!(proxy.door.by("POST").len(), 1, "{story}");
        let refused = proxy.door.by("PATCH").iter().filter(|e| e.answer == Some(413)).count();
        assert!((1..=3).contains(&refused), "{story}");
    }
}

#[test]
fn a_file_that_was_edited_between_sessions_is_sent_anew_and_that_is_said() {
    let (data, edited) = (noise(34, LARGE), noise(35, LARGE));
    for server in both() {
        let line = TusLine::new(server, &data);
        killed_after(&line, 2_500_000);
        let file = line.w.path(FILE);
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, &edited[..]).unwrap();
        File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        let ran = line.sends(&[]).run();
        ran.uploaded("length").says(&["changed since its upload"]);
        line.holds(&edited, &ran);
        assert_eq!((line.count("POST"), line.count("DELETE")), (2, 1), "{}", line.story());
    }
    // One that was only touched goes on.
    let line = TusLine::node(&data);
    killed_after(&line, 2_500_000);
    File::options().write(true).open(line.w.path(FILE)).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    let ran = line.sends(&[]).run();
    line.ends_right(&data, &ran);
    assert_eq!(line.count("POST"), 1, "{}", line.story());
}

#[test]
fn a_file_that_is_edited_under_way_is_not_taken_for_whole() {
    let data = noise(36, LARGE);
    let line = TusLine::node(&data);
    line.proxy.now(SLOW);
    let running = line.sends(&[]).start();
    eventually("it is on its way", || line.has_passed(1_000_000));
    fs::write(line.w.path(FILE), &noise(37, LARGE)[..]).unwrap();
    let ran = running.end();
    ran.exits(3).says(&["changed"]);
}

#[test]
fn a_server_with_a_least_limit_and_one_that_is_none_are_left_for_the_next() {
    let data = noise(38, LARGE);
    let small = TusNode { max_size: Some(1_000_000), ..TusNode::default() }.start();
    let none = Door::open(|visit| {
        let _ = visit.drain();
        visit.answer(404, &[], "no such thing\n")
    });
    let good = TusNode::default().start();
    let w = with_file(&data);
    let servers = [small.url(), none.url("/files"), good.url()].map(|url| format!("tus+{url}"));
    let ran = sends(&w, &[], &[&servers[0], &servers[1], &servers[2]]).run();
    ran.uploaded("length");
    assert!(good.stored() == [&data[..]], "{ran}");
    let w = with_file(&data);
    let ran = sends(&w, &[], &[&servers[0], &servers[1]]).run();
    ran.exits(3).says(&["at most", "larger", "976", "1000000", "413"]).says(&["404"]);
}

#[test]
fn a_session_that_is_not_known_any_more_is_begun_anew() {
    let data = noise(32, LARGE);
    for status in [404, 410] {
        let line = TusLine::node(&data);
        killed_after(&line, 2_500_000);
        line.proxy.next_of("HEAD", answers(status));
        let ran = line.sends(&[]).run();
        ran.exits(0);
        assert_eq!(line.count("POST"), 2, "{status}: {}", line.story());
        assert!(line.server.stored().iter().any(|held| held[..] == data[..]), "{ran}");
    }
}
