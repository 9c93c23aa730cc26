//! Manifests, and what signed URLs say of themselves.

use super::*;

fn text(parts: &[&str], rest: &str) -> String {
    let parts: Vec<String> = parts.iter().map(|url| format!("\"{url}\"")).collect();
    format!(r#"{{"persxfer_upload": 1, "part_size": 10, "parts": [{}], {rest}}}"#, parts.join(","))
}

const COMPLETE: &str = r#""complete": "https://h/b/k?uploadId=u%2F1&X-Amz-Signature=c""#;

#[test]
fn a_manifest() {
    let parts = ["https://h/b/k?partNumber=1&uploadId=u%2F1&X-Amz-Signature=a", "https://h/b/k?partNumber=2"];
    let rest = format!(r#"{COMPLETE}, "abort": "https://h/b/k?x", "other": 7"#);
    let manifest = Manifest::parse(&text(&parts, &rest)).expect("a manifest");
    assert_eq!(manifest.object().secret_url().as_str(), "https://h/b/k");
    assert_eq!(manifest.handle(), Handle::Id("u/1".to_owned()));
    assert_eq!((manifest.parts.len(), manifest.abort.is_some(), manifest.list.is_some()), (2, true, false));
    assert_eq!(manifest.at_most(), Length(20));
    assert!(manifest.cuts(Length(20)).is_some() && manifest.cuts(Length(21)).is_none());
    assert!(!format!("{manifest:?}").contains("X-Amz-Signature=a"), "{manifest:?}");
}

#[test]
fn what_is_none() {
    let bad = |text: &str| Manifest::parse(text).map(|_| ()).unwrap_err();
    let one = "https://h/b/k?partNumber=1";
    assert!(matches!(bad("{"), BadManifest::Json(_)) && matches!(bad("[]"), BadManifest::Json(_)));
    let secret = bad(r#"{"persxfer_upload": "s3cr3t"}"#).to_string();
    assert!(!secret.contains("s3cr3t"), "{secret}");
    assert_eq!(bad(&text(&[one], COMPLETE).replace(": 1,", ": 2,")), BadManifest::Version(2));
    assert_eq!(bad(&text(&[], COMPLETE)), BadManifest::Parts(0));
    assert_eq!(bad(&text(&[one; 10_001], COMPLETE)), BadManifest::Parts(10_001));
    assert_eq!(bad(&text(&[one], COMPLETE).replace(": 10,", ": 0,")), BadManifest::PartSize(0));
    assert_eq!(bad(&text(&[one, "ftp://h/b/k"], COMPLETE)), BadManifest::Url { what: "a part" });
    let long = format!("https://h/b/k?{}", "x".repeat(9_000));
    assert_eq!(bad(&text(&[&long], COMPLETE)), BadManifest::Url { what: "a part" });
    for other in ["https://h/b/other", "https://g/b/k", "http://h/b/k"] {
        assert_eq!(bad(&text(&[one, other], COMPLETE)), BadManifest::Elsewhere { what: "a part" }, "{other}");
    }
    let elsewhere = r#""complete": "https://evil/b/k""#;
    assert_eq!(bad(&text(&[one], elsewhere)), BadManifest::Elsewhere { what: "\"complete\"" });
    assert_eq!(bad(&"x".repeat(MAX_TEXT + 1)), BadManifest::TooLarge);
}

#[test]
fn signed_urls_and_their_ends() {
    let url = |query: &str| MirrorUrl::parse(&format!("https://h/b/k?{query}")).expect("a URL");
    let new = url("X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-Signature=0");
    assert_eq!((ends(&new), is_signed(&new)), (Some(Epoch::from_secs(1_369_440_000)), true));
    let old = url("AWSAccessKeyId=A&Expires=1369440000&Signature=x");
    assert_eq!((ends(&old), is_signed(&old)), (Some(Epoch::from_secs(1_369_440_000)), true));
    for query in ["a=b", "X-Amz-Date=x&X-Amz-Expires=1", "X-Amz-Date=20130524T000000Z&X-Amz-Expires=-1"] {
        assert_eq!((ends(&url(query)), is_signed(&url(query))), (None, false), "{query}");
    }
}
