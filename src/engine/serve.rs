//! The service: whatever the state file holds and nobody runs is driven, until all is done, or for ever.

use crate::core::hosts::Hosts;
use crate::engine::run::{on_an_event_loop, supervisor};
use crate::engine::{EngineError, Notice, Report, Settings, Stop};

/// How long a service goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Until all that it found, or that was added meanwhile, is over.
    UntilDone,
    /// Until it is told to stop.
    Forever,
}

/// What a service has done.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// How each transfer ended; empty for one that ran for ever.
    pub reports: Vec<Report>,
    /// How many never had their turn.
    pub left: usize,
}

/// Drives every transfer of the state file that is to be run and that no living process runs, honouring the time of each
/// one's next try; takes over what others leave when they die. `notices` is called on this thread.
///
/// # Errors
/// [`EngineError`] where the state cannot be read or written.
pub fn serve(
    settings: Settings,
    service: Service,
    stop: &Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<Served, EngineError> {
    let hosts = Hosts::new(None, None)?;
    on_an_event_loop(async {
        let mut supervisor = supervisor(settings, Some(service), hosts, notices)?;
        supervisor.look_for_work();
        supervisor.run(stop).await?;
        let left = supervisor.fresh.len() + supervisor.watch.waiting();
        Ok(Served { reports: std::mem::take(&mut supervisor.ended).into_values().collect(), left })
    })
}
