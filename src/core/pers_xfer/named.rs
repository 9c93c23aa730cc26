//! Mirrors that servers name (`Link: rel=duplicate`, RFC 6249): taken in behind those that somebody typed, each with the
//! digest that makes its bytes the file, and refused once the file has another one. Design 3.12.

use crate::core::digest::Expected;
use crate::core::file_xfer::dossier::Dossier;
use crate::core::file_xfer::vouch::contradict;
use crate::core::links::MAX_DUPLICATES;
use crate::core::machine::Cx;
use crate::core::pers_xfer::machine::{PersFileXfer, State};
use crate::core::pers_xfer::record::{MirrorRecord, Standing};
use crate::core::pers_xfer::session::Session;
use crate::core::pers_xfer::{Action, Urgency};
use crate::core::url::MirrorUrl;
use crate::core::verdict::Class;

/// What is said of a mirror that is no use any more.
const OUTDATED: &str = "a server named it as a mirror of another version of the file";

impl PersFileXfer {
    /// Takes in what is new. A mirror known with another digest is named anew. Where a certificate of the user's goes with
    /// every connection, nobody but the user says whom to connect to.
    pub(super) fn take_named(&mut self, digest: &Expected, urls: Vec<MirrorUrl>, cx: &mut Cx<'_, Action>) {
        if self.record.options.net.cert.is_some() {
            return;
        }
        let busy = self.asked_mirror();
        let before = self.record.mirrors.clone();
        let mirrors = &mut self.record.mirrors;
        for url in urls {
            let named = mirrors.iter().filter(|m| m.named_with.is_some()).count();
            match mirrors.iter().position(|m| m.url.without_credentials() == url) {
                None if named < MAX_DUPLICATES => mirrors.push(MirrorRecord::named(url, digest.clone())),
                Some(at) if Some(at) != busy && is_named_otherwise(&mirrors[at], digest) => {
                    mirrors[at] = MirrorRecord::named(url, digest.clone());
                }
                _ => {}
            }
        }
        if *mirrors != before {
            cx.out.push(Action::Save(Urgency::Now));
        }
    }

    /// What is known of the file changed: mirrors named for another version are refused. Where a digest is law, that
    /// decides. `changes` is how often the file had changed before.
    pub(super) fn refuse_outdated(&mut self, changes: u32) {
        if !self.record.digests.is_empty() {
            return;
        }
        let busy = self.asked_mirror();
        let dossier = &self.record.dossier;
        let changed = dossier.changes > changes;
        for (_, mirror) in self.record.mirrors.iter_mut().enumerate().filter(|(i, _)| Some(*i) != busy) {
            let outdated = mirror.named_with.as_ref().is_some_and(|digest| changed || is_denied(dossier, digest));
            if outdated && mirror.is_usable() {
                mirror.standing = Standing::Refused { class: Class::Changed, why: OUTDATED.to_owned() };
            }
        }
    }

    /// The mirror that a session is with, or wished for with.
    const fn asked_mirror(&self) -> Option<usize> {
        match &self.state {
            State::Running(Session { mirror, .. }) | State::Wished(mirror) => Some(*mirror),
            State::Waiting(_) | State::Resting(_) | State::Over => None,
        }
    }
}

fn is_named_otherwise(mirror: &MirrorRecord, digest: &Expected) -> bool {
    mirror.named_with.as_ref().is_some_and(|known| known != digest)
}

/// Does the version that is being put together have another digest, as far as servers say?
fn is_denied(dossier: &Dossier, digest: &Expected) -> bool {
    contradict(std::slice::from_ref(digest), &dossier.rival.as_ref().unwrap_or(&dossier.part).vouched)
}
