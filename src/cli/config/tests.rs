//! The file of preferences: the example, what is documented, and mistakes by their lines.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use toml::de::{DeTable, DeValue};

use super::*;
use crate::core::civil::{Day, TimeOfDay};
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::{LoginFrom, Mode};
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::url::Origin;

const EXAMPLE: &str = include_str!("../../../examples/config.toml");
const PAGE: &str = include_str!("../../../docs/config.md");

fn read(text: &str) -> Result<Preferences, String> {
    parse(text, Path::new("/etc/c.toml"))
}

fn mistake(text: &str) -> String {
    read(text).expect_err(text)
}

#[test]
fn the_example_says_what_it_says() {
    let prefs = read(EXAMPLE).expect("the example");
    assert_eq!((prefs.mode, prefs.rates.up, prefs.rates.down), (Mode::Auto, NonZeroU64::new(256 << 10), None));
    // 1970-01-05 was a Monday.
    let at =
        |day: i64, time| crate::core::civil::Civil { day: Day(4 + day), time: TimeOfDay::parse(time).expect("a time") };
    assert!(
        prefs.hours.is_open(at(0, "23:00"))
            && !prefs.hours.is_open(at(0, "12:00"))
            && prefs.hours.is_open(at(5, "12:00"))
    );
    assert_eq!(prefs.timetable.at(at(0, "19:00")).down, NonZeroU64::new(4 << 20));
    assert_eq!((prefs.quotas.days, prefs.quotas.each.up), (30, None));
    assert_eq!(prefs.quotas.together, Some(Length(20_000 << 20)));
    assert_eq!(prefs.travel.stall_timeout, Some(Delay::from_mins(1)));
    assert_eq!((prefs.sessions.all, *prefs.sessions.per_direction.of(Direction::Upload)), (Some(8), Some(4)));
    assert_eq!(prefs.hooks.complete, ["notify-send", "persxfer", "{name} is complete"]);
    let of = |url: &str| prefs.hosts.of(&Origin::parse(url).expect(url)).cloned().unwrap_or_default();
    let mirror = of("https://mirror.example.org");
    assert_eq!((mirror.connections, mirror.cacert), (Some(4), Some(PathBuf::from("/etc/mirror-ca.pem"))));
    assert_eq!(of("http://a.data.example.org").login, Some(LoginFrom::Env("DATA_LOGIN".into())));
    assert_eq!(of("https://files.example.org:8443").login, Some(LoginFrom::File("/etc/files.login".into())));
    assert_eq!(of("https://files.example.org").login, None);
}

/// The names of all keys of a table, those of tables within it too.
fn keys(table: &DeTable<'_>, into: &mut BTreeSet<String>) {
    for (key, value) in table {
        match value.get_ref() {
            DeValue::Table(table) => keys(table, into),
            _ => _ = into.insert(key.get_ref().to_string()),
        }
    }
}

#[test]
fn every_key_is_in_the_example_and_on_the_page() {
    let mut in_example = BTreeSet::new();
    keys(DeTable::parse(EXAMPLE).expect("the example").get_ref(), &mut in_example);
    let source = [include_str!("keys.rs"), include_str!("ledger.rs").split("#[cfg(test)]").next().unwrap_or_default()]
        .concat()
        .replace(char::is_whitespace, "");
    let names = |opening: &str| -> BTreeSet<String> {
        source.split(opening).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    };
    let mut known = names("read(\"");
    for opening in ["get(\"", "limit(\"", "count(\""] {
        known.append(&mut names(opening));
    }
    let tables = ["network", "transfers", "hooks", "host", "day", "credentials", "ledger", "class"];
    tables.into_iter().for_each(|table| assert!(known.remove(table), "{table} is a table"));
    assert_eq!(known, in_example);
    let is_told = |key: &str| {
        [format!("`{key}`"), format!(".{key}`"), format!("{{ {key} = ")].iter().any(|words| PAGE.contains(words))
    };
    let missing: Vec<_> = known.iter().filter(|key| !is_told(key)).collect();
    assert!(missing.is_empty(), "docs/config.md says nothing of {missing:?}");
}

#[test]
fn an_empty_file_prefers_nothing() {
    for text in ["", "# nothing\n", "[network]\n[hooks]\n"] {
        assert!(!read(text).expect(text).restrain());
    }
    assert!(read("network.max_bytes_sec_up = 1").expect("dotted keys").restrain());
    assert!(read("network.max_bytes_sec_up = 1e-300").expect("next to nothing").restrain(), "a little is not no limit");
    assert!(!read("network.max_bytes_sec_up = 0.0").expect("no limit").restrain());
}

#[test]
fn mistakes_are_named_by_their_line() {
    for (text, line, why) in [
        ("[network]\nmax_bytes_sec = 1\n", 2, "\"max_bytes_sec\" is no key in [network]; there are connect_timeout,"),
        ("\n[net]\n", 2, "\"net\" is no key here; there are hooks, host, ledger, network, transfers"),
        ("[network]\nmode = 'auto'\nmode = 'never'\n", 3, "duplicate key"),
        ("[network\n", 1, "unclosed table"),
        ("[network]\n\nmode = 'sometimes'\n", 3, "network.mode: it should be \"always\", \"auto\" or \"never\""),
        ("[network]\nmode = 3\n", 2, "network.mode: it should be a text in quotes, and is an integer"),
        ("[network]\nnet_start_hour = 7\n", 2, "net_end_hour is missing"),
        ("[network]\nnet_end_hour = 7\n", 2, "net_start_hour is missing"),
        ("[network]\nnet_start_hour = 25\nnet_end_hour = 7\n", 2, "network.net_start_hour: it is no hour"),
        ("[network.day.funday]\nnet_start_hour = 1\n", 1, "it is no day of the week"),
        ("[network.day.monday]\n", 1, "network.day.monday: net_start_hour and net_end_hour are missing"),
        ("[network]\nmax_bytes_sec_up = 'fast'\n", 2, "network.max_bytes_sec_up: \"fast\" is no rate"),
        ("[network]\nmax_bytes_sec_up = -1\n", 2, "it should be a rate"),
        ("[network]\nwindows = '08:00,1k 9,2k'\n", 2, "network.windows: \"9\" is no time"),
        ("[network]\ndaily_xfer_limit_mb = 5\n", 2, "daily_xfer_period_days is missing"),
        ("[network]\ndaily_xfer_period_days = 900\n", 2, "it should be from 0 to 366"),
        ("[network]\nstall_timeout = '0s'\n", 2, "it must be longer than nothing"),
        ("[network]\nstall_timeout = 'soon'\n", 2, "\"soon\" is no duration"),
        ("[transfers]\nmax_transfers = 0\n", 2, "transfers.max_transfers: it should be from 1 to 65535"),
        ("[hooks]\non_complete = 'ls'\n", 2, "hooks.on_complete: it should be an array of texts, and is a string"),
        ("[hooks]\non_failure = []\n", 2, "the first word is missing"),
        ("[hooks]\nreport_url = 'ftp://x'\n", 2, "is no http or https URL"),
        ("[host.\"a/b\"]\n", 1, "\"a/b\" names no host"),
        ("[host.a]\ncredentials = {}\n", 2, "say one of netrc = true,"),
        ("[host.a]\ncredentials = { env = 'A', netrc = true }\n", 2, "say one of"),
        ("[host.a]\npassword = 'x'\n", 2, "\"password\" is no key in [host.a]"),
    ] {
        let told = mistake(text);
        assert!(told.starts_with(&format!("/etc/c.toml, line {line}: ")) && told.contains(why), "{text:?}: {told}");
        assert!(!told.contains('\n'), "{told}");
    }
}

#[test]
fn no_secret_is_repeated() {
    for text in ["[network]\nproxy = 'http://me:s3cret@'\n", "[host.a]\nheaders = ['Authorization s3cret']\n"] {
        assert!(!mistake(text).contains("s3cret"), "{}", mistake(text));
    }
    assert!(
        !format!("{:?}", read("[network]\nproxy = 'http://me:s3cret@p:1'\n[host.a]\nheaders = ['A: s3cret']"))
            .contains("s3cret")
    );
}

#[test]
fn a_file_that_somebody_named_must_be_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing.toml");
    let trouble = ConfigFile::find(Some(&missing), folder.path()).read().expect_err("it is not there");
    assert_eq!(trouble.exit(), crate::cli::exit::Exit::Usage);
    assert!(trouble.to_string().contains("missing.toml"), "{trouble}");
    let unnamed = ConfigFile { path: Some(missing), given: Given::No };
    assert!(!unnamed.read().expect("nothing is preferred").restrain());
    std::fs::write(folder.path().join("c.toml"), "[network]\nmode = 'never'\n").expect("written");
    let read = ConfigFile::find(Some(Path::new("c.toml")), folder.path()).read().expect("it is there");
    assert_eq!(read.mode, Mode::Never);
}
