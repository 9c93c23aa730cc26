//! Bodies: how they end, well and badly.

use super::server::Server;
use super::*;
use crate::core::failure::Cut;
use crate::core::file_xfer::Framing;
use crate::core::range::Length;

#[tokio::test]
async fn a_body_short_of_its_length_is_told_apart() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour");
    let answer = get(&client(), &server.at("/")).await.unwrap();
    assert_eq!(answer.framing, Framing::Length(Length(10)));
    let (bytes, failure) = read(answer.body).await;
    assert_eq!(bytes, b"four");
    assert!(ended_short(&failure.unwrap()));
}

#[tokio::test]
async fn a_chunked_body_without_its_last_chunk_is_cut() {
    for tail in ["", "4\r\nab", "zz\r\n"] {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n{tail}");
        let server = Server::answering(answer.into_bytes().leak());
        let answer = get(&client(), &server.at("/")).await.unwrap();
        assert_eq!(answer.framing, Framing::Marked);
        let (bytes, failure) = read(answer.body).await;
        assert!(bytes.starts_with(b"four"));
        let failure = failure.unwrap();
        assert!(matches!(failure, Failure::Cut(Cut::Broken { .. })) && !ended_short(&failure), "{tail:?}: {failure}");
    }
}

#[tokio::test]
async fn a_chunked_body_with_its_last_chunk_is_whole() {
    let server =
        Server::answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\nX-T: 1\r\n\r\n");
    let answer = get(&client(), &server.at("/")).await.unwrap();
    assert_eq!(read(answer.body).await, (b"four".to_vec(), None));
}

#[tokio::test]
async fn http_1_0_ends_by_the_close() {
    let server = Server::answering(b"HTTP/1.0 200 OK\r\n\r\nuntil the end");
    let answer = get(&client(), &server.at("/")).await.unwrap();
    assert_eq!(answer.framing, Framing::Close);
    assert_eq!(read(answer.body).await, (b"until the end".to_vec(), None));
}

#[tokio::test]
async fn bytes_beyond_the_length_are_not_ours() {
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour and more");
        }
    });
    let client = client();
    for _ in 0..3 {
        let answer = get(&client, &server.at("/")).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(read(answer.body).await, (b"four".to_vec(), None));
    }
}

#[tokio::test]
async fn a_reset_is_a_cut() {
    let server = Server::start(|mut peer| {
        // One byte of the request is read, the rest is not.
        let mut byte = [0];
        let _ = std::io::Read::read(&mut peer.stream, &mut byte);
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour");
        peer.reset_without_reading();
    });
    let answer = get(&client(), &server.at("/")).await;
    let failure = match answer {
        Ok(answer) => read(answer.body).await.1.unwrap(),
        Err(failure) => failure,
    };
    assert_eq!(failure, Failure::Cut(Cut::Broken { detail: "reset by the server".into() }));
}

#[tokio::test]
async fn a_small_body_that_nobody_wants_frees_the_connection() {
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n");
            std::thread::sleep(std::time::Duration::from_millis(20));
            peer.send(b"not found");
        }
    });
    let client = client();
    let answer = get(&client, &server.at("/")).await.unwrap();
    answer.body.discard(Length(100), PATIENT).await;
    let answer = get(&client, &server.at("/")).await.unwrap();
    assert_eq!(answer.connection, Connection::Reused);
    answer.body.discard(Length(5), PATIENT).await;
    assert_eq!(get(&client, &server.at("/")).await.unwrap().connection, Connection::Fresh);
}
