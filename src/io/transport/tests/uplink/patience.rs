//! Waits: for a connection, for the bytes to go, for the answer.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use super::*;
use crate::io::clock::Clock;

const SHORT: Delay = Delay::from_millis(400);

#[tokio::test]
async fn an_answer_is_waited_for_from_the_end_of_the_body_on() {
    let server = Server::start(|mut peer| {
        peer.request();
        // The body takes longer than the patience, at a rate that is no stall.
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(300));
            peer.body(LARGE / 8);
        }
        std::thread::sleep(Duration::from_millis(100));
        peer.send(CREATED);
    });
    let body = source(b"", &file(&pattern(LARGE)), 0, LARGE);
    let request = Outgoing { patience: Delay::from_secs(2), ..outgoing(Method::Put, &server.at("/"), body) };
    assert_eq!(answer(send(&uplink(), request).await).status, 201);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.rest(Duration::from_secs(20));
    });
    for body in [OutBody::Nothing, bytes("body")] {
        let length = body.length();
        let request = Outgoing { patience: SHORT, ..outgoing(Method::Put, &server.at("/"), body) };
        match send(&uplink(), request).await {
            Heard::Broke { sent, failure: Failure::NoAnswer { waited } } => assert!(sent == length && waited >= SHORT),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_informational_answer_shows_that_the_server_is_at_work() {
    let server = Server::start(|mut peer| {
        peer.request();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(600));
            peer.send(b"HTTP/1.1 102 Processing\r\n\r\n");
        }
        peer.send(CREATED);
    });
    let request =
        Outgoing { patience: Delay::from_secs(2), ..outgoing(Method::Put, &server.at("/"), OutBody::Nothing) };
    assert_eq!(answer(send(&uplink(), request).await).status, 201);
}

#[tokio::test]
async fn a_server_that_only_says_that_it_is_at_work_is_given_up_as_well() {
    let server = Server::start(|mut peer| {
        peer.request();
        while peer.stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(30));
        }
    });
    let patience = Delay::from_millis(100);
    let request = Outgoing { patience, ..outgoing(Method::Put, &server.at("/"), OutBody::Nothing) };
    assert!(matches!(failure(send(&uplink(), request).await), Failure::NoAnswer { waited } if waited >= patience));
}

#[tokio::test]
async fn a_body_that_nobody_takes_is_a_stall() {
    let server = Server::start(|mut peer| {
        peer.request();
        std::thread::sleep(Duration::from_secs(30));
    });
    let body = source(b"", &file(&pattern(LARGE)), 0, LARGE);
    let stall = Timeouts { stall: SHORT, stall_rate: 1000, ..TIMEOUTS };
    let heard = send(&uplink(), Outgoing { stall, ..outgoing(Method::Put, &server.at("/"), body) }).await;
    match heard {
        Heard::Broke { sent, failure: Failure::Stalled { floor: 1000, window } } => {
            assert!(sent > Length::ZERO && sent < Length(LARGE as u64) && window == SHORT, "{sent}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_whose_body_stalls_is_no_success() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour");
        peer.rest(Duration::from_secs(20));
    });
    let stall = Timeouts { stall: SHORT, stall_rate: 1000, ..TIMEOUTS };
    let request = Outgoing { stall, ..outgoing(Method::Get, &server.at("/"), OutBody::Nothing) };
    assert!(matches!(failure(send(&uplink(), request).await), Failure::Stalled { .. }));
    let request = Outgoing { patience: SHORT, ..outgoing(Method::Get, &server.at("/"), OutBody::Nothing) };
    assert!(matches!(failure(send(&uplink(), request).await), Failure::NoAnswer { .. }));
}

/// The rate is far below the least that is no stall: holding back is not standing still.
#[tokio::test]
async fn a_rate_limit_brakes_and_is_no_stall() {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        peer.request();
        tell.send(peer.body(60_000)).unwrap();
        peer.send(CREATED);
    });
    let throttle = Throttle::new(NonZeroU64::new(30_000), Clock::system());
    let content = pattern(60_000);
    let stall = Timeouts { stall: SHORT, stall_rate: 1_000_000, ..TIMEOUTS };
    let request = outgoing(Method::Put, &server.at("/"), source(b"", &file(&content), 0, 60_000));
    #[expect(clippy::disallowed_methods, reason = "a test measures")]
    let begun = Instant::now();
    let (_, end) = listen(uplink().send(Outgoing { stall, ..request }, Some(throttle))).await;
    assert_eq!(answer(end).status, 201);
    assert!(begun.elapsed() >= Duration::from_millis(1800), "{:?}", begun.elapsed());
    assert!(told.recv().unwrap() == content);
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_given_up() {
    // A listener whose queue is full answers nobody.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let _filling: Vec<_> = (0..4)
        .filter_map(|_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok())
        .collect();
    let settings = NetSettings { connect_timeout: SHORT, ..NetSettings::default() };
    let uplink = Client::new(&settings).unwrap().uplink();
    let request = outgoing(Method::Put, &format!("http://{address}/"), bytes("body"));
    assert_eq!(failure(send(&uplink, request).await), Failure::Connect { detail: "no connection within 0.4 s".into() });
}

#[tokio::test]
async fn a_refused_connection_and_a_name_without_an_address_are_told_apart() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let put = |at: String| outgoing(Method::Put, &at, bytes("body"));
    let refused = failure(send(&uplink(), put(format!("http://{free}/"))).await);
    assert_eq!(refused, Failure::Connect { detail: "connection refused".into() });
    let unknown = failure(send(&uplink(), put("http://no-such-host.invalid/".into())).await);
    assert!(matches!(&unknown, Failure::Resolve { host, .. } if host == "no-such-host.invalid"), "{unknown}");
    let settings = NetSettings { family: Family::V6, ..NetSettings::default() };
    let wrong = failure(send(&Client::new(&settings).unwrap().uplink(), put(format!("http://{free}/"))).await);
    assert!(matches!(&wrong, Failure::Connect { detail } if detail.contains("-6")), "{wrong}");
}
