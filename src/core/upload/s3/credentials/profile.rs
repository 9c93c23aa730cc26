//! The files of profiles: sections in brackets, settings a line, settings of one service indented below its name.
//!
//! In the file of credentials a section is a profile's name; in the file of settings it is `[profile NAME]`, or
//! `[default]`, or `[services NAME]`. Where both files have a setting, that of the credentials counts.

use std::collections::BTreeMap;

use super::BadCredentials;
use crate::core::upload::s3::Style;

/// No such file is longer.
pub const MAX_TEXT: usize = 1 << 20;

/// Ways to keys that are not known here.
const OTHER_WAYS: [&str; 6] =
    ["role_arn", "sso_session", "sso_start_url", "credential_process", "web_identity_token_file", "login_session"];

/// Both files.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    credentials: Sections,
    config: Sections,
}

/// The settings of a profile, from both files. A setting of a service is `s3.NAME`.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile(BTreeMap<String, String>);

type Sections = BTreeMap<String, BTreeMap<String, String>>;

impl Profiles {
    pub(super) fn read(credentials: Option<&str>, config: Option<&str>) -> Result<Self, BadCredentials> {
        let read = |text: Option<&str>, name| match text {
            Some(text) if text.len() > MAX_TEXT => Err(BadCredentials::TooLarge(name)),
            text => Ok(sections(text.unwrap_or_default())),
        };
        Ok(Self { credentials: read(credentials, "credentials")?, config: read(config, "settings")? })
    }

    /// The profile of that name; `None` where neither file has it.
    pub(super) fn profile(&self, name: &str) -> Option<Profile> {
        let long = format!("profile {name}");
        let plain = if name == "default" { self.config.get(name) } else { None };
        let config = self.config.get(&long).or(plain);
        let credentials = self.credentials.get(name);
        if config.is_none() && credentials.is_none() {
            return None;
        }
        let mut all = BTreeMap::new();
        let services = config.and_then(|settings| settings.get("services"));
        let services = services.and_then(|name| self.config.get(&format!("services {name}")));
        for settings in [config, services, credentials].into_iter().flatten() {
            all.extend(settings.clone());
        }
        Some(Profile(all))
    }
}

impl Profile {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    pub(super) fn endpoint(&self) -> Option<String> {
        self.text("s3.endpoint_url").or_else(|| self.text("endpoint_url"))
    }

    pub(super) fn style(&self) -> Option<Style> {
        match self.get("s3.addressing_style")? {
            "path" => Some(Style::Path),
            "virtual" => Some(Style::Host),
            _ => None,
        }
    }

    pub(super) fn other_way(&self) -> Option<&'static str> {
        OTHER_WAYS.into_iter().find(|way| self.get(way).is_some())
    }
}

/// Reads what can be read; a line that is none of these is passed over, as other clients do.
fn sections(text: &str) -> Sections {
    let mut all = Sections::new();
    let (mut section, mut service) = (None, None);
    for line in text.lines() {
        let (plain, inside) = (without_comment(line), line.starts_with([' ', '\t']));
        if plain.is_empty() {
            continue;
        }
        if let Some(name) = plain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = name.split_ascii_whitespace().map(|word| word.trim_matches('"')).collect::<Vec<_>>().join(" ");
            all.entry(name.clone()).or_default();
            (section, service) = (Some(name), None);
            continue;
        }
        let (Some(section), Some((name, value))) = (&section, plain.split_once('=')) else { continue };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let name = match &service {
            Some(service) if inside => format!("{service}.{name}"),
            _ => name,
        };
        if !inside {
            service = value.is_empty().then(|| name.clone());
        }
        all.entry(section.clone()).or_default().insert(name, value.to_owned());
    }
    all
}

fn without_comment(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return "";
    }
    let end = [" #", " ;", "\t#", "\t;"].into_iter().filter_map(|mark| line.find(mark)).min();
    line[..end.unwrap_or(line.len())].trim_end()
}
