//! The form of every event, as `docs/events.md` promises it.

use super::*;
use crate::cli::samples::{self, at, id};
use crate::core::digest::Algorithm;
use crate::core::failure::{Failure, LocalFault};
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::verdict::Class;

fn every() -> Vec<Vec<u8>> {
    let url = samples::url("http://user:s3cret@a.example:8080/f1.bin?token=s3cret");
    let failure = Failure::Status { code: 503, retry_after: None };
    let wait =
        |reason| Notice::Waiting { id: id(1), delay: Some(Delay::from_millis(1500)), until: Some(at(2).wall), reason };
    let fault = || LocalFault::InUse { path: "/data/f1.bin".into(), holder: "17".into() };
    let mut notices = samples::story();
    notices.extend([
        Notice::Learned { id: id(1), path: Some("/data/f1.bin".into()), total: None },
        Notice::Progress { id: id(1), held: Length(2 << 20) },
        Notice::Sending { id: id(1), at: Length(5 << 19) },
        Notice::Verifying { id: id(1) },
        Notice::Failed { id: id(1), url: url.clone(), failure, class: Class::Throttled, refused: false },
        Notice::Remark { id: Some(id(1)), text: "the file changed on the server".into() },
        wait(WaitReason::Backoff { retries: 2, last: "the server answered 503 Service Unavailable".into() }),
        wait(WaitReason::Resuming),
        wait(WaitReason::RetryAfter(url.origin())),
        wait(WaitReason::Host(url.origin())),
        wait(WaitReason::Slot),
        wait(WaitReason::Local(fault())),
        Notice::Waiting { id: id(1), delay: None, until: None, reason: WaitReason::Suspended },
    ]);
    let endings = [
        samples::complete(),
        Ending::Unchanged { evidence: Evidence::Validator },
        samples::failed(),
        samples::stopped(),
        Ending::Local(fault()),
    ];
    notices.extend(endings.map(|ending| Notice::Ended(samples::report(ending))));
    let by_server = Report { server_digest: Some(Algorithm::Sha256), ..samples::report(samples::complete()) };
    notices.push(Notice::Ended(by_server));
    notices.push(Notice::Ended(samples::upload_report(samples::complete())));
    let (why, next) = ("the server answered 503 Service Unavailable".to_owned(), at(60).wall);
    let tells = [Reported::Sent, Reported::Later { why: why.clone(), next }, Reported::GivenUp { why }];
    let scheduler = samples::url("https://user:s3cret@project.example/cgi?key=s3cret");
    notices.extend(tells.map(|how| Notice::Reported {
        id: id(1),
        name: "out.bin".into(),
        url: scheduler.clone(),
        how,
    }));
    let lines = notices.iter().map(|notice| line(notice, at(0).wall));
    lines.chain([exit_line(Exit::Failed, at(1).wall)]).collect()
}

#[test]
fn each_is_as_documented() {
    let documented = include_str!("../../../docs/events.md");
    let text = String::from_utf8(every().concat()).expect("UTF-8");
    for line in text.lines() {
        assert!(documented.contains(line), "docs/events.md does not show this line:\n{line}");
    }
}

#[test]
fn each_is_one_line_of_json_with_the_version_and_without_secrets() {
    let hostile = Notice::Remark { id: None, text: "\u{1b}[31mred\nline".into() };
    for line in every().into_iter().chain([line(&hostile, at(0).wall)]) {
        let text = String::from_utf8(line).expect("UTF-8");
        assert_eq!(text.matches('\n').count(), 1);
        assert!(!text.contains("s3cret") && !text.contains('\u{1b}'), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["v"], 1);
        assert!(value["event"].is_string() && value["time"].is_number(), "{text}");
    }
}
