//! Filler never goes out, and nothing but the file's bytes goes in its place.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::pin::Pin;

use tokio::io::AsyncWrite;
use tokio::net::TcpListener;

use super::super::line::{Flow, Line, Wire};
use super::super::stream::Stream;
use super::*;

const HEAD: &[u8] = b"PUT / HTTP/1.1\r\n\r\n";

fn file(content: &[u8]) -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    Arc::new(file)
}

/// Both ends of a connection.
async fn pair() -> (TcpStream, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().await.unwrap().0, far)
}

fn bytes_of(mut far: std::net::TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    far.read_to_end(&mut all).unwrap();
    all
}

fn in_body(sent: usize) -> Progress {
    Progress::default().after(HEAD).after(&vec![1; sent])
}

fn look(direct: Option<&Direct>, gone: Progress, bufs: &[&[u8]]) -> Result<Turn, Misfit> {
    let slices: Vec<_> = bufs.iter().map(|b| IoSlice::new(b)).collect();
    turn(direct, gone, &slices)
}

#[test]
fn bytes_and_filler_are_told_apart_and_each_has_its_place() {
    let direct = Direct::new(3, &file(b""), 100..110);
    let (direct, ten, zeros) = (Some(&direct), filler(10), vec![0; 10]);
    let (empty, head) = (b"".as_slice(), Progress::default());
    assert_eq!(look(direct, head, &[HEAD, b"abc", &ten]), Ok(Turn::Own(2)));
    assert_eq!(look(direct, in_body(1), &[b"bc", &ten]), Ok(Turn::Own(1)));
    assert_eq!(look(direct, in_body(3), &[&ten]), Ok(Turn::File(10)));
    assert_eq!(look(direct, in_body(3), &[empty, &ten[..4], &ten[4..]]), Ok(Turn::File(10)));
    assert_eq!(look(direct, in_body(12), &[&ten[9..]]), Ok(Turn::File(1)));
    assert_eq!(look(None, head, &[HEAD, b"abc", &zeros]), Ok(Turn::Own(3)));
    let misfits: [(_, _, &[&[u8]]); 10] = [
        (direct, head, &[&ten]),
        (direct, in_body(2), &[&ten]),
        (direct, in_body(4), &[&ten]),
        (direct, in_body(13), &[&ten[..1]]),
        (direct, in_body(3), &[&ten, &ten]),
        (direct, in_body(3), &[&zeros]),
        (direct, in_body(1), &[b"bcd"]),
        (direct, in_body(13), &[b"x"]),
        (direct, head, &[HEAD, b"abc", &zeros]),
        (None, in_body(3), &[&ten]),
    ];
    for (n, (direct, gone, bufs)) in misfits.into_iter().enumerate() {
        assert_eq!(look(direct, gone, bufs), Err(Misfit), "{n}");
    }
}

/// Whatever is asked of the connection: filler that no file stands behind ends it.
#[tokio::test]
async fn the_connection_refuses_filler_and_writes_nothing_of_it() {
    let (near, far) = pair().await;
    let stream = Stream::Tcp(near);
    let line = Arc::new(Line::of(&stream));
    let mut wire = Wire::new(stream, Arc::clone(&line));
    line.begin(Flow::Open);
    let taken = poll_fn(|cx| Pin::new(&mut wire).poll_write(cx, HEAD)).await.unwrap();
    assert_eq!(taken, HEAD.len());
    poll_fn(|cx| Pin::new(&mut wire).poll_write(cx, &filler(9))).await.unwrap_err();
    assert!(line.state().fault.take().is_some());
    // A part that was told of an earlier request is none of this one.
    assert!(line.takes(|| Direct::new(0, &file(b"123456789"), 0..9)));
    line.begin(Flow::Open);
    poll_fn(|cx| Pin::new(&mut wire).poll_write(cx, HEAD)).await.unwrap();
    let slices = [filler(4), filler(5)];
    let slices = slices.each_ref().map(|b| IoSlice::new(b));
    poll_fn(|cx| Pin::new(&mut wire).poll_write_vectored(cx, &slices)).await.unwrap_err();
    drop(wire);
    assert_eq!(bytes_of(far), [HEAD, HEAD].concat());
}

/// Both ways send the same, from where the body stands, and end where the file does.
#[tokio::test]
async fn a_file_is_sent_by_either_way_and_ends_where_it_ends() {
    let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    for way in [Way::Kernel, Way::Read] {
        let mut direct = Direct::new(5, &file(&content), 7..content.len() as u64 + 1);
        direct.way = way;
        let (near, far) = pair().await;
        let reader = std::thread::spawn(|| bytes_of(far));
        let (mut sent, end) = (5, direct.part.end);
        let error = loop {
            let count = usize::try_from(end - sent).unwrap();
            match poll_fn(|cx| direct.poll_send(cx, &near, sent, count)).await {
                Ok(taken) => sent += taken as u64,
                Err(Trouble::Source(error)) => break error,
                Err(other) => panic!("{other:?}"),
            }
        };
        assert_eq!((error.kind(), end - sent), (ErrorKind::UnexpectedEof, 1));
        drop(near);
        assert!(reader.join().unwrap() == content[7..], "{way:?}");
        assert_eq!(direct.way, way);
    }
}

/// A file that was opened for writing only can be neither sent nor read; a connection that is shut is no fault of it.
#[tokio::test]
async fn a_failure_is_that_of_the_side_which_failed() {
    let (near, _far) = pair().await;
    let dir = tempfile::tempdir().unwrap();
    let unreadable = Arc::new(File::create(dir.path().join("f")).unwrap());
    let mut direct = Direct::new(0, &unreadable, 0..10);
    assert!(matches!(poll_fn(|cx| direct.poll_send(cx, &near, 0, 10)).await, Err(Trouble::Source(_))));
    let mut direct = Direct::new(0, &file(b"0123456789"), 0..10);
    rustix::net::shutdown(&near, rustix::net::Shutdown::Write).unwrap();
    match poll_fn(|cx| direct.poll_send(cx, &near, 0, 10)).await {
        Err(Trouble::Connection(error)) => assert_eq!(error.kind(), ErrorKind::BrokenPipe),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_kernel_does_not_do_is_told_from_what_fails() {
    use rustix::io::Errno;
    for errno in [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::PERM] {
        assert!(is_not_done(&errno.into()), "{errno}");
    }
    for errno in [Errno::IO, Errno::PIPE, Errno::CONNRESET, Errno::AGAIN, Errno::TIMEDOUT] {
        assert!(!is_not_done(&errno.into()), "{errno}");
    }
}
