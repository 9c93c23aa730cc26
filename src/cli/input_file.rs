//! The list that `--input-file` names, in aria2's form: a file a line, its mirrors after TABs, and indented `key=value`
//! lines below it that hold for that file alone. Empty lines and lines that begin with `#` say nothing.

/// One entry of the list, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The line it stands on, from 1.
    pub(crate) line: usize,
    /// Its URLs, in order; at least one.
    pub(crate) urls: Vec<String>,
    /// `out=`: the file's name or path.
    pub(crate) out: Option<String>,
    /// `dir=`: its folder.
    pub(crate) dir: Option<String>,
    /// `checksum=`: digests, one a line.
    pub(crate) checksums: Vec<String>,
}

/// Why a list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub(crate) struct BadList {
    /// Where, from 1.
    pub(crate) line: usize,
    /// What is wrong, and what would be right.
    pub(crate) why: String,
}

/// Reads a list.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, BadList> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        // Only blanks and tabs indent; a stray carriage return hides no comment.
        let text = text.trim_start_matches(|c: char| c.is_whitespace() && !matches!(c, ' ' | '\t'));
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        if text.starts_with([' ', '\t']) {
            let why = || "an indented line belongs to a URL above it, and there is none".to_owned();
            let entry = entries.last_mut().ok_or_else(|| BadList { line, why: why() })?;
            set(entry, text.trim()).map_err(|why| BadList { line, why })?;
        } else {
            let urls = text.split('\t').map(str::trim).filter(|u| !u.is_empty()).map(str::to_owned).collect();
            entries.push(Entry { line, urls, ..Entry::default() });
        }
    }
    Ok(entries)
}

fn set(entry: &mut Entry, text: &str) -> Result<(), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not written key=value"))?;
    let once = |slot: &mut Option<String>| match slot.replace(value.trim().to_owned()) {
        Some(_) => Err(format!("{key}= stands here twice for one file")),
        None => Ok(()),
    };
    match key.trim() {
        "out" => once(&mut entry.out),
        "dir" => once(&mut entry.dir),
        "checksum" => {
            entry.checksums.push(value.trim().to_owned());
            Ok(())
        }
        _ => Err(format!("the key {key:?} is not known; there are out=, dir= and checksum=")),
    }
}

#[cfg(test)]
mod fuzzed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list() {
        let text = "# images\nhttp://a/x\thttp://b/x\n  out=y.bin\n\tchecksum=md5=00\n  checksum=sha-1=11\n\nhttp://a/z\n dir=sub dir\n";
        let read = parse(text).expect("a good list");
        assert_eq!(
            read,
            vec![
                Entry {
                    line: 2,
                    urls: vec!["http://a/x".into(), "http://b/x".into()],
                    out: Some("y.bin".into()),
                    dir: None,
                    checksums: vec!["md5=00".into(), "sha-1=11".into()],
                },
                Entry { line: 7, urls: vec!["http://a/z".into()], dir: Some("sub dir".into()), ..Entry::default() },
            ]
        );
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, line, word) in [
            ("  out=x\n", 1, "none"),
            ("http://a\n\n  split=4\n", 3, "split"),
            ("http://a\n  out\n", 2, "key=value"),
            ("http://a\n out=a\n out=b\n", 3, "twice"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.why.contains(word), "{error}");
        }
    }
}
