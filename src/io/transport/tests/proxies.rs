//! Requests through proxies.

use super::server::{Server, read_head};
use super::*;
use crate::core::proxy::{ProxyRules, ProxyUrl};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn through(proxy: &str, no_proxy: Option<&str>) -> Client {
    let proxies = ProxyRules::all(ProxyUrl::parse(proxy, "--proxy").unwrap(), no_proxy);
    Client::new(&NetSettings { proxies, ..NetSettings::default() }).unwrap()
}

#[tokio::test]
async fn plain_http_is_asked_in_absolute_form_with_the_proxys_credentials() {
    let proxy = Server::answering(OK);
    let client = through(&format!("http://us%65r:pass@{}", proxy.address), None);
    let answer = get(&client, "http://name:hidden@mirror.test:81/file?q").await.unwrap();
    assert_eq!(answer.status, 200);
    let head = proxy.head();
    assert!(head.starts_with("GET http://mirror.test:81/file?q HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic dXNlcjpwYXNz\r\n"), "{head}");
    assert!(!head.contains("hidden") && !head.to_lowercase().contains("\r\nauthorization"), "{head}");
}

#[tokio::test]
async fn an_exempt_host_is_asked_directly() {
    let (proxy, server) = (Server::answering(OK), Server::answering(OK));
    let client = through(&proxy.at("/"), Some("127.0.0.0/8"));
    get(&client, &server.at("/direct")).await.unwrap();
    assert!(server.head().starts_with("GET /direct "));
    assert!(proxy.is_quiet());
}

#[tokio::test]
async fn https_is_tunnelled_and_the_proxys_refusals_are_told_apart() {
    let cases: [(&[u8], Failure); 2] = [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
            Failure::Status { code: 407, retry_after: None },
        ),
        (
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
            Failure::Connect { detail: "the proxy refuses to connect to this host".into() },
        ),
    ];
    for (answer, expected) in cases {
        let proxy = Server::answering(answer);
        let client = through(&format!("http://u:p@{}", proxy.address), None);
        assert_eq!(get(&client, "https://mirror.test/file").await.unwrap_err(), expected);
        let head = proxy.head();
        assert!(head.starts_with("CONNECT mirror.test:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.to_lowercase().contains("proxy-authorization: basic "), "{head}");
    }
}

#[tokio::test]
async fn socks5h_leaves_the_name_to_the_proxy() {
    use std::io::{Read, Write};
    let proxy = Server::start(|mut peer| {
        let mut hello = [0; 3];
        peer.stream.read_exact(&mut hello).unwrap();
        peer.stream.write_all(&[5, 0]).unwrap();
        // Version, connect, reserved, a name, its length, the name, the port.
        let mut request = [0; 5];
        peer.stream.read_exact(&mut request).unwrap();
        let mut name = vec![0; usize::from(request[4]) + 2];
        peer.stream.read_exact(&mut name).unwrap();
        assert_eq!((request[3], &name[..name.len() - 2]), (3, b"mirror.test".as_slice()));
        peer.stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]).unwrap();
        assert!(read_head(&mut peer.stream).unwrap().starts_with("GET /file HTTP/1.1\r\n"));
        peer.send(OK);
    });
    let client = through(&format!("socks5h://{}", proxy.address), None);
    assert_eq!(get(&client, "http://mirror.test/file").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_proxy_that_is_down_is_a_failed_connection() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = get(&through(&format!("http://u:secret@{free}"), None), "http://mirror.test/").await.unwrap_err();
    assert_eq!(failure, Failure::Connect { detail: "connection refused".into() });
}
