//! How progress is shown while transfers run: bars, plain lines, JSON events, or nothing.

use std::io;

use crate::cli::args::{Global, Progress};
use crate::cli::bars::Bars;
use crate::cli::board::{Board, Phase, host_of};
use crate::cli::events;
use crate::cli::exit::Exit;
use crate::cli::foreign::{human_size, printable};
use crate::cli::out::Out;
use crate::cli::screen::Screen;
use crate::cli::untold::{Failed, Untold};
use crate::core::pers_xfer::record::Direction;
use crate::core::range::Length;
use crate::core::time::{Delay, Mono, Now};
use crate::engine::{Notice, Reported, WaitReason};

/// Between two plain lines of which nothing changed but the bytes.
const PLAIN_EVERY: Delay = Delay::from_secs(10);
/// Reading so much takes long enough to be told.
const LONG_CHECK: Length = Length(256 << 20);

/// One way to show progress.
pub(crate) enum View {
    /// Bars on a terminal.
    Bars(Bars),
    /// A line now and then.
    Plain(Plain, Screen),
    /// Events on standard output, and why they could not be written, where they could not.
    Json(Out, Option<io::Error>),
    /// Only what matters.
    Silent(Board, Screen),
}

impl View {
    /// The one that was asked for, as far as the terminal can.
    pub(crate) fn new(asked: &Global, screen: &Screen) -> Self {
        match asked.progress {
            Progress::Json => Self::Json(Out::stdout(), None),
            Progress::Auto if asked.quiet => Self::Silent(Board::default(), screen.clone()),
            Progress::None => Self::Silent(Board::default(), screen.clone()),
            Progress::Auto | Progress::Bar if Screen::can_draw() => Self::Bars(Bars::start(screen)),
            Progress::Auto | Progress::Bar | Progress::Plain => Self::Plain(Plain::default(), screen.clone()),
        }
    }

    /// Something happened.
    pub(crate) fn notice(&mut self, notice: &Notice, now: Now) {
        match self {
            Self::Bars(bars) => bars.notice(notice, now),
            Self::Plain(plain, screen) => plain.lines(notice, now).iter().for_each(|line| screen.line(line)),
            // A consumer that cannot be written to must not cost the transfer; it is told at the end.
            Self::Json(out, lost) => *lost = lost.take().or(out.write(&events::line(notice, now.wall)).err()),
            Self::Silent(board, screen) => {
                let name = board.apply(notice, now).map(|row| row.name.clone()).unwrap_or_default();
                remark(notice, &name).iter().for_each(|line| screen.line(line));
            }
        }
    }

    /// Nothing more will happen, and this came of it.
    ///
    /// # Errors
    /// Why events were lost.
    pub(crate) fn finish(self, exit: Exit, now: Now) -> io::Result<()> {
        match self {
            Self::Bars(bars) => bars.finish(),
            Self::Json(_, Some(lost)) => return Err(lost),
            Self::Json(out, None) => return out.write(&events::exit_line(exit, now.wall)),
            Self::Plain(..) | Self::Silent(..) => {}
        }
        Ok(())
    }
}

/// What is said in every view: a remark, with the transfer's name where there is one.
fn remark(notice: &Notice, name: &str) -> Option<String> {
    match notice {
        Notice::Remark { text, .. } if name.is_empty() => Some(format!("persxfer: {}", printable(text))),
        Notice::Remark { text, .. } => Some(format!("{name}: {}", printable(text))),
        Notice::Reported { name, url, how, .. } => Some(reported(name, host_of(url), how)),
        _ => None,
    }
}

/// What became of a report to a scheduling server.
fn reported(name: &str, host: String, how: &Reported) -> String {
    let name = printable(name);
    match how {
        Reported::Sent => format!("{name}: its failure was reported to {host}"),
        Reported::Later { why, .. } => {
            format!("{name}: its failure is still to be reported to {host}, by `persxfer run`: {}", printable(why))
        }
        Reported::GivenUp { why } => {
            format!("{name}: its failure cannot be reported to {host}, given up: {}", printable(why))
        }
    }
}

/// What bars say in words, above themselves: first what was held back, then what is new.
pub(crate) fn aside(notice: &Notice, name: &str, mirrors: usize, untold: &mut Untold) -> Vec<String> {
    let mut lines: Vec<_> = untold.due(notice).map(|told| told.line).into_iter().collect();
    match notice {
        Notice::Failed { id, url, failure, refused: true, .. } => {
            let text = printable(&failure.to_string());
            let line = format!("{name}: {} is not asked again: {text}", host_of(url));
            untold.keep(Failed { id: *id, line, text, mirrors });
        }
        other => lines.extend(remark(other, name)),
    }
    lines
}

/// Plain lines: at every change, and every ten seconds while bytes move.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    board: Board,
    last: Option<Mono>,
    untold: Untold,
}

impl Plain {
    fn lines(&mut self, notice: &Notice, now: Now) -> Vec<String> {
        let failed = self.untold.due(notice);
        let line = self.line(notice, failed.as_ref(), now);
        match (notice, failed, line) {
            // One line says both what happened and what follows.
            (Notice::Waiting { id, .. }, Some(failed), Some(line)) if *id == failed.id => {
                vec![format!("{}; {line}", failed.line)]
            }
            (_, failed, line) => failed.map(|f| f.line).into_iter().chain(line).collect(),
        }
    }

    fn line(&mut self, notice: &Notice, failed: Option<&Failed>, now: Now) -> Option<String> {
        let row = self.board.apply(notice, now);
        let name = row.map(|row| row.name.clone()).unwrap_or_default();
        match (notice, row) {
            (Notice::Session { held, number, url, .. }, _) if held.0 > 0 || *number > 1 => {
                self.last = Some(now.mono);
                // Of a session that was killed the record knows nothing: that nothing is told does not mean the start.
                let from = if held.0 > 0 { format!(", from {}", human_size(held.0)) } else { String::new() };
                Some(format!("{name}: session {number} with {}{from}", host_of(url)))
            }
            (Notice::Progress { .. } | Notice::Sending { .. }, _) => self.periodic(now),
            (Notice::Verifying { .. }, Some(row)) if row.held >= LONG_CHECK => {
                Some(format!("{name}: {}", row.doing(now)))
            }
            (Notice::Failed { id, url, failure, refused, .. }, Some(row)) => {
                let then = match (refused, row.direction) {
                    (false, _) => "",
                    (true, Direction::Download) => "; this mirror is not asked again",
                    (true, Direction::Upload) => "; this server is not asked again",
                };
                let text = printable(&failure.to_string());
                let line = format!("{name}: {text} ({url}){then}");
                self.untold.keep(Failed { id: *id, line, text, mirrors: row.mirrors });
                None
            }
            // How a suspended one goes on is told beside every view.
            (Notice::Waiting { reason: WaitReason::Resuming | WaitReason::Slot | WaitReason::Suspended, .. }, _) => {
                None
            }
            (Notice::Waiting { id, .. }, Some(row)) => Some(match failed {
                Some(failed) if failed.id == *id => row.and_then(&failed.text, now),
                _ => format!("{name}: {}", row.doing(now)),
            }),
            (other, _) => remark(other, &name),
        }
    }

    /// One line for a single transfer that runs, one about all of them otherwise.
    fn periodic(&mut self, now: Now) -> Option<String> {
        let last = *self.last.get_or_insert(now.mono);
        if now.mono.since(last) < PLAIN_EVERY {
            return None;
        }
        self.last = Some(now.mono);
        match self.board.shown(2)[..] {
            [row] if row.phase == Phase::Running => Some(format!("{}: {}", row.name, row.doing(now))),
            _ => Some(self.board.summary(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples::{self, at, id};
    use crate::core::failure::Failure;
    use crate::core::verdict::Class;

    #[test]
    fn a_story_in_plain_lines() {
        let mut plain = Plain::default();
        let failure = Failure::Status { code: 503, retry_after: None };
        let url = samples::url("http://user:s3cret@a.example:8080/f1.bin?token=s3cret");
        let failed = |refused| Notice::Failed {
            id: id(1),
            url: url.clone(),
            failure: failure.clone(),
            class: Class::Throttled,
            refused,
        };
        let waiting = |reason| Notice::Waiting { id: id(1), delay: Some(Delay::from_secs(60)), until: None, reason };
        let mut story: Vec<_> = samples::story().into_iter().map(|n| (0, n)).collect();
        story.extend((1..25).map(|s| (s, Notice::Progress { id: id(1), held: Length((1 << 20) + (s as u64) * 1024) })));
        story.extend([
            (26, failed(false)),
            (26, waiting(WaitReason::Resuming)),
            (27, failed(true)),
            (27, waiting(WaitReason::Backoff { retries: 1, last: failure.to_string() })),
            (30, Notice::Remark { id: Some(id(1)), text: "the file changes on the server\u{7}".into() }),
            (31, Notice::Remark { id: None, text: "the state file was damaged".into() }),
            (32, Notice::Verifying { id: id(1) }),
        ]);
        let lines: Vec<_> = story.iter().flat_map(|(seconds, notice)| plain.lines(notice, at(*seconds))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        f1.bin: session 2 with a.example:8080, from 1.0 MiB
        f1.bin: 1.0 MiB of 3.0 MiB (33 %), 1.0 KiB/s, 33 min 58 s left, from a.example:8080, session 2
        f1.bin: 1.0 MiB of 3.0 MiB (33 %), 1.0 KiB/s, 33 min 48 s left, from a.example:8080, session 2
        f1.bin: the server answered 503 Service Unavailable (http://a.example:8080/f1.bin?token=***)
        f1.bin: the server answered 503 Service Unavailable (http://a.example:8080/f1.bin?token=***); this mirror is not asked again; next try in 1 min (retry 1)
        f1.bin: the file changes on the server\u{7}
        persxfer: the state file was damaged
        ");
    }

    /// The record of a transfer that was killed knows of nothing that is held, and the session may go on from it all the same.
    #[test]
    fn a_session_of_which_nothing_is_known_is_not_told_to_begin_at_the_start() {
        let mut plain = Plain::default();
        let told: Vec<_> = samples::story()
            .into_iter()
            .map(|notice| match notice {
                Notice::Session { id, number, url, mirror, .. } => {
                    Notice::Session { id, number, url, mirror, held: Length::ZERO }
                }
                other => other,
            })
            .flat_map(|notice| plain.lines(&notice, at(0)))
            .collect();
        assert_eq!(told, ["f1.bin: session 2 with a.example:8080"]);
    }

    #[test]
    fn an_upload_in_plain_lines() {
        let mut plain = Plain::default();
        let url = samples::url("http://user:s3cret@a.example:8080/f1.bin?token=s3cret");
        let failure = Failure::Status { code: 403, retry_after: None };
        let failed = Notice::Failed { id: id(1), url, failure, class: Class::Denied, refused: true };
        let mut story: Vec<_> = samples::upload_story().into_iter().map(|n| (0, n)).collect();
        story.extend((1..12).map(|s| (s, Notice::Sending { id: id(1), at: Length((1 << 20) + (s as u64) * 1024) })));
        story.extend([
            (12, Notice::Progress { id: id(1), held: Length((1 << 20) + 11 * 1024) }),
            (13, failed),
            (13, Notice::Remark { id: None, text: "the state file was damaged".into() }),
        ]);
        let lines: Vec<_> = story.iter().flat_map(|(seconds, notice)| plain.lines(notice, at(*seconds))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        f1.bin: session 2 with a.example:8080, from 1.0 MiB
        f1.bin: sending 1.0 MiB of 3.0 MiB (33 %), 1.0 MiB confirmed, 1.0 KiB/s, 33 min 58 s left, to a.example:8080, session 2
        f1.bin: the server answered 403 Forbidden (http://a.example:8080/f1.bin?token=***); this server is not asked again
        persxfer: the state file was damaged
        ");
    }
}
