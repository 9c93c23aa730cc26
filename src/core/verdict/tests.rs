//! The table, row by row: what each failure means.

use super::*;
use crate::core::failure::{Cut, LocalFault, RedirectFault};
use crate::core::range::{ByteRange, Length, Offset};

const NEVER_SERVED: Context<'static> = Context { served: false, retry_on: &[] };
const HAS_SERVED: Context<'static> = Context { served: true, retry_on: &[] };
const TRANSIENT: Scope = Scope::Transient { floor: None };

fn status(code: u16) -> Failure {
    Failure::Status { code, retry_after: None }
}

fn scope(failure: &Failure, context: Context<'_>) -> Scope {
    judge(failure, context).scope
}

#[test]
fn statuses_permanent_for_the_mirror_are_those_of_the_design() {
    let permanent = [400, 401, 403, 404, 405, 406, 407, 410, 411, 414, 415, 421, 431, 451, 501, 505];
    for code in 400..600 {
        let refused = scope(&status(code), NEVER_SERVED) == Scope::RefuseMirror;
        assert_eq!(refused, permanent.contains(&code), "{code}");
    }
}

#[test]
fn statuses_that_may_pass_are_those_of_the_design() {
    for code in [408, 425, 429, 500, 502, 503, 504, 506, 520, 521, 522, 523, 524, 599] {
        assert_eq!(scope(&status(code), NEVER_SERVED), TRANSIENT, "{code}");
        assert_eq!(judge(&status(code), NEVER_SERVED).class, Class::Throttled, "{code}");
    }
}

#[test]
fn other_statuses_of_400_and_more_are_doubtful_and_redirects_without_a_way_are_final() {
    for code in [402, 409, 412, 413, 416, 417, 418, 422, 423, 426, 428, 600, 999] {
        assert_eq!(scope(&status(code), NEVER_SERVED), Scope::Doubtful, "{code}");
    }
    for code in [300, 304, 305] {
        assert_eq!(scope(&status(code), NEVER_SERVED), Scope::RefuseMirror, "{code}");
    }
    assert_eq!(scope(&Failure::Redirect(RedirectFault::NoLocation { code: 302 }), HAS_SERVED), Scope::RefuseMirror);
}

#[test]
fn what_has_served_and_is_missing_or_forbidden_gets_three_passes() {
    for code in [403, 404, 410] {
        assert_eq!(scope(&status(code), HAS_SERVED), Scope::Doubtful, "{code}");
    }
    assert_eq!(scope(&status(401), HAS_SERVED), Scope::RefuseMirror);
}

#[test]
fn retry_on_makes_a_status_transient_and_keeps_its_class() {
    let context = Context { served: false, retry_on: &[404] };
    let verdict = judge(&Failure::Status { code: 404, retry_after: Some(Delay::from_secs(5)) }, context);
    assert_eq!(verdict.scope, Scope::Transient { floor: Some(Delay::from_secs(5)) });
    assert_eq!(verdict.class, Class::Missing);
    assert_eq!(scope(&status(410), context), Scope::RefuseMirror);
}

#[test]
fn retry_after_is_a_floor_of_a_day_at_most_and_none_where_it_is_no_time() {
    let floor = |secs| match scope(&Failure::Status { code: 503, retry_after: Some(secs) }, NEVER_SERVED) {
        Scope::Transient { floor } => floor,
        other => panic!("503 is {other:?}"),
    };
    assert_eq!(floor(Delay::from_secs(7)), Some(Delay::from_secs(7)));
    assert_eq!(floor(Delay::MAX), Some(RETRY_AFTER_CAP));
    assert_eq!(floor(Delay::ZERO), None);
}

#[test]
fn a_certificate_gets_three_passes_and_a_mirror_that_has_served_gets_the_window() {
    let failure = Failure::Certificate { detail: "unknown issuer".to_owned() };
    assert_eq!(scope(&failure, NEVER_SERVED), Scope::Doubtful);
    assert_eq!(scope(&failure, HAS_SERVED), TRANSIENT);
    assert_eq!(judge(&failure, NEVER_SERVED).class, Class::Denied);
}

#[test]
fn a_page_is_transient_a_coded_answer_is_final_and_other_contradictions_are_doubtful() {
    let page = Failure::BadAnswer(BadAnswer::HtmlPage);
    assert_eq!(scope(&page, NEVER_SERVED), TRANSIENT);
    let coded = Failure::BadAnswer(BadAnswer::Coded { coding: "br".to_owned() });
    assert_eq!(scope(&coded, NEVER_SERVED), Scope::RefuseMirror);
    assert_eq!(scope(&coded, HAS_SERVED), Scope::Doubtful, "it has served the file as it is");
    for bad in [
        BadAnswer::ContentRange { text: String::new() },
        BadAnswer::OtherRange { asked: Offset(5), got: ByteRange::default() },
        BadAnswer::Unasked206,
        BadAnswer::Multipart,
        BadAnswer::Metalink,
        BadAnswer::NoFile { code: 204 },
        BadAnswer::Framing { detail: String::new() },
        BadAnswer::Unsatisfiable { detail: String::new() },
    ] {
        assert_eq!(scope(&Failure::BadAnswer(bad.clone()), HAS_SERVED), Scope::Doubtful, "{bad:?}");
    }
}

#[test]
fn the_rest_of_the_table() {
    let broken = Failure::Cut(Cut::Broken { detail: "reset".to_owned() });
    assert_eq!(
        judge(&broken, NEVER_SERVED),
        Verdict { class: Class::Interrupted, scope: TRANSIENT, host: HostSign::Nothing }
    );
    let other_size = Failure::OtherSize { size: Length(2), expected: Length(1) };
    assert_eq!(scope(&other_size, HAS_SERVED), Scope::RefuseMirror);
    let too_large = Failure::TooLarge { size: Length(2), limit: Length(1) };
    assert_eq!(scope(&too_large, NEVER_SERVED), Scope::RefuseMirror);
    assert_eq!(scope(&Failure::KeepsChanging { times: 9 }, NEVER_SERVED), Scope::RefuseMirror);
    assert_eq!(scope(&Failure::OddMirror { at: Offset::ZERO }, NEVER_SERVED), Scope::RefuseMirror);
    let digest = Failure::Digest { algorithm: "md5", expected: String::new(), found: String::new() };
    assert_eq!(scope(&digest, NEVER_SERVED), Scope::WrongDigest);
    let full = Failure::Local(LocalFault::DiskFull { path: "f".to_owned(), detail: String::new() });
    assert_eq!(
        judge(&full, NEVER_SERVED),
        Verdict { class: Class::LocalFault, scope: Scope::Local, host: HostSign::Nothing }
    );
}

#[test]
fn a_host_fails_by_silence_stalls_429_and_5xx_and_not_by_404() {
    let host = |failure: &Failure| judge(failure, NEVER_SERVED).host;
    assert_eq!(host(&Failure::Connect { detail: String::new() }), HostSign::Failing);
    assert_eq!(host(&Failure::NoAnswer { waited: Delay::ZERO }), HostSign::Failing);
    assert_eq!(host(&Failure::Stalled { floor: 10, window: Delay::from_secs(60) }), HostSign::Failing);
    for code in [429, 500, 503, 599] {
        assert_eq!(host(&status(code)), HostSign::Failing, "{code}");
    }
    for code in [400, 404, 408, 425, 501, 505] {
        assert_eq!(host(&status(code)), HostSign::Answering, "{code}");
    }
}
