//! Tests of validators.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const SOON_AFTER: &str = "Sun, 06 Nov 1994 08:50:36 GMT";
const A_MINUTE_AFTER: &str = "Sun, 06 Nov 1994 08:50:37 GMT";

fn of(headers: &[(&'static str, &str)]) -> Validators {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
    }
    Validators::from_headers(&map)
}

fn tag(text: &str) -> Validators {
    of(&[("etag", text)])
}

#[test]
fn strong_and_weak_tags() {
    let strong = tag("\"v1\"").etag.expect("a tag");
    assert!(strong.is_strong());
    assert_eq!(strong.to_string(), "\"v1\"");
    for weak in ["W/\"v1\"", "w/\"v1\"", "W/ \"v1\"", "v1", "'v1'", "\"v1", "v1\"", "\"a\"b\"", "\"a b\"", "\"é\""] {
        let read = ETag::parse(weak).expect(weak);
        assert!(read.weak && !read.is_strong(), "{weak}");
        assert_eq!(ETag::parse(&read.to_string()), Some(read), "{weak}");
    }
}

#[test]
fn a_tag_put_together_by_hand_is_not_strong_without_quotes() {
    assert!(!ETag { weak: false, opaque: "v1".into() }.is_strong());
}

#[test]
fn tags_that_count_as_none() {
    let long = format!("\"{}\"", "x".repeat(2000));
    for text in ["", " ", "\"\"", "W/\"\"", "W/", "\"", "a\u{1b}[2J", "\u{202e}x", &long] {
        assert_eq!(ETag::parse(text), None, "{text:?}");
    }
    assert_eq!(of(&[("etag", "\"a\""), ("etag", "\"b\"")]).etag, None);
    assert!(of(&[("etag", "\"a\""), ("etag", "\"a\"")]).strong_etag().is_some());
    let mut headers = HeaderMap::new();
    headers.insert(ETAG, HeaderValue::from_bytes(b"\"\xff\xfe\"").expect("obs-text"));
    assert_eq!(Validators::from_headers(&headers), Validators::default());
}

#[test]
fn a_date_is_strong_only_a_minute_later() {
    let settled = of(&[("last-modified", MODIFIED), ("date", A_MINUTE_AFTER)]);
    assert_eq!(settled.strong_date(), Some(Epoch::from_secs(784_111_777)));
    assert_eq!(of(&[("last-modified", MODIFIED), ("date", SOON_AFTER)]).strong_date(), None);
    assert_eq!(of(&[("last-modified", MODIFIED)]).strong_date(), None);
    assert_eq!(of(&[("last-modified", A_MINUTE_AFTER), ("date", MODIFIED)]).strong_date(), None);
    assert_eq!(of(&[("last-modified", MODIFIED), ("date", "yesterday")]).strong_date(), None);
}

#[test]
fn if_range_steps_down_and_never_sends_what_is_weak() {
    let both = of(&[("etag", "\"v1\""), ("last-modified", MODIFIED), ("date", A_MINUTE_AFTER)]);
    assert_eq!(both.if_range(IfRange::Best).as_deref(), Some("\"v1\""));
    assert_eq!(both.if_range(IfRange::Date).as_deref(), Some(MODIFIED));
    assert_eq!(both.if_range(IfRange::Bare), None);

    let weak_tag = of(&[("etag", "W/\"v1\""), ("last-modified", MODIFIED), ("date", A_MINUTE_AFTER)]);
    assert_eq!(weak_tag.if_range(IfRange::Best).as_deref(), Some(MODIFIED));
    for weak in [tag("W/\"v1\""), tag("v1"), of(&[("last-modified", MODIFIED), ("date", SOON_AFTER)])] {
        assert_eq!(weak.if_range(IfRange::Best), None);
        assert_eq!(weak.unless(), None);
    }
}

#[test]
fn a_finished_file_is_asked_for_under_a_strong_condition() {
    let both = of(&[("etag", "\"v1\""), ("last-modified", MODIFIED), ("date", A_MINUTE_AFTER)]);
    assert_eq!(both.unless(), Some(Unless::Match("\"v1\"".into())));
    assert_eq!(both.without_etag().unless(), Some(Unless::ModifiedSince(MODIFIED.into())));
}

#[test]
fn a_strong_validator_that_is_equal_is_the_same_version() {
    assert_eq!(tag("\"v1\"").compare(&tag("\"v1\"")), Sameness::Same);
    let dated = of(&[("last-modified", MODIFIED), ("date", A_MINUTE_AFTER)]);
    assert_eq!(dated.compare(&dated), Sameness::Same);
    let later = of(&[("last-modified", MODIFIED), ("date", "Mon, 07 Nov 1994 08:49:37 GMT")]);
    assert_eq!(dated.compare(&later), Sameness::Same);
}

#[test]
fn whatever_differs_is_another_version() {
    assert_eq!(tag("\"v1\"").compare(&tag("\"v2\"")), Sameness::Different);
    assert_eq!(tag("W/\"v1\"").compare(&tag("W/\"v2\"")), Sameness::Different);
    assert_eq!(tag("v1").compare(&tag("v2")), Sameness::Different);
    let (old, new) = (of(&[("last-modified", MODIFIED)]), of(&[("last-modified", SOON_AFTER)]));
    assert_eq!(old.compare(&new), Sameness::Different);
    let same_tag = |date: &str| of(&[("etag", "\"v1\""), ("last-modified", date)]);
    assert_eq!(same_tag(MODIFIED).compare(&same_tag(SOON_AFTER)), Sameness::Different);
}

#[test]
fn weak_ones_that_are_equal_prove_nothing() {
    assert_eq!(tag("W/\"v1\"").compare(&tag("W/\"v1\"")), Sameness::Unknown);
    assert_eq!(tag("W/\"v1\"").compare(&tag("\"v1\"")), Sameness::Unknown);
    assert_eq!(tag("v1").compare(&tag("\"v1\"")), Sameness::Unknown);
    assert_eq!(tag("\"v1\"").compare(&Validators::default()), Sameness::Unknown);
    let young = of(&[("last-modified", MODIFIED), ("date", SOON_AFTER)]);
    assert_eq!(young.compare(&young), Sameness::Unknown);
    assert_eq!(tag("\"v1\"").compare(&young), Sameness::Unknown);
}

#[test]
fn all_three_forms_of_a_date_are_read() {
    let at = Some(Epoch::from_secs(784_111_777));
    assert_eq!(read_http_date(MODIFIED), at);
    assert_eq!(read_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), at);
    assert_eq!(read_http_date(" Sun Nov  6 08:49:37 1994 "), at);
    for text in ["", "0", "soon", "Sun, 06 Nov 1994", "Mon, 06 Nov 1994 08:49:37 GMT", "Wed, 31 Dec 1969 23:59:59 GMT"]
    {
        assert_eq!(read_http_date(text), None, "{text:?}");
    }
    assert_eq!(http_date(Epoch::from_secs(-1)), None);
    assert_eq!(http_date(Epoch::from_micros(-1)), None);
    assert_eq!(http_date(Epoch::from_secs(253_402_300_800)), None);
    assert_eq!(http_date(Epoch::from_micros(i64::MAX)), None);
}

proptest! {
    #[test]
    fn a_date_survives_a_round_trip(secs in 0_i64..253_402_300_800) {
        let text = http_date(Epoch::from_secs(secs)).expect("a year of four digits");
        prop_assert_eq!(read_http_date(&text), Some(Epoch::from_secs(secs)));
    }

    #[test]
    fn any_text_may_stand_in_a_date(text in "(?s).{0,40}") {
        let _ = read_http_date(&text);
    }

    #[test]
    fn any_nearly_right_date_may_come(
        text in "(Sun|Mon|Sunday),? [0-9]{1,2}[ -](Nov|Feb|Dec)[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
    ) {
        if let Some(at) = read_http_date(&text) {
            prop_assert!(http_date(at).is_some());
        }
    }

    #[test]
    fn a_tag_survives_a_round_trip(text in "(W/)?\"?(?s).{0,20}\"?") {
        if let Some(tag) = ETag::parse(&text) {
            prop_assert!(!tag.to_string().chars().any(is_hidden));
            prop_assert_eq!(ETag::parse(&tag.to_string()), Some(tag));
        }
    }

    #[test]
    fn comparing_has_no_direction(a in "(W/)?\"?[ab]\"?", b in "(W/)?\"?[ab]\"?") {
        prop_assert_eq!(tag(&a).compare(&tag(&b)), tag(&b).compare(&tag(&a)));
    }
}

mod origins {
    //! Two origins held against each other: the whole table.

    use super::*;

    const TAGS: [Option<&str>; 5] = [None, Some("\"a\""), Some("\"b\""), Some("W/\"a\""), Some("W/\"b\"")];
    const DATES: [Option<i64>; 3] = [None, Some(1_700_000_000), Some(1_700_000_001)];

    fn all() -> Vec<Validators> {
        let said = |tag: Option<&str>, date: Option<i64>| Validators {
            etag: tag.and_then(ETag::parse),
            last_modified: date.map(Epoch::from_secs),
            date: None,
        };
        TAGS.iter().flat_map(|tag| DATES.iter().map(move |date| said(*tag, *date))).collect()
    }

    #[test]
    fn every_pair_by_the_rules() {
        for a in all() {
            for b in all() {
                let strong = |v: &Validators| v.strong_etag().map(ETag::to_string);
                let wanted = match (strong(&a), strong(&b), a.last_modified, b.last_modified) {
                    (Some(x), Some(y), ..) if x == y => Concord::Agree,
                    (_, _, Some(x), Some(y)) if x == y => Concord::Agree,
                    (_, _, Some(_), Some(_)) => Concord::Contradict(Odds::Date),
                    (Some(_), Some(_), ..) => Concord::Contradict(Odds::Tag),
                    _ => Concord::Silent,
                };
                assert_eq!(a.concord(&b), wanted, "{a:?} {b:?}");
                assert_eq!(b.concord(&a), wanted, "no direction: {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn rows_that_the_rules_are_there_for() {
        let said = |text: &str, date: i64| Validators {
            etag: ETag::parse(text),
            last_modified: (date > 0).then(|| Epoch::from_secs(date)),
            date: None,
        };
        let (nginx, apache) = (said("\"65536400-1000\"", 7), said("\"1000-5f3\"", 7));
        assert_eq!(nginx.concord(&apache), Concord::Agree, "one date, tags of two makes");
        assert_eq!(nginx.concord(&said("\"65536401-1000\"", 8)), Concord::Contradict(Odds::Date));
        assert_eq!(said("", 7).concord(&said("", 6)), Concord::Contradict(Odds::Date), "the older one is no better");
        assert_eq!(said("\"a\"", 7).concord(&said("\"b\"", 0)), Concord::Contradict(Odds::Tag));
        assert_eq!(said("\"md5\"", 7).concord(&said("\"md5\"", 9)), Concord::Agree, "uploaded twice");
        assert_eq!(said("W/\"a\"", 0).concord(&said("W/\"b\"", 0)), Concord::Silent);
        assert_eq!(said("\"a\"", 0).concord(&said("", 7)), Concord::Silent, "nothing to compare");
    }
}
