//! Tests of the proxy rules.

use super::*;

fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
}

fn through(rules: &ProxyRules, url: &str) -> Option<String> {
    rules.proxy_for(&MirrorUrl::parse(url).unwrap()).map(ToString::to_string)
}

fn exempts(list: &str, url: &str) -> bool {
    let rules = ProxyRules::all(ProxyUrl::parse("p:1", "--proxy").unwrap(), Some(list));
    through(&rules, url).is_none()
}

#[test]
fn each_scheme_has_its_variable_and_all_proxy_fills_the_gap() {
    let rules = ProxyRules::from_env(env(&[("http_proxy", "one:3128"), ("ALL_PROXY", "socks5h://two")])).unwrap();
    assert_eq!(through(&rules, "http://example.org/").as_deref(), Some("http://one:3128"));
    assert_eq!(through(&rules, "https://example.org/").as_deref(), Some("socks5h://two:1080"));
    let rules =
        ProxyRules::from_env(env(&[("HTTPS_PROXY", "https://upper"), ("https_proxy", "https://lower")])).unwrap();
    assert_eq!(through(&rules, "https://example.org/").as_deref(), Some("https://lower:443"));
    assert_eq!(through(&rules, "http://example.org/"), None);
}

#[test]
fn http_proxy_counts_in_lower_case_only() {
    let rules = ProxyRules::from_env(env(&[("HTTP_PROXY", "evil:1")])).unwrap();
    assert!(rules.is_empty());
}

#[test]
fn an_empty_variable_is_no_variable() {
    let rules = ProxyRules::from_env(env(&[("http_proxy", ""), ("all_proxy", " ")])).unwrap();
    assert_eq!(rules, ProxyRules::none());
}

#[test]
fn a_bad_proxy_is_named_by_its_variable_and_never_by_its_text() {
    let error = ProxyRules::from_env(env(&[("https_proxy", "gopher://user:secret@host")])).unwrap_err();
    assert_eq!(error.origin, "https_proxy");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(ProxyUrl::parse("http://", "--proxy").is_err());
    assert!(ProxyUrl::parse("socks5://", "--proxy").is_err());
}

#[test]
fn a_proxy_is_shown_without_its_password() {
    let proxy = ProxyUrl::parse("http://user:secret@host:8080/path?query", "--proxy").unwrap();
    assert_eq!(format!("{proxy} {proxy:?}"), "http://host:8080 http://host:8080");
    assert_eq!(proxy.secret_url().password(), Some("secret"));
}

#[test]
fn names_exempt_themselves_and_what_is_below() {
    for entry in ["example.org", ".example.org", "*.example.org", "EXAMPLE.org.", "x, example.org ,y"] {
        assert!(exempts(entry, "http://example.org/"), "{entry}");
        assert!(exempts(entry, "https://a.b.example.org/"), "{entry}");
        assert!(exempts(entry, "http://example.org./"), "{entry}");
        assert!(!exempts(entry, "http://notexample.org/"), "{entry}");
        assert!(!exempts(entry, "http://example.org.evil.net/"), "{entry}");
    }
    assert!(exempts("*", "http://anything/"));
    assert!(!exempts("", "http://anything/"));
}

#[test]
fn a_port_narrows_an_exception() {
    assert!(exempts("example.org:8080", "http://www.example.org:8080/"));
    assert!(!exempts("example.org:8080", "http://example.org/"));
    assert!(exempts("example.org:443", "https://example.org/"));
    assert!(exempts("[::1]:80", "http://[::1]/"));
    assert!(!exempts("[::1]:81", "http://[::1]/"));
}

#[test]
fn networks_cover_addresses_and_no_names() {
    assert!(exempts("192.168.0.0/16", "http://192.168.77.1/"));
    assert!(!exempts("192.168.0.0/16", "http://192.169.0.1/"));
    assert!(exempts("127.0.0.1", "http://127.0.0.1:99/"));
    assert!(!exempts("127.0.0.1", "http://127.0.0.2/"));
    assert!(exempts("fd00::/8", "http://[fd12::1]/"));
    assert!(!exempts("fd00::/8", "http://[fe80::1]/"));
    assert!(exempts("::1", "http://[::1]:8000/"));
    assert!(exempts("0.0.0.0/0", "http://1.2.3.4/"));
    assert!(!exempts("0.0.0.0/0", "http://[::1]/"));
    assert!(!exempts("10.0.0.0/33", "http://10.0.0.1/"));
}
