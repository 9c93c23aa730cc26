//! What the log (`-v`) tells of requests and answers: their heads, without anything that may be a secret.

use http::header::{self, HeaderMap, HeaderName};

use crate::core::printable::printable_bytes;
use crate::core::upload::Ask;
use crate::core::url::MirrorUrl;

/// What is told of a request. What the user adds, and what authorizes, is not.
const ASKED: [HeaderName; 6] = [
    header::RANGE,
    header::IF_RANGE,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::CACHE_CONTROL,
    header::ACCEPT_ENCODING,
];

/// What is told of an answer. A Location may be signed, and cookies are secrets.
const ANSWERED: [HeaderName; 10] = [
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_DISPOSITION,
    header::ETAG,
    header::LAST_MODIFIED,
    header::ACCEPT_RANGES,
    header::RETRY_AFTER,
    header::SERVER,
];

/// What is told of a request of an upload.
const SENT: [&str; 5] = ["content-range", "upload-offset", "upload-length", "upload-complete", "tus-resumable"];

/// And of its answer, beside the usual.
const SAID: [&str; 4] = ["upload-offset", "upload-length", "upload-complete", "upload-expires"];

/// A request is about to be sent.
pub(super) fn request(url: &MirrorUrl, headers: &HeaderMap) {
    tracing::info!("> GET {url}{}", told(&ASKED, headers));
}

/// The head of its answer is here.
pub(super) fn answer(status: u16, headers: &HeaderMap) {
    tracing::info!("< {status}{}", told(&ANSWERED, headers));
}

/// A request of an upload is about to be sent. Of a session's own URL, which is a secret, only the origin is told.
pub(super) fn upload(ask: &Ask, server: &MirrorUrl) {
    let fields = ask.fields.iter().filter(|(name, _)| SENT.contains(name));
    let fields: String = fields.map(|(name, value)| format!("; {name}: {value}")).collect();
    let (method, length) = (ask.method.as_str(), ask.body.length());
    if ask.url == *server {
        tracing::info!("> {method} {server} ({length} bytes){fields}");
    } else {
        tracing::info!("> {method} {}/... ({length} bytes){fields}", ask.url.origin());
    }
}

/// The answer to it.
pub(super) fn upload_answer(status: u16, headers: &HeaderMap) {
    let fields: String = SAID
        .iter()
        .filter_map(|name| headers.get(*name).map(|value| format!("; {name}: {}", printable_bytes(value.as_bytes()))))
        .collect();
    tracing::info!("< {status}{}{fields}", told(&ANSWERED, headers));
}

fn told(names: &[HeaderName], headers: &HeaderMap) -> String {
    let line = |name: &HeaderName| {
        let value = headers.get(name)?;
        Some(format!("; {name}: {}", printable_bytes(value.as_bytes())))
    };
    names.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_told() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Basic s3cret".parse().expect("a value"));
        headers.insert(header::COOKIE, "s3cret".parse().expect("a value"));
        headers.insert(header::RANGE, "bytes=5-".parse().expect("a value"));
        assert_eq!(told(&ASKED, &headers), "; range: bytes=5-");
    }
}
