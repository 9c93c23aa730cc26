//! What requests carry and how they travel, from what was typed. Nothing secret is repeated in a message from here.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderValue;

use crate::cli::args::{Patience, Requests};
use crate::cli::foreign;
use crate::cli::settings::positive;
use crate::cli::target;
use crate::cli::trouble::Trouble;
use crate::core::prefs::Travel;
use crate::core::time::Delay;
use crate::engine::{AddressFamily, NetOptions};

/// Reads them; `cwd` is what relative paths are meant from.
pub(crate) fn read(
    requests: &Requests,
    patience: &Patience,
    travel: &Travel,
    cwd: &Path,
) -> Result<Arc<NetOptions>, Trouble> {
    let files = [
        ("--cacert", &requests.cacert),
        ("--cert", &requests.cert),
        ("--key", &requests.key),
        ("--cookies", &requests.cookies),
    ];
    for (option, path) in files {
        path.as_deref().map_or(Ok(()), |path| check_readable(option, path))?;
    }
    // The values of these two may be secrets, so that only what is wrong with them is told.
    let secret = |option: &str, why: String| Trouble::Usage(format!("{option}: {why}"));
    requests.headers.iter().try_for_each(|text| foreign::try_header(text)).map_err(|why| secret("--header", why))?;
    requests.proxy.as_deref().map_or(Ok(()), foreign::try_proxy).map_err(|why| secret("--proxy", why))?;
    for text in &requests.resolve {
        foreign::try_resolve(text).map_err(Trouble::Usage)?;
    }
    let absolute = |path: &Option<PathBuf>| path.as_ref().map(|path| target::absolute(cwd, path)).transpose();
    let built_in = NetOptions::default();
    let options = NetOptions {
        headers: requests.headers.clone(),
        user: requests.user.as_deref().map(user).transpose()?,
        netrc: requests.netrc,
        cookies: absolute(&requests.cookies)?,
        user_agent: requests.user_agent.as_deref().map(user_agent).transpose()?,
        proxy: requests.proxy.clone(),
        cacert: absolute(&requests.cacert)?,
        cert: absolute(&requests.cert)?,
        key: absolute(&requests.key)?,
        insecure: requests.insecure,
        resolve: requests.resolve.clone(),
        family: match (requests.ipv4, requests.ipv6) {
            (true, _) => AddressFamily::V4,
            (_, true) => AddressFamily::V6,
            _ => AddressFamily::Any,
        },
        location_trusted: requests.location_trusted,
        connect_timeout: timeout(
            "--connect-timeout",
            &patience.connect_timeout,
            travel.connect_timeout,
            built_in.connect_timeout,
        )?,
        first_byte_timeout: timeout(
            "--first-byte-timeout",
            &patience.first_byte_timeout,
            travel.first_byte_timeout,
            built_in.first_byte_timeout,
        )?,
        stall_timeout: timeout(
            "--stall-timeout",
            &patience.stall_timeout,
            travel.stall_timeout,
            built_in.stall_timeout,
        )?,
    };
    foreign::try_net(&options).map_err(Trouble::Usage)?;
    Ok(Arc::new(options))
}

/// What was typed, else what is preferred, else what is built in.
fn timeout(
    option: &'static str,
    typed: &Option<String>,
    preferred: Option<Delay>,
    built_in: Delay,
) -> Result<Delay, Trouble> {
    let typed = typed.as_deref().map(|text| positive(option, text)).transpose()?;
    Ok(typed.or(preferred).unwrap_or(built_in))
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

fn user(text: &str) -> Result<String, Trouble> {
    let missing = || Trouble::Usage("--user: the password is missing; write USER:PASSWORD, or use --netrc".into());
    if text.contains(':') { Ok(text.to_owned()) } else { Err(missing()) }
}
