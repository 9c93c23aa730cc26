//! The desk: where others ask the loop, over GUI RPC and for the metrics. Answers come from what the loop knows anyway, so that
//! nobody waits for them.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::mpsc::Receiver;

use crate::engine::supervisor::Supervisor;
use crate::engine::tally::Tally;
use crate::engine::{EngineError, Notice, Stop};
use crate::io::listen::{Ask, Doors, Listening};
use crate::io::rpc_auth;

/// Where others ask; nobody does, unless it was opened.
#[derive(Debug, Default)]
pub(super) struct Desk {
    open: Option<Open>,
    pub(super) tally: Rc<RefCell<Tally>>,
    pub(super) quit: Quit,
    /// Ends the run.
    pub(super) stop: Stop,
}

#[derive(Debug)]
struct Open {
    asks: Receiver<Ask>,
    // Whoever listens ends with this.
    _listening: Listening,
}

/// Was the program told to end?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Quit {
    #[default]
    No,
    Asked,
}

impl Desk {
    /// The next who asks.
    pub(super) async fn next(&mut self) -> Ask {
        if let Some(open) = &mut self.open
            && let Some(ask) = open.asks.recv().await
        {
            return ask;
        }
        // Nobody will.
        std::future::pending().await
    }
}

impl Supervisor<'_> {
    /// Listens where others may ask from now on, and says where.
    pub(super) fn open_desk(&mut self, doors: Doors) -> Result<(), EngineError> {
        if doors == Doors::default() {
            return Ok(());
        }
        let auth = rpc_auth::path_of(self.persist.path());
        let password = match doors.gui_rpc {
            Some(_) => rpc_auth::password(&auth).map_err(EngineError::Listen)?,
            None => String::new(),
        };
        let (listening, asks) = Listening::begin(doors, &password).map_err(EngineError::Listen)?;
        if let Some(at) = listening.doors.gui_rpc {
            let how = if password.is_empty() { "no password, since none is in" } else { "the password is in" };
            self.remark(format!("GUI RPC on {at}; {how} {}", auth.display()));
        }
        if let Some(at) = listening.doors.metrics {
            self.remark(format!("metrics on http://{at}/metrics"));
        }
        self.desk.open = Some(Open { asks, _listening: listening });
        Ok(())
    }

    fn remark(&mut self, text: String) {
        (self.notices)(Notice::Remark { id: None, text });
    }

    /// Answers. Whoever has gone meanwhile is not missed.
    pub(super) fn answer(&mut self, ask: Ask) {
        let now = self.clock.now();
        match ask {
            Ask::Rpc(request, answer) => drop(answer.send(self.answer_rpc(request, now))),
            Ask::Metrics(answer) => drop(answer.send(self.measures(now))),
        }
    }
}
