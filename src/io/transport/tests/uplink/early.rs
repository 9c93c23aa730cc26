//! Answers that come while the body still flows, with and without the break that follows them.

use std::time::Duration;

use super::*;

const REFUSED: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large";

fn large(at: &str) -> Outgoing {
    outgoing(Method::Put, at, source(b"", &file(&vec![7; LARGE]), 0, LARGE))
}

#[tokio::test]
async fn an_answer_stops_the_body_and_closes_the_connection() {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        peer.request();
        peer.body(1000);
        let (head, text) = REFUSED.split_at(REFUSED.len() - 9);
        peer.send(head);
        let mut seen = 1000 + peer.rest(Duration::from_millis(300)).len();
        peer.send(text);
        // What was on its way, until the client closes.
        seen += peer.rest(Duration::from_secs(20)).len();
        tell.send(seen).unwrap();
    });
    let uplink = uplink();
    let answer = answer(send(&uplink, large(&server.at("/"))).await);
    assert_eq!((answer.status, answer.body.as_slice()), (413, b"too large".as_slice()));
    let seen = told.recv().unwrap();
    assert!(seen < LARGE, "the body stopped: {seen}");
    assert_eq!(answer.sent, Length(seen as u64), "and what is said to have gone is what came");
}

/// The server answers and closes although most of the body is unread: a reset follows the answer, and may overtake the
/// reading of it. Whatever our side was doing, the answer is what counts.
#[tokio::test]
async fn an_answer_is_heard_although_a_reset_follows_it() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.body(1000);
        peer.send(REFUSED);
        // The threads of the server close at different moments of our writing.
        std::thread::sleep(Duration::from_micros(peer.number as u64 % 7 * 300));
    });
    let uplink = uplink();
    for round in 0..40 {
        let answer = answer(send(&uplink, large(&server.at("/"))).await);
        assert_eq!((answer.status, answer.body.as_slice()), (413, b"too large".as_slice()), "round {round}");
    }
}

#[tokio::test]
async fn a_reset_without_an_answer_is_a_cut() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.body(1000);
        peer.reset_without_reading();
    });
    match send(&uplink(), large(&server.at("/"))).await {
        Heard::Broke { sent, failure: Failure::Cut(Cut::Broken { .. }) } => {
            assert!(sent >= Length(1000) && sent < Length(LARGE as u64), "{sent}");
        }
        other => panic!("{other:?}"),
    }
}

/// The refusal's body is cut: its head is the word.
#[tokio::test]
async fn a_refusal_with_a_cut_body_is_a_refusal() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.send(&REFUSED[..REFUSED.len() - 3]);
        peer.reset_without_reading();
    });
    let answer = answer(send(&uplink(), large(&server.at("/"))).await);
    assert_eq!((answer.status, answer.body.as_slice(), answer.length), (413, b"too la".as_slice(), Length(6)));
}

/// A success is one only when its answer is whole.
#[tokio::test]
async fn a_success_with_a_cut_body_is_a_cut() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthree");
        peer.reset_without_reading();
    });
    assert!(matches!(failure(send(&uplink(), large(&server.at("/"))).await), Failure::Cut(_)));
}

/// Half the answer's head and a reset: nothing that could be believed.
#[tokio::test]
async fn a_cut_head_is_a_cut() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.send(&REFUSED[..20]);
        peer.reset_without_reading();
    });
    assert!(matches!(failure(send(&uplink(), large(&server.at("/"))).await), Failure::Cut(_)));
}
