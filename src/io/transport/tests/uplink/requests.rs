//! What goes out: the head, and the body to the last byte.

use super::*;

fn lines(head: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").skip(1).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn a_request_carries_its_length_and_what_it_is_given() {
    let server = Server::start(|mut peer| {
        peer.request();
        assert_eq!(peer.body(5), b"hello");
        peer.send(OK);
    });
    let at = server.at("/a%20b?q=1").replace("http://", "http://user:secret@");
    let mut request = outgoing(Method::Patch, &at, bytes("hello"));
    request.headers.insert("x-one", "1".parse().unwrap());
    let answer = answer(send(&uplink(), request).await);
    assert_eq!((answer.status, answer.body.as_slice(), answer.length), (200, b"ok".as_slice(), Length(2)));
    let head = server.head();
    assert!(head.starts_with("PATCH /a%20b?q=1 HTTP/1.1\r\n"), "{head}");
    let (host, agent) = (format!("host: {}", server.address), format!("user-agent: {USER_AGENT}"));
    let expected = ["accept-encoding: identity", "content-length: 5", host.as_str(), agent.as_str(), "x-one: 1"];
    assert_eq!(lines(&head), expected);
}

#[tokio::test]
async fn without_a_body_a_length_of_zero_is_told_where_the_method_has_one() {
    use Method::{Delete, Get, Head, Mkcol, Move, Options, Patch, Post, Put};
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            peer.send(b"HTTP/1.1 204 No Content\r\n\r\n");
        }
    });
    let uplink = uplink();
    for method in [Post, Put, Patch, Get, Head, Options, Delete, Move, Mkcol] {
        let answer = answer(send(&uplink, outgoing(method, &server.at("/"), OutBody::Nothing)).await);
        assert_eq!((answer.status, answer.length), (204, Length::ZERO));
        let head = server.head();
        assert!(head.starts_with(&format!("{} / ", method.as_str())), "{head}");
        assert_eq!(head.contains("content-length: 0\r\n"), matches!(method, Post | Put | Patch), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
    }
    let empty = source(b"", &file(b"abc"), 2, 2);
    answer(send(&uplink, outgoing(Put, &server.at("/"), empty)).await);
    assert!(server.head().contains("content-length: 0\r\n"));
}

#[tokio::test]
async fn a_range_of_a_file_goes_out_behind_what_comes_before_it() {
    let content = pattern(3_000_001);
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        let head = peer.request().unwrap();
        assert!(head.contains("content-length: 2999994\r\n"), "{head}");
        tell.send(peer.body(2_999_994)).unwrap();
        peer.send(CREATED);
    });
    let file = file(&content);
    let body = source(b"first", &file, 7, 2_999_996);
    let mut exchange = uplink().send(outgoing(Method::Post, &server.at("/"), body), None);
    let mut last = Length::ZERO;
    let end = loop {
        match exchange.next().await {
            Heard::Sent(sent) => {
                assert!(sent >= last, "{sent} after {last}");
                last = sent;
            }
            end => break end,
        }
    };
    assert_eq!((answer(end).status, last), (201, Length(2_999_994)));
    let sent = told.recv().unwrap();
    assert_eq!(sent[..5], *b"first");
    assert!(sent[5..] == content[7..2_999_996]);
}

#[tokio::test]
async fn a_source_that_has_become_shorter_is_trouble_of_ours() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.rest(std::time::Duration::from_secs(20));
    });
    let body = source(b"", &file(&pattern(1_000_000)), 0, 1_000_001);
    match send(&uplink(), outgoing(Method::Put, &server.at("/"), body)).await {
        Heard::Broke { sent, failure: Failure::Local(LocalFault::Io { doing: "read", detail, .. }) } => {
            assert!(detail.contains("shorter") && sent < Length(1_000_001), "{detail} {sent}");
        }
        other => panic!("{other:?}"),
    }
}

/// The driver stores its record meanwhile: nobody asks what is heard.
#[tokio::test]
async fn a_request_goes_on_while_nobody_listens() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let server = Server::start(move |mut peer| {
        peer.request();
        peer.body(LARGE);
        let tell = tell.lock().unwrap().take();
        tell.unwrap().send(()).unwrap();
        peer.send(CREATED);
    });
    let body = source(b"", &file(&pattern(LARGE)), 0, LARGE);
    let exchange = uplink().send(outgoing(Method::Put, &server.at("/"), body), None);
    told.await.unwrap();
    assert_eq!(answer(listen(exchange).await.1).status, 201);
}

#[tokio::test]
async fn dropping_the_exchange_closes_its_connection() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let (close, closed) = tokio::sync::oneshot::channel();
    let close = std::sync::Mutex::new(Some(close));
    let server = Server::start(move |mut peer| {
        peer.request();
        let tell = tell.lock().unwrap().take();
        tell.unwrap().send(()).unwrap();
        // Ends when the client has closed, in whatever way.
        peer.rest(std::time::Duration::from_secs(20));
        let close = close.lock().unwrap().take();
        close.unwrap().send(()).unwrap();
    });
    let exchange = uplink().send(outgoing(Method::Put, &server.at("/"), bytes("body")), None);
    told.await.unwrap();
    drop(exchange);
    closed.await.unwrap();
}

#[test]
fn a_request_is_shown_without_its_secrets() {
    let mut request = outgoing(Method::Put, "http://user:hidden@h/hidden?hidden", OutBody::Nothing);
    request.headers.insert("authorization", "hidden".parse().unwrap());
    let shown = format!("{request:?}");
    assert!(shown.contains("http://h") && !shown.contains("hidden"), "{shown}");
}
