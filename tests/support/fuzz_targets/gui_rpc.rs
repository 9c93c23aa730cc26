//! What comes over a connection of GUI RPC, and the head of a request for the metrics.

use persxfer::core::metrics::{Asked, MAX_HEAD, Reach, asked};
use persxfer::core::rpc::{Framer, Guard, Reply, Request, Unframed, Verdict};

use super::PLAIN;
use crate::fuzz::{Target, kind};

/// Everything that a connection brings.
pub(super) const CONNECTION: Target = Target {
    name: "gui_rpc",
    run: connection,
    words: &[
        "\u{3}",
        "<boinc_gui_rpc_request>",
        "</boinc_gui_rpc_request>",
        "<auth1/>",
        "<auth2>",
        "<nonce_hash>",
        "</nonce_hash>",
        "e2fc714c4727ee9395f324cd2e7f331f",
        "<retry_file_transfer>",
        "<abort_file_transfer/>",
        "<project_url>",
        "</project_url>",
        "<filename>",
        "</filename>",
        "<set_network_mode>",
        "<never/>",
        "<duration>",
        "</duration>",
        "1e9",
        "<quit/>",
        "<!--",
        "-->",
        "<?xml?>",
        "</",
        "/>",
    ],
    runs: 20_000,
    ..PLAIN
};

fn connection(data: &[u8]) -> u32 {
    let (requests, end) = framed(data, data.len());
    for step in [1, 7].into_iter().filter(|_| data.len() < 4_000) {
        assert_eq!(framed(data, step), (requests.clone(), end), "in pieces of {step}");
    }
    let mut guard = Guard::new("d", "abc".into());
    let (mut trusted, mut outcome) = (false, 0);
    for request in requests.iter().map(|frame| Request::parse(frame)) {
        if let Request::Unknown(name) = &request {
            assert!(name.len() <= 65, "{name:?} is told back");
            assert_one_reply(&Reply::unrecognized(name));
        }
        match guard.admit(&request) {
            Verdict::Pass => assert!(trusted || request.is_open_to_all(), "{request:?} passed"),
            Verdict::Answer(reply) => {
                assert_one_reply(&reply);
                trusted |= reply.to_bytes().windows(13).any(|w| w == b"<authorized/>");
            }
            Verdict::Close => break,
        }
        outcome = kind(&[outcome as usize, format!("{request:?}").bytes().take(9).map(usize::from).sum()]);
    }
    outcome
}

/// What the connection is told cannot be taken for two answers, nor for another one.
fn assert_one_reply(reply: &Reply) {
    let bytes = reply.to_bytes();
    assert_eq!(bytes.iter().position(|byte| *byte == 3), Some(bytes.len() - 1), "{reply:?}");
    assert!(bytes.ends_with(b"\n</boinc_gui_rpc_reply>\n\x03"), "{reply:?}");
}

fn framed(data: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<Unframed>) {
    let (mut framer, mut requests) = (Framer::default(), Vec::new());
    for piece in data.chunks(step.max(1)) {
        framer.push(piece);
        loop {
            match framer.next_request() {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break,
                Err(unframed) => return (requests, Some(unframed)),
            }
        }
    }
    (requests, None)
}

/// The head of a request for the metrics.
pub(super) const METRICS_REQUEST: Target = Target {
    name: "metrics_request",
    run: metrics_request,
    words: &[
        "GET ",
        "HEAD ",
        "/metrics",
        "?",
        " HTTP/1.1",
        "\r\n",
        "\n\n",
        "Host: ",
        "localhost",
        "[::1]",
        ":9",
        "127.0.0.1",
    ],
    ..PLAIN
};

fn metrics_request(data: &[u8]) -> u32 {
    let (here, anywhere) = (asked(data, Reach::ThisMachine), asked(data, Reach::Network));
    assert_eq!(here.is_none(), anywhere.is_none());
    assert!(here.is_some() || data.len() < MAX_HEAD, "no head is longer");
    match (here, anywhere) {
        (Some(Asked::Nothing(answer)), _) => {
            let bytes = answer.to_bytes("");
            assert!(bytes.starts_with(b"HTTP/1.1 ") && bytes.ends_with(b"are at /metrics\n"));
            1 + answer as u32
        }
        (Some(asked), anywhere) => {
            assert_eq!(anywhere, Some(asked), "whoever may ask here may ask there");
            90 + u32::from(asked == Asked::Head)
        }
        (None, _) => 0,
    }
}
