//! Configurations that are understood, and what is said of those that are not.

use proptest::prelude::*;

use super::*;
use crate::core::sync::source::Form;

const LEAST: &str = "SyncFolder=/var/sync\nSyncExitLists=SyncOnly\nSyncSourcesExitLists=https://a.example/\n\
                     ExitListsOutDirectory=out\n";

fn properties(text: &str) -> SyncConfig {
    SyncConfig::parse(text, Syntax::Properties).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn refused(text: &str) -> String {
    SyncConfig::parse(text, Syntax::Properties).expect_err(text).to_string()
}

/// The keys and values of a text.
fn pairs(text: &str) -> Vec<(usize, String, String)> {
    let pair = |setting: Setting| match setting.value {
        Value::Text(text) => (setting.line, setting.key, text),
        Value::List(_) => panic!("a list in properties"),
    };
    properties::read(text).expect(text).into_iter().map(pair).collect()
}

#[test]
fn properties_as_java_reads_them() {
    let one = |text: &str, key: &str, value: &str| {
        assert_eq!(pairs(text), [(1, key.to_owned(), value.to_owned())], "{text:?}");
    };
    one("a=b", "a", "b");
    one("  a  =  b  ", "a", "b  ");
    one("a:b", "a", "b");
    one("a b", "a", "b");
    one("a \t= b=c", "a", "b=c");
    one("a", "a", "");
    one("a\\ b\\=c\\:d = e", "a b=c:d", "e");
    one("a = x\\\n    y\\\r\n  z", "a", "xyz");
    one("a = x\\\\", "a", "x\\");
    one("a = x\\", "a", "x");
    one("a = \\t\\n\\u00e9\\q\\\\", "a", "\t\n\u{e9}q\\");
    one("a = \\uD83D\\uDE00", "a", "\u{1f600}");
    one("\u{feff}a = b", "a", "b");
    assert_eq!(
        pairs("# x\n ! y\n\n \t\na=1\rb=2\r\nc=\\\n # 3\n"),
        [(5, "a".into(), "1".into()), (6, "b".into(), "2".into()), (7, "c".into(), "# 3".into())]
    );
    for (text, line) in [("a=\\u12g4", 1), ("\n\na=\\u123", 3), ("a=\\uD83D", 1), ("a=\\uDE00\\uD83D", 1)] {
        let error = properties::read(text).expect_err(text);
        assert_eq!((error.line, error.key.as_str()), (line, "a"), "{error}");
    }
}

#[test]
fn the_seeds_four_modules() {
    let config = properties(
        "SyncFolder = /var/sync\nRecentPath = /srv/recent\nInstanceBaseUrl = https://me.example/\n\
         SyncRelayDescriptors = Sync\n\
         SyncSourcesRelayDescriptors = main https://collector.torproject.org, \\\n  http://b.example:8080/index/index.json.xz\n\
         RelayDescriptorsOutDirectory = /srv/out/relays\nRelayDescriptorsHook = /usr/bin/relays --now \"a b\"\n\
         SyncBridgeDescriptors = SyncOnly\nSyncSourcesBridgeDescriptors=https://b.example/\n\
         BridgeDescriptorsOutDirectory=/srv/out/bridges\nBridgeDescriptorsWindow = 30d\n\
         SyncExitLists = NoSync\n\
         SyncTorperfFiles = SyncOnly\nSyncSourcesTorperfFiles=https://b.example/\nTorperfFilesOutDirectory=t\n\
         CriterionFresh = /usr/bin/fresh\nTorperfFilesReplace = Fresh, newer-content-date\nOther.Key = 7\n",
    );
    let module = |n: usize| &config.modules[n];
    assert_eq!(
        config.modules.iter().map(|m| (m.name.as_str(), m.mode)).collect::<Vec<_>>(),
        [
            ("relaydescs", Mode::Sync),
            ("bridgedescs", Mode::SyncOnly),
            ("exitlists", Mode::NoSync),
            ("torperf", Mode::SyncOnly)
        ]
    );
    assert_eq!(
        module(0).sources.iter().map(|s| (s.name.as_str(), s.form)).collect::<Vec<_>>(),
        [("main", Form::Json), ("b.example_8080", Form::Json)]
    );
    assert_eq!(module(0).hook, ["/usr/bin/relays", "--now", "a b"]);
    assert_eq!(module(0).parts[0].of("recent/relay-descriptors/votes/x"), Some("votes/x"));
    assert_eq!((module(0).window, module(1).window), (Delay::from_hours(72), Delay::from_days(30)));
    assert_eq!(module(3).replace.iter().map(Criterion::name).collect::<Vec<_>>(), ["Fresh", "newer-content-date"]);
    assert_eq!((module(0).replace[0].name(), module(0).keep[0].name()), ("never", "valid"));
    assert_eq!(config.left_alone, [(19, "Other.Key".to_owned())]);
}

#[test]
fn the_same_in_toml_and_a_module_of_ones_own() {
    let toml = "SyncFolder = \"sync\"\nSyncIsos = \"SyncOnly\"\nSyncSourcesIsos = [\"a https://a.example/\", \"pages+https://b.example/x/\"]\n\
                IsosOutDirectory = \"out\"\nIsosFolders = \"pool, dists/a\"\nIsosHook = [\"x\", \"a b\"]\nSyncExitLists='NoSync'\n";
    let config = SyncConfig::parse(toml, Syntax::Toml).expect("understood");
    let isos = &config.modules[0];
    assert_eq!((isos.name.as_str(), &isos.kind), ("isos", &KindChoice::Named("any".to_owned())));
    assert_eq!(
        (isos.parts[0].of("pool/x"), isos.parts[1].of("dists/a/x"), isos.parts.len()),
        (Some("x"), Some("x"), 2)
    );
    assert_eq!((isos.hook.len(), isos.sources[1].form), (2, Form::Pages));
    let twin = "SyncFolder = sync\nSyncIsos = SyncOnly\nSyncSourcesIsos = a https://a.example/, pages+https://b.example/x/\n\
                IsosOutDirectory = out\nIsosFolders = pool, dists/a\nIsosHook = x 'a b'\nSyncExitLists=NoSync\n";
    assert_eq!(properties(twin), config);
    for (toml, line) in [("SyncFolder = 3", 1), ("\nSyncFolder = [1]", 2), ("a = 'x'\n[b]\n", 2), ("x =\n", 1)] {
        let error = SyncConfig::parse(toml, Syntax::Toml).expect_err(toml);
        assert_eq!(error.line, line, "{toml:?}: {error}");
    }
}

#[test]
fn the_example_is_understood() {
    let config = properties(include_str!("../../../../examples/collector.properties"));
    assert_eq!((config.modules.len(), config.left_alone.len()), (5, 0));
    assert_eq!((config.modules[0].sources.len(), config.modules[4].sources[0].form), (2, Form::Pages));
    assert_eq!(config.modules[1].replace.len(), 2);
}

#[test]
fn a_mistake_is_told_with_its_line_and_key() {
    for (more, told) in [
        ("SyncTorperfFiles = sync\n", "line 5: SyncTorperfFiles: \"sync\" is neither Sync, NoSync nor SyncOnly"),
        ("SyncFolder = x\n", "line 5: SyncFolder: it stands in line 1 already"),
        ("SyncSourcesTorperf = https://a/\n", "line 5: SyncSourcesTorperf: SyncTorperf is missing"),
        ("TorperfFilesWindow = 3d\n", "line 5: TorperfFilesWindow: SyncTorperfFiles is missing"),
        ("Syncing = x\n", "line 5: Syncing: it is no key"),
        ("SyncA/../b = NoSync\n", "line 5: SyncA/../b: it is no key"),
        ("Criterion../x = y\n", "line 5: Criterion../x: its name is missing, no word"),
        ("SyncTorperfFiles = SyncOnly\n", "SyncSourcesTorperfFiles: it is missing"),
        ("ExitListsReplace = nevr\n", "line 5: ExitListsReplace: \"nevr\" is no criterion; there are never, newer-"),
        ("ExitListsKeep = valid,\n", "line 5: ExitListsKeep: something in it is empty"),
        ("ExitListsKind = exits\n", "line 5: ExitListsKind: \"exits\" is no kind"),
        ("ExitListsWindow = soon\n", "line 5: ExitListsWindow: "),
        ("ExitListsFolders = ../x\n", "line 5: ExitListsFolders: \"../x\": it leads out of its folder"),
        ("ExitListsFolders = a, a/b\n", "line 5: ExitListsFolders: one of these folders"),
        ("ExitListsHook = \"x\n", "line 5: ExitListsHook: the quote"),
        ("Criterionnever = x\n", "line 5: Criterionnever: its name is missing"),
        ("RecentPath =\n", "line 5: RecentPath: it is empty"),
    ] {
        let error = refused(&format!("{LEAST}{more}"));
        assert!(error.starts_with(told), "{more:?}: {error}");
    }
    let other = "SyncFoo=SyncOnly\nSyncSourcesFoo=https://a.example/index/index.json.gz\nFooOutDirectory=x\nFooFolders=recent\n";
    assert!(refused(&format!("{LEAST}{other}")).starts_with("module foo: it and exitlists have a source and a folder"));
    assert!(refused("SyncFolder=x\n").contains("no module"));
}

#[test]
fn b12_two_sources_may_not_share_a_folder() {
    let error =
        refused(&LEAST.replace("https://a.example/", "https://a.example/, x HTTPS://A.example:443/index/index.json"));
    assert!(
        error.starts_with("line 3: SyncSourcesExitLists: ") && error.contains("would share the folder a.example"),
        "{error}"
    );
    let error = refused(&LEAST.replace("https://a.example/", "https://a.example/, https://me:s3cret@a.example/"));
    assert!(error.contains("share") && !error.contains("s3cret"), "{error}");
}

#[test]
fn b19_a_module_that_does_nothing_needs_nothing() {
    let config = properties("SyncExitLists = NoSync\n");
    assert_eq!((config.modules[0].mode, config.modules[0].sources.len()), (Mode::NoSync, 0));
}

proptest! {
    #[test]
    fn anything_may_stand_in_a_file(text in "(?s)(Sync|Exit|Lists|Sources|=|:| |\\\\|\\\\u|[0-9a-f]|\n|\r|#|.){0,60}") {
        let _ = SyncConfig::parse(&text, Syntax::Properties);
        let _ = SyncConfig::parse(&text, Syntax::Toml);
    }

    #[test]
    fn what_is_escaped_is_read_back(key in "[ -~\u{e9}\u{1f600}]{1,12}", value in "(?s).{0,20}") {
        let escape = |text: &str| -> String {
            text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
        };
        let read = pairs(&format!("{}={}", escape(&key), escape(&value)));
        prop_assert_eq!(&read, &[(1, key, value)]);
    }
}
