//! Reports: that a transfer failed for good is told to a scheduling server (`--report-url`), itself persistently.
//!
//! What is told is BOINC's `<file_xfer_error>`, as its client sends it with the result that needed the file. A report is entered
//! by the very write of the state file that says that the transfer failed, so that none is lost; it is tried again after
//! waits as the transfer's own were, by whichever process runs then, and given up when as long a window as the
//! transfer's has passed. What becomes of it changes nothing for the transfer.
//!
//! A server may get a report twice, where a process dies between its answer and the next write.

use crate::core::backoff::{Backoff, Policy};
use crate::core::giveup::{GiveUpFrom, Patience};
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::pers_xfer::sharing::OwnerId;
use crate::core::printable::printable;
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::MirrorUrl;

/// A report that is to be sent, as the state file keeps it: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReport {
    /// Of which transfer. A transfer has one: that of its latest failure.
    pub id: XferId,
    /// To which server. It may hold secrets.
    pub url: MirrorUrl,
    /// The transfer's name.
    pub name: String,
    /// BOINC's error number.
    pub code: i32,
    /// What is said of it, as people are told it.
    pub message: String,
    /// How long to wait between tries.
    pub policy: Policy,
    /// For how long it is tried.
    pub window: Delay,
    /// Tries that failed.
    pub tries: u32,
    /// How far the waits have gone.
    pub backoff: Backoff,
    /// The time of the next try; `None` for now.
    pub next: Option<Epoch>,
    /// How much of the window was used up...
    pub used: Delay,
    /// ...at this time.
    pub at: Option<Epoch>,
    /// The process that sends it, if that is alive.
    pub owner: Option<OwnerId>,
}

impl ErrorReport {
    /// The report of a transfer that has failed; `None` of any other.
    pub fn of(record: &Record, url: &MirrorUrl) -> Option<Self> {
        let Status::Failed { code, message } = &record.status else { return None };
        Some(Self {
            id: record.id,
            url: url.clone(),
            name: record.name.clone(),
            code: *code,
            message: message.clone(),
            policy: record.options.policy.clone(),
            window: record.options.give_up,
            tries: 0,
            backoff: Backoff::default(),
            next: None,
            used: Delay::ZERO,
            at: None,
            owner: None,
        })
    }

    /// What is sent.
    pub fn body(&self) -> String {
        element(&self.name, self.code, &self.message)
    }
}

/// Does this record tell of a failure that `before` did not tell of? A new life of a transfer begins at another time.
pub fn is_news(before: Option<&Record>, now: &Record) -> bool {
    let failed = |record: &Record| matches!(record.status, Status::Failed { .. });
    let told = before.is_some_and(|b| failed(b) && b.first_request_time == now.first_request_time);
    failed(now) && !told
}

/// BOINC's `<file_xfer_error>`.
pub fn element(name: &str, code: i32, message: &str) -> String {
    let (name, message) = (escape(name), escape(message));
    let meaning = name_of(code).map(|text| format!(" ({text})")).unwrap_or_default();
    format!(
        "<file_xfer_error>\n  <file_name>{name}</file_name>\n  <error_code>{code}{meaning}</error_code>\n  \
         <error_message>{message}</error_message>\n</file_xfer_error>\n"
    )
}

/// What BOINC calls an error number that a transfer can end with.
const fn name_of(code: i32) -> Option<&'static str> {
    Some(match code {
        -119 => "MD5 check failed",
        -120 => "signature verification failed",
        -131 => "file size too big",
        -182 => "timeout",
        -184 => "transient HTTP error",
        -197 => "aborted by user",
        -200 | -221 => "wrong size",
        -224 => "permanent HTTP error",
        _ => return None,
    })
}

fn escape(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A report that this process is to send.
#[derive(Clone, Debug)]
pub struct Reporting {
    report: ErrorReport,
    patience: Patience,
    due: Mono,
}

/// What follows a try that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another one, then.
    At(Mono),
    /// None: the window has passed.
    GivenUp,
}

impl Reporting {
    /// Takes a report up. A time further ahead than the longest delay is an error of some clock, and is cut to that.
    pub fn of(report: ErrorReport, now: Now) -> Self {
        let wait = report.next.map_or(Delay::ZERO, |next| next.since(now.wall).min(report.policy.longest()));
        let ErrorReport { window, used, at, next, .. } = report;
        let patience = Patience::restore(window, GiveUpFrom::LastProgress, used, at, next, None, now);
        Self { report, patience, due: now.mono + wait }
    }

    /// As it is stored.
    pub const fn report(&self) -> &ErrorReport {
        &self.report
    }

    /// When it is to be tried.
    pub const fn due(&self) -> Mono {
        self.due
    }

    /// A try begins.
    pub fn begin(&mut self, now: Now) {
        self.patience.start(now);
    }

    /// Nothing can be tried: time does not count until the next try.
    pub fn rest(&mut self, until: Mono, now: Now) {
        self.patience.pause(now);
        self.due = until;
    }

    /// It is tried then, and not before. Time counts.
    pub const fn put_off(&mut self, until: Mono) {
        self.due = until;
    }

    /// The try failed. `floor` is the wait that the server asked for.
    pub fn failed(&mut self, floor: Option<Delay>, now: Now, rng: &mut dyn rand::Rng) -> Next {
        let ErrorReport { policy, backoff, tries, .. } = &mut self.report;
        *tries = tries.saturating_add(1);
        // `tor:spec` alone has a never.
        let drawn = backoff.fail(policy, rng).unwrap_or(policy.longest());
        if self.patience.is_over(now) {
            return Next::GivenUp;
        }
        self.due = now.mono + drawn.max(floor.unwrap_or_default());
        self.report.next = Some(now.wall_of(self.due));
        self.report.used = self.patience.used(now);
        self.report.at = Some(now.wall);
        Next::At(self.due)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn report(window: Delay) -> ErrorReport {
        ErrorReport {
            id: XferId(1),
            url: MirrorUrl::parse("https://user:s3cret@project.example/cgi?key=s3cret").expect("a URL"),
            name: "a<b>&.bin".to_owned(),
            code: -224,
            message: "the server answered 404 Not Found".to_owned(),
            policy: Policy::default().with_bounds(Some(Delay::from_secs(1)), Some(Delay::from_secs(4))).expect("fits"),
            window,
            tries: 0,
            backoff: Backoff::default(),
            next: None,
            used: Delay::ZERO,
            at: None,
            owner: None,
        }
    }

    fn now(secs: u64) -> Now {
        let since = Delay::from_secs(secs);
        Now { mono: Mono::ZERO + since, wall: Epoch::ZERO + Delay::from_days(20_000) + since }
    }

    #[test]
    fn the_element_is_boincs_and_holds_no_secret() {
        let body = report(Delay::from_days(1)).body();
        assert_eq!(
            body,
            "<file_xfer_error>\n  <file_name>a&lt;b&gt;&amp;.bin</file_name>\n  \
             <error_code>-224 (permanent HTTP error)</error_code>\n  \
             <error_message>the server answered 404 Not Found</error_message>\n</file_xfer_error>\n"
        );
        assert!(!format!("{:?}", report(Delay::from_days(1))).contains("s3cret"));
    }

    #[test]
    fn it_waits_across_processes_and_gives_up_by_its_own_window() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut t = 0;
        let mut stored = report(Delay::from_secs(60));
        let given_up = (1..200).find(|_| {
            // Another process each time, which comes only when the wait is over.
            let mut reporting = Reporting::of(stored.clone(), now(t));
            t += reporting.due().since(now(t).mono).as_std().as_secs() + 1;
            reporting.begin(now(t));
            let next = reporting.failed(None, now(t), &mut rng);
            if let Next::At(at) = next {
                let wait = at.since(now(t).mono);
                assert!(wait >= Delay::from_secs(1) && wait <= Delay::from_secs(4), "{wait:?}");
            }
            stored = reporting.report().clone();
            next == Next::GivenUp
        });
        assert!(given_up.is_some_and(|tries| (15..70).contains(&tries)), "{given_up:?}");
        assert_eq!(Some(stored.tries), given_up);
    }

    #[test]
    fn a_server_may_ask_to_wait_and_a_stored_time_is_cut() {
        let mut rng = StdRng::seed_from_u64(2);
        let mut reporting = Reporting::of(report(Delay::from_days(1)), now(0));
        assert_eq!(reporting.due(), now(0).mono);
        reporting.begin(now(0));
        let Next::At(at) = reporting.failed(Some(Delay::from_secs(90)), now(0), &mut rng) else { panic!("gave up") };
        assert_eq!(at, now(90).mono);
        let again = Reporting::of(reporting.report().clone(), now(0));
        assert_eq!(again.due(), now(4).mono, "the longest delay");
    }

    #[test]
    fn while_nothing_can_be_tried_the_window_stands_still() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut reporting = Reporting::of(report(Delay::from_secs(10)), now(0));
        reporting.begin(now(0));
        assert!(matches!(reporting.failed(None, now(1), &mut rng), Next::At(_)));
        reporting.rest(now(500).mono, now(1));
        reporting.begin(now(500));
        assert!(matches!(reporting.failed(None, now(502), &mut rng), Next::At(_)));
        reporting.begin(now(520));
        assert_eq!(reporting.failed(None, now(520), &mut rng), Next::GivenUp);
    }
}
