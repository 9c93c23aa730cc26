//! Ctrl-C and its like: the first asks the engine to stop, which saves what is held; a second Ctrl-C ends at once.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::{Exit, Signal};
use crate::cli::foreign::Stop;
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

/// Listens from now on, in a thread of its own, until the process ends.
pub(crate) fn watch(screen: &Screen) -> Watch {
    let watch = Watch::default();
    let (ready, listening) = mpsc::channel();
    let (Watch { stop, caught: noted }, screen) = (watch.clone(), screen.clone());
    let thread = std::thread::Builder::new().name("signals".into());
    let started = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(serve(&stop, &screen, &noted, ready))
    });
    // Where no thread or no handler can be had, a signal ends the process as it would have anyway; a later run resumes.
    if started.is_ok() {
        let _ = listening.recv();
    }
    watch
}

async fn serve(stop: &Stop, screen: &Screen, caught: &Caught, ready: mpsc::Sender<()>) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
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
            Some(()) = hangup.recv() => caught.note(TERMINATE),
            else => return Ok(()),
        }
        stop.request();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal as Number, getpid, kill_process};
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
