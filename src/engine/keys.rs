//! Keys of object stores: read from the environment and the files of profiles whenever they are needed, and stored nowhere.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crate::core::failure::LocalFault;
use crate::core::printable::plain_error;
use crate::core::upload::s3::{
    Account, Credentials, Given, MAX_MANIFEST, MAX_PROFILES, Manifest, Place, PlaceSettings, VARIABLES, files,
    is_signed,
};
use crate::core::upload::{S3, SignedPut, UploadOptions, UploadProtocol};
use crate::core::url::MirrorUrl;

/// The account that the environment, the files of profiles and the name of a profile come to.
///
/// # Errors
/// What of it cannot be read or used, in one line without a secret.
pub fn account(profile: Option<&str>) -> Result<Account, LocalFault> {
    let value = |name: &&str| std::env::var(name).ok().map(|value| ((*name).to_owned(), value));
    let variables: BTreeMap<String, String> = VARIABLES.iter().filter_map(value).collect();
    let home = std::env::var("HOME").unwrap_or_default();
    let (credentials, config) = files(&variables, &home);
    let (credentials, config) = (read_where_there(&credentials)?, read_where_there(&config)?);
    let given = Given { credentials: credentials.as_deref(), config: config.as_deref(), profile };
    Account::choose(&variables, given).map_err(|e| no_keys(e.to_string()))
}

/// The keys of an account.
///
/// # Errors
/// It has none: what to set is said.
pub fn keys(account: Account) -> Result<Credentials, LocalFault> {
    let missing = "none were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with --profile";
    account.credentials.ok_or_else(|| no_keys(missing.to_owned()))
}

fn no_keys(detail: String) -> LocalFault {
    LocalFault::Io { doing: "use the keys of", path: "the object store".to_owned(), detail }
}

/// None where there is no such file, as with other clients.
fn read_where_there(path: &str) -> Result<Option<String>, LocalFault> {
    match text_of(Path::new(path), MAX_PROFILES) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(LocalFault::Io { doing: "read", path: path.to_owned(), detail: plain_error(&e) }),
    }
}

/// A file's text; of one that is longer, a little more than `most` bytes.
fn text_of(path: &Path, most: usize) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// How an object store is spoken to: by a URL that is signed, by a list of such, or with keys.
pub(super) fn store(options: &UploadOptions, server: &MirrorUrl) -> Result<Box<dyn UploadProtocol>, LocalFault> {
    if let Some(path) = &options.manifest {
        let manifest = manifest(path)?;
        if manifest.object() != server {
            let detail = format!("its URLs are of {}, and the upload is to {server}", manifest.object());
            return Err(LocalFault::Io { doing: "use", path: path.display().to_string(), detail });
        }
        return Ok(Box::new(S3::by_manifest(manifest)));
    }
    if is_signed(server) {
        return Ok(Box::new(SignedPut::new()));
    }
    let account = account(options.profile.as_deref())?;
    let (said, known) = (options.region.clone(), account.region.clone());
    let region = region_in_host(server).or(said).or(known);
    Ok(Box::new(S3::signed(keys(account)?, region.as_deref())))
}

/// The region that a host of AWS names: a signature for another one is none there.
fn region_in_host(server: &MirrorUrl) -> Option<String> {
    Place::of_url(server, &PlaceSettings::default()).ok()?.region().map(str::to_owned)
}

/// A list of signed URLs.
///
/// # Errors
/// [`LocalFault::Io`] that names the file, and none of the URLs.
pub fn manifest(path: &Path) -> Result<Manifest, LocalFault> {
    let fault = |detail: String| LocalFault::Io { doing: "use", path: path.display().to_string(), detail };
    let text = text_of(path, MAX_MANIFEST).map_err(|e| fault(plain_error(&e)))?;
    Manifest::parse(&text).map_err(|e| fault(e.to_string()))
}
