//! What `sync` reads: its configuration, indexes and pages, manifests, descriptors.

use persxfer::core::sync::config::{SyncConfig, Syntax};
use persxfer::core::sync::index::{Index, Pages, Reader};
use persxfer::core::sync::kinds;
use persxfer::core::sync::manifest::{Reading, line};
use persxfer::core::sync::path::{Part, TreePath};
use persxfer::core::sync::source::Form;

use super::{PLAIN, assert_harmless, text};
use crate::fuzz::{Target, kind};

/// A configuration, in both syntaxes.
pub(super) const CONFIG: Target = Target {
    name: "sync_config",
    run: config,
    words: &[
        "SyncFolder=x\n",
        "SyncExitLists=",
        "SyncOnly\n",
        "NoSync\n",
        "SyncSourcesExitLists=",
        "http://a.example/",
        ", ",
        "pages+",
        "ExitListsOutDirectory=o\n",
        "ExitListsFolders=",
        "ExitListsReplace=",
        "ExitListsHook=",
        "SyncFoo=SyncOnly\n",
        "SyncSourcesFoo=http://b/\nFooOutDirectory=f\n",
        "CriterionX=y\n",
        "\\\n",
        "\\u00e9",
        "\\uD83D\\uDE00",
        " : ",
        "#",
        " = \"",
        "\"\n",
        "['a', 'b']",
    ],
    runs: 20_000,
    ..PLAIN
};

fn config(data: &[u8]) -> u32 {
    let mut outcome = Vec::new();
    for syntax in [Syntax::Properties, Syntax::Toml] {
        match SyncConfig::parse(&text(data), syntax) {
            Ok(config) => {
                for module in &config.modules {
                    assert!(TreePath::parse(&module.name).is_ok(), "{:?} is no name of a folder", module.name);
                    let folders: Vec<_> = module.sources.iter().map(|source| source.folder.as_str()).collect();
                    assert!(
                        folders.iter().all(|folder| !folder.contains(['/', '\\', '@']) && !folder.starts_with('.'))
                    );
                    assert!((1..folders.len()).all(|n| !folders[..n].contains(&folders[n])), "{folders:?}");
                    outcome.push(module.sources.len());
                }
            }
            Err(bad) => {
                assert_harmless(&bad);
                outcome.push(100);
            }
        }
    }
    kind(&outcome)
}

/// An index of each form.
pub(super) const INDEX: Target = Target {
    name: "sync_index",
    run: index,
    words: &[
        "{\"path\":\"d\",",
        "\"files\":[",
        "\"directories\":[",
        "{\"path\":\"x\",\"size\":1}",
        "\"sha256\":\"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=\"",
        "\"last_modified\":\"2016-10-01 12:05\"",
        "\"index_created\":\"2016-10-01 12:05\"",
        "]",
        "}",
        ",",
        "\\u0000",
        "\\\"",
        "..",
        "/",
        ".tmp",
        "null",
        "-1.5e3",
        "<html>",
        "<a href=\"x\">x</a> 01-Oct-2016 12:00 7\n",
        "<a href=\"s/\">",
        "</html>",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  x\n",
    ],
    runs: 15_000,
    ..PLAIN
};

fn index(data: &[u8]) -> u32 {
    let mut outcome = Vec::new();
    let read = |form, piece: usize| {
        let mut reader = Reader::new(form, &[Part::All], "SHA256SUMS");
        data.chunks(piece).try_for_each(|piece| reader.feed(piece)).and_then(|()| reader.finish())
    };
    for form in [Form::Json, Form::Sums] {
        let (whole, pieces) = (read(form, data.len().max(1)), read(form, 7));
        match (whole, pieces) {
            (Ok(index), Ok(same)) => {
                outcome.push(safe(&index));
                assert_eq!(index.listing.len(), same.listing.len(), "in pieces it is another");
            }
            (Err(bad), Err(_)) => {
                assert_harmless(&bad);
                outcome.push(100);
            }
            (whole, pieces) => panic!("{:?} and in pieces {:?}", whole.err(), pieces.err()),
        }
    }
    let mut pages = Pages::new(&[Part::All]);
    outcome.push(pages.take("", data).map_or(100, |below| below.len()));
    outcome.push(safe(&pages.finish()));
    kind(&outcome)
}

fn safe(index: &Index) -> usize {
    for entry in index.listing.iter() {
        assert!(TreePath::parse(entry.path).is_ok(), "{:?}", entry.path);
    }
    index.refused.told.iter().for_each(assert_harmless);
    index.listing.len().min(50)
}

/// A manifest.
pub(super) const MANIFEST: Target = Target {
    name: "sync_manifest",
    run: manifest,
    words: &["persxfer sync manifest 1\n", "m\tx\t1\t2\t-\t", "i\t-\t0\t-\t0\t", "\n", "\t", "p", "../x"],
    ..PLAIN
};

fn manifest(data: &[u8]) -> u32 {
    let mut reading = Reading::default();
    let lines = data.split(|b| *b == b'\n').take_while(|line| reading.line(line)).count();
    let manifest = reading.finish(false);
    for entry in manifest.files.iter() {
        assert!(TreePath::parse(entry.path).is_ok() && line(&entry).ends_with('\n'));
    }
    kind(&[lines.min(9), manifest.files.len().min(9), usize::from(manifest.damaged)])
}

/// Descriptors of every kind.
pub(super) const DESCRIPTORS: Target = Target {
    name: "sync_descriptors",
    run: descriptors,
    words: &[
        "@type server-descriptor 1.0\n",
        "@type tordnsel 1.0\n",
        "router x\n",
        "published 2016-10-01 12:00:00\n",
        "router-signature\n",
        "directory-signature x\n",
        "-----END SIGNATURE-----\n",
        "Downloaded 2016-10-01 12:00:00\n",
        "ExitNode A\n",
        "onion-key\n",
        "extra-info x\n",
        "router-digest 006FD96BA35E7785A6A3B8B75FE2E2435A13BDB4\n",
        "network-status-version 3\n",
        "vote-status vote\n",
        "1475323200\n",
        "SOURCE=x START=7.5\n",
    ],
    runs: 2_500,
    ..PLAIN
};

fn descriptors(data: &[u8]) -> u32 {
    let mut outcome = Vec::new();
    for name in kinds::names() {
        let read = |piece: usize| {
            let kind = kinds::named(name).unwrap_or_else(|| panic!("no kind {name}"));
            let (mut reader, mut found) = (kinds::Reader::new(kind, "2016-10-01-12-00-00"), Vec::new());
            data.chunks(piece).for_each(|piece| reader.feed(piece, &mut found));
            reader.finish(&mut found);
            found
        };
        let found = read(data.len().max(1));
        assert_eq!(found, read(5), "in pieces it is another");
        let mut at = 0;
        for segment in &found {
            assert_eq!(segment.at, at);
            at += segment.length;
            match &segment.verdict {
                Ok(facts) => assert!(facts.identity.as_deref().is_none_or(|id| TreePath::parse(id).is_ok())),
                Err(fault) => assert_harmless(fault),
            }
        }
        outcome.push(found.iter().filter(|segment| segment.verdict.is_ok()).count().min(9));
    }
    kind(&outcome)
}
