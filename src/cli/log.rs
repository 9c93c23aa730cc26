//! The log behind `-v` and `PERSXFER_LOG`, on standard error.

use tracing_subscriber::EnvFilter;

use crate::cli::screen::Screen;
use crate::cli::trouble::Trouble;

/// Turns the log on: by `PERSXFER_LOG` where that is set (a filter of tracing-subscriber's, such as
/// `persxfer=debug`), else by how often `-v` stands on the command line; without both there is none.
pub(crate) fn start(verbose: u8, screen: &Screen) -> Result<(), Trouble> {
    let filter = match std::env::var("PERSXFER_LOG") {
        Ok(text) if !text.is_empty() => {
            let hint = |e| Trouble::Usage(format!("PERSXFER_LOG is no filter: {e}; write a level, or target=level"));
            EnvFilter::try_new(&text).map_err(hint)?
        }
        _ => match verbose {
            0 => return Ok(()),
            1 => EnvFilter::new("persxfer=info"),
            2 => EnvFilter::new("persxfer=debug"),
            _ => EnvFilter::new("persxfer=trace,reqwest=debug,hyper=debug"),
        },
    };
    let screen = screen.clone();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(move || screen.clone());
    // It fails where a log is on already, as in a test; then that one serves.
    let _ = log.try_init();
    Ok(())
}
