//! Against a real nginx: killed and resumed, the file replaced between two sessions, the server killed and restarted.

mod support;

use support::nginx::{Line, Nginx};
use support::{World, digest, ms, noise};

fn body_bytes(log: &[Line]) -> u64 {
    log.iter().map(|l| l.body_bytes).sum()
}

#[test]
fn killed_once_the_rest_comes_by_range_under_the_tag() {
    let Some(nginx) = Nginx::start("nginx_resume::killed_once", "limit_rate 4m;") else { return };
    let (w, data) = (World::new(), noise(210, 12_000_000));
    nginx.put("f", &data);
    let run = w.download(&nginx.url("/f")).start();
    std::thread::sleep(ms(700));
    drop(run);
    w.holds_nothing();
    w.download(&nginx.url("/f")).run().exits(0).says(&["validator"]);
    w.holds(&data);
    let log = nginx.log_of(2);
    assert_eq!((log[1].status, log.len()), (206, 2));
    assert!(log[1].range.starts_with("bytes=") && log[1].if_range.starts_with('"'), "{:?}", log[1]);
    // A new start would cost what the first session brought: four megabytes and more.
    let most = data.len() as u64 + (3 << 20);
    assert!(body_bytes(&log) <= most, "{} bytes for {}", body_bytes(&log), data.len());
}

#[test]
fn killed_ten_times_in_quick_succession() {
    let Some(nginx) = Nginx::start("nginx_resume::killed_ten_times", "limit_rate 3m;") else { return };
    let (w, data) = (World::new(), noise(211, 40_000_000));
    nginx.put("f", &data);
    let px = || w.download(&nginx.url("/f")).args(&["--checksum", &digest("sha-256", &data)]);
    for n in 0..10 {
        let run = px().start();
        std::thread::sleep(ms(40 + 37 * n));
        drop(run);
        w.holds_nothing();
    }
    px().run().exits(0).says(&["digest"]);
    w.holds(&data);
    let log = nginx.log();
    let sent = body_bytes(&log);
    assert!(sent < data.len() as u64 * 3 / 2, "{sent} bytes for {} in {} sessions", data.len(), log.len());
}

#[test]
fn replaced_between_two_sessions_by_one_of_the_same_size() {
    let Some(nginx) = Nginx::start("nginx_resume::replaced", "limit_rate 4m;") else { return };
    let (w, old, new) = (World::new(), noise(212, 12_000_000), noise(213, 12_000_000));
    nginx.put("f", &old);
    let run = w.download(&nginx.url("/f")).start();
    std::thread::sleep(ms(600));
    drop(run);
    // The date of nginx's tag has whole seconds: the other version is given another one.
    nginx.put("f", &new);
    let touched =
        std::process::Command::new("touch").args(["-d", "2026-01-02 03:04:05"]).arg(nginx.www().join("f")).status();
    assert!(touched.is_ok_and(|s| s.success()));
    w.download(&nginx.url("/f")).run().exits(0);
    w.holds(&new);
}

#[test]
fn replaced_with_the_very_same_size_and_date() {
    // Nginx's strong tag is made of both, so it says "the same": only the comparison of bytes can tell.
    let Some(nginx) = Nginx::start("nginx_resume::replaced_alike", "limit_rate 4m;") else { return };
    let (w, old, new) = (World::new(), noise(214, 12_000_000), noise(215, 12_000_000));
    nginx.put_dated("f", &old);
    let run = w.download(&nginx.url("/f")).start();
    std::thread::sleep(ms(600));
    drop(run);
    nginx.put_dated("f", &new);
    w.download(&nginx.url("/f")).run().exits(0);
    w.holds(&new);
}

#[test]
fn gone_between_two_sessions_and_back_again() {
    let Some(nginx) = Nginx::start("nginx_resume::gone_and_back", "limit_rate 4m;") else { return };
    let (w, data) = (World::new(), noise(216, 12_000_000));
    nginx.put("f", &data);
    let run = w.download(&nginx.url("/f")).start();
    std::thread::sleep(ms(600));
    drop(run);
    std::fs::remove_file(nginx.www().join("f")).unwrap();
    w.download(&nginx.url("/f")).run().exits(3).says(&["404"]);
    w.holds_nothing();
    nginx.put("f", &data);
    w.download(&nginx.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn the_server_dies_and_comes_back_within_one_run() {
    let Some(mut nginx) = Nginx::start("nginx_resume::the_server_dies", "limit_rate 3m;") else { return };
    let (w, data) = (World::new(), noise(217, 9_000_000));
    nginx.put("f", &data);
    let run = w.download(&nginx.url("/f")).start();
    std::thread::sleep(ms(600));
    nginx.kill();
    std::thread::sleep(ms(500));
    nginx.revive();
    run.end().exits(0);
    w.holds(&data);
    // The killed server wrote no line; the new one sent the rest only.
    let log = nginx.log_of(1);
    assert_eq!(log.last().map(|l| l.status), Some(206));
}

#[test]
fn a_request_cut_by_the_servers_own_timeout_is_gone_on_with() {
    // A client held back by its own rate limit is dropped by a server that loses patience.
    let Some(nginx) = Nginx::start("nginx_resume::cut_by_timeout", "send_timeout 1s;") else { return };
    let (w, data) = (World::new(), noise(218, 30_000_000));
    nginx.put("f", &data);
    w.download(&nginx.url("/f")).args(&["--limit-rate", "8m"]).run().exits(0);
    w.holds(&data);
}
