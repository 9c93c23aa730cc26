//! A word to transfers: where a living process runs one, a wish is left for it; else the record is changed here and now.

use crate::core::pers_xfer::record::{Direction, Record, Status, XferId};
use crate::core::pers_xfer::sharing::{self, Wanted, Wish};
use crate::core::state::Document;
use crate::core::time::Now;
use crate::engine::EngineError;
use crate::engine::admit;
use crate::engine::admit_upload;
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
    if *wanted == Wanted::Retry && record.status == Status::Done && is_another_now(&record) {
        // The file of a download is gone, or another one: it is fetched anew, or said to be in the way. That of an upload has
        // changed since it was sent.
        record = match record.direction {
            Direction::Download => admit::reborn(record),
            Direction::Upload => admit_upload::again(record),
        };
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

fn is_another_now(record: &Record) -> bool {
    match record.direction {
        Direction::Download => !admit::stands(record),
        Direction::Upload => admit_upload::is_another_now(record),
    }
}

/// A person wants it tried now: of hosts that back off, the next session is a probe. Their own Retry-After stands.
fn probe_hosts(document: &mut Document, record: &Record, now: Now) {
    let mut hosts = document.hosts().to_vec();
    for host in hosts.iter_mut().filter(|host| record.mirrors.iter().any(|m| m.url.origin() == host.key.origin)) {
        host.closed_until = host.closed_until.map(|until| until.min(now.wall));
    }
    document.set_hosts(hosts);
}

/// Leaves a wish in a record that another process runs. It takes the place of the same one right before it, which may have
/// been obeyed already although it still stands there; and a list of mirrors that says nothing new is none.
pub(super) fn leave_wish(document: &mut Document, record: &Record, what: Wanted, now: Now, rng: &mut dyn rand::Rng) {
    let known = |urls: &[crate::core::url::MirrorUrl]| {
        urls.iter().all(|u| record.mirrors.iter().any(|m| m.url == *u && m.named_with.is_none()))
    };
    let idle = matches!(&what, Wanted::Mirrors(urls) if known(urls));
    if idle {
        return;
    }
    let mut record = record.clone();
    record.wishes.pop_if(|last| last.what == what);
    record.wishes.push(Wish { serial: rand::RngExt::random(rng), at: now.wall, what });
    document.put(&record);
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::core::time::{Epoch, Mono};
    use crate::core::url::MirrorUrl;

    #[test]
    fn the_same_again_is_one_wish_and_yet_not_the_one_that_was_obeyed() {
        let now = Now { wall: Epoch::from_secs(1_767_225_600), mono: Mono::ZERO };
        let (mut document, mut rng) = (Document::fresh(), rand::rngs::StdRng::seed_from_u64(1));
        let url = MirrorUrl::parse("http://h.example/f").expect("a URL");
        document.put(&Record::download(XferId(1), "f".into(), std::slice::from_ref(&url)));
        let mut left = |what: &Wanted| {
            let record = document.get(XferId(1)).expect("there");
            leave_wish(&mut document, &record, what.clone(), now, &mut rng);
            let wishes = document.get(XferId(1)).expect("there").wishes;
            wishes.into_iter().map(|wish| (wish.what.word(), wish.serial)).collect::<Vec<_>>()
        };
        let first = left(&Wanted::Retry);
        let second = left(&Wanted::Retry);
        assert_eq!((first.len(), second.len()), (1, 1));
        assert_ne!(first, second, "one that heard the first still has to hear the second");
        left(&Wanted::Abort);
        left(&Wanted::Mirrors(vec![url]));
        let words: Vec<_> = left(&Wanted::Retry).into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ["retry", "abort", "retry"]);
    }
}
