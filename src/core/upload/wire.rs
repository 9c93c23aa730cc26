//! Pieces of requests and answers that several protocols share.

use super::ask::{Answer, Ask, Method, single};
use super::failure::UpFailure;
use super::found::Job;
use super::session::Before;
use crate::core::failure::RedirectFault;
use crate::core::range::{Length, Offset, content_length};
use crate::core::url::MirrorUrl;
use crate::core::validator::Validators;

/// A question that is answered with the length of the file as it is stored.
pub(super) fn head(url: &MirrorUrl) -> Ask {
    Ask::new(Method::Head, url).with("accept-encoding", "identity").with("cache-control", "no-cache")
}

/// The size that the answer to a HEAD tells: none where the file would be sent coded.
pub(super) fn size_told(answer: &Answer) -> Option<Length> {
    let coded = answer.field("content-encoding").is_some_and(|c| !c.eq_ignore_ascii_case("identity"));
    if coded { None } else { content_length(&answer.fields).ok().flatten() }
}

/// What stands under a name, by the answer to a HEAD of it.
pub(super) fn standing(answer: &Answer) -> Before {
    match answer.status {
        404 | 410 => Before::Nothing,
        200..=299 => {
            let seen = Validators::from_headers(&answer.fields);
            Before::File { size: size_told(answer), etag: seen.etag, modified: seen.last_modified }
        }
        _ => Before::Untold,
    }
}

/// Does what stands there now show that it is not what stood there before? Where the server tells too little, it does
/// not.
pub(super) fn is_new(now: &Before, before: &Before) -> bool {
    let Before::File { size, etag, modified } = now else { return false };
    match before {
        Before::Nothing => true,
        Before::Untold => false,
        Before::File { size: s, etag: e, modified: m } => {
            let both_differ = |differ: bool, known: bool| known && differ;
            both_differ(size != s, size.is_some() && s.is_some())
                || both_differ(etag != e, etag.is_some() && e.is_some())
                || both_differ(modified != m, modified.is_some() && m.is_some())
        }
    }
}

/// Was what stands there now written later than what stood there before, by the server's own clock?
pub(super) fn is_later(now: &Before, before: &Before) -> bool {
    match (now, before) {
        (Before::File { modified: Some(now), .. }, Before::File { modified: Some(then), .. }) => now > then,
        _ => false,
    }
}

/// Is what stands there now, by its tag, what stood there before?
pub(super) fn is_untouched(now: &Before, before: &Before) -> bool {
    match (now, before) {
        (Before::File { etag: Some(now), .. }, Before::File { etag: Some(then), .. }) => now == then,
        _ => false,
    }
}

/// A count in a field: digits only.
pub(super) fn number(answer: &Answer, name: &str) -> Option<u64> {
    digits(answer.field(name)?)
}

/// The same in any fields.
pub(super) fn number_in(fields: &http::HeaderMap, name: &str) -> Option<u64> {
    digits(single(fields, name)?)
}

/// Digits only, and no more than a file can have bytes.
pub(super) fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| plain && *n <= Length::LARGEST_FILE.0)
}

/// An offset in a field.
pub(super) fn offset(answer: &Answer, name: &str) -> Option<Offset> {
    number(answer, name).map(Offset)
}

/// A name beside the one of the URL: its last part with this behind it. `None` where the URL names no file.
pub(super) fn beside(url: &MirrorUrl, behind: &str) -> Option<MirrorUrl> {
    let mut there = url.secret_url().clone();
    let name = there.path_segments()?.next_back().filter(|name| !name.is_empty())?.to_owned();
    let path = there.path().strip_suffix(name.as_str())?.to_owned();
    there.set_path(&format!("{path}{name}{behind}"));
    MirrorUrl::parse(there.as_str()).ok()
}

/// The folder that the URL's file is in; `None` for the root.
pub(super) fn folder(url: &MirrorUrl) -> Option<MirrorUrl> {
    let there = url.secret_url().join(".").ok()?;
    (there.path() != "/").then(|| MirrorUrl::parse(there.as_str()).ok()).flatten()
}

/// The URL that a Location names, taken against the request's own. Another origin would get the bytes, and the right to
/// say that all is well: it is refused, but for the way up from http to https of the same host.
pub(super) fn session_url(base: &MirrorUrl, location: &str, keep_authority: bool) -> Result<MirrorUrl, UpFailure> {
    let fault = |f: RedirectFault| UpFailure::Transfer(crate::core::failure::Failure::Redirect(f));
    let there = base.join(location, 201).map_err(fault)?;
    if there.origin() == base.origin() {
        return Ok(there);
    }
    if keep_authority {
        let mut ours = base.secret_url().clone();
        ours.set_path(there.secret_url().path());
        ours.set_query(there.secret_url().query());
        return MirrorUrl::parse(ours.as_str()).map_err(|_| fault(RedirectFault::NoLocation { code: 201 }));
    }
    let up = there.host() == base.host() && there.is_https() && !base.is_https();
    if up { Ok(there) } else { Err(UpFailure::ElsewhereNamed { to: there.origin().to_string() }) }
}

/// What the job's size is not.
pub(super) fn wrong_size(job: &Job, told: Option<Length>) -> UpFailure {
    UpFailure::WrongSize { told, ours: job.size() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> MirrorUrl {
        MirrorUrl::parse(text).expect(text)
    }

    #[test]
    fn names_beside_and_folders() {
        let there = |text: &str| beside(&url(text), ".part-1").map(|u| u.secret_url().to_string());
        assert_eq!(there("http://h/a/b.bin").as_deref(), Some("http://h/a/b.bin.part-1"));
        assert_eq!(there("http://h/a%20b").as_deref(), Some("http://h/a%20b.part-1"));
        assert_eq!(there("http://h/a/"), None);
        let of = |text: &str| folder(&url(text)).map(|u| u.secret_url().to_string());
        assert_eq!(of("http://h/a/b.bin?x=1").as_deref(), Some("http://h/a/"));
        assert_eq!(of("http://h/b.bin"), None);
    }

    #[test]
    fn a_session_stays_at_its_server() {
        let base = url("http://h/files");
        let to = |location: &str, keep| session_url(&base, location, keep).map(|u| u.secret_url().to_string());
        for (location, leads) in [
            ("http://h/files/1", "http://h/files/1"),
            ("/files/2?k=v", "http://h/files/2?k=v"),
            ("//h/files/3", "http://h/files/3"),
            ("https://h/files/4", "https://h/files/4"),
        ] {
            assert_eq!(to(location, false), Ok(leads.to_owned()));
        }
        for elsewhere in ["http://other/1", "http://h:81/1", "//other/1"] {
            assert!(matches!(to(elsewhere, false), Err(UpFailure::ElsewhereNamed { .. })), "{elsewhere}");
        }
        assert_eq!(to("http://inside:8080/files/5?q", true), Ok("http://h/files/5?q".to_owned()));
        assert!(session_url(&url("https://h/f"), "http://h/1", false).is_err(), "never down to http");
        assert!(to("", false).is_err() && to("ftp://h/1", false).is_err());
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(digits("0012"), Some(12));
        for text in ["", "-1", "+1", "1.0", " 1", "1e3", "9223372036854775808", "99999999999999999999"] {
            assert_eq!(digits(text), None, "{text:?}");
        }
    }
}
