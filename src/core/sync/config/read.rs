//! From keys and values to modules.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{BadConfig, Criterion, KindChoice, Mode, Module, Setting, SyncConfig, Value};
use crate::core::printable::printable;
use crate::core::shell;
use crate::core::sync::criteria::{KEEP_NAMES, REPLACE_NAMES};
use crate::core::sync::kinds;
use crate::core::sync::path::{Part, TreePath};
use crate::core::sync::source::Source;
use crate::core::time::Delay;
use crate::core::units::parse_duration;

/// The seed's modules: the word in their keys, their name, the folder of a source that is theirs.
const KNOWN: [(&str, &str, &str); 4] = [
    ("RelayDescriptors", "relaydescs", "recent/relay-descriptors"),
    ("BridgeDescriptors", "bridgedescs", "recent/bridge-descriptors"),
    ("ExitLists", "exitlists", "recent/exit-lists"),
    ("TorperfFiles", "torperf", "recent/torperf"),
];

/// Keys that belong to no module.
const GENERAL: [&str; 4] = ["SyncFolder", "RecentPath", "IndexPath", "InstanceBaseUrl"];
/// What stands behind the word of a module.
const ENDINGS: [&str; 7] = ["OutDirectory", "Folders", "Kind", "Window", "Hook", "Keep", "Replace"];
const SOURCES: &str = "SyncSources";
const CRITERION: &str = "Criterion";
/// The most modules, and the most sources of one.
const MAX: usize = 100;
/// How long files stay in `recent`, if nothing else is said (B4).
const WINDOW: Delay = Delay::from_hours(72);

/// All settings by their keys, each once.
struct Settings<'a> {
    by_key: BTreeMap<&'a str, &'a Setting>,
    criteria: BTreeMap<&'a str, Vec<String>>,
}

pub(super) fn config(all: &[Setting]) -> Result<SyncConfig, BadConfig> {
    let mut by_key = BTreeMap::new();
    for setting in all {
        if let Some(other) = by_key.insert(setting.key.as_str(), setting) {
            return Err(setting.bad(format!("it stands in line {} already; leave out one of the two", other.line)));
        }
    }
    let stems: Vec<&Setting> = all.iter().filter(|setting| stem_of(&setting.key).is_some()).collect();
    if let Some(surplus) = stems.get(MAX) {
        return Err(surplus.bad(format!("there are more than {MAX} modules")));
    }
    let settings = Settings { criteria: criteria(&by_key)?, by_key };
    let left_alone = left_alone(all, &stems)?;
    let modules = stems.into_iter().map(|setting| settings.module(setting)).collect::<Result<Vec<_>, _>>()?;
    if modules.is_empty() {
        let why = "there is no module in it; write SyncRelayDescriptors = SyncOnly, or the like";
        return Err(BadConfig::new(0, "", why));
    }
    let works = modules.iter().any(|module: &Module| module.mode != Mode::NoSync);
    let sync_folder = match settings.path("SyncFolder")? {
        Some(folder) => folder,
        None if !works => PathBuf::new(),
        None => return Err(missing("SyncFolder", "name the folder that sources are mirrored in")),
    };
    settings.apart(&modules)?;
    Ok(SyncConfig {
        sync_folder,
        recent: settings.path("RecentPath")?,
        index: settings.path("IndexPath")?,
        base_url: settings.text("InstanceBaseUrl")?.unwrap_or_default().to_owned(),
        modules,
        left_alone,
    })
}

/// The word of a module that a key makes.
fn stem_of(key: &str) -> Option<&str> {
    if GENERAL.contains(&key) || key.starts_with(SOURCES) {
        return None;
    }
    key.strip_prefix("Sync").filter(|stem| stem.starts_with(|c: char| c.is_ascii_uppercase()) && is_word(stem))
}

/// It becomes the name of a folder, and is shown.
fn is_word(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The commands that are criteria.
fn criteria<'a>(by_key: &BTreeMap<&'a str, &'a Setting>) -> Result<BTreeMap<&'a str, Vec<String>>, BadConfig> {
    let mut found = BTreeMap::new();
    for (key, setting) in by_key {
        let Some(name) = key.strip_prefix(CRITERION) else { continue };
        if !is_word(name) || KEEP_NAMES.contains(&name) || REPLACE_NAMES.contains(&name) {
            return Err(setting.bad("its name is missing, no word of letters and digits, or one that is there already"));
        }
        found.insert(name, setting.words()?);
    }
    Ok(found)
}

/// Keys that are none of ours. Those that look as if they were are errors.
fn left_alone(all: &[Setting], stems: &[&Setting]) -> Result<Vec<(usize, String)>, BadConfig> {
    let mut left = Vec::new();
    for setting in all {
        let key = setting.key.as_str();
        let names = |stem: &str| stems.iter().any(|s| stem_of(&s.key) == Some(stem));
        let ending = ENDINGS.iter().find_map(|ending| key.strip_suffix(ending));
        let sources = key.strip_prefix(SOURCES);
        if GENERAL.contains(&key) || stem_of(key).is_some() || key.starts_with(CRITERION) {
            continue;
        }
        match sources.or(ending) {
            Some(stem) if names(stem) => {}
            Some(stem) if sources.is_some() || KNOWN.iter().any(|known| known.0 == stem) => {
                return Err(setting.bad(format!("Sync{} is missing; say Sync, NoSync or SyncOnly", printable(stem))));
            }
            _ if key.starts_with("Sync") => return Err(setting.bad("it is no key; is it written as it should be?")),
            _ => left.push((setting.line, printable(key).into_owned())),
        }
    }
    Ok(left)
}

fn missing(key: &str, what: &str) -> BadConfig {
    BadConfig::new(0, key, format!("it is missing; {what}"))
}

impl Setting {
    fn bad(&self, why: impl Into<String>) -> BadConfig {
        BadConfig::new(self.line, &self.key, why)
    }

    fn text(&self) -> Result<&str, BadConfig> {
        match &self.value {
            Value::Text(text) if !text.trim().is_empty() => Ok(text.trim()),
            Value::Text(_) => Err(self.bad("it is empty; leave it out, or say something")),
            Value::List(_) => Err(self.bad("it should be one text, not several")),
        }
    }

    /// Several things, with commas between.
    fn list(&self) -> Result<Vec<&str>, BadConfig> {
        let items: Vec<&str> = match &self.value {
            Value::Text(text) => text.split(',').map(str::trim).collect(),
            Value::List(items) => items.iter().map(|item| item.trim()).collect(),
        };
        match items.iter().all(|item| !item.is_empty()) && !items.is_empty() {
            true => Ok(items),
            false => Err(self.bad("something in it is empty; write one thing between two commas")),
        }
    }

    /// The words of a command, split as a shell would, or one by one.
    fn words(&self) -> Result<Vec<String>, BadConfig> {
        match &self.value {
            Value::Text(text) => shell::split(text).map_err(|why| self.bad(why.to_string())),
            Value::List(words) if words.first().is_some_and(|program| !program.is_empty()) => Ok(words.clone()),
            Value::List(_) => Err(self.bad("the first word is missing: the program to run")),
        }
    }

    fn mode(&self) -> Result<Mode, BadConfig> {
        match self.text()? {
            "Sync" => Ok(Mode::Sync),
            "NoSync" => Ok(Mode::NoSync),
            "SyncOnly" => Ok(Mode::SyncOnly),
            other => Err(self.bad(format!("\"{}\" is neither Sync, NoSync nor SyncOnly", printable(other)))),
        }
    }
}

impl Settings<'_> {
    fn get(&self, key: &str) -> Option<&Setting> {
        self.by_key.get(key).copied()
    }

    fn text(&self, key: &str) -> Result<Option<&str>, BadConfig> {
        self.get(key).map(Setting::text).transpose()
    }

    fn path(&self, key: &str) -> Result<Option<PathBuf>, BadConfig> {
        Ok(self.text(key)?.map(PathBuf::from))
    }

    fn module(&self, setting: &Setting) -> Result<Module, BadConfig> {
        // Only such settings come here.
        let stem = stem_of(&setting.key).unwrap_or_default();
        let known = KNOWN.iter().find(|known| known.0 == stem);
        let of = |ending: &str| format!("{stem}{ending}");
        let mode = setting.mode()?;
        let works = mode != Mode::NoSync;
        let needed = |key: String, what: &str| missing(&key, what);
        let sources = self.sources(&format!("{SOURCES}{stem}"))?;
        if works && sources.is_empty() {
            return Err(needed(format!("{SOURCES}{stem}"), "name where files come from: [NAME ]URL, ..."));
        }
        let out = self.path(&of("OutDirectory"))?;
        if works && out.is_none() {
            return Err(needed(of("OutDirectory"), "name the folder that files are kept in"));
        }
        let parts = self.parts(&of("Folders"), known.map(|known| known.2))?;
        Ok(Module {
            name: known.map_or_else(|| stem.to_ascii_lowercase(), |known| known.1.to_owned()),
            mode,
            sources,
            out: out.unwrap_or_default(),
            parts,
            kind: self.kind(&of("Kind"), known.is_some())?,
            window: self.window(&of("Window"))?,
            hook: self.get(&of("Hook")).map(Setting::words).transpose()?.unwrap_or_default(),
            keep: self.named(&of("Keep"), &KEEP_NAMES)?,
            replace: self.named(&of("Replace"), &REPLACE_NAMES)?,
        })
    }

    fn sources(&self, key: &str) -> Result<Vec<Source>, BadConfig> {
        let Some(setting) = self.get(key) else { return Ok(Vec::new()) };
        let mut sources: Vec<Source> = Vec::new();
        let texts = setting.list()?;
        if texts.len() > MAX {
            return Err(setting.bad(format!("there are more than {MAX} sources")));
        }
        for text in texts {
            let source = Source::parse(text).map_err(|why| setting.bad(why.to_string()))?;
            if let Some(other) = sources.iter().find(|other| other.folder == source.folder) {
                let why = format!("{} and {} would share the folder {}", other.index, source.index, source.folder);
                return Err(setting.bad(why));
            }
            if sources.iter().any(|other| other.name == source.name) {
                return Err(setting.bad(format!("two sources are called {}", source.name)));
            }
            sources.push(source);
        }
        Ok(sources)
    }

    fn parts(&self, key: &str, default: Option<&str>) -> Result<Vec<Part>, BadConfig> {
        let Some(setting) = self.get(key) else {
            let known = default.and_then(|folder| TreePath::parse(folder).ok());
            return Ok(vec![known.map_or(Part::All, Part::Below)]);
        };
        let part = |text: &str| match text.trim_end_matches('/') {
            "." => Ok(Part::All),
            folder => TreePath::parse(folder).map(Part::Below).map_err(|why| (text.to_owned(), why)),
        };
        let parts: Result<Vec<_>, _> = setting.list()?.into_iter().map(part).collect();
        let parts = parts.map_err(|(text, why)| setting.bad(format!("\"{}\": {why}", printable(&text))))?;
        let twice = parts.iter().enumerate().any(|(n, one)| parts[..n].iter().any(|other| one.overlaps(other)));
        if twice { Err(setting.bad("one of these folders lies in another")) } else { Ok(parts) }
    }

    fn kind(&self, key: &str, by_folder: bool) -> Result<KindChoice, BadConfig> {
        let Some(setting) = self.get(key) else {
            return Ok(if by_folder { KindChoice::ByFolder } else { KindChoice::Named(kinds::ANY.to_owned()) });
        };
        match setting.text()? {
            "by-folder" => Ok(KindChoice::ByFolder),
            name if kinds::named(name).is_some() => Ok(KindChoice::Named(name.to_owned())),
            other => {
                let names: Vec<_> = kinds::names().collect();
                Err(setting.bad(format!(
                    "\"{}\" is no kind; there are by-folder, {}",
                    printable(other),
                    names.join(", ")
                )))
            }
        }
    }

    fn window(&self, key: &str) -> Result<Delay, BadConfig> {
        let Some(setting) = self.get(key) else { return Ok(WINDOW) };
        parse_duration(setting.text()?).map_err(|why| setting.bad(why.to_string()))
    }

    fn named(&self, key: &str, known: &[&str]) -> Result<Vec<Criterion>, BadConfig> {
        let Some(setting) = self.get(key) else { return Ok(vec![Criterion::Known(known[0].to_owned())]) };
        let criterion = |name: &str| match self.criteria.get(name) {
            Some(words) => Ok(Criterion::Command { name: name.to_owned(), words: words.clone() }),
            None if known.contains(&name) => Ok(Criterion::Known(name.to_owned())),
            None => {
                let own: Vec<_> = known.iter().copied().chain(self.criteria.keys().copied()).collect();
                Err(setting.bad(format!("\"{}\" is no criterion; there are {}", printable(name), own.join(", "))))
            }
        };
        setting.list()?.into_iter().map(criterion).collect()
    }

    /// No two modules of one name, and none that would take files of the other for its own.
    fn apart(&self, modules: &[Module]) -> Result<(), BadConfig> {
        for (n, one) in modules.iter().enumerate() {
            for other in &modules[..n] {
                let key = format!("module {}", one.name);
                if one.name == other.name {
                    return Err(BadConfig::new(0, &key, "two modules have this name"));
                }
                let same = |source: &Source| other.sources.iter().any(|o| o.folder == source.folder);
                let meet = |a: &Part| other.parts.iter().any(|b| a.overlaps(b));
                if one.sources.iter().any(same) && one.parts.iter().any(meet) {
                    let why = format!("it and {} have a source and a folder of it in common", other.name);
                    return Err(BadConfig::new(0, &key, why));
                }
            }
        }
        Ok(())
    }
}
