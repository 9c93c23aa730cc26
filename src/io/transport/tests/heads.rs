//! Heads of answers, and connections that are kept, closed and refused.

use std::time::Duration;

use super::server::Server;
use super::*;
use crate::core::failure::{BadAnswer, Cut};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn a_request_carries_what_it_is_given_and_nothing_that_was_not_asked_for() {
    let server = Server::answering(OK);
    let at = server.at("/a%20b?q=1").replace("http://", "http://user:secret@");
    let mut headers = HeaderMap::new();
    headers.insert("x-one", "1".parse().unwrap());
    let answer = client().get(&url(&at), headers, PATIENT).await.unwrap();
    assert_eq!((answer.status, answer.connection), (200, Connection::Fresh));
    let head = server.head();
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").collect();
    assert_eq!(lines.remove(0), "GET /a%20b?q=1 HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: {}", server.address);
    let agent = format!("user-agent: {USER_AGENT}");
    assert_eq!(lines, ["accept: */*", host.as_str(), agent.as_str(), "x-one: 1"]);
}

#[tokio::test]
async fn a_connection_is_used_again_once_its_body_is_read() {
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            peer.send(OK);
        }
    });
    let client = client();
    let first = get(&client, &server.at("/1")).await.unwrap();
    assert_eq!(first.connection, Connection::Fresh);
    assert_eq!(read(first.body).await, (b"ok".to_vec(), None));
    let second = get(&client, &server.at("/2")).await.unwrap();
    assert_eq!(second.connection, Connection::Reused);
    let other = client.with_own_pool();
    assert_eq!(get(&other, &server.at("/3")).await.unwrap().connection, Connection::Fresh);
}

/// The server closes its idle side right after each answer, although it promised to keep it.
#[tokio::test]
async fn a_pooled_connection_that_was_closed_is_no_failure() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok");
    let client = client();
    for path in ["/1", "/2", "/3", "/4", "/5"] {
        let answer = get(&client, &server.at(path)).await.unwrap();
        assert_eq!(read(answer.body).await, (b"ok".to_vec(), None));
    }
}

/// The server takes the second request of a connection and closes without an answer: the race of an idle close.
#[tokio::test]
async fn a_request_lost_on_a_used_connection_is_sent_once_more_on_a_new_one() {
    let server = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.send(OK);
            peer.request();
        }
    });
    let client = client();
    let first = get(&client, &server.at("/1")).await.unwrap();
    read(first.body).await;
    let second = get(&client, &server.at("/2")).await.unwrap();
    assert_eq!((second.status, second.connection), (200, Connection::Fresh));
    assert_eq!(client.second_tries(), 1);
    let heads = [server.head(), server.head(), server.head()];
    assert!(heads[1].starts_with("GET /2 ") && heads[2].starts_with("GET /2 "), "{heads:?}");
}

#[tokio::test]
async fn a_second_try_that_fails_too_is_a_failure() {
    let server = Server::start(|mut peer| {
        if peer.request().is_some() && peer.number == 0 {
            peer.send(OK);
            peer.request();
        }
    });
    let client = client();
    read(get(&client, &server.at("/1")).await.unwrap().body).await;
    let failure = get(&client, &server.at("/2")).await.unwrap_err();
    assert!(matches!(failure, Failure::Cut(Cut::Broken { .. })), "{failure}");
    assert_eq!(client.second_tries(), 1);
}

#[tokio::test]
async fn a_new_connection_that_is_closed_without_an_answer_is_a_failure_at_once() {
    let server = Server::start(|mut peer| {
        peer.request();
    });
    let failure = get(&client(), &server.at("/?secret=1")).await.unwrap_err();
    assert!(matches!(failure, Failure::Cut(Cut::Broken { .. })), "{failure}");
    assert!(!failure.to_string().contains("secret"), "{failure}");
    server.head();
    assert!(server.is_quiet(), "it was asked once");
}

#[tokio::test]
async fn an_answer_of_421_on_a_used_connection_gets_a_new_one() {
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            let again: &[u8] = b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n";
            peer.send(if peer.number == 0 { OK } else { again });
            if peer.number == 0 {
                peer.request();
                peer.send(again);
            }
        }
    });
    let client = client();
    read(get(&client, &server.at("/1")).await.unwrap().body).await;
    let answer = get(&client, &server.at("/2")).await.unwrap();
    assert_eq!((answer.status, answer.connection, client.second_tries()), (421, Connection::Fresh, 1));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server = Server::answering(b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
    let answer = get(&client(), &server.at("/")).await.unwrap();
    assert_eq!((answer.status, answer.headers["location"].to_str().unwrap()), (302, "/next"));
    server.head();
    assert!(server.is_quiet());
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let server = Server::answering(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let answer = get(&client(), &server.at("/")).await.unwrap();
    assert_eq!((answer.status, answer.headers.get("link")), (200, None));
    assert_eq!(read(answer.body).await, (b"ok".to_vec(), None));
}

#[tokio::test]
async fn what_is_no_http_is_a_bad_answer() {
    let flood = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Flood: 1\r\n".repeat(10_000));
    let endless = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "a".repeat(2 << 20));
    let cases = [
        flood,
        endless,
        "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX-Bad: a\u{1b}[2Jb\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n".to_owned(),
        "HTTP/1.1 2x0 OK\r\n\r\n".to_owned(),
    ];
    for answer in cases {
        let start = answer.chars().take(60).collect::<String>();
        let answer: &'static [u8] = answer.into_bytes().leak();
        let server = Server::answering(answer);
        let failure = get(&client(), &server.at("/")).await.unwrap_err();
        assert!(matches!(failure, Failure::BadAnswer(BadAnswer::Framing { .. })), "{start:?}: {failure}");
        assert!(!failure.to_string().contains('\u{1b}'), "{failure:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_gives_no_answer() {
    let server = Server::start(|mut peer| {
        peer.request();
        std::thread::sleep(Duration::from_secs(30));
    });
    let waited = Delay::from_millis(200);
    let failure = client().get(&url(&server.at("/")), HeaderMap::new(), waited).await.unwrap_err();
    assert_eq!(failure, Failure::NoAnswer { waited });
}

#[tokio::test]
async fn a_port_where_nobody_listens_refuses() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = get(&client(), &format!("http://{free}/")).await.unwrap_err();
    assert_eq!(failure, Failure::Connect { detail: "connection refused".into() });
}

#[tokio::test]
async fn given_addresses_are_used_and_filtered_by_family() {
    let server = Server::answering(OK);
    let port = server.address.port();
    let pins = vec![Pin::parse(&format!("mirror.test:{port}:127.0.0.1")).unwrap()];
    let at = format!("http://Mirror.TEST:{port}/");
    let settings = NetSettings { pins, ..NetSettings::default() };
    assert_eq!(get(&Client::new(&settings).unwrap(), &at).await.unwrap().status, 200);
    assert!(server.head().contains(&format!("host: mirror.test:{port}\r\n")));

    let only_six = Client::new(&NetSettings { family: Family::V6, ..settings }).unwrap();
    let failure = get(&only_six, &at).await.unwrap_err();
    let detail = "it has no address that -6 allows".to_owned();
    assert_eq!(failure, Failure::Resolve { host: "mirror.test".into(), detail });
    let failure = get(&only_six, &server.at("/")).await.unwrap_err();
    assert!(matches!(failure, Failure::Connect { .. }), "{failure}");
}

/// The handshake belongs to the connection: its own limit rules, not that of the first byte.
#[tokio::test]
async fn a_connection_that_does_not_come_about_in_time_is_no_connection() {
    let server = Server::start(|peer| {
        std::thread::sleep(Duration::from_secs(30));
        drop(peer);
    });
    let settings = NetSettings { connect_timeout: Delay::from_millis(600), ..NetSettings::default() };
    let at = url(&server.at("/").replace("http:", "https:"));
    let client = Client::new(&settings).unwrap();
    let failure = client.get(&at, HeaderMap::new(), Delay::from_millis(100)).await.unwrap_err();
    assert_eq!(failure, Failure::Connect { detail: "no connection within 0.6 s".into() });
}

#[test]
fn every_lane_has_connections_of_its_own() {
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            peer.send(OK);
        }
    });
    let shared = client();
    let lanes = crate::io::lane::Lanes::new(2.try_into().unwrap(), move || shared.with_own_pool());
    let open = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let fetch = |path: &str| {
        let (tell, told) = std::sync::mpsc::channel();
        let (at, open) = (server.at(path), std::sync::Arc::clone(&open));
        let task = lanes.spawn(move |client| async move {
            let answer = get(&client, &at).await.unwrap();
            let connection = answer.connection;
            read(answer.body).await;
            tell.send(connection).unwrap();
            // The lane stays busy, so that the next task goes to the other one.
            open.acquire().await.unwrap().forget();
        });
        (told.recv_timeout(Duration::from_secs(20)).unwrap(), task.unwrap())
    };
    let (first, one) = fetch("/1");
    let (second, two) = fetch("/2");
    assert_eq!([first, second], [Connection::Fresh; 2], "the idle connection of one lane is not the other's");
    open.add_permits(2);
    assert_eq!([one.wait(), two.wait()], [crate::io::lane::TaskEnd::Done, crate::io::lane::TaskEnd::Done]);
    assert_eq!(fetch("/3").0, Connection::Reused);
}
