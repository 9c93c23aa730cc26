//! URLs of objects, read and written.

use proptest::prelude::*;

use super::*;

fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).expect(text)
}

fn settings(endpoint: Option<&MirrorUrl>) -> PlaceSettings<'_> {
    PlaceSettings { endpoint, name: "f.bin", ..PlaceSettings::default() }
}

#[track_caller]
fn shown(text: &str, settings: &PlaceSettings<'_>) -> String {
    Place::parse(text, settings).expect(text).url().secret_url().to_string()
}

#[test]
fn a_bucket_and_a_key() {
    let aws = settings(None);
    assert_eq!(shown("s3://bucket/a/k.bin", &aws), "https://bucket.s3.us-east-1.amazonaws.com/a/k.bin");
    assert_eq!(shown("s3://with.dots/k", &aws), "https://s3.us-east-1.amazonaws.com/with.dots/k");
    let china = PlaceSettings { region: Some("cn-north-1"), ..aws };
    assert_eq!(shown("s3://bucket/k", &china), "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
    let own = url("http://127.0.0.1:9000");
    let own = settings(Some(&own));
    assert_eq!(shown("s3://bucket/k", &own), "http://127.0.0.1:9000/bucket/k");
    let below = url("https://store.example/s3/");
    let below = settings(Some(&below));
    assert_eq!(shown("s3://bucket/k", &below), "https://store.example/s3/bucket/k");
    let host = PlaceSettings { style: Some(Style::Host), ..below };
    assert_eq!(shown("s3://bucket/k", &host), "https://bucket.store.example/s3/k");
}

#[test]
fn a_key_is_written_so_that_it_is_read_the_same() {
    let aws = settings(None);
    let sent = "https://bucket.s3.us-east-1.amazonaws.com/a%20b%2Bc%2520/%C3%A4%3F%23%24//x";
    assert_eq!(shown("s3://bucket/a b+c%20/ä?#$//x", &aws), sent);
    let place = Place::parse(sent, &aws).expect("a URL");
    assert_eq!((place.key(), place.url().secret_url().as_str()), ("a b+c%20/ä?#$//x", sent));
    for (key, full) in [("", "f.bin"), ("/", "f.bin"), ("/dir/", "dir/f.bin"), ("/dir", "dir")] {
        assert_eq!(Place::parse(&format!("s3://bucket{key}"), &aws).expect(key).key(), full);
    }
}

#[test]
fn urls_of_both_styles() {
    let own = url("https://store.example");
    for (text, bucket, key, style, region) in [
        ("https://b.s3.eu-west-1.amazonaws.com/k", "b", "k", Style::Host, Some("eu-west-1")),
        ("https://b.c.s3.amazonaws.com/k/l", "b.c", "k/l", Style::Host, None),
        ("https://s3.dualstack.eu-west-1.amazonaws.com/b/k", "b", "k", Style::Path, Some("eu-west-1")),
        ("https://b.s3-eu-west-1.amazonaws.com/k", "b", "k", Style::Host, Some("eu-west-1")),
        ("https://b.s3-accelerate.amazonaws.com/k", "b", "k", Style::Host, None),
        ("http://localhost:9000/b/k", "b", "k", Style::Path, None),
        ("https://b.store.example/k", "b", "k", Style::Host, None),
        ("https://store.example/b/k", "b", "k", Style::Path, None),
    ] {
        let place = Place::parse(text, &settings(Some(&own))).expect(text);
        assert_eq!(
            (place.bucket(), place.key(), place.style(), place.region()),
            (bucket, key, style, region),
            "{text}"
        );
        assert_eq!(place.url().secret_url().as_str(), text);
    }
    let below = url("https://store.example/s3");
    for (text, bucket, key) in [
        ("https://store.example/s3/b/k", "b", "k"),
        ("https://store.example/s3b/k", "s3b", "k"),
        ("https://store.example/s3/b//k", "b", "/k"),
    ] {
        let place = Place::parse(text, &settings(Some(&below))).expect(text);
        assert_eq!((place.bucket(), place.key(), place.url().secret_url().as_str()), (bucket, key, text));
    }
    let style = PlaceSettings { style: Some(Style::Host), ..settings(None) };
    assert_eq!(Place::parse("https://b.other.example/k", &style).expect("a URL").bucket(), "b");
}

#[test]
fn another_region_is_another_host_at_aws_only() {
    let moved = |text: &str| {
        let place = Place::parse(text, &settings(None)).expect(text).in_region("ap-south-1").expect("a region");
        (place.url().secret_url().to_string(), place.region().map(str::to_owned))
    };
    let region = Some("ap-south-1".to_owned());
    let there = "https://b.s3.ap-south-1.amazonaws.com/k";
    assert_eq!(moved("https://b.s3.amazonaws.com/k"), (there.to_owned(), region.clone()));
    assert_eq!(moved("s3://b/k"), (there.to_owned(), region.clone()));
    assert_eq!(moved("http://localhost:9000/b/k"), ("http://localhost:9000/b/k".to_owned(), region));
    let place = Place::parse("s3://b/k", &settings(None)).expect("a URL");
    for word in ["", "evil.example/", "a.b", &"x".repeat(65)] {
        assert!(matches!(place.in_region(word), Err(BadPlace::Region(_))), "{word}");
    }
}

#[test]
fn what_names_no_object() {
    let parse = |text: &str| Place::parse(text, &settings(None)).unwrap_err();
    assert!(matches!(parse("ftp://h/b/k"), BadPlace::Url(_)));
    assert!(matches!(parse("https://s3.amazonaws.com/b/k?X-Amz-Signature=1"), BadPlace::Query));
    assert!(matches!(parse("https://ak:sk@s3.amazonaws.com/b/k"), BadPlace::UserInfo));
    for text in ["s3://", "s3:///k", "s3://a b/k", "s3://.a/k", "http://h/"] {
        assert!(matches!(parse(text), BadPlace::Bucket(_)), "{text}");
    }
    let long = format!("s3://b/{}", "k".repeat(1025));
    for text in ["s3://b/../x", "s3://b/a/./x", "s3://b/a\nb", "http://h/b/%FF", &long] {
        assert!(matches!(parse(text), BadPlace::Key(_)), "{text}");
    }
    let region = PlaceSettings { region: Some("a/b"), ..settings(None) };
    assert!(matches!(Place::parse("s3://b/k", &region), Err(BadPlace::Region(_))));
}

proptest! {
    #[test]
    fn every_key_comes_back_from_its_url(key in "[^\\p{C}]{1,40}", own in any::<bool>()) {
        let endpoint = url("http://127.0.0.1:9000");
        let settings = settings(own.then_some(&endpoint));
        let Ok(place) = Place::parse(&format!("s3://bucket/{key}"), &settings) else {
            prop_assert!(key.split('/').any(|part| matches!(part, "." | "..")), "{key:?} is refused");
            return Ok(());
        };
        let again = Place::of_url(place.url(), &settings).expect("a URL of ours");
        prop_assert_eq!((again.bucket(), again.key(), again.url()), ("bucket", place.key(), place.url()));
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,60}") {
        let _ = Place::parse(&text, &settings(None));
    }
}
