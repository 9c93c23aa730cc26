//! Final answers: their bodies, their limits, and what is no HTTP.

use super::*;
use crate::core::digest::{Algorithm, Expected};

async fn answered(text: &[u8], request: Outgoing) -> Heard {
    let server = Server::answering(text.to_vec().leak());
    send(&uplink(), Outgoing { url: url(&server.at("/")), ..request }).await
}

fn get() -> Outgoing {
    outgoing(Method::Get, "http://h/", OutBody::Nothing)
}

#[tokio::test]
async fn bodies_of_every_framing_are_read_to_their_end() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nfour",
        "HTTP/1.0 200 OK\r\n\r\nfour",
    ] {
        let answer = answer(answered(text.as_bytes(), get()).await);
        assert_eq!((answer.body.as_slice(), answer.length, answer.digest), (b"four".as_slice(), Length(4), None));
    }
}

#[tokio::test]
async fn some_answers_have_no_body_whatever_their_fields_say() {
    let head = Outgoing { method: Method::Head, ..get() };
    let answered_head = answer(answered(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", head).await);
    assert_eq!((answered_head.length, answered_head.field("content-length")), (Length::ZERO, Some("1000")));
    for status in ["204 No Content", "304 Not Modified"] {
        let text = format!("HTTP/1.1 {status}\r\nETag: \"a\"\r\n\r\n");
        let answer = answer(answered(text.as_bytes(), get()).await);
        assert_eq!((answer.length, answer.field("etag")), (Length::ZERO, Some("\"a\"")));
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_cut_for_a_success_only() {
    for (status, framing) in [
        (200, "Content-Length: 9\r\n\r\nfour"),
        (201, "Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n"),
        (307, "Content-Length: 9\r\n\r\nfour"),
        (404, "Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n"),
    ] {
        let text = format!("HTTP/1.1 {status} X\r\n{framing}");
        for keep in [Keep::Small, Keep::Digest(Algorithm::Sha256)] {
            let heard = answered(text.as_bytes(), Outgoing { keep, ..get() }).await;
            if status < 300 {
                assert!(matches!(failure(heard), Failure::Cut(_)), "{text}");
            } else {
                let answer = answer(heard);
                assert_eq!((answer.status, answer.length, answer.digest), (status, Length(4), None));
            }
        }
    }
}

#[tokio::test]
async fn a_digest_is_taken_of_the_body_as_it_passes() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let answer = answer(answered(text, Outgoing { keep: Keep::Digest(Algorithm::Md5), ..get() }).await);
    let expected = Expected::parse("md5=900150983cd24fb0d6963f7d28e17f72").unwrap();
    assert_eq!((answer.digest, answer.body.len(), answer.length), (Some(expected), 0, Length(3)));

    let refusal = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone";
    let answer = self::answer(answered(refusal, Outgoing { keep: Keep::Digest(Algorithm::Md5), ..get() }).await);
    assert_eq!((answer.digest, answer.body.as_slice()), (None, b"gone".as_slice()));
}

#[tokio::test]
async fn of_a_long_body_the_first_bytes_are_kept_and_it_ends_somewhere() {
    let long = |length: usize| {
        let mut text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        text.extend(pattern(length));
        text
    };
    let kept = answer(answered(&long(Final::MOST_KEPT + 5), get()).await);
    assert_eq!(kept.length, Length(Final::MOST_KEPT as u64 + 5));
    assert!(kept.body == pattern(Final::MOST_KEPT));
    let endless = answer(answered(&long(LARGE), get()).await);
    assert!(endless.length < Length(LARGE as u64) && endless.body.len() == Final::MOST_KEPT);
}

#[tokio::test]
async fn a_wait_that_the_server_asks_for_is_read() {
    let text =
        b"HTTP/1.1 503 X\r\nRetry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Content-Length: 0\r\n\r\n";
    assert_eq!(answer(answered(text, get()).await).retry_after, Some(Delay::from_secs(10)));
}

#[tokio::test]
async fn what_is_no_http_or_beyond_the_limits_is_told_apart() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(101));
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(1 << 20));
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxxx",
        many.as_str(),
        long.as_str(),
    ] {
        let failure = failure(answered(text.as_bytes(), get()).await);
        assert!(matches!(failure, Failure::BadAnswer(BadAnswer::Framing { .. })), "{failure}: {:.60}", text);
    }
}
