//! What uploads left at servers is cleaned up, of transfers that nobody runs and nobody wants any more.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::url::MirrorUrl;
use crate::engine::EngineError;
use crate::engine::claims::Living;
use crate::engine::uploads;
use crate::engine::way::{LaneClients, Way, Ways};
use crate::io::clock::Clock;
use crate::io::driver::upload::{self, Cleanup, Hands};
use crate::io::entropy::system_rng;
use crate::io::lane::{Lanes, TaskEnd};
use crate::io::state_file::StateFile;

/// What came of cleaning up at one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// Of which transfer.
    pub id: XferId,
    /// At which server.
    pub server: MirrorUrl,
    /// How it went.
    pub how: Dropped,
}

/// How it went to have a server drop what it has. What it does with what it was asked is its own affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It says so, or its protocol has no way to ask.
    Done,
    /// It said no, or nothing: why. Its record stays.
    Refused(String),
    /// It did not answer in time. Its record stays.
    Late,
    /// It could not be asked from here, for want of keys perhaps. Its record stays.
    NotAsked(LocalFault),
}

/// Cleans up what these transfers left at servers, ten seconds a server at most, all at once. What a living process runs
/// is left alone. The records know nothing of what was cleaned up afterwards, and all of what was
/// not.
///
/// # Errors
/// [`EngineError`] where the state cannot be read or written; servers that do not answer, or cannot be asked, are no error.
pub fn abandon(state_file: &Path, ids: &[XferId]) -> Result<Vec<Abandoned>, EngineError> {
    let file = StateFile::at(state_file);
    let document = file.load()?.document;
    let is_left = |record: &Record| !record.uploads.is_empty();
    let records: Vec<Record> = ids.iter().filter_map(|id| document.get(*id)).filter(is_left).collect();
    let mut living = Living::new(state_file);
    let records: Vec<Record> = records.into_iter().filter(|record| living.in_use(record).is_none()).collect();
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let cleaned = clean_up(&records)?;
    file.commit(|document| {
        let mut living = Living::new(state_file);
        for record in &records {
            // Somebody may have taken it up meanwhile, or begun anew.
            let now = document.get(record.id).filter(|now| now.uploads == record.uploads);
            if let Some(mut now) = now.filter(|now| living.in_use(now).is_none()) {
                now.uploads.retain(|session| {
                    let of_this = |one: &&Abandoned| one.id == record.id && one.server == session.server;
                    cleaned.iter().filter(of_this).any(|one| one.how != Dropped::Done)
                });
                document.put(&now);
            }
        }
    })?;
    Ok(cleaned)
}

fn clean_up(records: &[Record]) -> Result<Vec<Abandoned>, EngineError> {
    let (mut ways, mut rng) = (Ways::default(), system_rng()?);
    let lanes = Lanes::new(NonZeroUsize::MIN, LaneClients::default);
    let (tell, told) = std::sync::mpsc::channel();
    let mut tasks = Vec::new();
    for record in records {
        let way = ways.of(&record.options.net)?;
        for session in &record.uploads {
            let (id, tell, word) = (record.id, tell.clone(), rand::RngExt::random::<u64>(&mut rng));
            let orders = match uploads::orders_to_clean_up(record, session.clone(), &way) {
                Ok(orders) => orders,
                Err(fault) => {
                    let _ = tell.send(Abandoned { id, server: session.server.clone(), how: Dropped::NotAsked(fault) });
                    continue;
                }
            };
            let way = Arc::clone(&way);
            let task = lanes.spawn(move |clients| {
                let hands = hands(&way, &clients, word);
                async move {
                    let cleaned = upload::abandon(orders, hands).await;
                    let how = match cleaned.how {
                        Cleanup::Done => Dropped::Done,
                        Cleanup::Refused(why) => Dropped::Refused(why),
                        Cleanup::OutOfTime => Dropped::Late,
                    };
                    // Nobody listens only where this program ends.
                    let _ = tell.send(Abandoned { id, server: cleaned.server, how });
                }
            });
            tasks.extend(task.ok());
        }
    }
    drop(tell);
    for task in tasks {
        if let TaskEnd::Panicked(message) = task.wait() {
            tracing::error!(message, "cleaning up ended in a defect of persxfer");
        }
    }
    Ok(told.iter().collect())
}

fn hands(way: &Way, clients: &LaneClients, word: u64) -> Hands {
    Hands {
        uplink: clients.of(way).uplink(),
        credentials: way.credentials.clone(),
        throttle: None,
        clock: Clock::system(),
        token: format!("{word:016x}"),
    }
}
