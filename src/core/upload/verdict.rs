//! What a refusal means, in one place: table 8.5 of the facts of uploads, beside the table of downloads.

use super::failure::UpFailure;
use super::found::Call;
use super::protocol::Protocol;
use crate::core::failure::Failure;
use crate::core::time::Delay;
use crate::core::verdict::{self, Class, Context, HostSign, RETRY_AFTER_CAP, Scope};

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpVerdict {
    /// The word for it.
    pub class: Class,
    /// What becomes of the server and the upload.
    pub scope: UpScope,
    /// What it says of the host.
    pub host: HostSign,
}

/// What becomes of the server and the upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpScope {
    /// It may be better next time.
    Transient {
        /// Not before this much time has passed.
        floor: Option<Delay>,
    },
    /// The same, but a person should look (credentials): slowly.
    Attention,
    /// It looks final: the server is refused once this has happened three times in a row.
    Doubtful,
    /// The server is refused for this file.
    RefuseServer,
    /// The server is refused by this protocol.
    RefuseProtocol,
    /// The file cannot be sent anywhere.
    FailFile,
    /// Trouble on this machine.
    Local,
}

/// What the machine does about a status, before anybody else hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// Ends the session with this scope.
    End(UpScope),
    /// Asks what the server holds, and goes on from there.
    Probe,
    /// The session is gone: begins a new one.
    NewSession,
    /// Makes bodies smaller.
    Segment,
    /// Waits a little, and asks again.
    Wait,
}

/// The table: what a status means in answer to this call. Statuses that a protocol reads itself never come here.
pub fn row(protocol: Protocol, call: Call, code: u16, retry_after: Option<Delay>) -> Row {
    let floor = retry_after.filter(|d| *d > Delay::ZERO).map(|d| d.min(RETRY_AFTER_CAP));
    let transient = Row::End(UpScope::Transient { floor });
    match code {
        408 | 425 | 429 | 500 | 502..=504 | 506..=599 => transient,
        401 | 403 | 407 => Row::End(UpScope::Attention),
        404 | 410 => missing(protocol, call),
        409 => conflict(protocol),
        412 => precondition(protocol),
        413 => too_large(protocol, call),
        423 if has_sessions(protocol) => Row::Wait,
        423 => transient,
        400 | 460 if protocol == Protocol::Tus && on_session(call) => Row::Probe,
        400.. if protocol == Protocol::Boinc => transient,
        _ => Row::End(UpScope::RefuseServer),
    }
}

fn missing(protocol: Protocol, call: Call) -> Row {
    match protocol {
        Protocol::Boinc => Row::End(UpScope::Transient { floor: None }),
        Protocol::Put | Protocol::PutRange => Row::End(UpScope::Doubtful),
        Protocol::Tus | Protocol::Ietf | Protocol::S3 if on_session(call) => Row::NewSession,
        Protocol::Tus | Protocol::Ietf | Protocol::S3 => Row::End(UpScope::RefuseServer),
    }
}

const fn conflict(protocol: Protocol) -> Row {
    match protocol {
        // Of S3: another request on the same object is under way.
        Protocol::Boinc | Protocol::S3 => Row::End(UpScope::Transient { floor: None }),
        Protocol::Put | Protocol::PutRange => Row::End(UpScope::RefuseServer),
        Protocol::Tus | Protocol::Ietf => Row::Probe,
    }
}

const fn precondition(protocol: Protocol) -> Row {
    match protocol {
        Protocol::Boinc => Row::End(UpScope::Transient { floor: None }),
        Protocol::Put | Protocol::PutRange | Protocol::S3 => Row::End(UpScope::RefuseServer),
        Protocol::Tus | Protocol::Ietf => Row::End(UpScope::RefuseProtocol),
    }
}

const fn too_large(protocol: Protocol, call: Call) -> Row {
    match (protocol, call) {
        // The parts of a session all have one size.
        (Protocol::Put | Protocol::S3, _) => Row::End(UpScope::RefuseServer),
        (_, Call::Send(_)) => Row::Segment,
        (Protocol::Boinc, _) => Row::End(UpScope::Transient { floor: None }),
        _ => Row::End(UpScope::RefuseServer),
    }
}

/// The same for stores that name an error: what its name means, whatever the status. `None` for a name that is not known;
/// then the status counts.
pub fn store_row(call: Call, word: &str, retry_after: Option<Delay>) -> Option<Row> {
    let floor = retry_after.filter(|d| *d > Delay::ZERO).map(|d| d.min(RETRY_AFTER_CAP));
    Some(match word {
        "SlowDown"
        | "SlowDownRead"
        | "SlowDownWrite"
        | "ServiceUnavailable"
        | "InternalError"
        | "RequestTimeout"
        | "Busy"
        | "TooManyRequests"
        | "Throttling"
        | "ThrottlingException"
        | "RequestLimitExceeded"
        | "OperationAborted"
        | "ConditionalRequestConflict" => Row::End(UpScope::Transient { floor }),
        // What came was not what was sent: the line is to blame.
        "IncompleteBody" | "BadDigest" | "XAmzContentSHA256Mismatch" | "XAmzContentChecksumMismatch" => {
            Row::End(UpScope::Transient { floor })
        }
        "AccessDenied"
        | "ExpiredToken"
        | "InvalidToken"
        | "TokenRefreshRequired"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "InvalidSecurity"
        | "AccountProblem"
        | "AllAccessDisabled"
        | "NotSignedUp"
        | "RequestTimeTooSkewed"
        | "RequestExpired"
        | "AuthorizationHeaderMalformed"
        | "AuthorizationQueryParametersError"
        | "QuotaExceeded" => Row::End(UpScope::Attention),
        "NoSuchUpload" if on_session(call) => Row::NewSession,
        "InvalidPart" | "InvalidPartOrder" | "EntityTooSmall" if call == Call::Finish => Row::Probe,
        "NoSuchUpload" | "NoSuchBucket" | "InvalidBucketName" | "EntityTooLarge" | "EntityTooSmall" | "InvalidPart"
        | "InvalidPartOrder" | "KeyTooLongError" | "MethodNotAllowed" | "NotImplemented" | "InvalidArgument"
        | "InvalidRequest" | "InvalidDigest" | "MalformedXML" | "PermanentRedirect" | "TemporaryRedirect"
        | "Redirect" | "PreconditionFailed" | "InvalidObjectState" => Row::End(UpScope::RefuseServer),
        _ => return None,
    })
}

/// Does the call speak to the URL of a session?
const fn on_session(call: Call) -> bool {
    !matches!(call, Call::Prepare)
}

const fn has_sessions(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Tus | Protocol::Ietf)
}

/// What a failure means for the server and the upload.
pub fn judge(failure: &UpFailure) -> UpVerdict {
    let transient = UpScope::Transient { floor: None };
    let (class, scope, host) = match failure {
        UpFailure::Transfer(failure) => return of_transfer(failure),
        UpFailure::Status { protocol, call, code, retry_after, .. } => {
            return of_status(*code, row(*protocol, *call, *code, *retry_after));
        }
        UpFailure::Store { call, code, word, retry_after, .. } => {
            // In the body of what looked like success stands what is an error of the server's own.
            let code = if *code < 300 { 500 } else { *code };
            let told = store_row(*call, word, *retry_after);
            return of_status(code, told.unwrap_or_else(|| row(Protocol::S3, *call, code, *retry_after)));
        }
        UpFailure::UrlExpired => (Class::Denied, UpScope::Attention, HostSign::Answering),
        UpFailure::Later { .. } | UpFailure::Busy { .. } => (Class::Throttled, transient, HostSign::Answering),
        UpFailure::Never { .. } | UpFailure::Application { .. } => {
            (Class::Denied, UpScope::RefuseServer, HostSign::Answering)
        }
        UpFailure::Foreign { protocol: Protocol::Boinc, .. } => (Class::Unsupported, transient, HostSign::Answering),
        UpFailure::Foreign { .. } => (Class::Unsupported, UpScope::Doubtful, HostSign::Answering),
        UpFailure::SourceChanged(_) => (Class::Changed, UpScope::FailFile, HostSign::Nothing),
        UpFailure::SourceGone { .. } => (Class::LocalFault, UpScope::FailFile, HostSign::Nothing),
        UpFailure::Early { .. } => (Class::Unsupported, UpScope::Doubtful, HostSign::Answering),
        UpFailure::Overclaimed { .. } => (Class::Corrupt, UpScope::Doubtful, HostSign::Answering),
        UpFailure::Conflict { .. } => (Class::Changed, UpScope::RefuseServer, HostSign::Answering),
        UpFailure::NoGrowth { .. } => (Class::Interrupted, transient, HostSign::Answering),
        UpFailure::KeepsForgetting { .. } => (Class::Gone, UpScope::RefuseServer, HostSign::Answering),
        UpFailure::Untouched => (Class::Corrupt, UpScope::Doubtful, HostSign::Answering),
        UpFailure::Unread { .. } => (Class::Unsupported, UpScope::RefuseServer, HostSign::Answering),
        UpFailure::WrongSize { .. } => (Class::Corrupt, UpScope::Doubtful, HostSign::Answering),
        UpFailure::WrongDigest { .. } => (Class::Corrupt, UpScope::RefuseServer, HostSign::Answering),
        UpFailure::Unsupported { .. } => (Class::Unsupported, UpScope::RefuseProtocol, HostSign::Answering),
        UpFailure::ElsewhereNamed { .. } => (Class::Unsupported, UpScope::RefuseServer, HostSign::Answering),
    };
    UpVerdict { class, scope, host }
}

fn of_status(code: u16, row: Row) -> UpVerdict {
    // Of a download the class is the same, and so is what a status says of the host.
    let failure = Failure::Status { code, retry_after: None };
    let told = verdict::judge(&failure, Context { served: false, retry_on: &[] });
    let scope = match row {
        Row::End(scope) => scope,
        // What did not help the machine is the server's way.
        // Two requests that crossed, perhaps: what comes back three passes in a row is its way.
        Row::Probe if code == 409 => UpScope::Doubtful,
        Row::Probe | Row::Segment | Row::NewSession => UpScope::RefuseServer,
        Row::Wait => UpScope::Transient { floor: None },
    };
    UpVerdict { class: told.class, scope, host: told.host }
}

/// Transport, TLS, redirects, this machine: the table of downloads. A certificate is transient, and slow.
fn of_transfer(failure: &Failure) -> UpVerdict {
    let told = verdict::judge(failure, Context { served: false, retry_on: &[] });
    let scope = match told.scope {
        _ if matches!(failure, Failure::Certificate { .. }) => UpScope::Attention,
        // No HTTP at all, or none that can be read: a front end that is broken now, or a line.
        _ if matches!(failure, Failure::BadAnswer(_)) => UpScope::Transient { floor: None },
        Scope::Transient { floor } => UpScope::Transient { floor },
        Scope::RefuseMirror => UpScope::RefuseServer,
        Scope::Doubtful | Scope::WrongDigest | Scope::WrongBytes => UpScope::Doubtful,
        Scope::Local => UpScope::Local,
        Scope::FailTransfer => UpScope::FailFile,
    };
    UpVerdict { class: told.class, scope, host: told.host }
}
