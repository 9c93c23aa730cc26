//! TLS, with certificates made by `openssl` where it is there; without it these tests say that they were skipped.

use crate::core::file_xfer::Framing;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::server::{Peer, Server, read_head};
use super::*;
use crate::core::failure::Cut;
use crate::core::range::Length;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Certificates, made once a run: an authority, a server and a client signed by it, and a self-signed server.
pub(super) struct Certs(tempfile::TempDir);

/// The certificates, or `None` after the reason for the skip was printed.
pub(super) fn certs() -> Option<&'static Certs> {
    static CERTS: OnceLock<Result<Certs, String>> = OnceLock::new();
    static SKIPPED: AtomicU32 = AtomicU32::new(0);
    match CERTS.get_or_init(Certs::make) {
        Ok(certs) => Some(certs),
        Err(why) => {
            let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
            eprintln!("skipped ({count} so far): no test certificates: {why}");
            None
        }
    }
}

impl Certs {
    fn make() -> Result<Self, String> {
        let certs = Self(tempfile::tempdir().map_err(|e| e.to_string())?);
        let sections = "[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=test\n\
            [ca]\nbasicConstraints=critical,CA:TRUE\nsubjectAltName=DNS:tls.test\n\
            [leaf]\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:tls.test,DNS:localhost\n";
        std::fs::write(certs.path("conf"), sections).map_err(|e| e.to_string())?;
        certs.sign("ca", "ca", None)?;
        certs.sign("self", "ca", None)?;
        certs.sign("server", "leaf", Some("ca"))?;
        certs.sign("client", "leaf", Some("ca"))?;
        Ok(certs)
    }

    fn sign(&self, name: &str, section: &str, by: Option<&str>) -> Result<(), String> {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-subj", &format!("/CN={name}"), "-extensions", section]);
        openssl.arg("-config").arg(self.path("conf"));
        openssl.arg("-keyout").arg(self.path(&format!("{name}.key")));
        openssl.arg("-out").arg(self.path(&format!("{name}.pem")));
        if let Some(by) = by {
            openssl.arg("-CA").arg(self.path(&format!("{by}.pem")));
            openssl.arg("-CAkey").arg(self.path(&format!("{by}.key")));
        }
        let output = openssl.output().map_err(|e| format!("openssl: {e}"))?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or_else(said)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What a server with this certificate offers.
    pub(super) fn server_config(&self, name: &str, clients: Clients, alpn: &[&[u8]]) -> Arc<ServerConfig> {
        let chain = vec![CertificateDer::from_pem_file(self.path(&format!("{name}.pem"))).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}.key"))).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            Clients::Any => builder.with_no_client_auth(),
            Clients::Signed => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_file(self.path("ca.pem")).unwrap()).unwrap();
                let judge = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
                builder.with_client_cert_verifier(judge)
            }
        };
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    /// Settings that trust this file and find `tls.test` and `other.test` at the loopback interface.
    pub(super) fn trusting(&self, root: &str, port: u16) -> NetSettings {
        let pin = |host: &str| Pin::parse(&format!("{host}:{port}:127.0.0.1")).unwrap();
        NetSettings {
            roots: Roots::File { path: self.path(root), origin: "--cacert" },
            pins: vec![pin("tls.test"), pin("other.test")],
            ..NetSettings::default()
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Clients {
    Any,
    Signed,
}

enum Goodbye {
    WithNotice,
    Silent,
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// Answers one request a connection over TLS.
fn serve(config: Arc<ServerConfig>, answer: &'static [u8], goodbye: Goodbye) -> Server {
    Server::start(move |peer: Peer| {
        let mut tls = Tls::new(ServerConnection::new(Arc::clone(&config)).unwrap(), peer.stream);
        if read_head(&mut tls).is_none() {
            return;
        }
        let _ = tls.write_all(answer);
        if let Goodbye::WithNotice = goodbye {
            tls.conn.send_close_notify();
        }
        let _ = tls.flush();
        let _ = tls.sock.shutdown(std::net::Shutdown::Write);
        // Until the client closes, so that nothing is lost to a reset.
        let _ = tls.sock.read(&mut [0; 64]);
    })
}

async fn ask(settings: &NetSettings, host: &str, server: &Server) -> Result<Answer, Failure> {
    let client = Client::new(settings).unwrap();
    get(&client, &format!("https://{host}:{}/", server.address.port())).await
}

fn certificate_hint(outcome: Result<Answer, Failure>) -> String {
    match outcome {
        Err(Failure::Certificate { detail }) => detail,
        other => panic!("a fault of the certificate was expected, not {other:?}"),
    }
}

#[tokio::test]
async fn the_given_roots_are_trusted_and_no_others() {
    let Some(certs) = certs() else { return };
    let server = serve(certs.server_config("server", Clients::Any, &[]), OK, Goodbye::WithNotice);
    let trusting = certs.trusting("ca.pem", server.address.port());
    let answer = ask(&trusting, "tls.test", &server).await.unwrap();
    assert_eq!(read(answer.body).await, (b"ok".to_vec(), None));

    let hint = certificate_hint(ask(&trusting, "other.test", &server).await);
    assert!(hint.contains("another host"), "{hint}");
    let stranger = certs.trusting("self.pem", server.address.port());
    let hint = certificate_hint(ask(&stranger, "tls.test", &server).await);
    assert!(hint.contains("--cacert"), "{hint}");
    // Whether this machine has roots or none: not these.
    certificate_hint(ask(&NetSettings { roots: Roots::System, ..trusting }, "tls.test", &server).await);
}

#[tokio::test]
async fn insecure_judges_nothing() {
    let Some(certs) = certs() else { return };
    let server = serve(certs.server_config("server", Clients::Any, &[]), OK, Goodbye::WithNotice);
    let settings = NetSettings {
        verify: Verify::Nothing,
        roots: Roots::System,
        ..certs.trusting("ca.pem", server.address.port())
    };
    assert_eq!(ask(&settings, "other.test", &server).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_self_signed_certificate_that_is_listed_itself_is_trusted_for_its_name() {
    let Some(certs) = certs() else { return };
    let server = serve(certs.server_config("self", Clients::Any, &[]), OK, Goodbye::WithNotice);
    let listed = certs.trusting("self.pem", server.address.port());
    assert_eq!(ask(&listed, "tls.test", &server).await.unwrap().status, 200);
    let hint = certificate_hint(ask(&listed, "other.test", &server).await);
    assert!(hint.contains("another host"), "{hint}");
    certificate_hint(ask(&certs.trusting("ca.pem", server.address.port()), "tls.test", &server).await);
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_it_is_given() {
    let Some(certs) = certs() else { return };
    let server = serve(certs.server_config("server", Clients::Signed, &[]), OK, Goodbye::WithNotice);
    let without = certs.trusting("ca.pem", server.address.port());
    let hint = certificate_hint(ask(&without, "tls.test", &server).await);
    assert!(hint.contains("--cert"), "{hint}");

    let identity = Identity { cert: certs.path("client.pem"), key: Some(certs.path("client.key")) };
    let with = NetSettings { identity: Some(identity), ..without };
    assert_eq!(ask(&with, "tls.test", &server).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_silent_close_proves_no_end() {
    let Some(certs) = certs() else { return };
    let until_close: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it";
    let short: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nall of it";
    let config = || certs.server_config("server", Clients::Any, &[]);
    let fetch = async |answer, goodbye| {
        let server = serve(config(), answer, goodbye);
        let answer = ask(&certs.trusting("ca.pem", server.address.port()), "tls.test", &server).await.unwrap();
        let framing = answer.framing;
        let (bytes, failure) = read(answer.body).await;
        assert_eq!(bytes, b"all of it");
        (framing, failure)
    };
    assert_eq!(fetch(until_close, Goodbye::WithNotice).await, (Framing::Close, None));
    let (framing, failure) = fetch(until_close, Goodbye::Silent).await;
    assert_eq!(framing, Framing::Close);
    assert!(
        matches!(&failure, Some(Failure::Cut(Cut::Broken { detail })) if detail.contains("without notice")),
        "{failure:?}"
    );
    for goodbye in [Goodbye::WithNotice, Goodbye::Silent] {
        let (framing, failure) = fetch(short, goodbye).await;
        assert_eq!(framing, Framing::Length(Length(99)));
        assert!(ended_short(&failure.unwrap()));
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart() {
    let server = Server::start(|mut peer| peer.send(b"220 ready for something else\r\n"));
    let failure = get(&client(), &server.at("/").replace("http:", "https:")).await.unwrap_err();
    assert_eq!(failure, Failure::Connect { detail: "the server does not speak TLS at this port".into() });
}

#[test]
fn files_that_cannot_be_used_are_named_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate\n").unwrap();
    let with_roots = |path: &Path| NetSettings {
        roots: Roots::File { path: path.to_owned(), origin: "SSL_CERT_FILE" },
        ..NetSettings::default()
    };
    let error = Client::new(&with_roots(&folder.path().join("none.pem"))).unwrap_err();
    assert!(matches!(error, NetConfigError::File { origin: "SSL_CERT_FILE", .. }), "{error}");
    let error = Client::new(&with_roots(&empty)).unwrap_err();
    assert!(matches!(error, NetConfigError::Empty { origin: "SSL_CERT_FILE", .. }), "{error}");
    let identity = Some(Identity { cert: empty, key: None });
    let error = Client::new(&NetSettings { identity, ..NetSettings::default() }).unwrap_err();
    assert!(matches!(error, NetConfigError::Empty { origin: "--cert", .. }), "{error}");
    let error = Client::new(&NetSettings { user_agent: "a\nb".into(), ..NetSettings::default() }).unwrap_err();
    assert!(matches!(error, NetConfigError::UserAgent { .. }), "{error}");
}
