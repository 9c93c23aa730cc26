//! GUI RPC: BOINC's own `boinccmd` lists, retries and aborts our transfers, and sets the network mode (`docs/gui-rpc.md`).
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use md5::{Digest as _, Md5};
use rustix::process::Signal;
use support::boinc::{PROJECT, Service, talk};
use support::{End, Reply, Rig, Served, World, eventually, ms, noise};

const MB: usize = 1 << 20;

fn add(w: &World, url: &str, name: &str) {
    w.px(["add", "download", url, "-o"]).arg(w.path(name)).run().exits(0);
}

/// A file that comes slowly the first time, and one that the server is too busy for.
fn slow_and_busy(seed: u64) -> (World, Rig, std::sync::Arc<Vec<u8>>) {
    let (w, data) = (World::new(), noise(seed, 3 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.target.as_str() {
        "/busy" => Reply::status(503),
        "/new" => served.reply(a),
        _ if a.from() > 0 => served.reply(a),
        _ => served.reply(a).pace(32 << 10, ms(100)),
    });
    add(&w, &rig.url("/slow?token=s3cret"), "slow.bin");
    add(&w, &rig.url("/busy"), "busy.bin");
    (w, rig, data)
}

fn count(rig: &Rig, target: &str) -> usize {
    rig.asked().iter().filter(|asked| asked.target == target).count()
}

#[test]
fn boinccmd_lists_transfers_with_name_state_and_bytes() {
    let (w, rig, _) = slow_and_busy(601);
    let service = Service::start(&w, &[]);
    eventually("both were asked for", || rig.sent() > 200_000 && count(&rig, "/busy") == 1);
    eventually("they are listed", || {
        let said = service.boinccmd(&["--get_file_transfers"]);
        let (slow, busy) = (said.out.find("name: slow.bin"), said.out.find("name: busy.bin"));
        said.is_done().has("direction: download")
            && slow < busy
            && slow.is_some()
            && said.has("xfer active: yes")
            && said.has("xfer active: no")
            && said.number("bytes_xferred:").is_some_and(|bytes| bytes > 100_000.0)
            && said.number("xfer_speed:").is_some_and(|speed| speed > 0.0)
    });
    assert!(!talk_all(&service, "<get_file_transfers/>").contains("s3cret"));
    let said = service.boinccmd_with(None, &["--get_file_transfers"]);
    assert!(said.is_done().has("name: slow.bin"), "all on this machine may ask");
    service.run.signal(Signal::TERM);
    service.run.end().exits(0);
}

/// One request, and the answer.
fn talk_all(service: &Service, request: &str) -> String {
    let mut stream = TcpStream::connect(service.rpc).unwrap();
    stream.write_all(format!("<boinc_gui_rpc_request>\n{request}\n</boinc_gui_rpc_request>\n\x03").as_bytes()).unwrap();
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while byte[0] != 3 && stream.read(&mut byte).unwrap() == 1 {
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn a_transfer_that_waits_is_retried_and_one_is_aborted() {
    let (w, rig, _) = slow_and_busy(602);
    let service = Service::start(&w, &[]);
    eventually("it waits", || rig.sent() > 400_000 && w.list(&[]).iter().any(|t| t["num_retries"] == 1));
    // The address as people type it.
    service.boinccmd(&["--file_transfer", "http://WWW.persxfer.invalid", "busy.bin", "retry"]).is_done();
    eventually("it was asked for again", || count(&rig, "/busy") == 2);
    service.boinccmd(&["--file_transfer", PROJECT, "slow.bin", "abort"]).is_done();
    eventually("it is gone from the list", || {
        let said = service.boinccmd(&["--get_file_transfers"]);
        !said.is_done().has("name: slow.bin") && said.has("name: busy.bin")
    });
    let slow = w.list(&["--all"]).into_iter().find(|t| t["name"] == "slow.bin").unwrap();
    assert_eq!((&slow["status"], &slow["error_code"]), (&"failed".into(), &(-197).into()), "{slow}");
    // It begins another life where it was.
    service.boinccmd(&["--file_transfer", PROJECT, "slow.bin", "retry"]).is_done();
    eventually("it goes on", || w.list(&["--all"]).iter().any(|t| t["name"] == "slow.bin" && t["status"] == "done"));
    let said = service.boinccmd(&["--file_transfer", PROJECT, "slow.bin", "abort"]);
    assert!(said.code == Some(255) && said.err.contains("No such transfer waiting"), "{said:?}");
    for (project, name, why) in
        [("http://alpha.example/", "busy.bin", "No such project"), (PROJECT, "nothing.bin", "No such file")]
    {
        let said = service.boinccmd(&["--file_transfer", project, name, "retry"]);
        assert!(said.code == Some(255) && said.err.contains(why), "{said:?}");
    }
    assert_eq!(count(&rig, "/busy"), 2);
}

#[test]
fn a_network_mode_stops_and_starts_everything() {
    let (w, rig, data) = slow_and_busy(603);
    let service = Service::start(&w, &[]);
    eventually("both were asked for", || rig.sent() > 300_000 && count(&rig, "/busy") == 1);
    service.boinccmd(&["--set_network_mode", "never", "600"]).is_done();
    let status = || service.boinccmd(&["--get_cc_status"]);
    let said = status();
    let left =
        said.out.lines().rev().find_map(|l| l.trim().strip_prefix("perm becomes current in ")).unwrap().to_owned();
    assert!(said.has("suspended: user request") && said.has("current mode: never"), "{said:?}");
    let left: f64 = left.trim_end_matches(" sec").parse().unwrap();
    assert!(left > 0.0 && left <= 600.0, "{left}");
    eventually("its session has ended", || service.metric("persxfer_transfers{state=\"running\"}") == Some(0.0));
    assert_eq!(service.metric("persxfer_network_mode{mode=\"never\"}"), Some(1.0));
    assert!(w.path("slow.bin.persxfer-part").exists());
    let (asked, before) = (rig.count(), w.list(&[]));
    // Neither a new one nor a word to an old one starts anything.
    add(&w, &rig.url("/new"), "new.bin");
    service.boinccmd(&["--file_transfer", PROJECT, "busy.bin", "retry"]).is_done();
    eventually("it was heard", || !w.state_text().contains("<wish>"));
    eventually("the new one is seen", || service.boinccmd(&["--get_file_transfers"]).has("name: new.bin"));
    std::thread::sleep(ms(700));
    assert_eq!(rig.count(), asked, "something was asked for");
    assert_eq!(w.list(&[])[1]["num_retries"], before[1]["num_retries"], "a retry was counted");
    service.boinccmd(&["--set_network_mode", "auto"]).is_done();
    eventually("all that can be is complete", || {
        w.list(&["--all"]).iter().filter(|t| t["status"] == "done").count() == 2
    });
    support::same_file(&w.path("slow.bin"), &data);
    support::same_file(&w.path("new.bin"), &data);
    assert!(rig.asked().iter().any(|a| a.target.starts_with("/slow") && a.from() > 100_000), "it went on where it was");
    assert!(status().has("current mode: according to prefs"));
}

#[test]
fn a_mode_for_a_while_ends_by_itself() {
    let (w, data) = (World::new(), noise(604, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let service = Service::start(&w, &[]);
    service.boinccmd(&["--set_network_mode", "always"]).is_done();
    service.boinccmd(&["--set_network_mode", "never", "5"]).is_done();
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    eventually("it is known", || service.boinccmd(&["--get_file_transfers"]).has("name: out.bin"));
    eventually("it came", || w.out.exists());
    w.holds(&data);
    assert!(service.boinccmd(&["--get_cc_status"]).has("current mode: always"));
}

#[test]
fn a_mode_for_good_survives_a_restart_until_the_preferences_say_something_else() {
    let (w, data) = (World::new(), noise(607, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let service = Service::start(&w, &[]);
    service.boinccmd(&["--set_network_mode", "never"]).is_done();
    // One that passes is not stored.
    service.boinccmd(&["--set_network_mode", "always", "600"]).is_done();
    eventually("it is stored", || w.state_text().contains("<network_mode>never auto</network_mode>"));
    drop(service);
    let service = Service::start(&w, &[]);
    assert!(service.boinccmd(&["--get_cc_status"]).has("current mode: never"));
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    assert_eq!(w.list(&[])[0]["waits"]["reason"], "suspended");
    eventually("it is known", || service.boinccmd(&["--get_file_transfers"]).has("name: out.bin"));
    std::thread::sleep(ms(500));
    assert_eq!(rig.count(), 0, "nothing is asked");
    drop(service);
    // What the file says now, it says later than the person.
    std::fs::write(w.path("config.toml"), "[network]\nmode = 'always'\n").unwrap();
    let config = w.path("config.toml").to_str().unwrap().to_owned();
    let service = Service::start(&w, &["--config", &config]);
    eventually("it came", || w.out.exists());
    assert!(service.boinccmd(&["--get_cc_status"]).has("current mode: always"));
    // A person wants what the preferences say: then nothing is stored.
    service.boinccmd(&["--set_network_mode", "never"]).is_done();
    service.boinccmd(&["--set_network_mode", "always"]).is_done();
    eventually("nothing is stored", || !w.state_text().contains("<network_mode>"));
    w.holds(&data);
}

#[test]
fn the_window_does_not_run_while_the_mode_is_never() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    let patience = ["--give-up", "4s", "--min-delay", "100ms", "--max-delay", "200ms"];
    w.px(["add", "download", &rig.url("/f")]).args(&patience).arg("-o").arg(&w.out).run().exits(0);
    let service = Service::start(&w, &[]);
    eventually("it was tried", || rig.count() >= 1);
    service.boinccmd(&["--set_network_mode", "never"]).is_done();
    std::thread::sleep(ms(5_000));
    assert_eq!(w.list(&[])[0]["status"], "pending");
    service.boinccmd(&["--set_network_mode", "auto"]).is_done();
    eventually("it has given up", || w.list(&["--all"])[0]["status"] == "failed");
}

#[test]
fn every_wait_ends_when_the_network_is_said_to_be_there() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(500));
    (0..3).for_each(|n| add(&w, &rig.url(&format!("/{n}")), &format!("f{n}")));
    let service = Service::start(&w, &[]);
    eventually("they wait", || rig.count() == 3 && w.list(&[]).iter().all(|t| t["num_retries"] == 1));
    service.boinccmd(&["--network_available"]).is_done();
    eventually("the host is probed", || rig.count() >= 4);
}

#[test]
fn who_has_no_password_changes_nothing() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    add(&w, &rig.url("/f"), "f");
    let service = Service::start(&w, &[]);
    let mode = std::fs::metadata(w.path("state/gui_rpc_auth.cfg")).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, service.password.len()), (0o600, 32));
    assert_eq!(service.boinccmd_with(Some("wrong"), &["--set_network_mode", "never"]).code, Some(1));
    let quit = "<boinc_gui_rpc_request>\n<quit/>\n</boinc_gui_rpc_request>\n\x03";
    let answer = talk(service.rpc, quit.repeat(3).as_bytes());
    assert_eq!(answer, "<boinc_gui_rpc_reply>\n<unauthorized/>\n</boinc_gui_rpc_reply>\n\x03", "then it closes");
    assert!(service.boinccmd(&["--get_cc_status"]).has("current mode: according to prefs"));
    assert_eq!(talk(service.rpc, b"POST / HTTP/1.1\r\nHost: x\r\n\r\n"), "", "a browser is no tool of BOINC's");
    assert_eq!(talk(service.rpc, &b"<".repeat(100_000)), "");
    let known = "<boinc_gui_rpc_reply>\n<error>unrecognized op: frobnicate/</error>\n</boinc_gui_rpc_reply>\n\x03";
    assert!(talk_all(&service, "<frobnicate/>").contains("<unauthorized/>"), "only {known:?} for those who may");
}

#[test]
fn connections_that_ask_nothing_hold_up_nobody() {
    let (w, data) = (World::new(), noise(605, 400_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let service = Service::start(&w, &[]);
    // More than are served at a time, on both ports.
    let idle: Vec<TcpStream> = (0..20)
        .flat_map(|_| [service.rpc, service.metrics])
        .map(|at| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(b"<boinc_gui").unwrap();
            stream
        })
        .collect();
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    eventually("it came", || w.out.exists());
    service.run.signal(Signal::TERM);
    service.run.end().exits(0);
    drop(idle);
    w.holds(&data);
}

/// So many connections that begin to ask and never finish, on both doors.
fn idlers(service: &Service, each: usize) -> Vec<TcpStream> {
    let begun = |(at, words): (_, &[u8])| {
        let mut stream = TcpStream::connect(at).unwrap();
        // It may have been closed for another one already.
        let _ = stream.write_all(words);
        stream
    };
    let doors = [(service.rpc, &b"<boinc_gui"[..]), (service.metrics, b"GET /met")];
    (0..each).flat_map(|_| doors).map(begun).collect()
}

#[test]
fn three_hundred_idle_connections_keep_no_other_out() {
    let w = World::new();
    let service = Service::start(&w, &[]);
    let asked = b"<boinc_gui_rpc_request>\n<exchange_versions/>\n</boinc_gui_rpc_request>\n\x03";
    let mut trusted = Authorized::at(&service);
    let mut idle = idlers(&service, 300);
    for _ in 0..3 {
        // Idle connections end after 10 seconds and more: whoever waits for that waits longer than this.
        let mut stream = TcpStream::connect(service.rpc).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        stream.write_all(asked).unwrap();
        let mut answer = [0; 21];
        stream.read_exact(&mut answer).expect("an answer while others are idle");
        assert_eq!(&answer, b"<boinc_gui_rpc_reply>");
        let mut stream = TcpStream::connect(service.metrics).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the metrics while others are idle");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        idle.extend(idlers(&service, 20));
    }
    assert!(trusted.ask("<get_cc_status/>").contains("<network_mode>"), "who has the password is kept");
    // The oldest were let go, and know it.
    idle[0].set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    assert!(matches!(idle[0].read(&mut [0; 1]), Ok(0) | Err(_)), "the oldest idle one is closed");
    service.run.signal(Signal::TERM);
    service.run.end().exits(0);
}

/// A connection that has proven the password.
struct Authorized(TcpStream);

impl Authorized {
    fn at(service: &Service) -> Self {
        let mut it = Self(TcpStream::connect(service.rpc).unwrap());
        let challenge = it.ask("<auth1/>");
        let nonce = challenge.split_once("<nonce>").unwrap().1.split_once('<').unwrap().0;
        let hash = hex::encode(Md5::digest(format!("{nonce}{}", service.password)));
        assert!(it.ask(&format!("<auth2>\n<nonce_hash>{hash}</nonce_hash>\n</auth2>")).contains("<authorized/>"));
        it
    }

    fn ask(&mut self, what: &str) -> String {
        self.0
            .write_all(format!("<boinc_gui_rpc_request>\n{what}\n</boinc_gui_rpc_request>\n\x03").as_bytes())
            .unwrap();
        let mut answer = Vec::new();
        while answer.last() != Some(&3) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[test]
fn quit_ends_the_service_as_sigterm_does() {
    let (w, data) = (World::new(), noise(606, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).cut(MB, End::Hang));
    add(&w, &rig.url("/f"), "f");
    let service = Service::start(&w, &[]);
    eventually("it runs", || rig.has_sent(MB));
    service.boinccmd(&["--quit"]).is_done();
    service.run.end().exits(0);
    assert_eq!(w.list(&[])[0]["status"], "pending");
    assert!(w.list(&[])[0]["in_use_by"].is_null());
}

#[test]
fn other_questions_have_answers_that_boinccmd_can_read() {
    let w = World::new();
    let service = Service::start(&w, &[]);
    for question in
        ["--get_state", "--get_messages", "--get_message_count", "--get_host_info", "--get_daily_xfer_history"]
    {
        service.boinccmd(&[question]).is_done();
    }
    assert!(service.boinccmd(&["--client_version"]).is_done().out.contains("7.20.5"));
    let said = service.boinccmd(&["--get_project_status"]);
    assert!(said.is_done().has("name: persxfer") && said.has(&format!("master URL: {PROJECT}")), "{said:?}");
    let said = service.boinccmd(&["--read_cc_config"]);
    assert!(said.code == Some(255) && said.err.contains("unrecognized op: read_cc_config/"), "{said:?}");
}

#[test]
fn only_this_machine_may_ask() {
    let w = World::new();
    for at in ["0.0.0.0:31416", "192.0.2.1:31416", "[::]:31416", "nowhere"] {
        w.px(["run", &format!("--gui-rpc={at}")]).run().complains_in_one_line(2, "--gui-rpc");
    }
    w.px(["run", "--metrics", "0.0.0.0"]).run().complains_in_one_line(2, "--metrics");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    w.px(["run", &format!("--gui-rpc={at}")]).run().complains_in_one_line(5, "cannot listen on");
    assert!(!w.state.exists() || !w.state_text().contains("<owner>"));
}
