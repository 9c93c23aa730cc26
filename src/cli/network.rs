//! What requests carry and how they travel, from what was typed. Nothing secret is repeated in a message from here.

use std::fs::File;
use std::path::Path;

use http::HeaderValue;

use crate::cli::args::Requests;
use crate::cli::foreign::{self, Family, NetAsked, Trust, Verify};
use crate::cli::trouble::Trouble;
use crate::core::time::Delay;
use crate::io::transport::{Credentials, NetSettings};

/// Reads them.
pub(crate) fn read(asked: &Requests, connect_timeout: Delay) -> Result<(NetSettings, Credentials), Trouble> {
    let files =
        [("--cacert", &asked.cacert), ("--cert", &asked.cert), ("--key", &asked.key), ("--cookies", &asked.cookies)];
    for (option, path) in files {
        path.as_deref().map_or(Ok(()), |path| check_readable(option, path))?;
    }
    // The values of these two may be secrets, so that only what is wrong with them is told.
    let secret = |option: &str, why: String| Trouble::Usage(format!("{option}: {why}"));
    let header = |text: &String| foreign::parse_header(text).map_err(|why| secret("--header", why));
    let proxy = |text: &String| foreign::parse_proxy(text).map_err(|why| secret("--proxy", why));
    let resolve = |text: &String| foreign::parse_resolve(text).map_err(Trouble::Usage);
    let net = NetAsked {
        connect_timeout,
        proxy: asked.proxy.as_ref().map(proxy).transpose()?,
        cacert: asked.cacert.clone(),
        cert: asked.cert.clone(),
        key: asked.key.clone(),
        verify: if asked.insecure { Verify::Nothing } else { Verify::Certificates },
        resolve: asked.resolve.iter().map(resolve).collect::<Result<_, _>>()?,
        family: match (asked.ipv4, asked.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        },
        user_agent: asked.user_agent.as_deref().map(user_agent).transpose()?,
        headers: asked.headers.iter().map(header).collect::<Result<_, _>>()?,
        user: asked.user.as_deref().map(user).transpose()?,
        netrc: asked.netrc,
        cookies: asked.cookies.clone(),
        trust: if asked.location_trusted { Trust::All } else { Trust::None },
    };
    foreign::net(net).map_err(Trouble::Usage)
}

fn check_readable(option: &'static str, path: &Path) -> Result<(), Trouble> {
    let refuse = |why: String| Err(Trouble::option(option, path.to_string_lossy(), why));
    match File::open(path).and_then(|f| f.metadata()) {
        Ok(m) if m.is_dir() => refuse("it is a folder; name a file".into()),
        Ok(_) => Ok(()),
        Err(e) => refuse(format!("cannot read it: {}; name a file that can be read", foreign::plain_error(&e))),
    }
}

fn user_agent(text: &str) -> Result<String, Trouble> {
    let fits = HeaderValue::from_str(text).is_ok();
    let bad = || Trouble::option("--user-agent", text, "it holds a character that no header may hold");
    fits.then(|| text.to_owned()).ok_or_else(bad)
}

fn user(text: &str) -> Result<(String, String), Trouble> {
    let missing = || Trouble::Usage("--user: the password is missing; write USER:PASSWORD, or use --netrc".into());
    let (user, password) = text.split_once(':').ok_or_else(missing)?;
    Ok((user.to_owned(), password.to_owned()))
}
