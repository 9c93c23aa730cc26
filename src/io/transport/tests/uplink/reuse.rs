//! Connections that are used again, and requests that are sent again.

use std::time::Duration;

use super::*;

fn patch(at: &str) -> Outgoing {
    outgoing(Method::Patch, at, source(b"", &file(b"body"), 0, 4))
}

fn head(at: &str) -> Outgoing {
    outgoing(Method::Head, at, OutBody::Nothing)
}

#[tokio::test]
async fn requests_in_turn_share_a_connection() {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        while let Some(head) = peer.request() {
            if head.starts_with("PATCH") {
                peer.body(4);
            }
            tell.send(peer.number).unwrap();
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let client = client();
    for _ in 0..3 {
        answer(send(&client.uplink(), patch(&server.at("/"))).await);
        answer(send(&client.uplink(), head(&server.at("/"))).await);
    }
    answer(send(&client.with_own_pool().uplink(), patch(&server.at("/"))).await);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 1]);
}

/// The server closes right after it has promised to keep the connection, and the close is here before the next request.
#[tokio::test]
async fn a_connection_closed_while_idle_is_not_used_and_nothing_comes_twice() {
    let ((tell, told), (closed, is_closed)) = (drop_box(), drop_box());
    let server = Server::start(move |mut peer| {
        peer.request();
        tell.send(peer.body(4)).unwrap();
        peer.send(b"HTTP/1.1 204 No Content\r\n\r\n");
        // The answer is read, and the connection kept, before the close comes.
        std::thread::sleep(Duration::from_millis(5));
        drop(peer);
        closed.send(()).unwrap();
    });
    let uplink = uplink();
    for _ in 0..10 {
        assert_eq!(answer(send(&uplink, patch(&server.at("/"))).await).status, 204);
        // The whole runtime stands still until the close is here: it learns of it only when it looks.
        is_closed.recv().unwrap();
    }
    assert_eq!(told.try_iter().collect::<Vec<_>>(), vec![b"body".to_vec(); 10]);
}

/// The request crosses the close: it has reached the server's machine, and nobody can tell whether it was read.
#[tokio::test]
async fn a_request_lost_on_a_used_connection_is_sent_again_only_where_that_is_harmless() {
    let server = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            if peer.number.is_multiple_of(2) {
                peer.request();
            }
        }
    });
    let uplink = uplink();
    assert_eq!(answer(send(&uplink, head(&server.at("/1"))).await).status, 200);
    assert_eq!(answer(send(&uplink, head(&server.at("/2"))).await).status, 200);
    // Connection 1 is closed by now.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(answer(send(&uplink, head(&server.at("/3"))).await).status, 200);
    let create = outgoing(Method::Post, &server.at("/4"), OutBody::Nothing);
    assert!(matches!(failure(send(&uplink, create).await), Failure::Cut(_)));
    let asked: Vec<_> = (0..5).map(|_| server.head().split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(asked, ["/1", "/2", "/2", "/3", "/4"]);
    assert!(server.is_quiet());
}
