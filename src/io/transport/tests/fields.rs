//! Which secrets go where.

use super::*;
use crate::core::file_xfer::{Ask, Carry, Freshness, Unless, Wanted};
use crate::core::prefs::{ByHost, HostPattern};
use crate::core::range::Offset;
use crate::core::time::Epoch;

fn ask(at: &str, carry: Carry) -> Ask {
    Ask { url: url(at), carry, range: None, if_range: None, unless: None, freshness: Freshness::CacheAllowed }
}

/// Fields of a request, in a session that began at `typed`, of a transfer whose first URL is at a.test.
fn fields(credentials: &Credentials, typed: &str, ask: &Ask) -> HeaderMap {
    let hop = Hop { ask, typed: &url(typed), first_origin: &url("http://a.test/").origin(), want: WantDigest::No };
    credentials.headers(&hop, "agent/1", Epoch::ZERO)
}

fn value<'a>(fields: &'a HeaderMap, name: &str) -> Option<&'a str> {
    fields.get(name).map(|v| v.to_str().unwrap())
}

fn user() -> Credentials {
    let header = |text| UserHeader::parse(text).unwrap();
    Credentials {
        headers: vec![header("X-Plain: 1"), header("X-Plain: 2"), header("Cookie: c=1"), header("Host: h.test")],
        login: Some(Login { user: "u".into(), password: "p".into() }),
        ..Credentials::default()
    }
}

const BASIC_U_P: &str = "Basic dTpw";

#[test]
fn the_first_origin_gets_everything() {
    let got = fields(&user(), "http://a.test/f", &ask("http://a.test/f", Carry::Everything));
    assert_eq!(value(&got, "authorization"), Some(BASIC_U_P));
    assert_eq!(value(&got, "cookie"), Some("c=1"));
    assert_eq!(value(&got, "host"), Some("h.test"));
    assert_eq!(got.get_all("x-plain").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(value(&got, "user-agent"), Some("agent/1"));
    assert_eq!(value(&got, "accept"), Some("*/*"));
    assert_eq!(value(&got, "accept-encoding"), Some("identity"));
}

#[test]
fn another_typed_origin_gets_headers_without_credentials() {
    // Everything is downgraded where the origin is not the first one.
    for carry in [Carry::Headers, Carry::Everything] {
        for at in ["http://b.test/f", "https://a.test/f", "http://a.test:8080/f"] {
            let got = fields(&user(), at, &ask(at, carry));
            assert_eq!(value(&got, "x-plain"), Some("1"), "{at}");
            for secret in ["authorization", "cookie", "host"] {
                assert_eq!(value(&got, secret), None, "{at} {secret}");
            }
        }
    }
}

#[test]
fn a_mirror_that_a_server_named_gets_nothing_whatever_is_trusted() {
    let netrc = Netrc::new(|_, _| Some(Login { user: "n".into(), password: "r".into() }));
    let cookies = Cookies::new(|_, _| Some("c=2".into()));
    let trusting = Credentials { location: LocationTrust::All, netrc: Some(netrc), cookies: Some(cookies), ..user() };
    for at in ["http://a.test/f", "http://m.test/f"] {
        let got = fields(&trusting, at, &ask(at, Carry::Never));
        for mine in ["authorization", "cookie", "x-plain", "host"] {
            assert_eq!(value(&got, mine), None, "{at} {mine}");
        }
    }
}

#[test]
fn nothing_crosses_an_origin_by_redirect_unless_locations_are_trusted() {
    let mut user = user();
    user.netrc = Some(Netrc::new(|_, _| Some(Login { user: "n".into(), password: "n".into() })));
    user.cookies = Some(Cookies::new(|_, _| Some("jar=1".into())));
    let hop = ask("http://b.test/f", Carry::Nothing);
    let got = fields(&user, "http://x:y@a.test/f", &hop);
    let mut names: Vec<&str> = got.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "user-agent"]);

    user.location = LocationTrust::All;
    let got = fields(&user, "http://a.test/f", &hop);
    assert_eq!(value(&got, "authorization"), Some(BASIC_U_P));
    assert_eq!(value(&got, "cookie"), Some("c=1"));
}

#[test]
fn user_info_of_a_url_is_for_its_own_origin() {
    let none = Credentials::default();
    let got = fields(&none, "http://x%40:y@b.test/f", &ask("http://x%40:y@b.test/f", Carry::Headers));
    assert_eq!(value(&got, "authorization"), Some("Basic eEA6eQ=="));
    let within = fields(&none, "http://x%40:y@b.test/f", &ask("http://b.test/moved", Carry::Headers));
    assert_eq!(value(&within, "authorization"), Some("Basic eEA6eQ=="));
    let beyond = fields(&none, "http://x%40:y@b.test/f", &ask("http://c.test/f", Carry::Nothing));
    assert_eq!(value(&beyond, "authorization"), None);
    let before_u = fields(&user(), "http://x%40:y@a.test/f", &ask("http://x%40:y@a.test/f", Carry::Everything));
    assert_eq!(value(&before_u, "authorization"), Some("Basic eEA6eQ=="));
}

#[test]
fn a_header_of_the_user_goes_before_every_login() {
    let mut user = user();
    user.headers.push(UserHeader::parse("Authorization: Bearer t").unwrap());
    let got = fields(&user, "http://x:y@a.test/", &ask("http://x:y@a.test/", Carry::Everything));
    assert_eq!(got.get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer t"]);
}

#[test]
fn netrc_and_cookie_files_speak_for_the_hosts_they_name() {
    let credentials = Credentials {
        netrc: Some(Netrc::new(|host, user| match (host, user) {
            ("b.test", None) => Some(Login { user: "u".into(), password: "p".into() }),
            ("b.test", Some("x")) => Some(Login { user: "x".into(), password: "q".into() }),
            _ => None,
        })),
        cookies: Some(Cookies::new(|url, _| url.to_string().contains("b.test").then(|| "b=1".into()))),
        ..Credentials::default()
    };
    let at = |text| fields(&credentials, text, &ask(text, Carry::Headers));
    assert_eq!(value(&at("http://b.test/"), "authorization"), Some(BASIC_U_P));
    assert_eq!(value(&at("http://x@b.test/"), "authorization"), Some("Basic eDpx"));
    assert_eq!(value(&at("http://b.test/"), "cookie"), Some("b=1"));
    assert_eq!(value(&at("http://c.test/"), "authorization"), None);
    assert_eq!(value(&at("http://c.test/"), "cookie"), None);
}

#[test]
fn what_the_session_asks_becomes_fields() {
    let mut request = ask("http://a.test/", Carry::Everything);
    request.range = Some(Wanted { from: Offset(65_536), to: None });
    request.if_range = Some("\"tag\"".into());
    request.unless = Some(Unless::Match("\"old\"".into()));
    request.freshness = Freshness::NoCache;
    let got = fields(&Credentials::default(), "http://a.test/", &request);
    assert_eq!(value(&got, "range"), Some("bytes=65536-"));
    assert_eq!(value(&got, "if-range"), Some("\"tag\""));
    assert_eq!(value(&got, "if-none-match"), Some("\"old\""));
    assert_eq!((value(&got, "cache-control"), value(&got, "pragma")), (Some("no-cache"), Some("no-cache")));
    assert_eq!(value(&got, "want-repr-digest"), None);

    request.range = None;
    request.unless = Some(Unless::ModifiedSince("Sun, 06 Nov 1994 08:49:37 GMT".into()));
    let typed = url("http://a.test/");
    let hop = Hop { ask: &request, typed: &typed, first_origin: &typed.origin(), want: WantDigest::Yes };
    let got = Credentials::default().headers(&hop, "", Epoch::ZERO);
    assert_eq!((value(&got, "range"), value(&got, "if-range"), value(&got, "user-agent")), (None, None, None));
    assert_eq!(value(&got, "if-modified-since"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert_eq!(value(&got, "want-repr-digest"), Some("sha-256=10, sha-512=5"));
}

#[test]
fn a_damaged_state_smuggles_no_header() {
    let mut request = ask("http://a.test/", Carry::Everything);
    request.range = Some(Wanted { from: Offset(1), to: None });
    request.if_range = Some("\"a\"\r\nHost: evil".into());
    let got = fields(&Credentials::default(), "http://a.test/", &request);
    assert_eq!((value(&got, "range"), value(&got, "if-range")), (Some("bytes=1-"), None));
}

#[test]
fn the_users_headers_take_the_place_of_ours_but_for_the_coding() {
    let header = |text| UserHeader::parse(text).unwrap();
    let credentials = Credentials {
        headers: vec![header("Accept: text/*"), header("User-Agent: mine"), header("Accept-Encoding: gzip")],
        ..Credentials::default()
    };
    let got = fields(&credentials, "http://a.test/", &ask("http://a.test/", Carry::Everything));
    assert_eq!(got.get_all("accept").iter().collect::<Vec<_>>(), ["text/*"]);
    assert_eq!(value(&got, "user-agent"), Some("mine"));
    assert_eq!(got.get_all("accept-encoding").iter().collect::<Vec<_>>(), ["identity"]);
}

#[test]
fn secrets_are_never_shown() {
    let mut user = user();
    user.netrc = Some(Netrc::new(|_, _| None));
    let shown = format!("{user:?} {:?}", user.login);
    for secret in ["c=1", "\"u\"", "\"p\""] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let got = fields(&user, "http://a.test/", &ask("http://a.test/", Carry::Everything));
    assert!(!format!("{got:?}").contains("dTpw"), "sensitive values are marked: {got:?}");
    assert!(!format!("{got:?}").contains("c=1"), "{got:?}");
}

#[test]
fn what_is_preferred_of_a_host_goes_there_after_what_was_typed() {
    let secrets = HostSecrets {
        headers: vec![UserHeader::parse("X-Plain: 9").unwrap(), UserHeader::parse("X-Site: s").unwrap()],
        login: Some(Login { user: "h".into(), password: "p".into() }),
        netrc: None,
    };
    let pattern = HostPattern::parse("b.test").unwrap();
    let credentials = Credentials { hosts: std::sync::Arc::new(ByHost::new(vec![(pattern, secrets)])), ..user() };
    let typed = fields(&credentials, "http://b.test/f", &ask("http://b.test/f", Carry::Headers));
    assert_eq!(typed.get_all("x-plain").iter().collect::<Vec<_>>(), ["1", "2"], "what was typed comes first");
    assert_eq!((value(&typed, "x-site"), value(&typed, "authorization")), (Some("s"), Some("Basic aDpw")));
    let elsewhere = fields(&credentials, "http://c.test/f", &ask("http://c.test/f", Carry::Headers));
    let redirected = fields(&credentials, "http://a.test/f", &ask("http://b.test/f", Carry::Nothing));
    for got in [elsewhere, redirected] {
        assert_eq!((value(&got, "x-site"), value(&got, "authorization")), (None, None));
    }
}
