//! Who asks: keys and their session token, chosen from variables of the environment and the files of profiles as other
//! clients of S3 choose them. Pure: variables and texts are handed in.

mod profile;

use std::collections::BTreeMap;
use std::fmt;

use crate::core::printable::printable;
pub use profile::MAX_TEXT as MAX_PROFILES;
use profile::{Profile, Profiles};

/// A text that is sent and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Keys of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The name of the key: no secret, it is sent with each request.
    pub access_key: String,
    /// The key itself.
    pub secret: Secret,
    /// The token that belongs to keys of limited life.
    pub token: Option<Secret>,
}

/// What was found about an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its keys; without them nothing can be signed.
    pub credentials: Option<Credentials>,
    /// The region to ask first.
    pub region: Option<String>,
    /// Where the store is, if not at AWS: a URL as text.
    pub endpoint: Option<String>,
    /// The profile wants bucket names in the path, or in the host.
    pub style: Option<super::Style>,
}

/// What the choice is made from. The reading is done by whoever may read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// The text of the file of credentials, where there is one.
    pub credentials: Option<&'a str>,
    /// The text of the file of settings, where there is one.
    pub config: Option<&'a str>,
    /// The profile that the user named for this command: it goes before keys in the environment.
    pub profile: Option<&'a str>,
}

/// Why no choice could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCredentials {
    /// One half of a pair.
    #[error("{found} is set and {missing} is not")]
    Half {
        /// What is there.
        found: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// One half of a pair, in a profile.
    #[error("the profile \"{profile}\" has {found} and no {missing}")]
    HalfProfile {
        /// Its name, made printable.
        profile: String,
        /// What is there.
        found: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// A profile that was asked for by name.
    #[error("there is no profile \"{0}\" in the files of credentials and settings")]
    NoProfile(String),
    /// Keys that must be fetched in a way that is not known here.
    #[error(
        "the profile \"{profile}\" gets its keys by {way}, which is not supported: set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN instead"
    )]
    OtherWay {
        /// Its name, made printable.
        profile: String,
        /// The setting that says so.
        way: &'static str,
    },
    /// A file too large to be one of these.
    #[error("the file of {0} is too large")]
    TooLarge(&'static str),
    /// A key with characters that no field of a request can carry.
    #[error("{0} holds something that is no key")]
    NoKey(&'static str),
}

/// Where the files of profiles are: credentials, settings. `home` is the user's directory.
pub fn files(variables: &BTreeMap<String, String>, home: &str) -> (String, String) {
    let place = |name: &str, usual: &str| match set(variables, name) {
        Some(path) => path.strip_prefix("~/").map_or_else(|| path.to_owned(), |rest| format!("{home}/{rest}")),
        None => format!("{home}/.aws/{usual}"),
    };
    (place("AWS_SHARED_CREDENTIALS_FILE", "credentials"), place("AWS_CONFIG_FILE", "config"))
}

/// The variables that are looked at.
pub const VARIABLES: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
];

impl Account {
    /// Chooses: a variable goes before a file, a profile named by the user before keys in variables.
    pub fn choose(variables: &BTreeMap<String, String>, given: Given<'_>) -> Result<Self, BadCredentials> {
        let named = given.profile.or_else(|| set(variables, "AWS_PROFILE"));
        let name = named.unwrap_or("default");
        let profile = Profiles::read(given.credentials, given.config)?.profile(name);
        let from_variables = if given.profile.is_none() { keys_of(variables)? } else { None };
        if let (Some(asked), None, None) = (named, &profile, &from_variables) {
            return Err(BadCredentials::NoProfile(printable(asked).into_owned()));
        }
        let profile = profile.unwrap_or_default();
        let credentials = match from_variables {
            Some(keys) => Some(keys),
            None => keys_in(&profile, name)?,
        };
        let either = |names: [&str; 2]| names.into_iter().find_map(|name| set(variables, name)).map(str::to_owned);
        Ok(Self {
            credentials,
            region: either(["AWS_REGION", "AWS_DEFAULT_REGION"]).or_else(|| profile.text("region")),
            endpoint: either(["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]).or_else(|| profile.endpoint()),
            style: profile.style(),
        })
    }
}

/// An empty variable counts as none.
fn set<'a>(variables: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    variables.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

fn keys_of(variables: &BTreeMap<String, String>) -> Result<Option<Credentials>, BadCredentials> {
    let (id, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    let keys = match (set(variables, id), set(variables, secret)) {
        (Some(key), Some(secret)) => Credentials::new(key, secret, set(variables, "AWS_SESSION_TOKEN")),
        (Some(_), None) => return Err(BadCredentials::Half { found: id, missing: secret }),
        (None, Some(_)) => return Err(BadCredentials::Half { found: secret, missing: id }),
        (None, None) => return Ok(None),
    };
    keys.checked("AWS_ACCESS_KEY_ID or AWS_SESSION_TOKEN").map(Some)
}

fn keys_in(profile: &Profile, name: &str) -> Result<Option<Credentials>, BadCredentials> {
    let half = |found, missing| BadCredentials::HalfProfile { profile: printable(name).into_owned(), found, missing };
    let (id, secret) = ("aws_access_key_id", "aws_secret_access_key");
    match (profile.get(id), profile.get(secret)) {
        (Some(key), Some(secret)) => {
            let keys = Credentials::new(key, secret, profile.get("aws_session_token"));
            keys.checked("aws_access_key_id or aws_session_token").map(Some)
        }
        (Some(_), None) => Err(half(id, secret)),
        (None, Some(_)) => Err(half(secret, id)),
        (None, None) => match profile.other_way() {
            Some(way) => Err(BadCredentials::OtherWay { profile: printable(name).into_owned(), way }),
            None => Ok(None),
        },
    }
}

impl Credentials {
    /// From their texts.
    pub fn new(access_key: &str, secret: &str, token: Option<&str>) -> Self {
        let token = token.map(Secret::new);
        Self { access_key: access_key.to_owned(), secret: Secret::new(secret), token }
    }

    /// What goes into fields of a request is plain ASCII without blanks.
    fn checked(self, name: &'static str) -> Result<Self, BadCredentials> {
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
        let token = self.token.as_ref().is_none_or(|token| plain(token.expose()));
        if plain(&self.access_key) && token { Ok(self) } else { Err(BadCredentials::NoKey(name)) }
    }
}

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text: for signing and for the wire only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests;
