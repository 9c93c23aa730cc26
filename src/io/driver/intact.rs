//! The part files at the beginning of a session: opened, and compared with their sums where they do not look as they were
//! left. What differs is a gap from then on, and fetched again.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::core::failure::LocalFault;
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::range::Length;
use crate::core::units::human_bytes;
use crate::io::driver::vouched::algorithms;
use crate::io::driver::{Home, Orders, Tell, settle_held};
use crate::io::part::{Checked, Damage, PartStore, Promoted, Slow};

/// Reading more takes so long that a word is said before: 256 MiB.
const WORTH_A_WORD: Length = Length(256 << 20);

/// May the session begin?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    Yes,
    /// It was told to stop before everything was looked at.
    Stopped,
}

/// Opens the part files, where their name is known and they are not open yet, and looks at them.
pub(super) async fn open(
    orders: &mut Orders,
    tell: &dyn Fn(Tell),
    stop: &CancellationToken,
) -> Result<Ready, LocalFault> {
    // Where the server is only asked about a finished file, there is nothing to open yet.
    if let (None, None, Home::File(path)) = (&orders.store, &orders.revalidate, &orders.home) {
        let path = path.clone();
        let mut dossier = std::mem::take(&mut orders.dossier);
        let opened = open_store(&path, &mut dossier, orders, tell);
        orders.dossier = dossier;
        orders.store = Some(opened?);
    }
    let Some(mut store) = orders.store.take() else { return Ok(Ready::Yes) };
    let doubted = store.doubted();
    let checked = if doubted > Length::ZERO {
        if doubted >= WORTH_A_WORD {
            let held = human_bytes(doubted);
            tell(Tell::Remark(format!(
                "the part file was not left in order, or was changed since: checking {held} held"
            )));
        }
        check(&mut orders.store, store, orders.terms.spec.slow, stop).await?
    } else {
        orders.store = Some(store);
        Checked::Through(Vec::new())
    };
    if let Some(store) = &orders.store {
        settle_held(&mut orders.dossier, store);
    }
    Ok(match checked {
        Checked::Through(found) => {
            found.iter().for_each(|damage| tell(Tell::Remark(words(damage))));
            Ready::Yes
        }
        Checked::Stopped => Ready::Stopped,
    })
}

/// Compares what is held with its sums, off the lane's thread; a panic in it goes on here.
async fn check(
    slot: &mut Option<PartStore>,
    mut store: PartStore,
    slow: Slow,
    stop: &CancellationToken,
) -> Result<Checked, LocalFault> {
    let stop = stop.clone();
    let work = move || {
        let checked = store.check(&mut |_| !stop.is_cancelled());
        (store, checked)
    };
    let (store, checked) = match slow {
        Slow::InTurn => work(),
        Slow::Beside => match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        },
    };
    *slot = Some(store);
    checked
}

fn words(damage: &Damage) -> String {
    let (path, differs) = (&damage.path, human_bytes(damage.differs));
    let found = format!("{path} was damaged since it was written: {differs} are not what was written");
    match damage.unvouched {
        Length(0) => format!("{found}, and are fetched again"),
        more => format!("{found}, and of {} more nothing tells; these are fetched again", human_bytes(more)),
    }
}

/// Opens, or makes, the part files at `path`, and says in `dossier` what they hold.
pub(super) fn open_store(
    path: &Path,
    dossier: &mut Dossier,
    orders: &Orders,
    tell: &dyn Fn(Tell),
) -> Result<PartStore, LocalFault> {
    // Of a file that has been finished, or is gone, only facts are known: what stands there now is nobody's.
    let mut claimed = dossier.clone();
    if claimed.part.inode.is_none() {
        claimed.part = Draft::default();
    }
    let mut spec = orders.terms.spec.clone();
    spec.algorithms = algorithms(&orders.terms, dossier);
    let opened = PartStore::open(path, &claimed, spec)?;
    for remark in opened.remarks {
        tell(Tell::Remark(remark));
    }
    if opened.promoted == Promoted::Yes {
        dossier.part = dossier.rival.take().unwrap_or_default();
    }
    if opened.rival_held.is_none() {
        dossier.rival = None;
    }
    settle_held(dossier, &opened.store);
    Ok(opened.store)
}
