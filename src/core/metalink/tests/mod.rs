//! What good metalinks say, and what bad ones are refused for.

mod hostile;
mod samples;

use super::*;

/// A document of version 4 with this inside its root.
fn four(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">{inner}</metalink>\n"
    )
}

/// A document of version 3 with this inside its `<files>`.
fn three(inner: &str) -> String {
    format!("<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\"><files>{inner}</files></metalink>")
}

fn read(text: &str) -> Result<Metalink, BadMetalink> {
    Metalink::parse(text.as_bytes())
}

/// The one file of a document.
fn only(text: &str) -> MetaFile {
    let mut files = read(text).unwrap_or_else(|e| panic!("{e}: {text}")).files;
    assert_eq!(files.len(), 1, "{text}");
    files.remove(0)
}

fn fault(text: &str) -> Fault {
    read(text).expect_err(text).fault
}

fn urls(file: &MetaFile) -> Vec<(&str, u32)> {
    file.urls.iter().map(|u| (u.url.secret_url().as_str(), u.priority)).collect()
}
