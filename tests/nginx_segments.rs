//! Against a real nginx: one file over several connections, to one server and to several.

#![allow(clippy::disallowed_methods, reason = "clocks are read here to measure, never to decide")]

mod support;

use std::time::Instant;

use rustix::process::Signal;
use support::nginx::{Certificate, Line, Nginx};
use support::{Px, World, eventually, ms, noise};

const MB: usize = 1 << 20;

fn body_bytes(log: &[Line]) -> u64 {
    log.iter().map(|l| l.body_bytes).sum()
}

/// How many connections carried more than a proof.
fn connections(log: &[Line]) -> usize {
    let carried = log.iter().filter(|l| l.body_bytes > 200_000);
    carried.map(|l| l.connection).collect::<std::collections::BTreeSet<_>>().len()
}

fn over<'w>(w: &'w World, url: &str, connections: &str) -> Px<'w> {
    w.download(url).args(&["--connections", connections])
}

#[test]
fn four_connections_to_one_server_fetch_each_byte_once() {
    let Some(nginx) = Nginx::start("nginx_segments::four_connections", "limit_rate 4m;") else { return };
    let (w, data) = (World::new(), noise(1500, 24 * MB));
    nginx.put("f", &data);
    over(&w, &nginx.url("/f"), "4").run().exits(0).says(&["validator"]);
    w.holds(&data);
    let log = nginx.log_of(4);
    assert!(body_bytes(&log) as f64 <= 1.05 * data.len() as f64, "{} bytes: {log:?}", body_bytes(&log));
    assert!(connections(&log) >= 4 && log.len() <= 24, "{log:?}");
}

#[test]
fn over_tls_each_connection_is_one_of_its_own_whatever_the_server_speaks() {
    for more in ["", "# http2"] {
        let test = "nginx_segments::over_tls";
        let Some(certificate) = Certificate::make(test) else { return };
        let server = format!("{}\n{more}\nlimit_rate 4m;", certificate.directives());
        let Some(nginx) = Nginx::start(test, &server) else { return };
        let (w, data) = (World::new(), noise(1501, 16 * MB));
        nginx.put("f", &data);
        over(&w, &nginx.tls_url("/f"), "4").arg("--cacert").arg(certificate.path()).run().exits(0);
        w.holds(&data);
        let log = nginx.log_of(4);
        assert!(connections(&log) >= 4, "{more}: {log:?}");
        assert!(log.iter().all(|l| l.protocol == "HTTP/1.1"), "{log:?}");
        // One alone takes what the server has.
        let w = World::new();
        w.download(&nginx.tls_url("/f")).arg("--cacert").arg(certificate.path()).run().exits(0);
        let log = nginx.log_of(log.len() + 1);
        let wanted = if more.is_empty() { "HTTP/1.1" } else { "HTTP/2.0" };
        assert_eq!(log.last().map(|l| l.protocol.as_str()), Some(wanted));
    }
}

#[test]
fn one_of_three_mirrors_dies_half_way() {
    let start = |_| Nginx::start("nginx_segments::one_of_three_mirrors", "limit_rate 3m;");
    let Some(mut mirrors) = [0, 1, 2].map(start).into_iter().collect::<Option<Vec<_>>>() else { return };
    let (w, data) = (World::new(), noise(1502, 18 * MB));
    mirrors.iter().for_each(|m| m.put_dated("f", &data));
    let urls: Vec<_> = mirrors.iter().map(|m| m.url("/f")).collect();
    let run = w.download(&urls[0]).mirror(&urls[1]).mirror(&urls[2]).start();
    std::thread::sleep(ms(900));
    mirrors[1].kill();
    run.end().exits(0);
    w.holds(&data);
    for n in [0, 2] {
        assert!(body_bytes(&mirrors[n].log_of(1)) > 4 * MB as u64, "{n}: {:?}", mirrors[n].log());
    }
}

#[test]
fn a_rate_limit_holds_for_all_connections_together() {
    let Some(nginx) = Nginx::start("nginx_segments::a_rate_limit", "") else { return };
    let (w, data) = (World::new(), noise(1503, 8 * MB));
    nginx.put("f", &data);
    let from = Instant::now();
    over(&w, &nginx.url("/f"), "4").args(&["--limit-rate", "3m"]).run().exits(0);
    let took = from.elapsed();
    w.holds(&data);
    // Eight at three a second, less what a limiter lets through at once.
    assert!(took > ms(2_000), "{took:?}");
    let sent = body_bytes(&nginx.log_of(4));
    assert!(sent < 2 * data.len() as u64, "{sent} bytes: {:?}", nginx.log());
}

#[test]
fn interrupted_it_ends_soon_and_goes_on_where_it_was() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 4)] {
        let Some(nginx) = Nginx::start("nginx_segments::interrupted", "limit_rate 2m;") else { return };
        let (w, data) = (World::new(), noise(1504, 16 * MB));
        nginx.put("f", &data);
        let run = over(&w, &nginx.url("/f"), "4").start();
        std::thread::sleep(ms(1_200));
        let from = Instant::now();
        run.signal(signal);
        run.end().exits(code).says(&["to continue"]);
        assert!(from.elapsed() < ms(2_000), "{:?}", from.elapsed());
        w.holds_nothing();
        over(&w, &nginx.url("/f"), "4").run().exits(0);
        w.holds(&data);
        let sent = body_bytes(&nginx.log());
        assert!(sent as f64 <= 1.08 * data.len() as f64, "{sent} bytes for {}", data.len());
    }
}

#[test]
fn killed_ten_times_little_is_fetched_twice() {
    let Some(nginx) = Nginx::start("nginx_segments::killed_ten_times", "limit_rate 1m;") else { return };
    let (w, data) = (World::new(), noise(1505, 64 * MB));
    nginx.put("f", &data);
    let px = || over(&w, &nginx.url("/f"), "4");
    for n in 0..10 {
        let run = px().start();
        std::thread::sleep(ms(200 + 61 * (n * 7 % 10)));
        drop(run);
        w.holds_nothing();
    }
    px().run().exits(0).says(&["validator"]);
    w.holds(&data);
    eventually("the log is quiet", || {
        let before = nginx.log().len();
        std::thread::sleep(ms(200));
        nginx.log().len() == before
    });
    let log = nginx.log();
    let share = body_bytes(&log) as f64 / data.len() as f64;
    support::say(&format!("killed ten times: {share:.4} of the file on the wire, {} requests", log.len()));
    // About 1.10 where the machine has nothing else to do: each kill costs what is compared anew, some 200 KiB, and what
    // stood in the buffers of four sockets. `tests/long` has the figure of a large file.
    assert!(share <= 1.20, "{share} of the file");
}
