//! The upload that was asked for: from a file, servers and options to one [`Job`].

mod store;

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::cli::args::{self, Upload};
use crate::cli::foreign::{plain_error, printable, protocol, protocol_words, verify};
use crate::cli::jobs;
use crate::cli::settings::size;
use crate::cli::target;
use crate::cli::trouble::Trouble;
use crate::core::range::Length;
use crate::core::upload::{Authority, Interop, Protocol, Surplus, UploadOptions};
use crate::core::url::MirrorUrl;
use crate::engine::{Job, NetOptions, Options, Target};
use store::Stores;

pub(crate) use store::can_sign;

/// What a name in a URL is written with; everything else is percent-encoded (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A signature is never longer.
const MAX_SIGNATURE: u64 = 16 << 10;

/// One server.
#[derive(Debug)]
struct Server {
    url: MirrorUrl,
    protocol: Protocol,
    /// The protocol was said, and not taken from the URL.
    said: bool,
    /// The file's name was appended to the URL.
    named: bool,
    /// Requests are signed with keys.
    keys: bool,
}

/// Reads it. What is wrong with the words is found before what is wrong with the file.
pub(crate) fn read(asked: &Upload, net: Arc<NetOptions>, cwd: &Path) -> Result<Job, Trouble> {
    let source = source(&asked.file, cwd)?;
    let name = asked.speech.name.as_deref().map(good_name).transpose()?;
    let in_url = name.map_or_else(|| source.file_name().unwrap_or_default().as_bytes(), str::as_bytes);
    let special = &asked.special;
    let stores = Stores::new(special, in_url, cwd)?;
    let servers = servers(asked, in_url, &stores)?;
    refuse_idle(asked, &servers)?;
    let signature = special.boinc_signature.as_deref().map(signature).transpose()?;
    let limit = size("--max-nbytes", special.max_nbytes.as_deref())?.map(Length);
    let upload = UploadOptions {
        protocols: servers.iter().filter(|s| s.said).map(|s| (s.url.clone(), s.protocol)).collect(),
        name: name.map(str::to_owned),
        media_type: asked.speech.content_type.as_deref().map(media_type).transpose()?,
        read_back: asked.speech.verify.as_deref().and_then(verify).unwrap_or_default(),
        surplus: match special.surplus {
            Some(args::Surplus::Done) => Surplus::Done,
            Some(args::Surplus::Conflict) | None => Surplus::Conflict,
        },
        authority: if special.keep_authority { Authority::Ours } else { Authority::Named },
        interop: special.interop.map(interop).unwrap_or_default(),
        profile: special.profile.clone(),
        region: special.region.clone(),
        manifest: stores.manifest_path(),
    };
    let options = Options { upload, ..jobs::lasting(&asked.patience, &asked.around, net)? };
    let length = readable(&source)?;
    if let Some(limit) = limit.filter(|limit| *limit < length) {
        let why = format!("the file has {length} bytes, more than this limit; no server would take it");
        return Err(Trouble::option("--max-nbytes", limit.to_string(), why));
    }
    Ok(Job {
        urls: servers.into_iter().map(|server| server.url).collect(),
        target: Target::Source(source),
        digests: Vec::new(),
        expected: None,
        pieces: None,
        max_filesize: limit,
        xml_signature: signature,
        options: Arc::new(options),
    })
}

/// The file's absolute path.
fn source(file: &Path, cwd: &Path) -> Result<PathBuf, Trouble> {
    let bad = |why| Err(Trouble::option("FILE", file.to_string_lossy(), why));
    match &*file.to_string_lossy() {
        "" => bad("it is empty; give a file's name"),
        "-" => bad(
            "standard input cannot be sent, an upload that resumes has to read its bytes again; give a file's name (./- \
             for a file that is called so)",
        ),
        _ => Ok(target::tidy(&target::absolute(cwd, file)?)),
    }
}

/// The size of the file, which must be a regular one that can be read. Opened only if it is: a pipe would wait.
fn readable(source: &Path) -> Result<Length, Trouble> {
    let trouble = |detail: &str| Trouble::Io {
        doing: "send",
        path: printable(&source.display().to_string()),
        detail: detail.to_owned(),
    };
    let meta = std::fs::metadata(source).map_err(|e| trouble(&plain_error(&e)))?;
    if meta.is_dir() {
        return Err(trouble("it is a folder; give one file, or pack the folder into one"));
    }
    if !meta.is_file() {
        return Err(trouble("it is no regular file, and only such a one can be resumed; give another one"));
    }
    File::open(source).map_err(|e| trouble(&plain_error(&e)))?;
    Ok(Length(meta.len()))
}

/// The name that a file is to have elsewhere: one component.
fn good_name(name: &str) -> Result<&str, Trouble> {
    let why = match name {
        "" => "it is empty; give a name, or leave it out for the file's own",
        "." | ".." => "that is a folder; give a name",
        _ if name.contains('/') => "a name has no / in it; folders belong into the URL",
        _ if name.chars().any(char::is_control) => "it holds a control character; give another one",
        _ => return Ok(name),
    };
    Err(Trouble::option("--name", name, why))
}

fn media_type(text: &str) -> Result<String, Trouble> {
    let value = http::HeaderValue::from_str(text).is_ok();
    let halves = text.split(';').next().and_then(|kind| kind.trim().split_once('/'));
    let fits = value && halves.is_some_and(|(kind, sub)| !kind.is_empty() && !sub.is_empty());
    let bad = || Trouble::option("--content-type", text, "a type is written like application/zip");
    fits.then(|| text.to_owned()).ok_or_else(bad)
}

const fn interop(draft: args::Draft) -> Interop {
    match draft {
        args::Draft::Six => Interop::Six,
        args::Draft::Seven => Interop::Seven,
        args::Draft::Eight => Interop::Eight,
        args::Draft::Final => Interop::Final,
    }
}

/// The signature as text: what the protocol carries is hex digits, and perhaps a full stop at the end.
fn signature(path: &Path) -> Result<String, Trouble> {
    let refuse = |why: String| Trouble::option("--boinc-signature", path.to_string_lossy(), why);
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_SIGNATURE + 1).read_to_end(&mut bytes));
    read.map_err(|e| refuse(jobs::unreadable(&e)))?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let fits = |c: char| c.is_ascii_hexdigit() || c.is_ascii_whitespace() || c == '.';
    let good = text.len() as u64 <= MAX_SIGNATURE && text.contains(|c: char| c.is_ascii_hexdigit());
    if good && text.chars().all(fits) {
        return Ok(text);
    }
    Err(refuse("it holds no signature in hex; name the file that the project's tools wrote".into()))
}

/// The servers, each once, in order; that of a manifest is first where its URL was left out.
fn servers(asked: &Upload, name: &[u8], stores: &Stores<'_>) -> Result<Vec<Server>, Trouble> {
    let mut servers: Vec<Server> = Vec::new();
    for text in &asked.servers {
        let server = server(text, asked.speech.protocol.as_deref(), name, stores)?;
        match servers.iter().find(|other| other.url == server.url) {
            None => servers.push(server),
            Some(other) if other.protocol == server.protocol => {}
            Some(other) => {
                let (url, one, two) = (&other.url, other.protocol.word(), server.protocol.word());
                return Err(Trouble::Usage(format!(
                    "{url} is given twice, by {one} and by {two}; leave one of them out"
                )));
            }
        }
    }
    if let Some(server) = stores.of_manifest().filter(|server| servers.iter().all(|other| other.url != server.url)) {
        servers.insert(0, server);
    }
    Ok(servers)
}

fn server(text: &str, given: Option<&str>, name: &[u8], stores: &Stores<'_>) -> Result<Server, Trouble> {
    let (prefix, text) = prefix(text)?;
    let said =
        prefix.or_else(|| store::names_bucket(&text).then_some(Protocol::S3)).or_else(|| given.and_then(protocol));
    if said == Some(Protocol::S3) {
        return stores.server(&text);
    }
    let url = MirrorUrl::parse(&text).map_err(|e| Trouble::Usage(e.to_string()))?;
    if let Some(server) = stores.of_manifest().filter(|server| said.is_none() && server.url == url) {
        return Ok(server);
    }
    let protocol = said.unwrap_or_else(|| Protocol::of_url(&url));
    let whole = if takes_names(protocol) { with_name(&url, name)? } else { None };
    let named = whole.is_some();
    Ok(Server { url: whole.unwrap_or(url), protocol, said: said.is_some(), named, keys: false })
}

/// The protocol of `tus+https://...`, and the URL without it.
fn prefix(text: &str) -> Result<(Option<Protocol>, String), Trouble> {
    let Some((word, scheme, rest)) = text.split_once("://").and_then(|(before, rest)| {
        let (word, scheme) = before.rsplit_once('+')?;
        Some((word, scheme, rest))
    }) else {
        return Ok((None, text.to_owned()));
    };
    let unknown = || {
        let (word, known) = (printable(word), protocol_words().join(", "));
        Trouble::Usage(format!("the protocol \"{word}\" before {scheme}:// is not known; there are {known}"))
    };
    Ok((Some(protocol(&word.to_ascii_lowercase()).ok_or_else(unknown)?), format!("{scheme}://{rest}")))
}

/// Does the URL say under which name the file is stored, with nothing but that URL to go by?
const fn takes_names(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Put | Protocol::PutRange)
}

/// A folder's URL with the name behind it; `None` where it is no folder's, or is signed as it stands.
fn with_name(url: &MirrorUrl, name: &[u8]) -> Result<Option<MirrorUrl>, Trouble> {
    let whole = url.secret_url();
    if !whole.path().ends_with('/') || whole.query().is_some() {
        return Ok(None);
    }
    let text = format!("{whole}{}", percent_encode(name, UNRESERVED));
    MirrorUrl::parse(&text).map(Some).map_err(|e| Trouble::Usage(e.to_string()))
}

/// An option that no server has a use for was given by mistake.
fn refuse_idle(asked: &Upload, servers: &[Server]) -> Result<(), Trouble> {
    let (speech, special, requests) = (&asked.speech, &asked.special, &asked.requests);
    let any = |test: fn(&Server) -> bool| servers.iter().any(test);
    let boinc = any(|s| s.protocol == Protocol::Boinc);
    let (keys, others) = (any(|s| s.keys), any(|s| s.protocol != Protocol::S3));
    let (signed, unsigned) = ("s3 with keys", "any other protocol than s3, whose signatures cover all that goes along");
    let idle = [
        ("--boinc-signature", special.boinc_signature.is_some() && !boinc, "boinc"),
        ("--max-nbytes", special.max_nbytes.is_some() && !boinc, "boinc"),
        ("--surplus", special.surplus.is_some() && !boinc, "boinc"),
        ("--keep-authority", special.keep_authority && !any(|s| s.protocol == Protocol::Tus), "tus"),
        ("--interop", special.interop.is_some() && !any(|s| s.protocol == Protocol::Ietf), "ietf"),
        ("--verify", speech.verify.is_some() && !any(can_be_read), "put, put-range, tus or s3 with keys"),
        (
            "--content-type",
            speech.content_type.is_some() && !any(|s| s.protocol != Protocol::Boinc),
            "any other protocol than boinc",
        ),
        ("--profile", special.profile.is_some() && !keys, signed),
        ("--region", special.region.is_some() && !keys, signed),
        ("--endpoint-url", special.endpoint_url.is_some() && !keys, signed),
        ("--header", !requests.headers.is_empty() && !others, unsigned),
        ("--user", requests.user.is_some() && !others, unsigned),
        ("--netrc", requests.netrc && !others, unsigned),
        ("--cookies", requests.cookies.is_some() && !others, unsigned),
    ];
    if let Some((option, _, whose)) = idle.into_iter().find(|(_, idle, _)| *idle) {
        let why = format!("{option} is for servers that are spoken to by {whose}, and there is none; leave it out");
        return Err(Trouble::Usage(why));
    }
    if speech.name.is_some() && !any(has_use_for_name) {
        let why = "--name has no place at these servers: with put, put-range and s3 it goes behind a URL that ends in /, and \
                   ietf has none for it; write the name into the URL";
        return Err(Trouble::Usage(why.into()));
    }
    Ok(())
}

/// What is stored there may be read back.
fn can_be_read(server: &Server) -> bool {
    server.keys || matches!(server.protocol, Protocol::Put | Protocol::PutRange | Protocol::Tus)
}

fn has_use_for_name(server: &Server) -> bool {
    server.named || matches!(server.protocol, Protocol::Boinc | Protocol::Tus)
}

#[cfg(test)]
mod tests;
