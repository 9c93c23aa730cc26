//! Digests in the headers of an answer: Repr-Digest and Content-Digest (RFC 9530), and the older Digest (RFC 3230).
//!
//! Repr-Digest and Digest speak of the whole file in the coding that the answer names, also in an answer of 206;
//! Content-Digest speaks of the bytes of this very answer. What cannot be read, or is by an algorithm that we do not
//! know, is left out: it vouches for nothing.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::core::digest::{Algorithm, Expected};

/// What to send as Want-Repr-Digest: the algorithms of RFC 9530 that are still sound, the one that servers have first.
pub const WANT_REPR_DIGEST: &str = "sha-256=10, sha-512=5";

/// Of the whole file: Repr-Digest, and where it names none that we know, Digest.
pub fn repr_digests(headers: &HeaderMap) -> Vec<Expected> {
    let new = structured(&joined(headers, "repr-digest"));
    if new.is_empty() { old_style(&joined(headers, "digest")) } else { new }
}

/// Of the bytes of this answer: Content-Digest. They are the whole file only in an answer of 200.
pub fn content_digests(headers: &HeaderMap) -> Vec<Expected> {
    structured(&joined(headers, "content-digest"))
}

/// All values of a header as one list (RFC 9110 5.3).
fn joined(headers: &HeaderMap, name: &str) -> Vec<u8> {
    let values: Vec<_> = headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
    values.join(&b", "[..])
}

/// A dictionary of byte sequences: `sha-256=:BASE64:, sha-512=:BASE64:`.
fn structured(field: &[u8]) -> Vec<Expected> {
    let Ok(dictionary) = Parser::new(field).parse::<Dictionary>() else { return Vec::new() };
    agreed(dictionary.iter().filter_map(|(key, entry)| one_structured(key.as_str(), entry)))
}

fn one_structured(key: &str, entry: &ListEntry) -> Option<Expected> {
    let ListEntry::Item(item) = entry else { return None };
    let BareItem::ByteSequence(bytes) = &item.bare_item else { return None };
    Expected::from_bytes(Algorithm::from_name(key)?, bytes.clone())
}

/// A list of `SHA-256=BASE64`.
fn old_style(field: &[u8]) -> Vec<Expected> {
    agreed(String::from_utf8_lossy(field).split(',').filter_map(one_old))
}

/// Each algorithm once. The same one twice (by another of its names too) with other values vouches for nothing.
fn agreed(all: impl Iterator<Item = Expected>) -> Vec<Expected> {
    let (mut told, mut contradicted): (Vec<Expected>, Vec<Algorithm>) = (Vec::new(), Vec::new());
    for one in all {
        match told.iter().find(|other| other.algorithm == one.algorithm) {
            None => told.push(one),
            Some(other) if *other == one => {}
            Some(_) => contradicted.push(one.algorithm),
        }
    }
    told.retain(|one| !contradicted.contains(&one.algorithm));
    told
}

fn one_old(item: &str) -> Option<Expected> {
    let (name, value) = item.split_once('=')?;
    let bytes = LENIENT.decode(value.trim()).ok()?;
    Expected::from_bytes(Algorithm::from_name(name.trim())?, bytes)
}

/// Servers leave the padding away.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const SHA256: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    const SHA256_HEX: &str = "sha-256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const MD5: &str = "1B2M2Y8AsgTpgAmY7PhCfg==";
    const MD5_HEX: &str = "md5=d41d8cd98f00b204e9800998ecf8427e";

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let value = |v: &str| HeaderValue::from_str(v).expect("a header value");
        let mut map = HeaderMap::new();
        of.iter().for_each(|(n, v)| _ = map.append(*n, value(v)));
        map
    }

    fn texts(all: &[Expected]) -> Vec<String> {
        all.iter().map(Expected::to_string).collect()
    }

    #[test]
    fn the_dictionaries_of_rfc_9530() {
        let answer = headers(&[
            ("repr-digest", &format!("sha-256=:{SHA256}:, unixsum=:AAA=:, sha-512=:AAAA:")),
            ("repr-digest", &format!("md5=:{MD5}:;q=1, sha=5, (a b)")),
            ("content-digest", &format!("md5=:{MD5}:")),
        ]);
        // The last member is no dictionary's, and so the whole field counts for nothing.
        assert_eq!(texts(&repr_digests(&answer)), [""; 0]);
        assert_eq!(texts(&content_digests(&answer)), [MD5_HEX]);

        let answer = headers(&[
            ("repr-digest", &format!("sha-256=:{SHA256}:, unixsum=:AAA=:, sha-512=:AAAA:")),
            ("repr-digest", &format!("md5=:{MD5}:;q=1, sha=5")),
        ]);
        assert_eq!(texts(&repr_digests(&answer)), [SHA256_HEX, MD5_HEX]);
        assert_eq!(content_digests(&answer), []);
    }

    #[test]
    fn the_older_header_where_there_is_no_newer_one() {
        let old = format!("SHA-256={SHA256},md5={}, unixsum=30637, id-sha-256=x", MD5.trim_end_matches('='));
        assert_eq!(texts(&repr_digests(&headers(&[("digest", &old)]))), [SHA256_HEX, MD5_HEX]);
        let both = headers(&[("digest", &old), ("repr-digest", &format!("md5=:{MD5}:"))]);
        assert_eq!(texts(&repr_digests(&both)), [MD5_HEX]);
    }

    #[test]
    fn a_contradiction_vouches_for_nothing() {
        let zero = "AAAAAAAAAAAAAAAAAAAAAA==";
        let twice = headers(&[("digest", &format!("md5={MD5}, sha-256={SHA256}, MD5={zero}"))]);
        assert_eq!(texts(&repr_digests(&twice)), [SHA256_HEX]);
        let again = headers(&[("digest", &format!("md5={MD5}, MD5={MD5}"))]);
        assert_eq!(texts(&repr_digests(&again)), [MD5_HEX]);
        let apart = headers(&[("digest", &format!("md5={MD5}, sha-256={SHA256}, MD5={MD5}"))]);
        assert_eq!(texts(&repr_digests(&apart)), [MD5_HEX, SHA256_HEX]);
    }

    #[test]
    fn two_names_of_one_algorithm_are_one_word() {
        let apart = headers(&[("content-digest", &format!("md5=:{MD5}:, md-5=:AAAAAAAAAAAAAAAAAAAAAA==:"))]);
        assert_eq!(content_digests(&apart), []);
        let same = headers(&[("content-digest", &format!("md5=:{MD5}:, md-5=:{MD5}:"))]);
        assert_eq!(texts(&content_digests(&same)), [MD5_HEX]);
    }

    #[test]
    fn what_we_ask_for_is_well_formed() {
        assert!(Parser::new(WANT_REPR_DIGEST).parse::<Dictionary>().is_ok());
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes: Vec<u8>) {
            let _ = structured(&bytes);
            let _ = old_style(&bytes);
        }

        #[test]
        fn nearly_right_fields_give_right_lengths(
            text in "(sha-256=|md5=|sha-512=)?:?[A-Za-z0-9+/]{0,90}={0,2}:?(, md5=:?[A-Za-z]{22}==:?)?",
        ) {
            for one in structured(text.as_bytes()).into_iter().chain(old_style(text.as_bytes())) {
                prop_assert_eq!(one.bytes.len(), one.algorithm.output_len());
            }
        }
    }
}
