//! A panic is an error of ours: one line that asks to report it, and exit status 1, on whichever thread it happens.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::exit::Exit;
use crate::cli::screen::Screen;

/// Runs the program; a panic anywhere in it makes the status 1.
pub(crate) fn guard(screen: &Screen, run: impl FnOnce() -> Exit) -> Exit {
    let happened = Arc::new(AtomicBool::new(false));
    let (noted, to) = (Arc::clone(&happened), screen.clone());
    let detailed = std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0");
    let usual = take_hook();
    set_hook(Box::new(move |info| {
        noted.store(true, Ordering::SeqCst);
        to.last_words(&line(info));
        if detailed {
            usual(info);
        }
    }));
    let exit = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Exit::Ours);
    if happened.load(Ordering::SeqCst) { Exit::Ours } else { exit }
}

fn line(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "persxfer {version}: an error of persxfer's own: {what}{place}; please report it, with this line. What was downloaded or confirmed is kept"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_on_any_thread_is_exit_1() {
        let screen = Screen::default();
        assert_eq!(guard(&screen, || panic!("a test of the panic guard")), Exit::Ours);
        let elsewhere = || {
            let _ = std::thread::spawn(|| panic!("a test of the panic guard")).join();
            Exit::Complete
        };
        assert_eq!(guard(&screen, elsewhere), Exit::Ours);
        let _ = take_hook();
    }
}
