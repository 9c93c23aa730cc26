//! Lists that nobody wrote: what is read says what the text says, and what is refused names a line that exists.

use super::*;
use crate::fuzz::{self, Target, grows_evenly, kind};

const INPUT_LIST: Target = Target {
    name: "input_list",
    run: input_list,
    words: &[
        "http://h.example/x",
        "https://h.example/y?z=1",
        "\t",
        " ",
        "\n",
        "\r\n",
        "\n  ",
        "out=",
        "dir=",
        "checksum=",
        "md5=d41d8cd98f00b204e9800998ecf8427e",
        "split=4",
        "#",
        "=",
        "\u{feff}",
        "\u{a0}",
    ],
    runs: 60_000,
    grows_from: 4 << 10,
    frames: &[("", ""), ("http://h.example/x\n", "")],
};

#[test]
fn lists_that_nobody_wrote() {
    fuzz::fuzz(&INPUT_LIST);
    grows_evenly(&INPUT_LIST);
}

fn input_list(data: &[u8]) -> u32 {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count();
    match parse(&text) {
        Ok(entries) => {
            let mut last = 0;
            for entry in &entries {
                assert!(last < entry.line && entry.line <= lines);
                last = entry.line;
                assert!(!entry.urls.is_empty(), "{entry:?}");
                let said = entry.urls.iter().chain(&entry.checksums).chain(&entry.out).chain(&entry.dir);
                assert!(said.into_iter().all(|word| !word.contains('\n') && text.contains(word.as_str())), "{entry:?}");
            }
            assert_eq!(parse(&rewritten(&entries)).map(|again| bare(&again)), Ok(bare(&entries)));
            kind(&[1, entries.len(), entries.iter().map(|entry| entry.urls.len() + entry.checksums.len()).sum()])
        }
        Err(bad) => {
            assert!(bad.line >= 1 && bad.line <= lines, "{bad}");
            kind(&[0, bad.why.len() / 64])
        }
    }
}

/// The same list, written plainly.
fn rewritten(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        text += &format!("{}\n", entry.urls.join("\t"));
        entry.out.iter().for_each(|out| text += &format!(" out={out}\n"));
        entry.dir.iter().for_each(|dir| text += &format!(" dir={dir}\n"));
        entry.checksums.iter().for_each(|sum| text += &format!(" checksum={sum}\n"));
    }
    text
}

fn bare(entries: &[Entry]) -> Vec<Entry> {
    entries.iter().map(|entry| Entry { line: 0, ..entry.clone() }).collect()
}
