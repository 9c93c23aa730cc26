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

/// Listens from now on, in a thread of its own, until the process ends.
pub(crate) fn listen(stop: &Stop, screen: &Screen) -> Caught {
    let caught = Caught::default();
    let (ready, listening) = mpsc::channel();
    let (stop, screen, noted) = (stop.clone(), screen.clone(), caught.clone());
    let thread = std::thread::Builder::new().name("signals".into());
    let started = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(serve(&stop, &screen, &noted, ready))
    });
    // Where no thread or no handler can be had, a signal ends the process as it would have anyway; a later run resumes.
    if started.is_ok() {
        let _ = listening.recv();
    }
    caught
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
