//! Table 8.5, row by row, and what it says of failures that are no status.

use super::super::*;
use crate::core::failure::{Cut, Failure, LocalFault};
use crate::core::range::{ByteRange, Offset};
use crate::core::verdict::{Class, HostSign};

use Protocol::{Boinc as B, Ietf as I, Put as P, PutRange as R, S3 as O, Tus as T};

const SEND: Call = Call::Send(ByteRange::new(Offset(0), Offset(9)));
const TRANSIENT: Row = Row::End(UpScope::Transient { floor: None });
const REFUSE: Row = Row::End(UpScope::RefuseServer);
const PROTOCOL: Row = Row::End(UpScope::RefuseProtocol);

#[track_caller]
fn all(protocols: &[Protocol], call: Call, codes: &[u16], want: Row) {
    for protocol in protocols {
        for code in codes {
            assert_eq!(row(*protocol, call, *code, None), want, "{protocol:?} {call:?} {code}");
        }
    }
}

#[test]
fn busy_servers_are_transient_everywhere() {
    for call in [Call::Prepare, Call::Probe, SEND, Call::Finish] {
        all(&Protocol::ALL, call, &[408, 425, 429, 500, 502, 503, 504, 507, 599], TRANSIENT);
    }
    let wait = Some(Delay::from_secs(7));
    assert_eq!(row(T, SEND, 503, wait), Row::End(UpScope::Transient { floor: wait }));
    let century = row(T, SEND, 503, Some(Delay::from_days(36_500)));
    assert_eq!(century, Row::End(UpScope::Transient { floor: Some(Delay::from_days(1)) }));
}

#[test]
fn what_is_missing() {
    all(&[B], SEND, &[404, 410], TRANSIENT);
    all(&[P, R], SEND, &[404, 410], Row::End(UpScope::Doubtful));
    all(&[T, I, O], Call::Prepare, &[404, 410], REFUSE);
    for call in [Call::Probe, SEND, Call::Finish] {
        all(&[T, I, O], call, &[404, 410], Row::NewSession);
    }
}

#[test]
fn credentials_keep_the_session() {
    for call in [Call::Prepare, Call::Probe, SEND] {
        all(&Protocol::ALL, call, &[401, 403], Row::End(UpScope::Attention));
    }
}

#[test]
fn conflicts_conditions_and_sizes() {
    all(&[B], SEND, &[409, 412], TRANSIENT);
    all(&[O], SEND, &[409], TRANSIENT);
    all(&[O], SEND, &[412, 413], REFUSE);
    all(&[P, R], SEND, &[409, 412], REFUSE);
    all(&[T, I], SEND, &[409], Row::Probe);
    all(&[T, I], SEND, &[412], PROTOCOL);
    all(&[B, T, I, R], SEND, &[413], Row::Segment);
    all(&[P], SEND, &[413], REFUSE);
    all(&[T, I], Call::Prepare, &[413], REFUSE);
}

#[test]
fn locks_and_the_rest() {
    all(&[B, P, R, O], SEND, &[423], TRANSIENT);
    all(&[T, I], SEND, &[423], Row::Wait);
    all(&[B], SEND, &[400, 405, 415, 501, 418], TRANSIENT);
    all(&[P, R, I, O], SEND, &[301, 400, 405, 415, 501, 418], REFUSE);
    all(&[T], Call::Prepare, &[400, 405, 415, 501, 418], REFUSE);
    all(&[T], SEND, &[400, 460], Row::Probe);
}

#[test]
fn a_store_s_own_word_counts_before_the_status() {
    let row = |call, word| store_row(call, word, None);
    let attention = Some(Row::End(UpScope::Attention));
    assert_eq!(row(SEND, "SlowDown"), Some(TRANSIENT));
    assert_eq!(row(SEND, "ExpiredToken"), attention);
    assert_eq!(row(Call::Finish, "InternalError"), Some(TRANSIENT));
    assert_eq!((row(SEND, "NoSuchUpload"), row(Call::Prepare, "NoSuchUpload")), (Some(Row::NewSession), Some(REFUSE)));
    for word in ["InvalidPart", "InvalidPartOrder", "EntityTooSmall"] {
        assert_eq!((row(Call::Finish, word), row(SEND, word)), (Some(Row::Probe), Some(REFUSE)));
    }
    assert_eq!((row(SEND, "NoSuchBucket"), row(SEND, "EntityTooLarge")), (Some(REFUSE), Some(REFUSE)));
    assert_eq!(row(SEND, "OfTomorrow"), None);
    let store = |code, word: &str| {
        let (word, message, retry_after) = (word.to_owned(), String::new(), Some(Delay::from_secs(9)));
        judge(&UpFailure::Store { call: SEND, code, word, retry_after, message })
    };
    assert_eq!(store(503, "SlowDown").scope, UpScope::Transient { floor: Some(Delay::from_secs(9)) });
    assert_eq!(
        (store(200, "InternalError").class, store(200, "InternalError").host),
        (Class::Throttled, HostSign::Failing)
    );
    assert_eq!((store(403, "Other").scope, store(400, "Other").scope), (UpScope::Attention, UpScope::RefuseServer));
    assert_eq!(judge(&UpFailure::UrlExpired).scope, UpScope::Attention);
}

#[test]
fn failures_that_are_no_status() {
    let scope = |f: UpFailure| judge(&f).scope;
    let transient = UpScope::Transient { floor: None };
    let cut = || Failure::Cut(Cut::Broken { detail: String::new() });
    assert_eq!(scope(UpFailure::Transfer(cut())), transient);
    assert_eq!(scope(UpFailure::Transfer(Failure::NoAnswer { waited: PATIENCE })), transient);
    let certificate = Failure::Certificate { detail: String::new() };
    assert_eq!(scope(UpFailure::Transfer(certificate)), UpScope::Attention);
    let full = LocalFault::Io { doing: "read", path: String::new(), detail: String::new() };
    assert_eq!(scope(UpFailure::Transfer(Failure::Local(full))), UpScope::Local);
    assert_eq!(scope(UpFailure::Never { message: String::new() }), UpScope::RefuseServer);
    assert_eq!(scope(UpFailure::Later { message: String::new() }), transient);
    assert_eq!(scope(UpFailure::SourceChanged(Change::Size)), UpScope::FailFile);
    assert_eq!(scope(UpFailure::SourceGone { detail: String::new() }), UpScope::FailFile);
    assert_eq!(scope(UpFailure::Foreign { protocol: B, code: 200, what: "" }), transient);
    assert_eq!(scope(UpFailure::Application { code: 500, said: String::new() }), UpScope::RefuseServer);
    let why = FoundAtServer::Version;
    assert_eq!(scope(UpFailure::Unsupported { protocol: T, why }), UpScope::RefuseProtocol);
}

#[test]
fn class_and_host_are_those_of_downloads() {
    let of = |code| judge(&UpFailure::Status { protocol: T, call: SEND, code, retry_after: None, said: String::new() });
    assert_eq!((of(503).class, of(503).host), (Class::Throttled, HostSign::Failing));
    assert_eq!((of(403).class, of(403).host), (Class::Denied, HostSign::Answering));
    assert_eq!(of(409).scope, UpScope::Doubtful, "what probing did not cure may be two requests that crossed");
    assert_eq!(of(400).scope, UpScope::RefuseServer, "what probing did not cure");
}

#[test]
fn messages_name_the_matter_and_hide_controls() {
    let said = UpFailure::Status { protocol: T, call: SEND, code: 413, retry_after: None, said: "too big".to_owned() };
    assert_eq!(said.to_string(), "the server answered 413 Payload Too Large (too big)");
    assert_eq!(UpFailure::Later { message: String::new() }.to_string(), "the server says: not now");
    let wrong = UpFailure::WrongSize { told: None, ours: Length(5) };
    assert_eq!(wrong.to_string(), "the server stored an unknown number of bytes of 5");
    for protocol in Protocol::ALL {
        assert_eq!(Protocol::from_word(protocol.word()), Some(protocol));
    }
}
