//! Bars on a terminal, by indicatif: a line a transfer with bytes, rate, time left, mirror and session, or a countdown with
//! its reason while it waits. A thread redraws them, so that a countdown counts while nothing happens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::board::{Board, Phase, Row};
use crate::cli::foreign;
use crate::cli::out::stderr_columns;
use crate::cli::screen::Screen;
use crate::cli::untold::Untold;
use crate::cli::view::aside;
use crate::core::time::Now;
use crate::engine::Notice;

/// So many transfers have a bar; the others are in the last line.
const MOST: usize = 10;
/// Between two redraws.
const EVERY: Duration = Duration::from_millis(125);
/// A longer name is cut to so many characters; shorter ones are filled up, so that bars begin in one column.
const NAME_WIDTH: usize = 24;
/// The same where there is little room, and how many columns are enough room.
const SHORT_NAME: usize = 14;
const WIDE: usize = 100;

/// The bars of one run.
#[derive(Debug)]
pub(crate) struct Bars {
    board: Arc<Mutex<Board>>,
    screen: Screen,
    untold: Untold,
    drawer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Bars {
    /// Begins to draw.
    pub(crate) fn start(screen: &Screen) -> Self {
        let board = Arc::new(Mutex::new(Board::default()));
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        screen.set_bars(Some(multi.clone()));
        let (end, ended) = mpsc::channel();
        let shared = Arc::clone(&board);
        let draw = move || {
            let mut slots = Slots { multi, bars: Vec::new() };
            while ended.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                slots.draw(&locked(&shared), foreign::now());
            }
            slots.clear();
        };
        // Without a thread there are no bars, which costs nothing but the sight of them.
        let drawer = std::thread::Builder::new().name("bars".into()).spawn(draw).ok().map(|thread| (end, thread));
        Self { board, screen: screen.clone(), untold: Untold::default(), drawer }
    }

    /// Something happened.
    pub(crate) fn notice(&mut self, notice: &Notice, now: Now) {
        let row = locked(&self.board).apply(notice, now).map(|row| (row.name.clone(), row.mirrors));
        let (name, mirrors) = row.unwrap_or_default();
        aside(notice, &name, mirrors, &mut self.untold).iter().for_each(|line| self.screen.line(line));
    }

    /// Wipes them away.
    pub(crate) fn finish(mut self) {
        if let Some((end, thread)) = self.drawer.take() {
            drop(end);
            let _ = thread.join();
        }
        self.screen.set_bars(None);
    }
}

fn locked(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lines on the screen. Which transfer stands in which is decided anew at every redraw.
struct Slots {
    multi: MultiProgress,
    bars: Vec<ProgressBar>,
}

impl Slots {
    fn draw(&mut self, board: &Board, now: Now) {
        let rows = board.shown(MOST);
        let lines = rows.len() + usize::from(board.open() > MOST);
        while self.bars.len() > lines {
            self.bars.pop().iter().for_each(|bar| self.multi.remove(bar));
        }
        while self.bars.len() < lines {
            self.bars.push(self.multi.add(ProgressBar::no_length()));
        }
        let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let layout = Layout::of(longest, stderr_columns());
        for (bar, row) in self.bars.iter().zip(&rows) {
            show(bar, row, layout, now);
        }
        if let Some(bar) = self.bars.get(rows.len()) {
            bar.set_style(style(WORDS));
            bar.set_prefix(column(ALL, layout.names));
            bar.set_message(board.summary(now));
        }
    }

    fn clear(&self) {
        // What cannot be wiped stays on the screen. Afterwards nothing is drawn any more, or each bar would be as it goes.
        let _ = self.multi.clear();
        self.multi.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// The name of the last line.
const ALL: &str = "all";
const WITH_BAR: &str = "{prefix} {bar:16.cyan/dim} {wide_msg}";
const WITH_SHORT_BAR: &str = "{prefix} {bar:6.cyan/dim} {wide_msg}";
const WORDS: &str = "{prefix} {wide_msg}";

fn show(bar: &ProgressBar, row: &Row, layout: Layout, now: Now) {
    match (&row.phase, row.total) {
        (Phase::Running | Phase::Verifying, Some(total)) => {
            bar.set_style(style(layout.with_bar));
            bar.set_length(total.0);
            bar.set_position(row.reached().0);
        }
        _ => bar.set_style(style(WORDS)),
    }
    bar.set_prefix(column(&row.name, layout.names));
    bar.set_message(row.briefly(now));
}

/// How the columns of a line are made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// The width of names, in characters.
    names: usize,
    with_bar: &'static str,
}

impl Layout {
    /// For names of at most so many characters, on a screen of so many columns. On a narrow one, numbers come first.
    fn of(longest: usize, columns: usize) -> Self {
        let (most, with_bar) = if columns < WIDE { (SHORT_NAME, WITH_SHORT_BAR) } else { (NAME_WIDTH, WITH_BAR) };
        Self { names: longest.clamp(ALL.len(), most), with_bar }
    }
}

fn style(template: &str) -> ProgressStyle {
    // A template that does not parse would show in the first test; the default style is a bar all the same.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=>-")
}

/// A name in its column: filled up, or cut in the middle, where names of one series differ least.
pub(crate) fn column(name: &str, width: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= width {
        return format!("{name:width$}");
    }
    let tail = width / 2;
    let head = width - tail - 1;
    chars[..head].iter().chain(&['…']).chain(&chars[chars.len() - tail..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples::{self, at};

    #[test]
    fn columns() {
        assert_eq!(column("a.bin", 8), "a.bin   ");
        assert_eq!(column("debian-13.2.0-amd64-netinst.iso", 24), "debian-13.2…-netinst.iso");
    }

    #[test]
    fn bars_and_a_last_line_for_the_rest() {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let mut slots = Slots { multi, bars: Vec::new() };
        let mut board = Board::default();
        let _ = samples::story().iter().map(|n| board.apply(n, at(0)).is_some()).count();
        let _ = (2..=12).map(|n| board.apply(&samples::accepted(n), at(0)).is_some()).count();
        slots.draw(&board, at(1));
        assert_eq!(slots.bars.len(), MOST + 1);
        assert_eq!((slots.bars[0].position(), slots.bars[0].length()), (1 << 20, Some(3 << 20)));
        assert!(slots.bars[0].message().ends_with("a.example:8080, session 2"), "{}", slots.bars[0].message());
        assert_eq!(slots.bars[1].message(), "queued");
        assert_eq!(slots.bars[MOST].message(), "0 of 12 complete, 1 running, 0 waiting, 0 B/s");
        slots.draw(&Board::default(), at(2));
        assert_eq!(slots.bars.len(), 0);
    }

    #[test]
    fn templates_parse() {
        for template in [WITH_BAR, WITH_SHORT_BAR, WORDS] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
