//! Against a real nginx: whole files, kept connections, codings, and what it says to those who come again.

mod support;

use support::nginx::Nginx;
use support::{World, cyclic_text, digest, gzip, names_in, noise, same_file};

#[test]
fn a_file_arrives_whole_and_the_second_run_fetches_nothing() {
    let Some(nginx) = Nginx::start("nginx_plain::a_file_arrives_whole", "") else { return };
    let (w, data) = (World::new(), noise(200, 9_000_011));
    nginx.put("f.bin", &data);
    let url = nginx.url("/f.bin");
    w.download(&url).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0).says(&["digest"]);
    w.holds(&data);
    w.download(&url).run().exits(0);
    let log = nginx.log_of(2);
    assert_eq!((log[0].status, log[0].body_bytes), (200, 9_000_011));
    assert_eq!((log[1].status, log[1].body_bytes), (304, 0));
    assert_eq!(log.len(), 2);
}

#[test]
fn many_small_files_share_connections() {
    let Some(nginx) = Nginx::start("nginx_plain::many_small_files", "keepalive_timeout 60s;") else { return };
    let w = World::new();
    let folder = w.folder("in");
    let names: Vec<String> = (0..40).map(|n| format!("{n:02}.bin")).collect();
    for name in &names {
        nginx.put(name, &noise(name.len() as u64, 3000));
    }
    let mut px = w.download(&nginx.url("/00.bin")).dir(&folder).args(&["-j", "2"]);
    for name in &names[1..] {
        px = px.url(&nginx.url(&format!("/{name}")));
    }
    px.run().exits(0);
    assert_eq!(names_in(&folder), names);
    let log = nginx.log_of(40);
    let mut connections: Vec<u64> = log.iter().map(|l| l.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    assert!(connections.len() <= 4, "{} connections for 40 files", connections.len());
}

#[test]
fn connections_closed_after_a_few_requests_are_no_failures() {
    let Some(nginx) = Nginx::start("nginx_plain::connections_closed", "keepalive_requests 3;") else { return };
    let w = World::new();
    let folder = w.folder("in");
    for n in 0..12 {
        nginx.put(&n.to_string(), &noise(n, 3000));
    }
    let mut px = w.download(&nginx.url("/0")).dir(&folder).arg("--once");
    for n in 1..12 {
        px = px.url(&nginx.url(&format!("/{n}")));
    }
    px.run().exits(0);
    assert_eq!(names_in(&folder).len(), 12);
    assert_eq!(nginx.log_of(12).len(), 12);
}

#[test]
fn compression_on_the_server_does_not_reach_the_file() {
    let on = "gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; gzip_vary on;";
    let Some(nginx) = Nginx::start("nginx_plain::compression_on_the_server", on) else { return };
    let (w, data) = (World::new(), cyclic_text(3_000_000));
    nginx.put("notes.txt", &data);
    w.download(&nginx.url("/notes.txt")).run().exits(0);
    w.holds(&data);
}

#[test]
fn files_compressed_beforehand_are_not_taken_for_the_plain_ones() {
    // `always` sends the .gz whatever was asked for, with Content-Encoding: gzip.
    for mode in ["on", "always"] {
        let directive = format!("gzip_static {mode};");
        let Some(nginx) = Nginx::start("nginx_plain::files_compressed_beforehand", &directive) else { return };
        let (w, data) = (World::new(), cyclic_text(900_000));
        nginx.put("notes.txt", &data);
        nginx.put("notes.txt.gz", &gzip(&data));
        let ran = w.download(&nginx.url("/notes.txt")).give_up("2s").run();
        if mode == "on" || ran.succeeded() {
            ran.exits(0);
            w.holds(&data);
        } else {
            ran.exits(3).says(&["gzip"]);
            w.holds_nothing();
        }
        let out = w.path("notes.txt.gz");
        w.download(&nginx.url("/notes.txt.gz")).out(Some(out.clone())).run().exits(0);
        same_file(&out, &gzip(&data));
    }
}

#[test]
fn what_it_refuses_is_refused_at_once() {
    let directives =
        "location /secret { return 403; } location /busy { return 503; } location /away { return 301 /f; }";
    let Some(nginx) = Nginx::start("nginx_plain::what_it_refuses", directives) else { return };
    let (w, data) = (World::new(), noise(201, 100_000));
    nginx.put("f", &data);
    for (path, status) in [("/nothing", "404"), ("/secret", "403")] {
        w.download(&nginx.url(path)).give_up("1d").delays("1h", "2h").run().exits(3).says(&[status]);
        w.holds_nothing();
    }
    w.download(&nginx.url("/busy")).give_up("1s").run().exits(3).says(&["503"]);
    w.download(&nginx.url("/away")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_server_that_allows_no_ranges_is_downloaded_from_all_the_same() {
    let Some(nginx) = Nginx::start("nginx_plain::no_ranges", "max_ranges 0; limit_rate 2m;") else { return };
    let (w, data) = (World::new(), noise(202, 6_000_000));
    nginx.put("f", &data);
    let run = w.download(&nginx.url("/f")).start();
    std::thread::sleep(support::ms(400));
    drop(run);
    w.holds_nothing();
    w.download(&nginx.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn an_empty_file() {
    let Some(nginx) = Nginx::start("nginx_plain::an_empty_file", "") else { return };
    let w = World::new();
    nginx.put("f", b"");
    w.download(&nginx.url("/f")).run().exits(0);
    w.holds(b"");
    assert_eq!(nginx.log_of(1).len(), 1);
}
