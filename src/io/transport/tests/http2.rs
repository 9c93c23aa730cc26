//! HTTP/2, chosen by ALPN.

use crate::core::file_xfer::Framing;
use std::net::SocketAddr;

use bytes::Bytes;
use tokio::net::TcpListener;

use super::over_tls::{Clients, certs};
use super::*;
use crate::core::failure::Cut;
use crate::core::range::Length;

/// What the server does with the n-th request of a connection.
enum Act {
    /// Answers with a Content-Length and the body "four".
    Answer(&'static str),
    /// Sends half of the body, then resets the stream.
    Reset,
    /// Says GOAWAY and closes, without an answer.
    GoAway,
}

/// Serves on the test's own runtime; `acts` by connection, then by request.
async fn serve(acts: &'static [&'static [Act]]) -> Option<(SocketAddr, Client)> {
    let certs = certs()?;
    let tls = tokio_rustls::TlsAcceptor::from(certs.server_config("server", Clients::Any, &[b"h2"]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for acts in acts {
            let stream = tls.accept(listener.accept().await.unwrap().0).await.unwrap();
            tokio::spawn(connection(h2::server::handshake(stream).await.unwrap(), acts));
        }
    });
    let client = Client::new(&certs.trusting("ca.pem", address.port())).unwrap();
    Some((address, client))
}

type Served = h2::server::Connection<tokio_rustls::server::TlsStream<tokio::net::TcpStream>, Bytes>;

async fn connection(mut served: Served, acts: &'static [Act]) {
    let mut acts = acts.iter();
    while let Some(Ok((_, mut respond))) = served.accept().await {
        match acts.next() {
            Some(Act::Answer(length)) => {
                let head = http::Response::builder().header("content-length", *length).body(()).unwrap();
                let mut body = respond.send_response(head, false).unwrap();
                body.send_data(Bytes::from_static(b"four"), true).unwrap();
            }
            Some(Act::Reset) => {
                let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                body.send_data(Bytes::from_static(b"fo"), false).unwrap();
                tokio::spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    body.send_reset(h2::Reason::INTERNAL_ERROR);
                });
            }
            Some(Act::GoAway) | None => served.abrupt_shutdown(h2::Reason::NO_ERROR),
        }
    }
}

fn at(address: SocketAddr) -> String {
    format!("https://tls.test:{}/", address.port())
}

#[tokio::test]
async fn streams_share_a_connection_and_end_by_a_mark() {
    let Some((address, client)) = serve(&[&[Act::Answer("4"), Act::Answer("4")]]).await else { return };
    let first = get(&client, &at(address)).await.unwrap();
    assert_eq!((first.framing, first.connection), (Framing::Length(Length(4)), Connection::Fresh));
    assert_eq!(read(first.body).await, (b"four".to_vec(), None));
    assert_eq!(get(&client, &at(address)).await.unwrap().connection, Connection::Reused);
}

#[tokio::test]
async fn a_reset_stream_is_a_cut() {
    let Some((address, client)) = serve(&[&[Act::Reset]]).await else { return };
    let answer = get(&client, &at(address)).await.unwrap();
    assert_eq!(answer.framing, Framing::Marked);
    let (bytes, failure) = read(answer.body).await;
    assert_eq!(bytes, b"fo");
    assert!(matches!(failure, Some(Failure::Cut(Cut::Broken { .. }))), "{failure:?}");
}

#[tokio::test]
async fn a_body_that_contradicts_its_length_is_a_cut() {
    let Some((address, client)) = serve(&[&[Act::Answer("9")]]).await else { return };
    let failure = match get(&client, &at(address)).await {
        Ok(answer) => read(answer.body).await.1,
        Err(failure) => Some(failure),
    };
    assert!(matches!(failure, Some(Failure::Cut(Cut::Broken { .. }))), "{failure:?}");
}

#[tokio::test]
async fn a_used_connection_that_goes_away_is_no_failure() {
    let Some((address, client)) = serve(&[&[Act::Answer("4"), Act::GoAway], &[Act::Answer("4")]]).await else { return };
    read(get(&client, &at(address)).await.unwrap().body).await;
    let answer = get(&client, &at(address)).await.unwrap();
    assert_eq!(read(answer.body).await, (b"four".to_vec(), None));
}
