//! From the errors of reqwest, hyper, rustls and the system to a [`Failure`].
//!
//! The whole chain of causes is looked at, by type wherever the type has a name. No text that comes out of here holds a
//! URL, a secret or a character that a terminal would act upon.

use std::error::Error;
use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError};

use super::resolve::{NoAddress, Private};
use super::tls::{self, NoRoots};
use crate::core::failure::{BadAnswer, Cut, Failure, LocalFault, NO_NETWORK};
use crate::core::file_xfer::Framing;
use crate::core::printable::printable;
use crate::core::time::Delay;

/// What is said where a body ended before its Content-Length; see [`ended_short`].
const ENDED_SHORT: &str = "the body ended before its length";

/// Did a body end before its Content-Length? Who knows both positions can then say so with [`Cut::Short`].
pub fn ended_short(failure: &Failure) -> bool {
    matches!(failure, Failure::Cut(Cut::Broken { detail }) if detail == ENDED_SHORT)
}

type Link<'a> = &'a (dyn Error + 'static);

/// No answer head came.
pub(super) fn before_head(error: reqwest::Error, connect_timeout: Delay) -> Failure {
    let error = error.without_url();
    let chain = chain_of(&error);
    if let Some(refused) = find::<Private>(&chain) {
        return private(refused);
    }
    if let Some(failure) = of_known_type(&chain) {
        return failure;
    }
    if error.is_connect() {
        let timed_out = error.is_timeout();
        return if timed_out { no_connection_within(connect_timeout) } else { of_connecting(&chain, connect_timeout) };
    }
    if error.is_builder() {
        return no_request(&last(&chain));
    }
    of_exchange(&chain)
}

/// A mirror that a server named, and that is not asked.
pub(super) fn private(refused: &Private) -> Failure {
    Failure::PrivateMirror { host: harmless(&refused.host), address: refused.address }
}

/// No connection came about, for another reason than that the time was over.
pub(super) fn before_connection(error: &(dyn Error + 'static), limit: Delay) -> Failure {
    let chain = chain_of(error);
    of_known_type(&chain).unwrap_or_else(|| of_connecting(&chain, limit))
}

/// No connection came about in time.
pub(super) fn no_connection_within(limit: Delay) -> Failure {
    Failure::Connect { detail: format!("no connection within {} s", limit.as_secs_f64()) }
}

/// The URL cannot stand in a request.
pub(super) fn no_request(why: &str) -> Failure {
    Failure::Connect { detail: format!("no request can be made of this URL: {}", harmless(why)) }
}

/// An exchange on a connection that stood broke before the answer's head.
pub(super) fn in_exchange(error: &(dyn Error + 'static)) -> Failure {
    let chain = chain_of(error);
    of_known_type(&chain).unwrap_or_else(|| of_exchange(&chain))
}

/// The body of an answer of reqwest's broke off.
pub(super) fn in_body(error: reqwest::Error, framing: Framing) -> Failure {
    in_any_body(&error.without_url(), framing)
}

/// The body broke off.
pub(super) fn in_any_body(error: &(dyn Error + 'static), framing: Framing) -> Failure {
    let chain = chain_of(error);
    let kind = io_kind(&chain);
    let detail = match (kind, framing) {
        (Some(ErrorKind::UnexpectedEof), Framing::Length(_)) => ENDED_SHORT.to_owned(),
        (Some(ErrorKind::UnexpectedEof), Framing::Marked) => "the body ended without its end mark".to_owned(),
        (Some(ErrorKind::UnexpectedEof), Framing::Close) => {
            "TLS was closed without notice, so nothing proves that the body is whole".to_owned()
        }
        (Some(kind), _) => io_words(kind).map_or_else(|| last(&chain), str::to_owned),
        (None, _) => last(&chain),
    };
    Failure::Cut(Cut::Broken { detail })
}

/// What has one meaning, whenever it comes.
fn of_known_type(chain: &[Link<'_>]) -> Option<Failure> {
    if let Some(name) = find::<NoAddress>(chain) {
        return Some(Failure::Resolve { host: harmless(&name.host), detail: harmless(&name.detail) });
    }
    let of_tls = find::<rustls::Error>(chain).and_then(of_tls);
    of_tls.or_else(|| out_of_descriptors(chain).map(Failure::Local))
}

fn of_connecting(chain: &[Link<'_>], limit: Delay) -> Failure {
    let text = last(chain);
    // The proxy's answers to CONNECT have no type that can be named.
    if text == "tunnel error: proxy authorization required" {
        return Failure::Status { code: 407, retry_after: None };
    }
    if text == "tunnel error: unsuccessful" {
        return Failure::Connect { detail: "the proxy refuses to connect to this host".to_owned() };
    }
    let detail = match io_kind(chain) {
        Some(ErrorKind::TimedOut) => return no_connection_within(limit),
        Some(ErrorKind::UnexpectedEof) => "the connection was closed during the TLS handshake".to_owned(),
        Some(kind) => io_words(kind).map_or(text, str::to_owned),
        None => text,
    };
    Failure::Connect { detail }
}

/// This process or machine has no file descriptor left: no fault of any server.
fn out_of_descriptors(chain: &[Link<'_>]) -> Option<LocalFault> {
    use rustix::io::Errno;
    let spent = |e: &&io::Error| matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE));
    let error = chain.iter().filter_map(|link| link.downcast_ref::<io::Error>()).find(spent)?;
    Some(LocalFault::Io { doing: "open", path: "a network connection".to_owned(), detail: error.to_string() })
}

/// An exchange that broke between the connection and the answer's head.
fn of_exchange(chain: &[Link<'_>]) -> Failure {
    let parse = find::<hyper::Error>(chain).filter(|e| e.is_parse() || e.to_string().contains("unexpected message"));
    if let Some(error) = parse {
        return Failure::BadAnswer(BadAnswer::Framing { detail: harmless(&error.to_string()) });
    }
    let ended = find::<hyper::Error>(chain).is_some_and(hyper::Error::is_incomplete_message);
    if ended || io_kind(chain) == Some(ErrorKind::UnexpectedEof) {
        return Failure::Cut(Cut::Broken { detail: "the connection was closed before an answer was there".to_owned() });
    }
    let words = io_kind(chain).and_then(io_words);
    Failure::Cut(Cut::Broken { detail: words.map_or_else(|| last(chain), str::to_owned) })
}

fn of_tls(error: &rustls::Error) -> Option<Failure> {
    use rustls::Error as Tls;
    let detail = match error {
        Tls::InvalidCertificate(fault) => certificate_hint(fault, error),
        Tls::Other(other) if other.0.is::<NoRoots>() => other.to_string(),
        Tls::AlertReceived(alert) => client_certificate_hint(*alert)?.to_owned(),
        Tls::InvalidMessage(_) => {
            return Some(Failure::Connect { detail: "the server does not speak TLS at this port".to_owned() });
        }
        Tls::PeerIncompatible(_) => {
            let detail = format!("no common ground with the server's TLS: {}", harmless(&error.to_string()));
            return Some(Failure::Connect { detail });
        }
        _ => return None,
    };
    Some(Failure::Certificate { detail })
}

fn certificate_hint(fault: &CertificateError, error: &rustls::Error) -> String {
    use CertificateError as Fault;
    match fault {
        Fault::Expired | Fault::ExpiredContext { .. } => {
            "it has expired (or the clock of this machine is wrong)".to_owned()
        }
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => {
            "it is not valid yet (or the clock of this machine is wrong)".to_owned()
        }
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
            "it is for another host than the one asked for".to_owned()
        }
        Fault::UnknownIssuer => {
            "nobody trusted has signed it; if you trust it, give its authority with --cacert".to_owned()
        }
        Fault::Revoked => "it has been revoked".to_owned(),
        _ if tls::is_authority_itself(error) => {
            "the server shows an authority's own certificate; if you trust it, give that file with --cacert".to_owned()
        }
        _ => harmless(&error.to_string()),
    }
}

fn client_certificate_hint(alert: AlertDescription) -> Option<&'static str> {
    match alert {
        AlertDescription::CertificateRequired => Some("the server wants a certificate of ours; give one with --cert"),
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => Some("the server does not accept our certificate (--cert)"),
        _ => None,
    }
}

/// The error and all its causes. An `io::Error` hides what it wraps from `source`, so it is opened here.
fn chain_of<'a>(error: &'a (dyn Error + 'static)) -> Vec<Link<'a>> {
    let mut chain = Vec::new();
    let mut next = Some(error);
    while let Some(link) = next {
        chain.push(link);
        next = match link.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as Link<'_>),
            None => link.source(),
        };
    }
    chain
}

fn find<'a, E: Error + 'static>(chain: &[Link<'a>]) -> Option<&'a E> {
    chain.iter().find_map(|link| link.downcast_ref::<E>())
}

/// The innermost kind that says anything.
fn io_kind(chain: &[Link<'_>]) -> Option<ErrorKind> {
    chain
        .iter()
        .rev()
        .filter_map(|link| link.downcast_ref::<io::Error>())
        .map(io::Error::kind)
        .find(|kind| *kind != ErrorKind::Other)
}

fn io_words(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "reset by the server",
        ErrorKind::ConnectionAborted => "aborted by this machine's network",
        ErrorKind::BrokenPipe | ErrorKind::NotConnected => "closed by the server",
        ErrorKind::TimedOut => "the server's machine no longer answers",
        ErrorKind::HostUnreachable => "no route to the host",
        ErrorKind::NetworkUnreachable => NO_NETWORK[0],
        ErrorKind::NetworkDown => NO_NETWORK[1],
        _ => return None,
    })
}

/// What the innermost cause says.
fn last(chain: &[Link<'_>]) -> String {
    chain.last().map(|link| harmless(&link.to_string())).unwrap_or_default()
}

fn harmless(text: &str) -> String {
    printable(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_goes_through_what_an_io_error_wraps() {
        let inner = io::Error::other(NoAddress { host: "h".into(), detail: "d".into() });
        let outer = io::Error::new(ErrorKind::ConnectionReset, inner);
        let chain = chain_of(&outer);
        assert_eq!(find::<NoAddress>(&chain).map(|n| n.host.as_str()), Some("h"));
        assert_eq!(io_kind(&chain), Some(ErrorKind::ConnectionReset));
    }

    #[test]
    fn no_descriptor_left_is_trouble_of_this_machine() {
        let outer = io::Error::other(io::Error::from(rustix::io::Errno::MFILE));
        assert!(matches!(out_of_descriptors(&chain_of(&outer)), Some(LocalFault::Io { .. })));
        assert_eq!(out_of_descriptors(&chain_of(&io::Error::from(rustix::io::Errno::CONNREFUSED))), None);
    }
}
