//! `run` as a service: what it tells Prometheus and the service manager, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::collections::BTreeSet;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;
use support::boinc::{Service, talk};
use support::{End, Reply, Rig, Served, World, eventually, noise};

const MB: usize = 1 << 20;

#[test]
fn metrics_count_what_was_done() {
    let (w, data) = (World::new(), noise(611, MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.target.as_str() {
        "/gone" => Reply::status(410),
        "/hangs" => served.reply(a).cut(MB / 2, End::Hang),
        "/busy" => Reply::status(503),
        _ => served.reply(a),
    });
    for name in ["good", "gone", "busy", "hangs"] {
        w.px(["add", "download", &rig.url(&format!("/{name}")), "-o"]).arg(w.path(name)).run().exits(0);
    }
    let service = Service::start(&w, &["--max-transfers-per-host", "4"]);
    let is = |name: &str, value: f64| service.metric(name) == Some(value);
    let host = rig.url("").trim_end_matches('/').to_owned();
    eventually("all is as it will be", || {
        is("persxfer_transfers{state=\"running\"}", 1.0)
            && is("persxfer_transfers{state=\"backoff\"}", 1.0)
            && is("persxfer_transfers_ended_total{result=\"complete\"}", 1.0)
            && is("persxfer_transfers_ended_total{result=\"failed\"}", 1.0)
            && service
                .metric(&format!("persxfer_received_bytes_total{{host=\"{host}\"}}"))
                .is_some_and(|bytes| (MB as f64..=1.5 * MB as f64).contains(&bytes))
    });
    assert!(is("persxfer_sessions_total{direction=\"download\"}", 4.0), "{}", service.metrics());
    assert!(is("persxfer_failures_total{class=\"gone\"}", 1.0), "{}", service.metrics());
    assert!(is("persxfer_retries_total", 1.0) && is("persxfer_network_mode{mode=\"auto\"}", 1.0));
    assert!(service.metric("persxfer_next_wakeup_seconds").is_some_and(|secs| secs > 0.0 && secs <= 75.0));
    is_in_form(&service.metrics());
}

/// Each family once, its help and type before its values.
fn is_in_form(text: &str) {
    let (mut seen, mut family) = (BTreeSet::new(), String::new());
    for line in text.lines() {
        match line.split_once(' ').unwrap() {
            ("#", rest) if rest.starts_with("HELP ") => {
                family = rest.split(' ').nth(1).unwrap().to_owned();
                assert!(seen.insert(family.clone()), "{family} twice");
            }
            ("#", rest) => assert!(
                [format!("TYPE {family} counter"), format!("TYPE {family} gauge")].contains(&rest.to_owned()),
                "{line}"
            ),
            (sample, _) => {
                assert_eq!(sample.split('{').next(), Some(family.as_str()), "{line}");
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert_eq!(family.ends_with("_total"), text.contains(&format!("# TYPE {family} counter")), "{family}");
            }
        }
    }
    assert!(seen.len() > 6 && text.ends_with('\n'), "{text}");
}

#[test]
fn metrics_are_one_page_for_this_machine() {
    let w = World::new();
    let service = Service::start(&w, &[]);
    let status = |request: &str| {
        let answer = talk(service.metrics, format!("{request}\r\n\r\n").as_bytes());
        answer.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost"), "HTTP/1.1 404 Not Found");
    assert_eq!(status("POST /metrics HTTP/1.1\r\nHost: localhost"), "HTTP/1.1 405 Method Not Allowed");
    assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: a.page.example"), "HTTP/1.1 421 Misdirected Request");
    assert_eq!(status("nonsense"), "HTTP/1.1 400 Bad Request");
    let head = talk(service.metrics, b"HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    service.run.signal(Signal::TERM);
    service.run.end().exits(0);
}

#[test]
fn the_service_manager_is_told() {
    let (w, data) = (World::new(), noise(612, MB));
    let served = Served::new(&data);
    let whole = served.clone();
    let rig = Rig::start(move |a| served.reply(a).cut(MB / 2, End::Hang));
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    let socket = w.path("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let heard = || {
        let mut buffer = [0; 256];
        let n = manager.recv(&mut buffer).expect("the service says something");
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    };
    let run = w.px(["run", "--forever"]).env("NOTIFY_SOCKET", socket.to_str().unwrap()).start();
    assert_eq!(heard(), "READY=1");
    eventually("it runs", || rig.has_sent(MB / 2));
    run.signal(Signal::TERM);
    assert_eq!(heard(), "STOPPING=1");
    run.end().exits(0);
    // What hung is saved, and is nobody's.
    let t = &w.list(&[])[0];
    assert!(t["status"] == "pending" && t["in_use_by"].is_null(), "{t}");
    // Nobody listens there: no matter.
    drop(manager);
    rig.now(move |a| whole.reply(a));
    w.px(["run", "--once"]).env("NOTIFY_SOCKET", socket.to_str().unwrap()).run().exits(0);
    w.holds(&data);
}
