//! What a failure means: its class, and from it what becomes of the mirror, the transfer, the host. One table, here.
//!
//! Design section 4. [`judge`] is the table; it is asked once a failure and looks at nothing but the failure and the few
//! facts of its [`Context`]. It speaks of downloads; of uploads it asks their own table ([`crate::core::upload::judge`]).

use crate::core::failure::{BadAnswer, Failure};
use crate::core::time::Delay;
use crate::core::upload::{self, UpFailure, UpScope};

/// The longest time a server's Retry-After is believed: a day. A server that says "in a century" is asked tomorrow.
pub const RETRY_AFTER_CAP: Delay = Delay::from_days(1);

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The word for it.
    pub class: Class,
    /// What becomes of the mirror and the transfer.
    pub scope: Scope,
    /// What it says of the host, for the backoff of the host as a whole.
    pub host: HostSign,
}

/// What becomes of the mirror and the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// It may be better next time.
    Transient {
        /// Retry-After, capped at [`RETRY_AFTER_CAP`]: not before this much time has passed, at this mirror.
        floor: Option<Delay>,
    },
    /// The mirror is refused for this life.
    RefuseMirror,
    /// It looks final, but may not be: the mirror is refused once this has happened in
    /// [`crate::core::mirrors::PASSES_TO_REFUSE`] passes in a row.
    Doubtful,
    /// The mirror served a whole file of the wrong digest: the first time it is asked again past all caches, the second
    /// time it is refused.
    WrongDigest,
    /// The mirror sent bytes that are known to be wrong, and that are gone already: counted like a wrong digest.
    WrongBytes,
    /// Trouble on this machine: nothing is counted against anybody.
    Local,
    /// The transfer cannot come to a good end, with whomever: the file to be sent is another one by now.
    FailTransfer,
}

/// What a failure says of the host that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSign {
    /// The host does not do its work: unreachable, 5xx (but 501 and 505, which are no outage), 429, a stall. Three of these in a row close it for a while.
    Failing,
    /// The host works, only this file is not to be had: any other answer.
    Answering,
    /// It says nothing: a line that broke, trouble of our own, a certificate.
    Nothing,
}

/// What the table must know besides the failure.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The mirror has served bytes of this transfer, in this life.
    pub served: bool,
    /// Further statuses that count as transient (`--retry-on`).
    pub retry_on: &'a [u16],
}

/// The table.
///
/// Two rows that are not plain:
/// - A certificate that is not trusted becomes no better by asking again, as a rule; but it also is what a machine sees
///   whose clock has not been set yet, a traveller behind a portal that wants a login, or a client on the day on which
///   a server's certificate lapsed. So it takes the three passes, and a mirror that has proven itself by serving bytes is
///   asked until the give-up window ends. No byte is ever taken over such a connection, so patience costs nothing.
/// - A page in place of the file is transient: it is what a portal shows until somebody logs in.
pub fn judge(failure: &Failure, context: Context<'_>) -> Verdict {
    let transient = Scope::Transient { floor: None };
    let (class, scope, host) = match failure {
        Failure::Resolve { .. } | Failure::Connect { .. } | Failure::NoAnswer { .. } => {
            (Class::Unreachable, transient, HostSign::Failing)
        }
        Failure::Stalled { .. } => (Class::Interrupted, transient, HostSign::Failing),
        Failure::Cut(_) => (Class::Interrupted, transient, HostSign::Nothing),
        Failure::Certificate { .. } if context.served => (Class::Denied, transient, HostSign::Nothing),
        Failure::Certificate { .. } => (Class::Denied, Scope::Doubtful, HostSign::Nothing),
        Failure::Status { code, retry_after } => return judge_status(*code, *retry_after, context),
        Failure::Upload(failure) => return judge_upload(failure, context),
        Failure::PrivateMirror { .. } => (Class::Unsupported, Scope::RefuseMirror, HostSign::Nothing),
        Failure::Redirect(_) => (Class::Unsupported, Scope::RefuseMirror, HostSign::Answering),
        // A mirror that has served the file as it is may do so again: one coded answer is some proxy's.
        Failure::BadAnswer(BadAnswer::Coded { .. }) if context.served => {
            (Class::Unsupported, Scope::Doubtful, HostSign::Answering)
        }
        Failure::BadAnswer(BadAnswer::Coded { .. }) => (Class::Unsupported, Scope::RefuseMirror, HostSign::Answering),
        Failure::BadAnswer(BadAnswer::HtmlPage) => (Class::Denied, transient, HostSign::Answering),
        // A page that stands in goes away again.
        Failure::BadAnswer(BadAnswer::Shrunk { .. }) => (Class::Changed, transient, HostSign::Answering),
        Failure::WrongVersion { .. } => (Class::Corrupt, Scope::Doubtful, HostSign::Answering),
        // Ranges that are broken are noted in the dossier, and the next session asks in another way; a garbled head may
        // be a proxy's doing. What comes back three passes in a row is the server's way.
        Failure::BadAnswer(_) => (Class::Unsupported, Scope::Doubtful, HostSign::Answering),
        Failure::KeepsChanging { .. } => (Class::Changed, Scope::RefuseMirror, HostSign::Answering),
        Failure::ChangedMeanwhile { .. } => (Class::Changed, transient, HostSign::Answering),
        Failure::OddMirror { .. } => (Class::Changed, Scope::RefuseMirror, HostSign::Answering),
        Failure::Piece { .. } | Failure::Digest { .. } | Failure::Vouched { .. } => {
            (Class::Corrupt, Scope::WrongDigest, HostSign::Answering)
        }
        Failure::Content { .. } => (Class::Corrupt, Scope::WrongBytes, HostSign::Answering),
        Failure::TooLarge { .. } => (Class::Unsupported, Scope::RefuseMirror, HostSign::Answering),
        Failure::OtherSize { .. } => (Class::Changed, Scope::RefuseMirror, HostSign::Answering),
        // Another mirror may give a validator where this one gives none.
        Failure::Evidence { .. } => (Class::Unsupported, Scope::RefuseMirror, HostSign::Answering),
        Failure::NoRoom(_) | Failure::Local(_) => (Class::LocalFault, Scope::Local, HostSign::Nothing),
    };
    Verdict { class, scope, host }
}

/// Uploads have a table of their own. What it calls a matter for a person's attention is tried on all the same.
fn judge_upload(failure: &UpFailure, context: Context<'_>) -> Verdict {
    let told = upload::judge(failure);
    let scope = match (told.scope, failure) {
        (_, UpFailure::Status { code, retry_after, .. }) if context.retry_on.contains(code) => {
            Scope::Transient { floor: floor_of(*retry_after) }
        }
        (UpScope::Transient { floor }, _) => Scope::Transient { floor },
        (UpScope::Attention, _) => Scope::Transient { floor: None },
        (UpScope::Doubtful, _) => Scope::Doubtful,
        (UpScope::RefuseServer | UpScope::RefuseProtocol, _) => Scope::RefuseMirror,
        (UpScope::FailFile, _) => Scope::FailTransfer,
        (UpScope::Local, _) => Scope::Local,
    };
    Verdict { class: told.class, scope, host: told.host }
}

fn judge_status(code: u16, retry_after: Option<Delay>, context: Context<'_>) -> Verdict {
    let scope = if context.retry_on.contains(&code) || is_transient(code) {
        Scope::Transient { floor: floor_of(retry_after) }
    } else if refuses(code, context) {
        Scope::RefuseMirror
    } else {
        Scope::Doubtful
    };
    let busy = code == 429 || code >= 500 && is_transient(code);
    let host = if busy { HostSign::Failing } else { HostSign::Answering };
    Verdict { class: class_of_status(code), scope, host }
}

const fn is_transient(code: u16) -> bool {
    matches!(code, 408 | 425 | 429 | 500 | 502..=504 | 506..=599)
}

/// Refused at once. What was there and served, and is now said to be missing or forbidden, may come back: a deployment,
/// a signed link. Statuses of 400 and more that stand in no row are doubtful. (421: the session has asked
/// on one new connection already.)
const fn refuses(code: u16, context: Context<'_>) -> bool {
    match code {
        403 | 404 | 410 => !context.served,
        400 | 401 | 405 | 406 | 407 | 411 | 414 | 415 | 421 | 431 | 451 | 501 | 505 => true,
        _ => code < 400,
    }
}

const fn class_of_status(code: u16) -> Class {
    match code {
        404 => Class::Missing,
        410 => Class::Gone,
        401 | 403 | 407 | 451 => Class::Denied,
        _ if is_transient(code) => Class::Throttled,
        _ => Class::Unsupported,
    }
}

/// A Retry-After of no time is none.
fn floor_of(retry_after: Option<Delay>) -> Option<Delay> {
    retry_after.filter(|d| *d > Delay::ZERO).map(|d| d.min(RETRY_AFTER_CAP))
}

/// The class of a failure: the word a user, the ledger and the JSON events see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The connection broke off, stalled, or brought less than announced.
    Interrupted,
    /// No name, no route, no connection, no answer in time.
    Unreachable,
    /// The server is busy or asks to wait: 408, 425, 429, 5xx.
    Throttled,
    /// 404: not there, perhaps not yet.
    Missing,
    /// 410: not there any more.
    Gone,
    /// 401, 403, 407, 451, a certificate that is not trusted.
    Denied,
    /// The server or the file is of a kind that we cannot use: other 4xx, 501, 505, a coded answer, redirects that lead nowhere.
    Unsupported,
    /// The whole file has the wrong digest.
    Corrupt,
    /// The file is another one than before, or than the other mirrors have.
    Changed,
    /// Trouble on this machine.
    LocalFault,
    /// The give-up window has passed.
    GaveUp,
    /// A person said so.
    Aborted,
}

impl Class {
    /// The word for it, in XML, JSON and tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Unreachable => "unreachable",
            Self::Throttled => "throttled",
            Self::Missing => "missing",
            Self::Gone => "gone",
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::Corrupt => "corrupt",
            Self::Changed => "changed",
            Self::LocalFault => "local-fault",
            Self::GaveUp => "gave-up",
            Self::Aborted => "aborted",
        }
    }

    /// Every class.
    pub const ALL: [Self; 12] = [
        Self::Interrupted,
        Self::Unreachable,
        Self::Throttled,
        Self::Missing,
        Self::Gone,
        Self::Denied,
        Self::Unsupported,
        Self::Corrupt,
        Self::Changed,
        Self::LocalFault,
        Self::GaveUp,
        Self::Aborted,
    ];

    /// The class of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.word() == word)
    }
}

#[cfg(test)]
mod tests;
