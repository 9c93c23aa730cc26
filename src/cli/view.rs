//! How progress is shown while downloads run: bars, plain lines, JSON events, or nothing.

use crate::cli::args::{Global, Progress};
use crate::cli::bars::Bars;
use crate::cli::board::{Board, Phase, host_of};
use crate::cli::events;
use crate::cli::exit::Exit;
use crate::cli::foreign::{human_size, printable};
use crate::cli::out::Out;
use crate::cli::screen::Screen;
use crate::core::time::{Delay, Mono, Now};
use crate::engine::{Notice, WaitReason};

/// Between two plain lines of which nothing changed but the bytes.
const PLAIN_EVERY: Delay = Delay::from_secs(10);

/// One way to show progress.
pub(crate) enum View {
    /// Bars on a terminal.
    Bars(Bars),
    /// A line now and then.
    Plain(Plain, Screen),
    /// Events on standard output.
    Json(Out),
    /// Only what matters.
    Silent(Screen),
}

impl View {
    /// The one that was asked for, as far as the terminal can.
    pub(crate) fn new(asked: &Global, screen: &Screen) -> Self {
        match asked.progress {
            Progress::Json => Self::Json(Out::stdout()),
            Progress::Auto if asked.quiet => Self::Silent(screen.clone()),
            Progress::None => Self::Silent(screen.clone()),
            Progress::Auto | Progress::Bar if Screen::can_draw() => Self::Bars(Bars::start(screen)),
            Progress::Auto | Progress::Bar | Progress::Plain => Self::Plain(Plain::default(), screen.clone()),
        }
    }

    /// Something happened.
    pub(crate) fn notice(&mut self, notice: &Notice, now: Now) {
        match self {
            Self::Bars(bars) => bars.notice(notice, now),
            Self::Plain(plain, screen) => plain.lines(notice, now).iter().for_each(|line| screen.line(line)),
            // A consumer that cannot be written to must not cost the download.
            Self::Json(out) => drop(out.write(&events::line(notice, now.wall))),
            Self::Silent(screen) => remark(notice).iter().for_each(|line| screen.line(line)),
        }
    }

    /// Nothing more will happen, and this came of it.
    pub(crate) fn finish(self, exit: Exit, now: Now) {
        match self {
            Self::Bars(bars) => bars.finish(),
            Self::Json(out) => drop(out.write(&events::exit_line(exit, now.wall))),
            Self::Plain(..) | Self::Silent(_) => {}
        }
    }
}

/// What is said in every view: a remark, with the transfer's name where `board` knows it.
fn remark(notice: &Notice) -> Option<String> {
    match notice {
        Notice::Remark { text, .. } => Some(format!("persxfer: {}", printable(text))),
        _ => None,
    }
}

/// What bars say in words, above themselves.
pub(crate) fn aside(notice: &Notice, name: &str) -> Option<String> {
    match notice {
        Notice::Failed { url, failure, refused: true, .. } => {
            Some(format!("{name}: {} is not asked again: {}", host_of(url), printable(&failure.to_string())))
        }
        Notice::Remark { text, .. } if !name.is_empty() => Some(format!("{name}: {}", printable(text))),
        other => remark(other),
    }
}

/// Plain lines: at every change, and every ten seconds while bytes come in.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    board: Board,
    last: Option<Mono>,
}

impl Plain {
    fn lines(&mut self, notice: &Notice, now: Now) -> Option<String> {
        let (name, doing) = match self.board.apply(notice, now) {
            Some(row) => (row.name.clone(), row.doing(now)),
            None => (String::new(), String::new()),
        };
        match notice {
            Notice::Session { held, number, url, .. } if held.0 > 0 || *number > 1 => {
                self.last = Some(now.mono);
                Some(format!("{name}: session {number} with {}, from {}", host_of(url), human_size(held.0)))
            }
            Notice::Progress { .. } => self.periodic(now),
            Notice::Verifying { .. } => Some(format!("{name}: {doing}")),
            Notice::Failed { url, failure, refused, .. } => {
                let then = if *refused { "; this mirror is not asked again" } else { "" };
                Some(format!("{name}: {} ({url}){then}", printable(&failure.to_string())))
            }
            Notice::Waiting { reason: WaitReason::Resuming | WaitReason::Slot, .. } => None,
            Notice::Waiting { .. } => Some(format!("{name}: {doing}")),
            other => aside(other, &name),
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
    use crate::core::range::Length;
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
        let lines: Vec<_> = story.iter().filter_map(|(seconds, notice)| plain.lines(notice, at(*seconds))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        f1.bin: session 2 with a.example:8080, from 1.0 MiB
        f1.bin: 1.0 MiB of 3.0 MiB (33 %), 1.0 KiB/s, 33 min 58 s left, from a.example:8080, session 2
        f1.bin: 1.0 MiB of 3.0 MiB (33 %), 1.0 KiB/s, 33 min 48 s left, from a.example:8080, session 2
        f1.bin: the server answered 503 Service Unavailable (http://a.example:8080/f1.bin?token=***)
        f1.bin: the server answered 503 Service Unavailable (http://a.example:8080/f1.bin?token=***); this mirror is not asked again
        f1.bin: next try in 1 min (retry 1): the server answered 503 Service Unavailable
        f1.bin: the file changes on the server\u{7}
        persxfer: the state file was damaged
        f1.bin: checking 1.0 MiB
        ");
    }
}
