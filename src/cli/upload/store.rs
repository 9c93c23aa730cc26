//! Object stores among the servers of an upload: where an object is, with whose keys, or by which list of signed URLs.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::Server;
use crate::cli::args::Special;
use crate::cli::foreign;
use crate::cli::target;
use crate::cli::trouble::Trouble;
use crate::core::failure::LocalFault;
use crate::core::upload::Protocol;
use crate::core::upload::s3::{Account, BadPlace, Manifest, Place, PlaceSettings, is_signed};
use crate::core::url::MirrorUrl;
use crate::engine::Job;

const BUCKETS: &str = "s3://";

/// What was said of object stores, and what the environment says.
pub(super) struct Stores<'a> {
    special: &'a Special,
    /// The name that the file is to have.
    name: &'a [u8],
    manifest: Option<(PathBuf, Manifest)>,
    /// Read where it is needed, and then once.
    account: OnceCell<Account>,
}

/// Is it `s3://BUCKET/KEY`?
pub(super) fn names_bucket(text: &str) -> bool {
    text.get(..BUCKETS.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(BUCKETS))
}

impl<'a> Stores<'a> {
    /// Reads the manifest, where there is one.
    pub(super) fn new(special: &'a Special, name: &'a [u8], cwd: &Path) -> Result<Self, Trouble> {
        let read = |given: &PathBuf| {
            let path = target::absolute(cwd, given)?;
            let manifest = foreign::manifest(&path).map_err(|fault| {
                Trouble::option(
                    "--s3-manifest",
                    given.to_string_lossy(),
                    format!("{}; name a file of signed URLs", detail(fault)),
                )
            })?;
            Ok::<_, Trouble>((path, manifest))
        };
        let manifest = special.s3_manifest.as_ref().map(read).transpose()?;
        Ok(Self { special, name, manifest, account: OnceCell::new() })
    }

    /// Where the manifest is, as a later process finds it.
    pub(super) fn manifest_path(&self) -> Option<PathBuf> {
        self.manifest.as_ref().map(|(path, _)| path.clone())
    }

    /// The server of the manifest.
    pub(super) fn of_manifest(&self) -> Option<Server> {
        let (_, manifest) = self.manifest.as_ref()?;
        Some(by_signature(manifest.object().clone()))
    }

    /// The server that a text names: an object, or a URL that is signed for one.
    pub(super) fn server(&self, text: &str) -> Result<Server, Trouble> {
        let text = if names_bucket(text) { format!("{BUCKETS}{}", &text[BUCKETS.len()..]) } else { text.to_owned() };
        let url = MirrorUrl::parse(&text).ok();
        if let Some(server) = self.of_manifest() {
            return match url.is_some_and(|url| url == server.url) {
                true => Ok(server),
                false => Err(Trouble::Usage(format!(
                    "the URLs of --s3-manifest are of {}, and another object is given beside it; leave one of them out",
                    server.url
                ))),
            };
        }
        match url.filter(is_signed) {
            Some(url) if url.credentials().is_some() => Err(bad(&BadPlace::UserInfo)),
            Some(url) => Ok(by_signature(url)),
            None => self.with_keys(&text),
        }
    }

    fn with_keys(&self, text: &str) -> Result<Server, Trouble> {
        let account = self.account()?;
        let endpoint = self.endpoint(account)?;
        let name = std::str::from_utf8(self.name).unwrap_or_default();
        let settings = PlaceSettings {
            endpoint: endpoint.as_ref(),
            region: self.special.region.as_deref().or(account.region.as_deref()),
            style: account.style,
            name,
        };
        let named = takes_name(text, &settings);
        if named && name.is_empty() {
            let why = "the name of the file is no UTF-8, and a key has to be; give it one with --name";
            return Err(Trouble::Usage(why.into()));
        }
        let place = Place::parse(text, &settings).map_err(|e| bad(&e))?;
        Ok(Server { url: place.url().clone(), protocol: Protocol::S3, said: true, named, keys: true })
    }

    fn account(&self) -> Result<&Account, Trouble> {
        if let Some(account) = self.account.get() {
            return Ok(account);
        }
        let account = account_of(self.special.profile.as_deref())?;
        Ok(self.account.get_or_init(|| account))
    }

    fn endpoint(&self, account: &Account) -> Result<Option<MirrorUrl>, Trouble> {
        let (whose, text) = match (&self.special.endpoint_url, &account.endpoint) {
            (Some(text), _) => ("--endpoint-url", text),
            (None, Some(text)) => ("the endpoint of the environment or the profile", text),
            (None, None) => return Ok(None),
        };
        MirrorUrl::parse(text).map(Some).map_err(|e| Trouble::Usage(format!("{whose}: {e}")))
    }
}

/// Is the name of the file put behind what a text says of the key?
fn takes_name(text: &str, settings: &PlaceSettings<'_>) -> bool {
    let with = |name| Place::parse(text, &PlaceSettings { name, ..*settings });
    matches!((with("a"), with("b")), (Ok(one), Ok(other)) if one != other)
}

fn by_signature(url: MirrorUrl) -> Server {
    Server { url, protocol: Protocol::S3, said: true, named: false, keys: false }
}

fn bad(why: &BadPlace) -> Trouble {
    Trouble::Usage(why.to_string())
}

/// A profile that was named and is none is wrong use; anything else is trouble of this machine.
fn account_of(profile: Option<&str>) -> Result<Account, Trouble> {
    foreign::account(profile).map_err(|fault| match (profile, fault) {
        (Some(name), LocalFault::Io { doing: "use the keys of", detail, .. }) => {
            Trouble::option("--profile", name, detail)
        }
        (_, fault) => Trouble::Local(fault),
    })
}

/// Are there keys, where any of these jobs needs some? Those that are only entered may find theirs when they are run.
pub(crate) fn can_sign(jobs: &[Job]) -> Result<(), Trouble> {
    for job in jobs {
        let upload = &job.options.upload;
        let with_keys = |url: &MirrorUrl| upload.protocol_of(url) == Protocol::S3 && !is_signed(url);
        if upload.manifest.is_none() && job.urls.iter().any(with_keys) {
            foreign::keys(account_of(upload.profile.as_deref())?)?;
        }
    }
    Ok(())
}

fn detail(fault: LocalFault) -> String {
    match fault {
        LocalFault::Io { detail, .. } => detail,
        other => other.to_string(),
    }
}
