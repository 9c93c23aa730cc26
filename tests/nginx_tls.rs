//! Against a real nginx over TLS, with HTTP/1.1 and HTTP/2.

mod support;

use support::nginx::{Certificate, Nginx};
use support::{World, ms, noise};

/// A server with a certificate of its own; `more` may hold `# http2`.
fn secure(test: &str, more: &str) -> Option<(Nginx, Certificate)> {
    let certificate = Certificate::make(test)?;
    let nginx = Nginx::start(test, &format!("{}\n{more}\n", certificate.directives()))?;
    Some((nginx, certificate))
}

#[test]
fn a_certificate_of_our_own_is_trusted_where_it_is_named() {
    let Some((nginx, certificate)) = secure("nginx_tls::a_certificate_of_our_own", "") else { return };
    let (w, data) = (World::new(), noise(220, 3_000_000));
    nginx.put("f", &data);
    w.download(&nginx.tls_url("/f")).arg("--cacert").arg(certificate.path()).run().exits(0);
    w.holds(&data);
    assert_eq!(nginx.log_of(1)[0].protocol, "HTTP/1.1");
}

#[test]
fn one_that_nobody_vouches_for_is_refused_and_nothing_is_asked() {
    let Some((nginx, _certificate)) = secure("nginx_tls::nobody_vouches", "") else { return };
    let (w, data) = (World::new(), noise(221, 30_000));
    nginx.put("f", &data);
    w.download(&nginx.tls_url("/f")).give_up("1s").run().exits(3).says(&["certificate"]);
    w.holds_nothing();
    assert!(nginx.log().iter().all(|l| l.status == 400 || l.body_bytes == 0));
    w.download(&nginx.tls_url("/f")).arg("--insecure").run().exits(0);
    w.holds(&data);
}

#[test]
fn one_for_another_name_is_refused() {
    let Some((nginx, certificate)) = secure("nginx_tls::another_name", "") else { return };
    let w = World::new();
    nginx.put("f", b"x");
    let port = nginx.tls_url("").rsplit_once(':').map(|(_, p)| p.to_owned()).unwrap_or_default();
    let px = w.download(&format!("https://elsewhere.example:{port}/f")).give_up("1s");
    let px = px.args(&["--resolve", &format!("elsewhere.example:{port}:127.0.0.1")]);
    px.arg("--cacert").arg(certificate.path()).run().exits(3).says(&["certificate"]);
    w.holds_nothing();
}

#[test]
fn http_2_carries_whole_files_and_resumes() {
    let Some((nginx, certificate)) = secure("nginx_tls::http_2", "# http2\nlimit_rate 4m;") else { return };
    let (w, data) = (World::new(), noise(222, 10_000_000));
    nginx.put("f", &data);
    let px = || w.download(&nginx.tls_url("/f")).arg("--cacert").arg(certificate.path());
    let run = px().start();
    std::thread::sleep(ms(700));
    drop(run);
    px().run().exits(0);
    w.holds(&data);
    let log = nginx.log_of(2);
    assert!(log.iter().all(|l| l.protocol == "HTTP/2.0"), "{log:?}");
    assert_eq!(log[1].status, 206);
}

#[test]
fn http_2_connections_that_end_after_a_few_requests_are_no_failures() {
    // Nginx says GOAWAY after the last request that a connection may carry.
    let Some((nginx, certificate)) = secure("nginx_tls::http_2_goaway", "# http2\nkeepalive_requests 2;") else {
        return;
    };
    let w = World::new();
    let folder = w.folder("in");
    let mut px = w.download(&nginx.tls_url("/0")).dir(&folder).arg("--once").arg("--cacert").arg(certificate.path());
    for n in 0..9 {
        nginx.put(&n.to_string(), &noise(n, 50_000));
        if n > 0 {
            px = px.url(&nginx.tls_url(&format!("/{n}")));
        }
    }
    px.run().exits(0);
    assert_eq!(support::names_in(&folder).len(), 9);
}

#[test]
fn https_never_steps_down_to_http_by_itself() {
    let Some(plain) = Nginx::start("nginx_tls::never_steps_down", "") else { return };
    plain.put("f", b"plain");
    let away = format!("location /away {{ return 302 {}; }}", plain.url("/f"));
    let Some((nginx, certificate)) = secure("nginx_tls::never_steps_down", &away) else { return };
    let w = World::new();
    let px = w.download(&nginx.tls_url("/away")).arg("--cacert").arg(certificate.path());
    px.delays("1h", "2h").give_up("1d").run().exits(3).says(&["redirect"]);
    w.holds_nothing();
    assert!(plain.log().is_empty());
}

#[test]
fn a_host_is_judged_by_its_own_certificates_and_no_other_is() {
    let Some((own, certificate)) = secure("nginx_tls::own_roots", "") else { return };
    let Some((other, for_all)) = secure("nginx_tls::own_roots_other", "") else { return };
    let (w, data) = (World::new(), noise(223, 300_000));
    own.put("f", &data);
    other.put("f", &data);
    let host = own.tls_url("").trim_start_matches("https://").trim_end_matches('/').to_owned();
    let text = format!("[host.\"{host}\"]\ncacert = '{}'\n", certificate.path().display());
    std::fs::write(w.path("config.toml"), text).expect("written");
    let config = w.path("config.toml").to_str().expect("a path").to_owned();
    let px = |url: &str| w.download(url).args(&["--config", &config]);
    px(&own.tls_url("/f")).run().exits(0);
    w.holds(&data);
    std::fs::remove_file(&w.out).expect("removed");
    // Its certificates speak for no other host, and those for all not for it.
    px(&other.tls_url("/f")).give_up("1s").run().exits(3).says(&["certificate"]);
    w.holds_nothing();
    w.px(["state", "forget", "out.bin"]).run();
    let wrong = format!("[host.\"{host}\"]\ncacert = '{}'\n", for_all.path().display());
    std::fs::write(w.path("config.toml"), wrong).expect("written");
    px(&own.tls_url("/f")).give_up("1s").run().exits(3).says(&["certificate"]);
    w.holds_nothing();
    // So it is where it comes as a mirror.
    w.px(["state", "forget", "out.bin"]).run();
    let text = format!("[host.\"{host}\"]\ncacert = '{}'\n", certificate.path().display());
    std::fs::write(w.path("config.toml"), text).expect("written");
    px(&own.tls_url("/gone")).mirror(&own.tls_url("/f")).run().exits(0);
    w.holds(&data);
}
