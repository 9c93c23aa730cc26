//! What requests carry and how they travel, from what was typed. Nothing secret is repeated in a message from here.

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use http::{HeaderName, HeaderValue, header};

use crate::cli::args::Requests;
use crate::cli::foreign::{self, Family, NetAsked, Resolve, Trust, Verify};
use crate::cli::trouble::Trouble;
use crate::io::transport::{Credentials, NetSettings};

/// Headers that a session writes itself: with the user's beside them no answer could be judged.
const OURS: [HeaderName; 10] = [
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::ACCEPT_ENCODING,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

/// Reads them.
pub(crate) fn read(asked: &Requests) -> Result<(NetSettings, Credentials), Trouble> {
    let readable =
        [("--cacert", &asked.cacert), ("--cert", &asked.cert), ("--key", &asked.key), ("--cookies", &asked.cookies)];
    for (option, path) in readable {
        path.as_deref().map_or(Ok(()), |path| check_readable(option, path))?;
    }
    let net = NetAsked {
        proxy: asked.proxy.as_deref().map(proxy).transpose()?,
        cacert: asked.cacert.clone(),
        cert: asked.cert.clone(),
        key: asked.key.clone(),
        verify: if asked.insecure { Verify::Nothing } else { Verify::Certificates },
        resolve: asked.resolve.iter().map(|text| resolve(text)).collect::<Result<_, _>>()?,
        family: match (asked.ipv4, asked.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        },
        user_agent: asked.user_agent.as_deref().map(user_agent).transpose()?,
        headers: asked.headers.iter().map(|text| user_header(text)).collect::<Result<_, _>>()?,
        user: asked.user.as_deref().map(user).transpose()?,
        netrc: asked.netrc,
        cookies: asked.cookies.clone(),
        trust: if asked.location_trusted { Trust::Redirects } else { Trust::FirstOrigin },
    };
    foreign::net(net).map_err(Trouble::Usage)
}

fn check_readable(option: &'static str, path: &Path) -> Result<(), Trouble> {
    let refuse = |why: String| Err(Trouble::option(option, path.to_string_lossy(), why));
    match File::open(path).and_then(|f| f.metadata()) {
        Ok(m) if m.is_dir() => refuse("it is a folder; name a file".into()),
        Ok(_) => Ok(()),
        Err(e) => refuse(format!("cannot read it: {e}; name a file that can be read")),
    }
}

/// `HOST:PORT:ADDRESS[,ADDRESS...]`, addresses of IPv6 in brackets or not, as curl takes them.
fn resolve(text: &str) -> Result<Resolve, Trouble> {
    let bad =
        || Trouble::option("--resolve", text, "it is written HOST:PORT:ADDRESS, such as example.org:443:192.0.2.1");
    let mut parts = text.splitn(3, ':');
    let (host, port, addresses) = (parts.next(), parts.next(), parts.next());
    let host = host.filter(|h| !h.is_empty()).ok_or_else(bad)?.to_ascii_lowercase();
    let port = port.and_then(|p| p.parse().ok()).ok_or_else(bad)?;
    let bare = |a: &str| a.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().map_err(|_| bad());
    let addresses = addresses.ok_or_else(bad)?.split(',').map(bare).collect::<Result<Vec<_>, _>>()?;
    Ok(Resolve { host, port, addresses })
}

fn proxy(text: &str) -> Result<url::Url, Trouble> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    match url::Url::parse(&whole) {
        Ok(url) if matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") && url.has_host() => Ok(url),
        // Its text may hold a password, so it is not repeated.
        _ => Err(Trouble::Usage(
            "--proxy: it is no proxy's URL; write http://, https://, socks5:// or socks5h://HOST:PORT".into(),
        )),
    }
}

fn user_agent(text: &str) -> Result<String, Trouble> {
    let fits = HeaderValue::from_str(text).is_ok();
    fits.then(|| text.to_owned())
        .ok_or_else(|| Trouble::option("--user-agent", text, "it holds a character that no header may hold"))
}

fn user_header(text: &str) -> Result<(HeaderName, HeaderValue), Trouble> {
    let (name, mut value) = foreign::parse_header(text).map_err(|why| {
        // The part behind the colon may be a secret, and where there is no colon all of it may be.
        let name = text.split_once(':').map_or("", |(name, _)| name);
        Trouble::option("--header", name, why)
    })?;
    if OURS.contains(&name) {
        return Err(Trouble::option("--header", name.as_str(), "persxfer writes this header itself; leave it out"));
    }
    value.set_sensitive(true);
    Ok((name, value))
}

fn user(text: &str) -> Result<(String, String), Trouble> {
    let (user, password) = text
        .split_once(':')
        .ok_or_else(|| Trouble::Usage("--user: the password is missing; write USER:PASSWORD, or use --netrc".into()))?;
    Ok((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_reads_both_families() {
        let got = resolve("Example.org:443:192.0.2.1,[2001:db8::1]").expect("good");
        assert_eq!((got.host.as_str(), got.port), ("example.org", 443));
        assert_eq!(got.addresses, ["192.0.2.1".parse::<IpAddr>().expect("v4"), "2001:db8::1".parse().expect("v6")]);
        for bad in ["", "h", "h:1", "h:x:1.2.3.4", ":1:1.2.3.4", "h:1:name", "h:70000:1.2.3.4"] {
            assert!(resolve(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn proxies() {
        assert_eq!(proxy("localhost:3128").expect("good").as_str(), "http://localhost:3128/");
        assert_eq!(proxy("socks5h://u:p@h:1080").expect("good").scheme(), "socks5h");
        let error = proxy("ftp://me:s3cret@h").expect_err("no proxy").to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn headers_that_are_ours_are_refused_and_secrets_not_repeated() {
        assert!(user_header("range: bytes=0-").expect_err("ours").to_string().contains("range"));
        assert!(user_header("X-Token: s3cret").expect("good").1.is_sensitive());
        for bad in ["Bearer s3cret", "Bad Name: s3cret", "A: s3cret\nB: c"] {
            let error = user_header(bad).expect_err(bad).to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!(!user("s3cret").expect_err("no password").to_string().contains("s3cret"));
    }
}
