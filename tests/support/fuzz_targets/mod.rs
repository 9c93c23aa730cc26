//! The parsers as functions over bytes, each with what must hold of it. Run by `tests/fuzz_parsers.rs`.

mod documents;
mod fields;
mod gui_rpc;
mod lists;
mod names;
mod sync;
mod uploads;
mod words;

use std::fmt::Display;

use persxfer::core::printable::is_hidden;
use persxfer::core::url::MirrorUrl;

use crate::fuzz::Target;

/// Every target.
pub(crate) const ALL: &[Target] = &[
    fields::ANSWER_HEAD,
    fields::CONTENT_RANGE,
    fields::HTTP_DATE,
    fields::RETRY_AFTER,
    fields::ETAG,
    fields::LINK,
    fields::DIGEST_FIELDS,
    names::DISPOSITION,
    names::FILE_NAME,
    names::LOCATION,
    names::URL,
    fields::HEADER_TEXT,
    documents::METALINK,
    documents::CLIENT_STATE,
    lists::CHECKSUMS,
    words::DIGEST,
    lists::NETRC,
    lists::COOKIES,
    words::UNITS,
    words::RETRY_POLICY,
    words::PIN,
    words::PROXY,
    words::PRINTABLE,
    uploads::ANSWERS,
    uploads::PROFILES,
    uploads::MANIFEST,
    gui_rpc::CONNECTION,
    gui_rpc::METRICS_REQUEST,
    sync::CONFIG,
    sync::INDEX,
    sync::MANIFEST,
    sync::DESCRIPTORS,
];

/// The target of that name.
pub(crate) fn named(name: &str) -> Target {
    *ALL.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("there is no target {name}"))
}

/// What most targets share.
const PLAIN: Target =
    Target { name: "", run: |_| 0, words: &[], runs: 60_000, grows_from: 4 << 10, frames: &[("", "")] };

/// As the caller of a parser makes text of bytes.
fn text(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data)
}

/// Goes to a terminal as it is: nothing in it does more than to be seen, and there is an end to it.
fn assert_printable(shown: impl Display) {
    let shown = shown.to_string();
    assert!(shown.len() < 5000, "{} bytes are shown", shown.len());
    assert_harmless(shown);
}

/// The same of what a person typed, who may see all of it again.
fn assert_harmless(shown: impl Display) {
    let shown = shown.to_string();
    assert!(!shown.chars().any(is_hidden), "{shown:?} is not printable");
}

fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).unwrap_or_else(|e| panic!("{e}"))
}
