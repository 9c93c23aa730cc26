//! Link headers (RFC 8288): other places of the same file (`rel=duplicate`) and descriptions of it
//! (`rel=describedby`), as mirrors and metalinks are announced in HTTP (RFC 6249).
//!
//! What a server says here is advice only. A duplicate counts where a digest of the whole file is known (design 3.12);
//! that is for the caller to see to. The limits that do not depend on it are kept here.

use http::HeaderMap;
use http::header::LINK;

use crate::core::params::{Param, Until, read_params};
use crate::core::url::MirrorUrl;

/// The most mirrors that a server may name.
pub const MAX_DUPLICATES: usize = 32;

/// More links than this are not looked at.
const MAX_LINKS: usize = 256;

/// `pri` of a mirror that has none (RFC 6249 3.1): the last.
const LEAST_PRIORITY: u32 = 999_999;

/// One link, as it stands in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where to: a reference, relative to the URL of the answer. Not redacted, and not made printable.
    pub target: String,
    params: Vec<Param>,
}

/// A mirror that a server names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Where, without user-info.
    pub url: MirrorUrl,
    /// 1 is the best, 999,999 the last.
    pub pri: u32,
    /// The country it stands in: two letters, lower case.
    pub geo: Option<String>,
}

impl Link {
    /// Has this relation, in any case of letters, and is about the answer itself rather than another resource
    /// (`anchor`).
    pub fn is_rel(&self, relation: &str) -> bool {
        let words = self.param("rel").unwrap_or_default();
        self.param("anchor").is_none() && words.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(relation))
    }

    /// The media type it announces, lower case, without parameters.
    pub fn media_type(&self) -> Option<String> {
        let essence = self.param("type")?.split(';').next()?.trim().to_ascii_lowercase();
        (!essence.is_empty()).then_some(essence)
    }

    /// Its priority: 1 to 999,999; the last where it has none or an odd one.
    pub fn pri(&self) -> u32 {
        let told = self.param("pri").and_then(|text| text.parse().ok());
        told.filter(|pri| (1..=LEAST_PRIORITY).contains(pri)).unwrap_or(LEAST_PRIORITY)
    }

    /// The country (ISO 3166-1, two letters, lower case).
    pub fn geo(&self) -> Option<String> {
        let letters = self.param("geo").filter(|text| text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphabetic()));
        letters.map(str::to_ascii_lowercase)
    }

    /// A parameter's value; of several of the same name the first counts.
    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|param| param.name == name).map(|param| param.value.as_str())
    }
}

/// The links of an answer, in order. What cannot be read is passed over.
pub fn links(headers: &HeaderMap) -> Vec<Link> {
    let values = headers.get_all(LINK).iter();
    values.flat_map(|value| read_links(&String::from_utf8_lossy(value.as_bytes()))).take(MAX_LINKS).collect()
}

/// The links of an answer that are of use for a file: to the same elsewhere, or to a description of it.
pub fn links_of_a_file(headers: &HeaderMap) -> Vec<Link> {
    links(headers).into_iter().filter(|link| link.is_rel("duplicate") || link.is_rel("describedby")).collect()
}

/// The mirrors that an answer from `base` names, the best first: at most [`MAX_DUPLICATES`], each once, not `base`
/// itself, without user-info, and from a public host to public hosts only.
pub fn duplicates(links: &[Link], base: &MirrorUrl) -> Vec<Duplicate> {
    let mut found: Vec<Duplicate> = Vec::new();
    for link in links.iter().filter(|link| link.is_rel("duplicate")) {
        // The status code matters in a redirect's error only, and that is dropped.
        let Ok(url) = base.join(&link.target, 0).map(|url| url.without_credentials()) else { continue };
        let reachable = url.is_public_host() || !base.is_public_host();
        let known = url == base.without_credentials() || found.iter().any(|other| other.url == url);
        if reachable && !known {
            found.push(Duplicate { url, pri: link.pri(), geo: link.geo() });
        }
    }
    found.sort_by_key(|duplicate| duplicate.pri);
    found.truncate(MAX_DUPLICATES);
    found
}

/// The first description of this media type that an answer from `base` names.
pub fn described_by(links: &[Link], base: &MirrorUrl, media_type: &str) -> Option<MirrorUrl> {
    let fits = |link: &Link| link.is_rel("describedby") && link.media_type().is_some_and(|t| t == media_type);
    let found = links.iter().filter(|link| fits(link)).find_map(|link| base.join(&link.target, 0).ok());
    found.filter(|url| url.is_public_host() || !base.is_public_host()).map(|url| url.without_credentials())
}

/// `<TARGET>; name=value; ..., <TARGET>...`
fn read_links(text: &str) -> Vec<Link> {
    let (mut links, mut rest) = (Vec::new(), text);
    while let Some((_, after)) = rest.split_once('<') {
        let Some((target, after)) = after.split_once('>') else { break };
        let (params, after) = read_params(after, Until::Comma);
        links.push(Link { target: target.trim().to_owned(), params });
        rest = after;
        if links.len() >= MAX_LINKS {
            break;
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for value in values {
            map.append(LINK, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
        }
        map
    }

    fn base() -> MirrorUrl {
        MirrorUrl::parse("https://www.example.com/dir/example.ext").expect("a URL")
    }

    fn urls(values: &[&str], base: &MirrorUrl) -> Vec<String> {
        duplicates(&links(&headers(values)), base).iter().map(|d| d.url.secret_url().to_string()).collect()
    }

    #[test]
    fn the_mirrors_of_rfc_6249() {
        let answer = links(&headers(&[
            "<http://www2.example.com/example.ext>; rel=duplicate; pri=2; pref; geo=GB; depth=1",
            "<ftp://ftp.example.com/example.ext>; rel=duplicate, <http://b.example.com/x,y;z>; rel=\"other Duplicate\"; pri=1",
            "<http://example.com/example.ext.meta4>; rel=describedby; type=\"Application/metalink4+xml; v=4\"",
            "<../up>; rel=duplicate; geo=far",
        ]));
        let found = duplicates(&answer, &base());
        let parts: Vec<_> = found.iter().map(|d| (d.url.secret_url().as_str(), d.pri, d.geo.as_deref())).collect();
        assert_eq!(
            parts,
            [
                ("http://b.example.com/x,y;z", 1, None),
                ("http://www2.example.com/example.ext", 2, Some("gb")),
                ("https://www.example.com/up", 999_999, None),
            ]
        );
        let metalink = described_by(&answer, &base(), "application/metalink4+xml").expect("a metalink");
        assert_eq!(metalink.secret_url().as_str(), "http://example.com/example.ext.meta4");
        assert_eq!(described_by(&answer, &base(), "application/pgp-signature"), None);
    }

    #[test]
    fn hostile_mirrors() {
        let values = [
            "<http://127.0.0.1/x>; rel=duplicate",
            "<http://joe:pw@m.example.com/x>; rel=duplicate",
            "<http://m.example.com/x>; rel=duplicate; pri=1",
            "<>; rel=duplicate, <javascript:x>; rel=duplicate",
            "<http://anchored.example.com/>; rel=duplicate; anchor=\"/other\"",
            "<example.ext>; rel=duplicate",
            "<http://no-rel.example.com/>",
        ];
        assert_eq!(urls(&values, &base()), ["http://m.example.com/x"]);
        let local = MirrorUrl::parse("http://127.0.0.1:8080/a").expect("a URL");
        assert!(urls(&values, &local).contains(&"http://127.0.0.1/x".to_owned()));
        let many: Vec<_> = (0..1000).map(|n| format!("<http://m{n}.example.com/x>; rel=duplicate")).collect();
        assert_eq!(urls(&[&many.join(", ")], &base()).len(), MAX_DUPLICATES);
    }

    #[test]
    fn priorities_outside_the_range_are_the_last() {
        for pri in ["0", "-1", "1000000", "99999999999999", "x", ""] {
            let text = format!("<x>; rel=duplicate; pri={pri}");
            assert_eq!(read_links(&text)[0].pri(), LEAST_PRIORITY, "{pri}");
        }
        assert_eq!(read_links("<x>; pri=7; pri=1")[0].pri(), 7);
    }

    proptest! {
        #[test]
        fn anything_may_come(text in "(?s)([<>,;=\" ]|rel|duplicate|http://|.){0,60}") {
            for link in read_links(&text) {
                let _ = (link.is_rel("duplicate"), link.pri(), link.geo(), link.media_type());
                let _ = base().join(&link.target, 0);
            }
        }
    }
}
