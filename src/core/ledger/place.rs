//! Where below a worker's folder the file of a record goes: as its URL says, so that each has its own place and finds it again.

use crate::core::ledger::record::Key;
use crate::core::name::{Giver, SafeName};
use crate::core::url::MirrorUrl;

/// The names of the folders, and of the file: the host's, those of the URL's path, the last. Each is safe to create. What the
/// URL says beyond its path, or what could not be kept as it was, is told by a sum of the record's key in the file's name.
pub fn place_of(url: &MirrorUrl, key: &Key) -> Vec<String> {
    let secret = url.secret_url();
    let safe = |text: &str| SafeName::new(text, Giver::Url).map(|name| name.as_str().to_owned());
    let host = match secret.port() {
        Some(port) => format!("{}_{port}", url.host()),
        None => url.host().to_owned(),
    };
    let host: String = host.chars().map(|c| if matches!(c, '[' | ']' | ':') { '_' } else { c }).collect();
    let mut segments: Vec<&str> = secret.path().split('/').filter(|segment| !segment.is_empty()).collect();
    let last = segments.pop().unwrap_or_default();
    let mut is_kept = secret.query().is_none() && !secret.path().ends_with('/');
    let mut place = vec![safe(&host).unwrap_or_else(|| "host".to_owned())];
    for segment in segments {
        let name = safe(segment);
        is_kept &= name.as_deref() == Some(segment);
        place.extend(name);
    }
    let name = SafeName::from_url(url);
    is_kept &= name.as_str() == last;
    place.push(if is_kept { name.as_str().to_owned() } else { marked(name.as_str(), key) });
    place
}

/// The same in the host's folder itself, for a place where something else is in the way: a file where a folder should be.
pub fn place_beside(url: &MirrorUrl, key: &Key) -> Vec<String> {
    let host = place_of(url, key).swap_remove(0);
    vec![host, marked(SafeName::from_url(url).as_str(), key)]
}

/// A sum of the key goes before the extension.
fn marked(name: &str, key: &Key) -> String {
    let sum = crc32c::crc32c(key.as_str().as_bytes());
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => format!("{stem}~{sum:08x}.{extension}"),
        _ => format!("{name}~{sum:08x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> String {
        place_of(&MirrorUrl::parse(url).expect("a URL"), &Key::parse(url).expect("a key")).join("/")
    }

    #[test]
    fn a_file_goes_where_its_url_says() {
        assert_eq!(place("http://example.org/data/2026/f.tar.gz"), "example.org/data/2026/f.tar.gz");
        assert_eq!(place("https://example.org:8443/f"), "example.org_8443/f");
        assert_eq!(place("http://[::1]:80/f"), "___1_/f");
    }

    #[test]
    fn what_a_name_does_not_tell_is_told_by_a_sum() {
        let (a, b) = (place("http://e.org/get?id=1"), place("http://e.org/get?id=2"));
        assert!(a != b && a.starts_with("e.org/get~"), "{a} {b}");
        assert!(place("http://e.org/a%20b.txt").starts_with("e.org/a b~"));
        assert!(place("http://e.org/dir/").starts_with("e.org/dir~"));
        assert!(place("http://e.org/").starts_with("e.org/index~"));
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        for url in
            ["http://e.org/%2e%2e/x", "http://e.org/..%2f..%2fx", "http://e.org/a/%5c..%5cx", "http://e.org/%00/x"]
        {
            for name in place_of(&MirrorUrl::parse(url).expect("a URL"), &Key::parse("k").expect("a key")) {
                assert!(
                    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']),
                    "{url}: {name}"
                );
            }
        }
    }
}
