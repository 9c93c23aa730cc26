//! A word to transfers: where a living process runs one, a wish is left for it; else the record is changed here and now.

use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::pers_xfer::sharing::{self, Wanted, Wish};
use crate::core::state::Document;
use crate::core::time::Now;
use crate::engine::EngineError;
use crate::engine::admit;
use crate::engine::claims::Living;
use crate::io::clock::Clock;
use crate::io::entropy::system_rng;
use crate::io::state_file::StateFile;

/// What became of a word to a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It holds from now on.
    Done,
    /// The process of this number runs it and was told.
    Left(String),
    /// There was nothing to change: it is so already, or can be so no more.
    Nothing(Status),
    /// There is no such transfer any more.
    Gone,
}

/// Says the word to each of these transfers, in one write; an answer each, in their order.
///
/// # Errors
/// [`EngineError`] where the state cannot be read or written: then nothing was said.
pub fn control(state_file: &std::path::Path, ids: &[XferId], wanted: &Wanted) -> Result<Vec<Told>, EngineError> {
    let file = StateFile::at(state_file);
    let mut rng = system_rng()?;
    let now = Clock::system().now();
    let told = file.commit(|document| {
        let mut living = Living::new(state_file);
        ids.iter().map(|id| tell(document, *id, wanted, now, &mut living, &mut rng)).collect()
    })?;
    Ok(told)
}

fn tell(
    document: &mut Document,
    id: XferId,
    wanted: &Wanted,
    now: Now,
    living: &mut Living<'_>,
    rng: &mut dyn rand::Rng,
) -> Told {
    let Some(record) = document.get(id) else { return Told::Gone };
    if let Some(holder) = record.owner.and_then(|owner| living.holder(owner)) {
        leave_wish(document, &record, wanted.clone(), now, rng);
        return Told::Left(holder);
    }
    let mut record = sharing::obeyed(record, &[], now, rng);
    if *wanted == Wanted::Retry && record.status == Status::Done && !admit::stands(&record) {
        // Its file is gone, or another one: it is fetched anew, or said to be in the way.
        record = admit::reborn(record);
        document.put(&record);
        return Told::Done;
    }
    let told = if wanted.concerns(&record.status) { Told::Done } else { Told::Nothing(record.status.clone()) };
    if *wanted == Wanted::Retry && told == Told::Done {
        probe_hosts(document, &record, now);
    }
    document.put(&sharing::obeyed(record, std::slice::from_ref(wanted), now, rng));
    told
}

/// A person wants it tried now: of hosts that back off, the next session is a probe. Their own Retry-After stands.
fn probe_hosts(document: &mut Document, record: &Record, now: Now) {
    let mut hosts = document.hosts().to_vec();
    for host in hosts.iter_mut().filter(|host| record.mirrors.iter().any(|m| m.url.origin() == host.key.origin)) {
        host.closed_until = host.closed_until.map(|until| until.min(now.wall));
    }
    document.set_hosts(hosts);
}

/// Leaves a wish in a record that another process runs. The same one again, before it was obeyed, is one; and a list of
/// mirrors that says nothing new is none.
pub(super) fn leave_wish(document: &mut Document, record: &Record, what: Wanted, now: Now, rng: &mut dyn rand::Rng) {
    let known = |urls: &[crate::core::url::MirrorUrl]| {
        urls.iter().all(|u| record.mirrors.iter().any(|m| m.url == *u && m.named_with.is_none()))
    };
    let idle = matches!(&what, Wanted::Mirrors(urls) if known(urls));
    if idle || record.wishes.last().is_some_and(|last| last.what == what) {
        return;
    }
    let mut record = record.clone();
    record.wishes.push(Wish { serial: rand::RngExt::random(rng), at: now.wall, what });
    document.put(&record);
}
