//! `--report-url`: that a transfer failed for good is told to a scheduling server, persistently, and changes nothing for the
//! transfer.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use support::{Px, Reply, Rig, World, eventually};

/// What the server got: the head of a request, and its body.
#[derive(Clone, Debug)]
struct Got {
    head: String,
    body: String,
}

/// A scheduling server.
struct Scheduler {
    port: u16,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Scheduler {
    /// On this port, 0 for any. `answer` makes an answer's head of the number of a request and its path; nothing hangs.
    fn start(port: u16, answer: impl Fn(usize, &str) -> Option<String> + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let (port, got) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<Got>>>::default());
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            let mut hung = Vec::new();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let Some(request) = read(&stream) else { continue };
                let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
                let n = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(request);
                    kept.len()
                };
                match answer(n, &path) {
                    Some(head) => {
                        let all = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                        let _ = stream.write_all(all.as_bytes());
                    }
                    None => hung.push(stream),
                }
            }
        });
        Self { port, got }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Option<Got> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Got { head, body: String::from_utf8(body).ok()? })
}

fn gone() -> Rig {
    Rig::start(|_| Reply::status(410))
}

/// A download that fails for good, with its report.
fn failing<'w>(w: &'w World, rig: &Rig, to: &str) -> Px<'w> {
    w.download(&rig.url("/f?token=s3cret")).args(&["--report-url", to])
}

fn reports_left(w: &World) -> usize {
    w.state_text().matches("<report>").count()
}

#[test]
fn a_failure_is_reported_once_in_boincs_form_and_without_secrets() {
    let (w, rig) = (World::new(), gone());
    let server = Scheduler::start(0, |_, _| Some("200 OK".into()));
    let to = server.url("/cgi?key=hidden").replace("http://", "http://who:pass@");
    let ran = failing(&w, &rig, &to).args(&["-H", "X-Secret: of-mine", "--progress", "json"]).run();
    ran.exits(3).says(&["410"]);
    let got = server.got();
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(got[0].head.starts_with("POST /cgi?key=hidden HTTP/1.1\r\n"), "{}", got[0].head);
    let head = got[0].head.to_ascii_lowercase();
    assert!(head.contains("content-type: text/xml") && head.contains("authorization: basic"), "{head}");
    assert!(!head.contains("of-mine"), "what is for the file's servers goes nowhere else: {head}");
    let printed = w.px(["state", "report"]).run().stdout;
    assert_eq!(got[0].body, printed, "it is what `state report` prints");
    assert!(printed.contains("<error_code>-224 (permanent HTTP error)</error_code>"), "{printed}");
    assert!(!printed.contains("s3cret"), "{printed}");
    let event = ran.stdout.lines().find(|line| line.contains("\"event\":\"reported\"")).expect("an event");
    assert!(event.contains("\"status\":\"sent\"") && !event.contains("pass") && !event.contains("hidden"), "{event}");
    assert!(!ran.stderr.contains("hidden") && !ran.stderr.contains("pass@"), "{}", ran.stderr);
    assert_eq!(reports_left(&w), 0);
    // Neither another run nor a look at the state sends it again.
    w.px(["run"]).run();
    assert_eq!(server.got().len(), 1);
    // Another life that fails is another report.
    failing(&w, &rig, &to).run().exits(3);
    assert_eq!(server.got().len(), 2);
}

#[test]
fn what_a_command_could_not_report_run_does_through_kills() {
    let (w, rig) = (World::new(), gone());
    // A port on which nobody listens, for now.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let to = format!("http://127.0.0.1:{port}/report");
    failing(&w, &rig, &to).give_up("10m").run().exits(3).says(&["still to be reported", "persxfer run"]);
    assert_eq!(reports_left(&w), 1, "{}", w.state_text());
    // What is owed does not hang on the record.
    w.px(["state", "forget", "out.bin"]).run().exits(0);
    assert_eq!(reports_left(&w), 1);
    // A run tries again and again, and is killed; so is one that has sent it and has no answer.
    let run = w.px(["run"]).start();
    let tries = |n: usize| {
        let text = w.state_text();
        let told = text
            .split("<report>")
            .nth(1)
            .and_then(|r| r.split("<num_retries>").nth(1))
            .and_then(|r| r.split('<').next());
        told.and_then(|t| t.parse::<usize>().ok()).is_some_and(|tries| tries >= n)
    };
    eventually("it was tried three times", || tries(3));
    run.signal(Signal::KILL);
    let end = run.try_end();
    drop(end);
    let hangs = Arc::new(AtomicUsize::new(1));
    let still = Arc::clone(&hangs);
    let server = Scheduler::start(port, move |_, _| (still.load(Ordering::SeqCst) == 0).then(|| "200 OK".into()));
    let run = w.px(["run"]).start();
    eventually("it was sent", || !server.got().is_empty());
    drop(run);
    assert_eq!(reports_left(&w), 1, "no answer, not done");
    hangs.store(0, Ordering::SeqCst);
    let before = server.got().len();
    w.px(["run"]).run().exits(0).says(&["reported"]);
    assert_eq!((server.got().len(), reports_left(&w)), (before + 1, 0));
    let keys: Vec<_> = server
        .got()
        .iter()
        .map(|got| got.head.lines().find(|l| l.to_ascii_lowercase().starts_with("idempotency-key")).unwrap().to_owned())
        .collect();
    assert!(keys.windows(2).all(|two| two[0] == two[1]), "the same key each time: {keys:?}");
    w.px(["run"]).run().exits(0);
    assert_eq!(server.got().len(), before + 1);
}

#[test]
fn errors_of_the_server_are_retried_and_redirects_followed() {
    let (w, rig) = (World::new(), gone());
    let at = Arc::new(AtomicU16::new(0));
    let port = Arc::clone(&at);
    let server = Scheduler::start(0, move |n, path| {
        Some(match (n, path) {
            (1..=4, _) => "500 Internal Server Error".to_owned(),
            (_, "/report") => {
                format!("307 Temporary Redirect\r\nLocation: http://localhost:{}/next", port.load(Ordering::SeqCst))
            }
            _ => "204 No Content".to_owned(),
        })
    });
    at.store(server.port, Ordering::SeqCst);
    let to = server.url("/report").replace("http://", "http://who:pass@");
    failing(&w, &rig, &to).give_up("10m").run().exits(3);
    assert_eq!((server.got().len(), reports_left(&w)), (1, 1), "a command tries once");
    w.px(["run"]).run().exits(0);
    let got = server.got();
    assert_eq!((got.len(), reports_left(&w)), (6, 0), "{got:?}");
    assert!(got[5].head.starts_with("POST /next ") && got[5].body == got[0].body, "{got:?}");
    assert!(got[4].head.to_ascii_lowercase().contains("authorization"));
    assert!(!got[5].head.to_ascii_lowercase().contains("authorization"), "a password goes to its own server only");
}

#[test]
fn a_report_is_given_up_by_its_own_window_and_the_status_stays() {
    let (w, rig) = (World::new(), gone());
    let server = Scheduler::start(0, |_, _| Some("503 Service Unavailable".into()));
    failing(&w, &rig, &server.url("/r")).give_up("2s").run().exits(3);
    assert_eq!(reports_left(&w), 1);
    w.px(["run"]).run().exits(0).says(&["given up"]);
    assert!(server.got().len() >= 3, "{}", server.got().len());
    assert_eq!(reports_left(&w), 0);
    assert_eq!(w.list(&["--all"])[0]["status"], "failed");
}

#[test]
fn the_preferences_name_a_server_for_those_that_name_none() {
    let (w, rig) = (World::new(), gone());
    let server = Scheduler::start(0, |_, _| Some("200 OK".into()));
    std::fs::write(w.path("config.toml"), format!("[hooks]\nreport_url = '{}'\n", server.url("/pref"))).unwrap();
    let config = w.path("config.toml").to_str().unwrap().to_owned();
    w.px(["add", "download", &rig.url("/added"), "-o"]).arg(w.path("added")).run().exits(0);
    w.px(["run", "--config", &config]).run().exits(3);
    assert_eq!(server.got().len(), 1);
    w.download(&rig.url("/f")).args(&["--config", &config, "--report-url", &server.url("/typed")]).run().exits(3);
    assert!(server.got()[1].head.starts_with("POST /typed "), "what is typed comes first");
    w.download(&rig.url("/f")).args(&["--report-url", "ftp://x/s3cret"]).run().exits(2).says(&["--report-url"]);
}

#[test]
fn nothing_is_reported_while_nothing_may_pass() {
    let (w, rig) = (World::new(), gone());
    let server = Scheduler::start(0, |n, _| Some(if n == 1 { "500 Oops" } else { "200 OK" }.into()));
    failing(&w, &rig, &server.url("/r")).give_up("10m").run().exits(3);
    std::fs::write(w.path("config.toml"), "[network]\nmode = 'never'\n").unwrap();
    let config = w.path("config.toml").to_str().unwrap().to_owned();
    let run = w.px(["run", "--config", &config]).start();
    std::thread::sleep(support::ms(1_000));
    assert_eq!(server.got().len(), 1, "the network is shut");
    std::fs::write(w.path("config.toml"), "").unwrap();
    run.signal(Signal::HUP);
    run.end().exits(0);
    assert_eq!((server.got().len(), reports_left(&w)), (2, 0));
}
