//! Long parts of files, which the kernel may send: whatever happens on the way, every byte that comes is the file's.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::io::clock::Clock;
use crate::io::transport::Throttle;

fn put(at: &str, body: OutBody) -> Outgoing {
    outgoing(Method::Put, at, body)
}

/// Compares without printing megabytes.
#[track_caller]
fn assert_same(came: &[u8], expected: &[u8]) {
    if came != expected {
        let differ = came.iter().zip(expected).position(|(a, b)| a != b);
        panic!("{} bytes came, {} were expected; the first that differs is {differ:?}", came.len(), expected.len());
    }
}

fn length_in(head: &str) -> usize {
    let line = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    line.map_or(0, |length| length.parse().unwrap())
}

/// Answers every request with 201, and leaves its body.
fn collecting() -> (Server, Receiver<Vec<u8>>) {
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        while let Some(head) = peer.request() {
            tell.send(peer.body(length_in(&head))).unwrap();
            peer.send(CREATED);
        }
    });
    (server, told)
}

#[tokio::test]
async fn ranges_of_many_lengths_arrive_as_they_are_on_one_connection() {
    let content = pattern(5_000_000);
    let file = file(&content);
    let (server, told) = collecting();
    let (uplink, mut rng) = (uplink(), StdRng::seed_from_u64(7));
    let edges = [0, 1, 262_143, 262_144, 262_145, 1 << 20, (1 << 20) + 1, 5_000_000];
    for round in 0..40 {
        let length = edges.get(round).copied().unwrap_or_else(|| rng.random_range(0..=content.len()));
        let start = rng.random_range(0..=content.len() - length);
        let before: &'static [u8] = match round % 4 {
            0 => b"",
            1 => b"\r\n\r\n",
            2 => b"--boundary\r\nname: x\r\n\r\n",
            _ => &[0; 300_000],
        };
        let body = source(before, &file, start, start + length);
        assert_eq!(answer(send(&uplink, put(&server.at("/"), body)).await).status, 201, "round {round}");
        assert_same(&told.recv().unwrap(), &[before, &content[start..start + length]].concat());
        if round % 5 == 0 {
            answer(send(&uplink, outgoing(Method::Patch, &server.at("/"), bytes("between"))).await);
            assert_same(&told.recv().unwrap(), b"between");
        }
    }
}

/// A small window and a hesitant reader: the socket takes pieces of all sizes.
#[tokio::test]
async fn a_reader_that_takes_little_at_a_time_gets_every_byte() {
    let content = pattern(4_000_001);
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        rustix::net::sockopt::set_socket_recv_buffer_size(&peer.stream, 64 << 10).unwrap();
        let length = length_in(&peer.request().unwrap());
        let (mut rng, mut body) = (StdRng::seed_from_u64(peer.number as u64), Vec::new());
        while body.len() < length {
            let piece = rng.random_range(1..=40_000).min(length - body.len());
            body.extend(peer.body(piece));
            if rng.random_ratio(1, 20) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        tell.send(body).unwrap();
        peer.send(CREATED);
    });
    let file = file(&content);
    for start in [0, 4097] {
        let mut exchange = uplink().send(put(&server.at("/"), source(b"ab", &file, start, content.len())), None);
        let (mut last, total) = (Length::ZERO, Length((content.len() - start) as u64 + 2));
        let end = loop {
            match exchange.next().await {
                Heard::Sent(sent) => {
                    assert!(sent >= last && sent <= total, "{sent} after {last}");
                    last = sent;
                }
                end => break end,
            }
        };
        assert_eq!((answer(end).status, last), (201, total));
        assert_same(&told.recv().unwrap(), &[b"ab", &content[start..]].concat());
    }
}

#[tokio::test]
async fn two_exchanges_side_by_side_send_their_own_files() {
    let (server, told) = collecting();
    let contents = [pattern(LARGE), pattern(LARGE).into_iter().map(|b| b ^ 0x55).collect::<Vec<_>>()];
    let files = [file(&contents[0]), file(&contents[1])];
    let uplink = uplink();
    let [one, two] = [0, 1].map(|n: usize| uplink.send(put(&server.at("/"), source(b"", &files[n], n, LARGE)), None));
    let (one, two) = tokio::join!(listen(one), listen(two));
    assert_eq!([answer(one.1).status, answer(two.1).status], [201, 201]);
    let mut came = [told.recv().unwrap(), told.recv().unwrap()];
    came.sort_by_key(|body| std::cmp::Reverse(body.len()));
    assert_same(&came[0], &contents[0]);
    assert_same(&came[1], &contents[1][1..]);
}

#[tokio::test]
async fn a_range_beyond_4_gib_comes_from_there() {
    let (start, content) = ((4_u64 << 30) + 12_345, pattern(3_000_000));
    let file = Arc::new(tempfile::tempfile().unwrap());
    file.set_len(start + (1 << 30)).unwrap();
    file.write_all_at(&content, start).unwrap();
    let (server, told) = collecting();
    let range = ByteRange::new(Offset(start - 5), Offset(start + content.len() as u64 + 5));
    let body = OutBody::Source { before: Bytes::from_static(b"x"), file, range };
    assert_eq!(answer(send(&uplink(), put(&server.at("/"), body)).await).status, 201);
    assert_same(&told.recv().unwrap(), &[b"x\0\0\0\0\0", content.as_slice(), &[0; 5]].concat());
}

/// It is cut to a length that is no multiple of anything while the body flows.
#[tokio::test]
async fn of_a_source_that_becomes_shorter_meanwhile_no_byte_is_made_up() {
    const LEFT: usize = (20 << 20) + 123;
    let content = pattern(LARGE);
    let file = file(&content);
    let (tell, told) = drop_box();
    let cut = Arc::clone(&file);
    let server = Server::start(move |mut peer| {
        peer.request();
        let mut came = peer.body(1 << 20);
        cut.set_len(LEFT as u64).unwrap();
        came.extend(peer.rest(Duration::from_secs(20)));
        tell.send(came).unwrap();
    });
    match send(&uplink(), put(&server.at("/"), source(b"", &file, 0, LARGE))).await {
        Heard::Broke { sent, failure: Failure::Local(LocalFault::Io { doing: "read", detail, .. }) } => {
            assert!(detail.contains("shorter") && sent <= Length(LEFT as u64), "{detail} {sent}");
        }
        other => panic!("{other:?}"),
    }
    let came = told.recv().unwrap();
    assert!(came.len() <= LEFT, "{}", came.len());
    assert_same(&came, &content[..came.len()]);
}

#[tokio::test]
async fn an_early_answer_follows_upon_bytes_of_the_file_alone() {
    let content = pattern(LARGE);
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        peer.request();
        let mut came = peer.body(3_000_000);
        peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
        came.extend(peer.rest(Duration::from_secs(20)));
        tell.send(came).unwrap();
    });
    let body = source(b"before", &file(&content), 0, LARGE);
    let answer = answer(send(&uplink(), put(&server.at("/"), body)).await);
    let came = told.recv().unwrap();
    assert!(came.len() < LARGE, "the body stopped");
    assert_eq!((answer.status, answer.sent), (413, Length(came.len() as u64)));
    assert_same(&came, &[b"before", content.as_slice()].concat()[..came.len()]);
}

#[tokio::test]
async fn a_rate_limit_holds_for_files() {
    let content = pattern(1_000_000);
    let (server, told) = collecting();
    let (clock, file) = (Clock::system(), file(&content));
    let throttle = Throttle::new(std::num::NonZeroU64::new(1_000_000), clock.clone());
    let begun = clock.now().mono;
    let exchange = uplink().send(put(&server.at("/"), source(b"", &file, 0, content.len())), Some(throttle));
    assert_eq!(answer(listen(exchange).await.1).status, 201);
    // A burst of 100 ms and one piece are ahead of the rate.
    assert!(clock.now().mono.since(begun) >= Delay::from_millis(700));
    assert_same(&told.recv().unwrap(), &content);
}

#[tokio::test]
async fn nothing_of_a_file_goes_before_the_gate_is_open() {
    let content = pattern(2_000_000);
    let (tell, told) = drop_box();
    let server = Server::start(move |mut peer| {
        peer.request();
        peer.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        assert!(peer.stream.read(&mut [0]).is_err(), "the gate is shut");
        peer.stream.set_read_timeout(None).unwrap();
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\n");
        tell.send(peer.body(2_000_000)).unwrap();
        peer.send(CREATED);
    });
    let mut request = put(&server.at("/"), source(b"", &file(&content), 0, content.len()));
    request.gate = Gate::Continue(PATIENT);
    assert_eq!(answer(send(&uplink(), request).await).status, 201);
    assert_same(&told.recv().unwrap(), &content);
}
