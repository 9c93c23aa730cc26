//! Keys of object stores: read from the environment and the files of profiles whenever they are needed, and stored nowhere.

use std::collections::BTreeMap;
use std::path::Path;

use crate::core::failure::LocalFault;
use crate::core::printable::plain_error;
use crate::core::upload::s3::{Account, Given, Manifest, VARIABLES, files, is_signed};
use crate::core::upload::{S3, SignedPut, UploadOptions, UploadProtocol};
use crate::core::url::MirrorUrl;

/// The account that the environment, the files of profiles and the name of a profile come to.
///
/// # Errors
/// What of it cannot be read or used, in one line without a secret.
pub fn account(profile: Option<&str>) -> Result<Account, String> {
    let value = |name: &&str| std::env::var(name).ok().map(|value| ((*name).to_owned(), value));
    let variables: BTreeMap<String, String> = VARIABLES.iter().filter_map(value).collect();
    let home = std::env::var("HOME").unwrap_or_default();
    let (credentials, config) = files(&variables, &home);
    let (credentials, config) = (read_where_there(&credentials)?, read_where_there(&config)?);
    let given = Given { credentials: credentials.as_deref(), config: config.as_deref(), profile };
    Account::choose(&variables, given).map_err(|e| e.to_string())
}

/// None where there is no such file, as with other clients.
fn read_where_there(path: &str) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("cannot read {path}: {}", plain_error(&e))),
    }
}

/// How an object store is spoken to: by a URL that is signed, by a list of such, or with keys.
pub(super) fn store(options: &UploadOptions, server: &MirrorUrl) -> Result<Box<dyn UploadProtocol>, LocalFault> {
    if let Some(path) = &options.manifest {
        return Ok(Box::new(S3::by_manifest(manifest(path)?)));
    }
    if is_signed(server) {
        return Ok(Box::new(SignedPut::new()));
    }
    let profile = options.profile.as_deref();
    let fault =
        |detail: String| LocalFault::Io { doing: "use the keys of", path: "the object store".to_owned(), detail };
    let account = account(profile).map_err(fault)?;
    let missing = "none were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with --profile";
    let keys = account.credentials.ok_or_else(|| fault(missing.to_owned()))?;
    let region = options.region.as_deref().or(account.region.as_deref());
    Ok(Box::new(S3::signed(keys, region)))
}

/// A list of signed URLs.
///
/// # Errors
/// [`LocalFault::Io`] that names the file, and none of the URLs.
pub fn manifest(path: &Path) -> Result<Manifest, LocalFault> {
    let fault = |detail: String| LocalFault::Io { doing: "use", path: path.display().to_string(), detail };
    let text = std::fs::read_to_string(path).map_err(|e| fault(plain_error(&e)))?;
    Manifest::parse(&text).map_err(|e| fault(e.to_string()))
}
