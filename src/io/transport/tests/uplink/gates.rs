//! Informational answers, and bodies that wait for one (RFC 9110 10.1.1).

use std::time::Duration;

use super::*;

const QUIET: Duration = Duration::from_millis(150);

fn gated(at: &str, wait: Delay) -> Outgoing {
    Outgoing { gate: Gate::Continue(wait), ..outgoing(Method::Put, at, bytes("body")) }
}

#[tokio::test]
async fn every_informational_answer_is_heard_in_order() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.send(b"HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /u/1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
        peer.body(4);
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n");
        std::thread::sleep(QUIET);
        peer.send(b"HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 4\r\n\r\n");
        peer.send(CREATED);
    });
    let (interims, end) = listen(uplink().send(outgoing(Method::Post, &server.at("/"), bytes("body")), None)).await;
    assert_eq!(answer(end).status, 201);
    assert_eq!(interims.iter().map(|i| i.status).collect::<Vec<_>>(), [104, 100, 100, 103, 104]);
    assert_eq!(interims[0].fields["location"], "/u/1");
    assert_eq!(interims[4].fields["upload-offset"], "4");
}

#[tokio::test]
async fn a_gated_body_waits_for_100() {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        let head = peer.request().unwrap();
        assert!(head.contains("expect: 100-continue\r\n") && head.contains("content-length: 4\r\n"), "{head}");
        // Another 1xx opens nothing.
        peer.send(b"HTTP/1.1 104 Upload Resumption Supported\r\n\r\n");
        tell.send(peer.rest(QUIET)).unwrap();
        peer.stream.set_read_timeout(None).unwrap();
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\n");
        tell.send(peer.body(4)).unwrap();
        peer.send(CREATED);
    });
    let (interims, end) = listen(uplink().send(gated(&server.at("/"), PATIENT), None)).await;
    assert_eq!((answer(end).status, interims.len()), (201, 2));
    assert_eq!(told.iter().take(2).collect::<Vec<_>>(), [b"".to_vec(), b"body".to_vec()]);
}

#[tokio::test]
async fn a_gate_opens_by_itself_when_the_server_says_nothing() {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        peer.request();
        tell.send(peer.rest(QUIET)).unwrap();
        peer.stream.set_read_timeout(None).unwrap();
        tell.send(peer.body(4)).unwrap();
        peer.send(CREATED);
    });
    assert_eq!(answer(send(&uplink(), gated(&server.at("/"), Delay::from_secs(2))).await).status, 201);
    assert_eq!(told.iter().take(2).collect::<Vec<_>>(), [b"".to_vec(), b"body".to_vec()]);
}

#[tokio::test]
async fn a_refusal_at_the_gate_keeps_the_whole_body_here() {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        peer.request();
        peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\n");
        std::thread::sleep(Duration::from_millis(1500));
        peer.send(b"too large");
        tell.send(peer.rest(Duration::from_secs(20))).unwrap();
    });
    // The gate would have opened by itself while the answer's body was on its way.
    let answer = answer(send(&uplink(), gated(&server.at("/"), Delay::from_secs(1))).await);
    assert_eq!((answer.status, answer.body.as_slice()), (413, b"too large".as_slice()));
    assert_eq!(answer.sent, Length::ZERO);
    assert_eq!(told.recv().unwrap(), b"", "not a byte of the body was sent, and the connection was closed");
}

#[tokio::test]
async fn a_server_that_knows_no_expectation_is_asked_once_more_without() {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        let head = peer.request().unwrap();
        if head.contains("expect:") {
            return peer.send(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
        }
        tell.send(peer.body(4)).unwrap();
        peer.send(CREATED);
    });
    assert_eq!(answer(send(&uplink(), gated(&server.at("/"), PATIENT)).await).status, 201);
    assert_eq!(told.recv().unwrap(), b"body");

    let stubborn = Server::answering(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(answer(send(&uplink(), gated(&stubborn.at("/"), PATIENT)).await).status, 417);
    assert!(stubborn.head().contains("expect:") && !stubborn.head().contains("expect:") && stubborn.is_quiet());
}

#[tokio::test]
async fn a_request_without_a_body_expects_nothing() {
    let server = Server::answering(OK);
    let request = Outgoing { body: OutBody::Nothing, ..gated(&server.at("/"), PATIENT) };
    assert_eq!(answer(send(&uplink(), request).await).status, 200);
    assert!(!server.head().contains("expect"));
}

#[tokio::test]
async fn a_flood_of_informational_answers_ends_the_exchange() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let server = Server::start(move |mut peer| {
        peer.request();
        let many = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);
        // Until the client closes.
        while peer.stream.write_all(&many).is_ok() {}
        let tell = tell.lock().unwrap().take();
        tell.unwrap().send(()).unwrap();
    });
    let exchange = uplink().send(outgoing(Method::Put, &server.at("/"), bytes("body")), None);
    // Nobody listens while they come.
    told.await.unwrap();
    let (interims, end) = listen(exchange).await;
    assert!(interims.len() <= 256, "{}", interims.len());
    assert!(matches!(failure(end), Failure::BadAnswer(BadAnswer::Framing { .. })));
}
