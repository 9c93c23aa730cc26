//! What can be written, what cannot, and how it reads.

use proptest::prelude::*;

use super::*;

fn duration_error(text: &str) -> Why {
    parse_duration(text).expect_err(text).why
}

fn size_error(text: &str) -> Why {
    parse_size(text).expect_err(text).why
}

#[test]
fn durations_as_people_write_them() {
    for (text, micros) in [
        ("50ms", 50_000),
        ("10s", 10_000_000),
        ("5m", 300_000_000),
        ("2h", 7_200_000_000),
        ("14d", 1_209_600_000_000),
        ("2w", 1_209_600_000_000),
        ("0s", 0),
        ("1h30m", 5_400_000_000),
        ("1d2h3m4s5ms", 93_784_005_000),
        ("1.5h", 5_400_000_000),
        ("1h0.5m", 3_630_000_000),
        ("0.25ms", 250),
        ("0.0000019s", 1),
        ("007s", 7_000_000),
        ("0.333333333333333333333333s", 333_333),
    ] {
        assert_eq!(parse_duration(text), Ok(Delay::from_micros(micros)), "{text}");
    }
}

#[test]
fn a_bare_number_is_asked_for_its_unit() {
    for text in ["5", "0", "1.5", "1h30"] {
        assert_eq!(duration_error(text), Why::NoUnit);
    }
    assert_eq!(
        parse_duration("90").expect_err("no unit").to_string(),
        "\"90\" is no duration: add a unit (write it like 50ms, 10s, 5m, 2h, 14d or 1h30m)"
    );
}

#[test]
fn what_is_no_duration() {
    assert_eq!(duration_error(""), Why::Empty);
    for text in ["-5s", "+5s", ".5s", " 5s", "s", "inf", "NaN", "banana", "1h-30m", "1h ", "٣s"] {
        assert!(matches!(duration_error(text), Why::NoNumber(_)), "{text}");
    }
    for text in ["1e3s", "5S", "5M", "5 s", "5min", "0x10s", "5.s", "5.", "1,5h", "5µs", "2y", "1_000s", "5s\u{7}"] {
        assert!(matches!(duration_error(text), Why::Unit(_) | Why::NoNumber(_)), "{text}");
    }
    for text in ["30m1h", "1m1m", "5ms1s"] {
        assert_eq!(duration_error(text), Why::Order, "{text}");
    }
    assert_eq!(duration_error("1.5h30m"), Why::Fraction);
    for text in ["99999999999999999999s", "30500569w", "18446744073709551615ms", "30500568w6d9h"] {
        assert_eq!(duration_error(text), Why::TooLarge, "{text}");
    }
}

#[test]
fn sizes_as_people_write_them() {
    for (text, bytes) in [
        ("0", 0),
        ("1500", 1_500),
        ("1500B", 1_500),
        ("64k", 65_536),
        ("64K", 65_536),
        ("64KB", 65_536),
        ("64kb", 65_536),
        ("64KiB", 65_536),
        ("2.5m", 2_621_440),
        ("1g", 1 << 30),
        ("2MB", 2 << 20),
        ("0.5k", 512),
        ("1.0001k", 1_024),
        ("3T", 3 << 40),
        ("1p", 1 << 50),
        ("18446744073709551615", u64::MAX),
        ("0.0k", 0),
    ] {
        assert_eq!(parse_size(text), Ok(Length(bytes)), "{text}");
        assert_eq!(parse_rate(text), Ok(bytes), "{text}");
        assert_eq!(parse_rate(&format!("{text}/s")), Ok(bytes), "{text}/s");
    }
}

#[test]
fn what_is_no_size() {
    assert_eq!(size_error(""), Why::Empty);
    for text in ["-1", "+1", ".5m", "k", "inf", "NaN", " 1k", "unlimited"] {
        assert!(matches!(size_error(text), Why::NoNumber(_)), "{text}");
    }
    for text in ["1e3", "1e", "1E6", "5x", "5 k", "5kib5", "5ki", "5bb", "5kk", "0x10", "1_000", "5k/s", "1k1", "5.k"] {
        assert!(matches!(size_error(text), Why::Unit(_)), "{text}");
    }
    for text in ["1.5", "0.0001k", "0.5B", "1.0"] {
        assert_eq!(size_error(text), Why::Part, "{text}");
    }
    for text in ["18446744073709551616", "16384p", "99999999999999999999g"] {
        assert_eq!(size_error(text), Why::TooLarge, "{text}");
    }
}

#[test]
fn errors_are_one_printable_line_with_an_example() {
    assert_eq!(
        parse_size("5\u{1b}[2Jx").expect_err("no size").to_string(),
        "\"5\\u{1b}[2Jx\" is no size: there is no unit \"\\u{1b}[2Jx\" (write it like 64k, 2.5m, 1g (1024-based) or 1500 (bytes))"
    );
    assert!(parse_rate("fast").expect_err("no rate").to_string().starts_with("\"fast\" is no rate: "));
}

#[test]
fn spans_read_in_their_two_largest_units() {
    for (micros, text) in [
        (0, "0 s"),
        (1, "1 ms"),
        (50_000, "50 ms"),
        (999_400, "999 ms"),
        (999_600, "1 s"),
        (1_500_000, "1.5 s"),
        (9_940_000, "9.9 s"),
        (9_960_000, "10 s"),
        (42_000_000, "42 s"),
        (59_600_000, "1 min"),
        (72_000_000, "1 min 12 s"),
        (3_599_600_000, "1 h"),
        (7_500_000_000, "2 h 5 min"),
        (86_399_000_000, "1 d"),
        (1_209_600_000_000, "14 d"),
        (1_213_200_000_000, "14 d 1 h"),
    ] {
        assert_eq!(human_delay(Delay::from_micros(micros)), text);
    }
    assert_eq!(human_delay(Delay::MAX), "213503982 d 8 h");
}

#[test]
fn bytes_read_in_binary_units() {
    for (bytes, text) in [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KiB"),
        (1_500, "1.5 KiB"),
        (65_536, "64.0 KiB"),
        (102_348, "99.9 KiB"),
        (102_399, "100 KiB"),
        (655_360, "640 KiB"),
        (1_048_063, "1023 KiB"),
        (1_048_575, "1.0 MiB"),
        (1_468_006, "1.4 MiB"),
        (2 << 30, "2.0 GiB"),
        (u64::MAX, "16.0 EiB"),
    ] {
        assert_eq!(human_bytes(Length(bytes)), text);
    }
    assert_eq!(human_rate(2_621_440), "2.5 MiB/s");
}

proptest! {
    #[test]
    fn nothing_makes_a_parser_panic(text in "\\PC{0,12}|[0-9.kmgtpibeKMGB/shdw+-]{0,24}") {
        let _ = (parse_duration(&text), parse_size(&text), parse_rate(&text));
    }

    #[test]
    fn whole_numbers_of_units_are_exact(n in 0_u64..10_000_000) {
        prop_assert_eq!(parse_duration(&format!("{n}ms")), Ok(Delay::from_millis(n)));
        prop_assert_eq!(parse_duration(&format!("{n}h")), Ok(Delay::from_hours(n)));
        prop_assert_eq!(parse_size(&format!("{n}k")), Ok(Length(n << 10)));
        prop_assert_eq!(parse_size(&format!("{n}g")), Ok(Length(n << 30)));
    }

    #[test]
    fn a_decimal_is_its_whole_part_and_its_thousandths(whole in 0_u64..1_000_000, thousandths in 0_u64..1_000) {
        let text = format!("{whole}.{thousandths:03}s");
        prop_assert_eq!(parse_duration(&text), Ok(Delay::from_millis(whole * 1_000 + thousandths)));
    }

    /// What is printed is within half of the last digit shown.
    #[test]
    fn printed_bytes_are_near(bytes in any::<u64>(), shift in 0_u32..64) {
        let bytes = bytes >> shift;
        let text = human_bytes(Length(bytes));
        let (number, unit) = text.split_once(' ').expect("a unit");
        let power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].iter().position(|u| *u == unit).expect("a known unit");
        let step = if number.contains('.') { 0.1 } else { 1.0 };
        let shown: f64 = number.parse().expect("a number");
        let exact = bytes as f64 / 1024_f64.powi(i32::try_from(power).expect("small"));
        prop_assert!((shown - exact).abs() <= step / 2.0 + 1e-6, "{bytes}: {text}");
        prop_assert!(shown < 1024.0);
    }
}
