//! Ctrl-C and its like: the first asks the engine to stop, which saves what is held; a second Ctrl-C ends at once. And the
//! signal that a file has reached its largest size, which is to be an error like others.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};

use rustix::process::Signal as Number;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::{Exit, Signal};
use crate::cli::foreign::{LEAST_DESCRIPTORS, Stop, descriptors, largest_file};
use crate::cli::screen::Screen;

/// Which signal came first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caught(Arc<AtomicU8>);

const INTERRUPT: u8 = 1;
const TERMINATE: u8 = 2;

impl Caught {
    /// The first signal, where one came.
    pub(crate) fn signal(&self) -> Option<Signal> {
        match self.0.load(Ordering::SeqCst) {
            INTERRUPT => Some(Signal::Interrupt),
            TERMINATE => Some(Signal::Terminate),
            _ => None,
        }
    }

    fn note(&self, signal: u8) {
        let _ = self.0.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Who asks the engine to stop, and which signal it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) stop: Stop,
    pub(crate) caught: Caught,
}

/// A write beyond the largest file that this process may write (`ulimit -f`) would end the process by a signal. From now
/// on it is an error (`EFBIG`) of that one write, which is told, and nothing is lost.
///
/// The handler does nothing, and stays when the runtime that it was made in is gone. Where none can be had (too few
/// descriptors), nothing is downloaded either.
pub(crate) fn outlive_file_limit() {
    let poor = descriptors().is_some_and(|limit| limit < LEAST_DESCRIPTORS);
    if largest_file().is_none() || poor {
        return;
    }
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() {
        let _within = runtime.enter();
        let _ = signal(SignalKind::from_raw(Number::XFSZ.as_raw()));
    }
}

/// What a hang-up has the program do instead of ending.
pub(crate) type Reload = Box<dyn Fn() + Send>;

/// Listens from now on, in a thread of its own, until the process ends.
pub(crate) fn watch(screen: &Screen) -> Watch {
    listen(screen, None)
}

/// The same, of a program that reads its preferences again when it is told to hang up, as services do. One whose terminal
/// is gone ends all the same.
pub(crate) fn watch_and_reload(screen: &Screen, reload: Reload) -> Watch {
    listen(screen, Some(reload))
}

fn listen(screen: &Screen, reload: Option<Reload>) -> Watch {
    let watch = Watch::default();
    let (ready, listening) = mpsc::channel();
    let (Watch { stop, caught: noted }, screen) = (watch.clone(), screen.clone());
    let thread = std::thread::Builder::new().name("signals".into());
    let started = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(serve(&stop, &screen, &noted, reload, ready))
    });
    // Where no thread or no handler can be had, a signal ends the process as it would have anyway; a later run resumes.
    if started.is_ok() {
        let _ = listening.recv();
    }
    watch
}

async fn serve(
    stop: &Stop,
    screen: &Screen,
    caught: &Caught,
    reload: Option<Reload>,
    ready: mpsc::Sender<()>,
) -> std::io::Result<()> {
    let had_terminal = has_terminal();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = if hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
    drop(ready);
    loop {
        tokio::select! {
            Some(()) = interrupt.recv() => {
                if caught.signal().is_some() {
                    std::process::exit(Exit::Interrupted.code().into());
                }
                caught.note(INTERRUPT);
                screen.line("persxfer: stopping, the state is being saved; Ctrl-C again ends at once");
            }
            Some(()) = terminate.recv() => caught.note(TERMINATE),
            Some(()) = next(&mut hangup) => match &reload {
                Some(reload) if has_terminal() || !had_terminal => {
                    reload();
                    continue;
                }
                _ => caught.note(TERMINATE),
            },
            else => return Ok(()),
        }
        stop.request();
    }
}

async fn next(signals: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    match signals {
        Some(signals) => signals.recv().await,
        None => std::future::pending().await,
    }
}

/// Is there a terminal that answers? One that was hung up does not.
fn has_terminal() -> bool {
    rustix::termios::tcgetattr(std::io::stderr()).is_ok()
}

/// Was the program started by `nohup` or its like? Then it is meant to outlive its terminal. Linux tells the signals that
/// were ignored at the start, as bits; elsewhere nothing is known.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process};
    use std::time::Duration;

    #[test]
    fn the_first_interrupt_asks_the_engine_to_stop() {
        let watch = watch(&Screen::default());
        assert!(!watch.stop.is_requested());
        kill_process(getpid(), Number::INT).expect("sent");
        while !watch.stop.is_requested() {
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_process(getpid(), Number::TERM).expect("sent");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(watch.caught.signal(), Some(Signal::Interrupt), "the first one counts");
    }
}
