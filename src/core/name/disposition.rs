//! The name in a Content-Disposition header (RFC 6266, with the encodings of RFC 8187), as servers really write it.

use std::borrow::Cow;
use std::str;

use http::HeaderMap;
use http::header::CONTENT_DISPOSITION;
use percent_encoding::percent_decode_str;

use crate::core::name::{Giver, SafeName, decoded};
use crate::core::params::{Param, Until, read_params};

impl SafeName {
    /// The name that an answer's Content-Disposition gives; `None` where there is none, or none that is usable.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        headers.get_all(CONTENT_DISPOSITION).iter().find_map(|value| Self::from_disposition(value.as_bytes()))
    }

    /// The name that a Content-Disposition gives. `filename*` goes before `filename`, wherever it stands; of several
    /// the first usable one counts. The type (`attachment`, `inline`) may be missing.
    pub fn from_disposition(value: &[u8]) -> Option<Self> {
        let text = text_of(value);
        let (params, _) = read_params(&text, Until::End);
        let extended = named(&params, "filename*").filter_map(extended_value);
        let plain = named(&params, "filename").map(decoded);
        extended.chain(plain).find_map(|raw| Self::new(&raw, Giver::Server))
    }
}

/// UTF-8, or else ISO-8859-1, in which every byte is a character.
fn text_of(value: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(latin_1(value)),
    }
}

fn latin_1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn named<'a>(params: &'a [Param], name: &'a str) -> impl Iterator<Item = &'a str> {
    params.iter().filter(move |param| param.name == name).map(|param| param.value.as_str())
}

/// `CHARSET'LANGUAGE'PERCENT-ENCODED`; without the quotes in it, the whole is taken as UTF-8. `None` where the text is
/// not of its charset, or the charset is another than UTF-8, US-ASCII and ISO-8859-1.
fn extended_value(value: &str) -> Option<String> {
    let mut parts = value.splitn(3, '\'');
    let (charset, encoded) = match (parts.next(), parts.next(), parts.next()) {
        (Some(charset), Some(_language), Some(encoded)) => (charset.trim(), encoded),
        _ => ("utf-8", value),
    };
    let bytes: Vec<u8> = percent_decode_str(encoded).collect();
    match charset.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "us-ascii" => String::from_utf8(bytes).ok(),
        "iso-8859-1" => Some(latin_1(&bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::name::SAFE_MAX;

    fn name_of(value: &str) -> Option<String> {
        SafeName::from_disposition(value.as_bytes()).map(|name| name.to_string())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        assert_eq!(name_of("Attachment; filename=example.html").as_deref(), Some("example.html"));
        assert_eq!(name_of("INLINE; FILENAME= \"an example.html\"").as_deref(), Some("an example.html"));
        assert_eq!(name_of("attachment; filename*= UTF-8''%e2%82%ac%20rates").as_deref(), Some("€ rates"));
        let both = "attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates";
        assert_eq!(name_of(both).as_deref(), Some("€ rates"));
        assert_eq!(name_of("attachment; filename*=iso-8859-1'en'%A3%20rates").as_deref(), Some("£ rates"));
    }

    #[test]
    fn careless_servers() {
        for (value, want) in [
            ("attachment; filename=x.iso;", "x.iso"),
            ("attachment;; filename = x.iso ; ;", "x.iso"),
            ("filename=x.iso", "x.iso"),
            ("attachment; filename=my file.txt", "my file.txt"),
            ("attachment; filename=\"no end", "no end"),
            ("attachment; filename=\"a;b.txt\"; size=1", "a;b.txt"),
            ("attachment; filename=\"say \\\"hi\\\".txt\"", "say \"hi\".txt"),
            ("attachment; filename=\"na%20me%2etxt\"", "na me.txt"),
            ("attachment; filename=\"100%.txt\"", "100%.txt"),
            ("attachment; filename=\"caf%e9\"", "caf%e9"),
            ("attachment; filename*=\"UTF-8''x%20y\"", "x y"),
            ("attachment; filename*=x%20y", "x y"),
            ("attachment; filename*=UTF-8''%ff%fe; filename=plain", "plain"),
            ("attachment; filename*=KOI8-R''x; filename=plain", "plain"),
            ("attachment; filename*=UTF-8''..; filename=plain", "plain"),
        ] {
            assert_eq!(name_of(value).as_deref(), Some(want), "{value}");
        }
        assert_eq!(SafeName::from_disposition(b"attachment; filename=caf\xe9").expect("a name").as_str(), "café");
    }

    #[test]
    fn hostile_servers() {
        for (value, want) in [
            ("attachment; filename=\"../../etc/passwd\"", "passwd"),
            ("attachment; filename=\"C:\\windows\\system32\\x.dll\"", "x.dll"),
            ("attachment; filename=\"..%2f..%2f.bashrc\"", "_bashrc"),
            ("attachment; filename=\"%252e%252e%252fx\"", "%2e%2e%2fx"),
            ("attachment; filename*=UTF-8''%2e%2e%2f%00x", "_x"),
            ("attachment; filename=\"CON\"", "_CON"),
            ("attachment; filename*=UTF-8''a%e2%80%aegpj.exe", "a_gpj.exe"),
            ("attachment; filename=-rf", "_rf"),
        ] {
            assert_eq!(name_of(value).as_deref(), Some(want), "{value}");
        }
        for value in ["", "attachment", "attachment; filename=", "attachment; filename=\"../..\"", "attachment; name=x"]
        {
            assert_eq!(name_of(value), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes: Vec<u8>) {
            let _ = SafeName::from_disposition(&bytes);
        }

        #[test]
        fn whatever_it_says_is_one_component(
            value in "(?s)attachment; filename\\*?=\"?(UTF-8'')?(%2[ef]|%5c|%00|[./\\\\]|.){0,300}",
        ) {
            if let Some(name) = name_of(&value) {
                prop_assert!(name != "." && name != ".." && name.len() <= SAFE_MAX);
                prop_assert!(!name.contains(['/', '\\', '\0']) && !name.starts_with(['.', '-']));
            }
        }
    }
}
