//! Tests of URLs and origins.

use proptest::prelude::*;

use super::*;

fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).expect(text)
}

fn why_not(text: &str) -> String {
    MirrorUrl::parse(text).expect_err(text).to_string()
}

#[test]
fn errors_say_what_to_do_and_no_secret() {
    for (text, want) in [
        ("", "\"\" is no http or https URL: it is empty"),
        (
            "example.org/x?token=abc#frag",
            "\"example.org/x?token=***\" is no http or https URL: \
             it has no scheme; was https://example.org/x?token=*** meant?",
        ),
        (
            "localhost:8080/x",
            "\"localhost:8080/x\" is no http or https URL: it has no scheme; was https://localhost:8080/x meant?",
        ),
        (
            "joe:secret@example.org/x",
            "\"***@example.org/x\" is no http or https URL: it has no scheme; was https://***@example.org/x meant?",
        ),
        (
            "ftp://joe:secret@example.org/x",
            "\"ftp://***@example.org/x\" is no http or https URL: the scheme ftp is neither http nor https",
        ),
        (
            "//example.org/x",
            "\"//example.org/x\" is no http or https URL: it has no scheme; was https://example.org/x meant?",
        ),
        ("https://", "\"https://\" is no http or https URL: it names no host"),
        ("https://h:99999/", "\"https://h:99999/\" is no http or https URL: invalid port number"),
        (
            "file:///etc/passwd",
            "\"file:///etc/passwd\" is no http or https URL: the scheme file is neither http nor https",
        ),
    ] {
        assert_eq!(why_not(text), want);
    }
    assert!(why_not("ftp://h/x?mail=a@b&sig=SECRET").starts_with("\"ftp://***\""));
    assert!(!why_not(":SECRET@example.org/://@").contains("SECRET"));
    // A password with a slash in it: the parser takes what comes before for host and port.
    assert!(!why_not("https://joe:se/cret@example.org:x/").contains("cret"));
    assert!(!why_not("https://a b\x1b[2J/").contains('\x1b'));
}

#[test]
fn secrets_are_never_shown() {
    let secret = url("https://joe:pw@example.org:8443/p?token=abc&b=&flag&&x=1=2#frag");
    let shown = "https://example.org:8443/p?token=***&b=***&***&&x=***";
    assert_eq!(secret.redacted(), shown);
    assert_eq!(format!("{secret} {secret:?}"), format!("{shown} {shown}"));
    assert_eq!(url("https://example.org/?").redacted(), "https://example.org/?");
    assert_eq!(secret.secret_url().as_str(), "https://joe:pw@example.org:8443/p?token=abc&b=&flag&&x=1=2");
}

#[test]
fn credentials_are_decoded_and_removed() {
    let with = url("https://jo%40e:p%3Aw%2F@example.org/x");
    assert_eq!(with.credentials(), Some(("jo@e".into(), "p:w/".into())));
    assert_eq!(with.without_credentials(), url("https://example.org/x"));
    assert_eq!(url("https://joe@example.org/").credentials(), Some(("joe".into(), String::new())));
    assert_eq!(url("https://:pw@example.org/").credentials(), Some((String::new(), "pw".into())));
    assert_eq!(url("https://example.org/").credentials(), None);
}

#[test]
fn host_port_and_scheme() {
    let plain = url("http://Example.ORG/x");
    assert_eq!((plain.host(), plain.port(), plain.is_https()), ("example.org", 80, false));
    let odd = url("https://[::1]:8443/");
    assert_eq!((odd.host(), odd.port(), odd.is_https()), ("[::1]", 8443, true));
    assert_eq!(url("https://example.org/").port(), 443);
}

#[test]
fn origins_survive_a_round_trip() {
    for (text, want) in [
        ("https://example.org:443/a?b#c", "https://example.org"),
        ("http://example.org:80", "http://example.org"),
        ("http://example.org:443/", "http://example.org:443"),
        ("https://joe:pw@[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443"),
        ("https://bücher.example/x", "https://xn--bcher-kva.example"),
        ("http://0x7f.1/", "http://127.0.0.1"),
    ] {
        let origin = url(text).origin();
        assert_eq!(origin.as_str(), want);
        assert_eq!(Origin::parse(origin.as_str()), Some(origin));
        let same = url(url(text).secret_url().as_str());
        assert_eq!(same, url(text));
    }
    assert_eq!(Origin::parse("nonsense"), None);
}

#[test]
fn redirects_that_lead_somewhere() {
    let base = url("https://joe:pw@example.org/a/b?q=1");
    let to = |location: &[u8]| base.join(location, 302).expect("a URL").secret_url().to_string();
    assert_eq!(to(b"https://other.example/x#frag"), "https://other.example/x");
    assert_eq!(to(b"http://other.example/x"), "http://other.example/x");
    assert_eq!(to(b" ../c "), "https://joe:pw@example.org/c");
    assert_eq!(to(b"//cdn.example/x"), "https://cdn.example/x");
    assert_eq!(to("/größe".as_bytes()), "https://joe:pw@example.org/gr%C3%B6%C3%9Fe");
    assert_eq!(to(b"/caf\xe9?x=\xff"), "https://joe:pw@example.org/caf%E9?x=%FF");
    assert_eq!(to(b"/two words"), "https://joe:pw@example.org/two%20words");
}

#[test]
fn redirects_that_lead_nowhere() {
    let base = url("https://example.org/a");
    for location in ["", "  ", "https://", "http://h:99999/", "https://exa mple/", "http://[::1"] {
        assert_eq!(base.join(location, 307), Err(RedirectFault::NoLocation { code: 307 }), "{location:?}");
    }
    for (location, scheme) in
        [("file:///etc/passwd", "file"), ("javascript:alert(1)", "javascript"), ("ftp://h/x", "ftp")]
    {
        let fault = RedirectFault::Scheme { scheme: scheme.into() };
        assert_eq!(base.join(location, 302), Err(fault));
    }
}

#[test]
fn public_hosts() {
    for host in [
        "example.org",
        "example.org.",
        "8.8.8.8",
        "[2a00:1450::1]",
        "[::ffff:8.8.8.8]",
        "[2002:808:808::1]",
        "notlocalhost.org",
    ] {
        assert!(url(&format!("http://{host}/")).is_public_host(), "{host}");
    }
    for host in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "printer",
        "nas.local",
        "x.internal",
        "router.home.arpa",
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd12::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[2002:7f00:1::]",
        "[::127.0.0.1]",
    ] {
        assert!(!url(&format!("http://{host}/")).is_public_host(), "{host}");
    }
}

proptest! {
    #[test]
    fn any_text_may_come(text in "(?s)(https?:/{0,3})?(.{0,8}:.{0,8}@)?.{0,40}") {
        match MirrorUrl::parse(&text) {
            Ok(read) => {
                let stored = read.secret_url().as_str();
                prop_assert_eq!(&url(stored), &read);
                let _ = (read.redacted(), read.credentials(), read.is_public_host(), read.port());
                prop_assert!(!read.host().is_empty());
                prop_assert_eq!(Origin::parse(read.origin().as_str()), Some(read.origin()));
            }
            Err(bad) => prop_assert!(!bad.to_string().contains(crate::core::printable::is_hidden)),
        }
    }

    #[test]
    fn any_location_may_come(bytes: Vec<u8>, code: u16) {
        let _ = url("https://example.org/a/b").join(&bytes, code);
    }

    #[test]
    fn no_secret_is_shown(
        scheme in "(https://|ftp://|https:|)",
        user in "[a-z]{0,4}",
        path in "[a-z/@:]{0,9}",
        mail in "(mail=a@b&)?",
    ) {
        let text = format!("{scheme}{user}:SECRET@example.org/{path}?{mail}sig=SECRET&SECRET#SECRET");
        let shown = match MirrorUrl::parse(&text) {
            Ok(read) => format!("{read} {read:?} {}", read.redacted()),
            Err(bad) => format!("{bad} {bad:?}"),
        };
        prop_assert!(!shown.contains("SECRET"), "{}", shown);
    }
}
