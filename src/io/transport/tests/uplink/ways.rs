//! Through proxies, and over TLS.

use std::thread;

use rustls::{ServerConnection, StreamOwned};

use super::super::over_tls::{Clients, certs};
use super::super::server::read_head;
use super::*;
use crate::core::proxy::{ProxyRules, ProxyUrl};

fn through(proxy: &str, no_proxy: Option<&str>) -> Uplink {
    let proxies = ProxyRules::all(ProxyUrl::parse(proxy, "--proxy").unwrap(), no_proxy);
    Client::new(&NetSettings { proxies, ..NetSettings::default() }).unwrap().uplink()
}

#[tokio::test]
async fn plain_http_is_asked_in_absolute_form_with_the_proxys_credentials() {
    let (tell, told) = drop_box();
    let proxy = Server::start(move |mut peer| {
        peer.request();
        tell.send(peer.body(4)).unwrap();
        peer.send(CREATED);
    });
    let uplink = through(&format!("http://us%65r:pass@{}", proxy.address), None);
    let request = outgoing(Method::Put, "http://name:hidden@mirror.test:81/file?q", bytes("body"));
    assert_eq!(answer(send(&uplink, request).await).status, 201);
    assert_eq!(told.recv().unwrap(), b"body");
    let head = proxy.head();
    assert!(head.starts_with("PUT http://mirror.test:81/file?q HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: mirror.test:81\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic dXNlcjpwYXNz\r\n"), "{head}");
    assert!(!head.contains("hidden") && !head.contains("\r\nauthorization"), "{head}");
}

#[tokio::test]
async fn an_exempt_host_is_asked_directly() {
    let (proxy, server) = (Server::answering(OK), Server::answering(OK));
    let uplink = through(&proxy.at("/"), Some("127.0.0.0/8"));
    answer(send(&uplink, outgoing(Method::Get, &server.at("/direct"), OutBody::Nothing)).await);
    assert!(server.head().starts_with("GET /direct "));
    assert!(proxy.is_quiet());
}

#[tokio::test]
async fn a_tunnel_that_is_refused_is_told_apart() {
    let refusals: [(&[u8], Failure); 2] = [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
            Failure::Status { code: 407, retry_after: None },
        ),
        (
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
            Failure::Connect { detail: "the proxy refuses to connect to this host".into() },
        ),
    ];
    for (refusal, expected) in refusals {
        let proxy = Server::answering(refusal);
        let uplink = through(&format!("http://u:p@{}", proxy.address), None);
        let request = outgoing(Method::Put, "https://mirror.test/file", bytes("body"));
        assert_eq!(failure(send(&uplink, request).await), expected);
        let head = proxy.head();
        assert!(head.starts_with("CONNECT mirror.test:443 HTTP/1.1\r\n"), "{head}");
        let head = head.to_lowercase();
        assert!(head.contains("proxy-authorization: basic ") && head.contains("user-agent: persxfer/"), "{head}");
    }
}

/// What a SOCKS server is asked for: the kind of the address, and its bytes without the port.
fn socks_server(tell: Sender<(u8, Vec<u8>, String)>, login: Option<&'static [u8]>) -> Server {
    Server::start(move |mut peer| {
        let hello = peer.body(3);
        let method = if login.is_some() { 2 } else { 0 };
        assert_eq!(hello, [5, 1, method]);
        peer.send(&[5, method]);
        if let Some(login) = login {
            assert_eq!(peer.body(login.len()), login);
            peer.send(&[1, 0]);
        }
        let kind = peer.body(4)[3];
        let length = if kind == 3 { usize::from(peer.body(1)[0]) } else { 4 };
        let address = peer.body(length);
        peer.body(2);
        peer.send(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]);
        let head = read_head(&mut peer.stream).unwrap();
        peer.body(4);
        tell.send((kind, address, head)).unwrap();
        peer.send(CREATED);
    })
}

#[tokio::test]
async fn socks_with_names_resolved_there_and_here() {
    let put = |at: &str| outgoing(Method::Put, at, bytes("body"));
    let (tell, told) = drop_box();
    let proxy = socks_server(tell, Some(b"\x01\x04user\x04pass"));
    let there = through(&format!("socks5h://user:pass@{}", proxy.address), None);
    assert_eq!(answer(send(&there, put("http://mirror.test/file")).await).status, 201);
    let (kind, address, head) = told.recv().unwrap();
    assert_eq!((kind, address.as_slice()), (3, b"mirror.test".as_slice()));
    assert!(head.starts_with("PUT /file HTTP/1.1\r\n"), "{head}");

    let (tell, told) = drop_box();
    let proxy = socks_server(tell, None);
    let proxies = ProxyRules::all(ProxyUrl::parse(&format!("socks5://{}", proxy.address), "--proxy").unwrap(), None);
    let pins = vec![Pin::parse("mirror.test:80:192.0.2.7").unwrap()];
    let here = Client::new(&NetSettings { proxies, pins, ..NetSettings::default() }).unwrap().uplink();
    assert_eq!(answer(send(&here, put("http://mirror.test/file")).await).status, 201);
    let (kind, address, _) = told.recv().unwrap();
    assert_eq!((kind, address), (1, vec![192, 0, 2, 7]));
}

type Tls = StreamOwned<ServerConnection, std::net::TcpStream>;

/// Reads a request with a body of so many bytes over TLS, answers, and says what was agreed on and what came.
fn tls_server(config: Arc<rustls::ServerConfig>, length: usize, tell: Sender<(Option<Vec<u8>>, Vec<u8>)>) -> Server {
    Server::start(move |peer| {
        let mut tls = Tls::new(ServerConnection::new(Arc::clone(&config)).unwrap(), peer.stream);
        if read_head(&mut tls).is_none() {
            return;
        }
        let mut body = vec![0; length];
        tls.read_exact(&mut body).unwrap();
        tell.send((tls.conn.alpn_protocol().map(<[u8]>::to_vec), body)).unwrap();
        let _ = tls.write_all(CREATED);
        // Until the client closes.
        let _ = tls.read(&mut [0; 1]);
    })
}

#[tokio::test]
async fn over_tls_http_1_1_is_spoken_to_whom_is_trusted() {
    let Some(certs) = certs() else { return };
    let content = pattern(3 << 20);
    let (tell, told) = drop_box();
    let config = certs.server_config("server", Clients::Any, &[b"h2", b"http/1.1"]);
    let server = tls_server(config, content.len(), tell);
    let trusting = certs.trusting("ca.pem", server.address.port());
    let uplink = Client::new(&trusting).unwrap().uplink();
    let put = |host: &str| {
        let at = format!("https://{host}:{}/", server.address.port());
        outgoing(Method::Put, &at, source(b"", &file(&content), 0, content.len()))
    };
    assert_eq!(answer(send(&uplink, put("tls.test")).await).status, 201);
    let (alpn, body) = told.recv().unwrap();
    assert_eq!(alpn.as_deref(), Some(b"http/1.1".as_slice()));
    assert!(body == content);
    let wrong = failure(send(&uplink, put("other.test")).await);
    assert!(matches!(&wrong, Failure::Certificate { detail } if detail.contains("another host")), "{wrong}");
}

#[tokio::test]
async fn over_tls_an_answer_is_heard_although_a_reset_follows_it() {
    let Some(certs) = certs() else { return };
    let config = certs.server_config("server", Clients::Any, &[]);
    let server = Server::start(move |peer| {
        // Else the answer may wait behind the session tickets for their acknowledgement, and a close drops it.
        peer.stream.set_nodelay(true).unwrap();
        let mut tls = Tls::new(ServerConnection::new(Arc::clone(&config)).unwrap(), peer.stream);
        read_head(&mut tls).unwrap();
        let _ = tls.write_all(b"HTTP/1.1 413 X\r\nContent-Length: 9\r\n\r\ntoo large");
        thread::sleep(std::time::Duration::from_micros(peer.number as u64 % 7 * 300));
    });
    let uplink = Client::new(&certs.trusting("ca.pem", server.address.port())).unwrap().uplink();
    let at = format!("https://tls.test:{}/", server.address.port());
    let file = file(&vec![7; LARGE]);
    for round in 0..20 {
        let answer = answer(send(&uplink, outgoing(Method::Put, &at, source(b"", &file, 0, LARGE))).await);
        assert_eq!((answer.status, answer.body.as_slice()), (413, b"too large".as_slice()), "round {round}");
    }
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let Some(certs) = certs() else { return };
    let (tell, told) = drop_box();
    let server = tls_server(certs.server_config("server", Clients::Any, &[]), 4, tell);
    let port = server.address.port();
    let proxy = Server::start(move |mut peer| {
        peer.request();
        peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n");
        let mut far = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut near, mut back) = (peer.stream.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut back, &mut near));
        let _ = std::io::copy(&mut peer.stream, &mut far);
    });
    let proxies = ProxyRules::all(ProxyUrl::parse(&proxy.at("/"), "--proxy").unwrap(), None);
    let settings = NetSettings { proxies, ..certs.trusting("ca.pem", port) };
    let uplink = Client::new(&settings).unwrap().uplink();
    let request = outgoing(Method::Put, &format!("https://tls.test:{port}/"), bytes("body"));
    assert_eq!(answer(send(&uplink, request).await).status, 201);
    assert_eq!(told.recv().unwrap().1, b"body");
    assert!(proxy.head().starts_with(&format!("CONNECT tls.test:{port} ")));
}

#[tokio::test]
async fn a_proxy_can_be_spoken_to_over_tls() {
    let Some(certs) = certs() else { return };
    let (tell, told) = drop_box();
    let proxy = tls_server(certs.server_config("server", Clients::Any, &[]), 4, tell);
    let port = proxy.address.port();
    let proxies = ProxyRules::all(ProxyUrl::parse(&format!("https://tls.test:{port}"), "--proxy").unwrap(), None);
    let settings = NetSettings { proxies, ..certs.trusting("ca.pem", port) };
    let uplink = Client::new(&settings).unwrap().uplink();
    let request = outgoing(Method::Put, "http://mirror.test/file", bytes("body"));
    assert_eq!(answer(send(&uplink, request).await).status, 201);
    assert_eq!(told.recv().unwrap().1, b"body");
}
