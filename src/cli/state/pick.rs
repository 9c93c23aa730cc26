//! Which transfer a person means: by id; else by path and by name alike, so that a word that is the path of one and the
//! name of another is ambiguous; else by the name of its file.

use std::path::{Component, Path, PathBuf};

use crate::cli::foreign::printable;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::Record;

/// The one transfer that `word` means.
///
/// # Errors
/// Where there is none, or where there are several: then with the list, each with its id.
pub(crate) fn one<'a>(records: &'a [Record], word: &str, cwd: &Path) -> Result<&'a Record, Trouble> {
    let found = matching(records, word, cwd);
    match found[..] {
        [record] => Ok(record),
        [] => {
            Err(Trouble::Usage(format!("no transfer is called {:?}; see `persxfer state list --all`", printable(word))))
        }
        _ => {
            let list: Vec<_> = found.iter().map(|r| format!("{} ({})", r.id, place(r))).collect();
            Err(Trouble::Usage(format!(
                "{:?} can be several transfers, name one by its id: {}",
                printable(word),
                list.join(", ")
            )))
        }
    }
}

fn matching<'a>(records: &'a [Record], word: &str, cwd: &Path) -> Vec<&'a Record> {
    let path: PathBuf = cwd.join(word).components().filter(|c| *c != Component::CurDir).collect();
    let by = |test: &dyn Fn(&Record) -> bool| records.iter().filter(|r| test(r)).collect::<Vec<_>>();
    let tests: [&dyn Fn(&Record) -> bool; 3] = [
        &|r| r.id.to_string() == word.to_ascii_lowercase(),
        &|r| r.path.as_ref() == Some(&path) || r.name == word,
        &|r| r.path.as_ref().and_then(|p| p.file_name()).is_some_and(|n| n == word),
    ];
    tests.iter().map(|test| by(test)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Where a transfer's file is, or its name.
pub(crate) fn place(record: &Record) -> String {
    printable(&record.path.as_ref().map_or_else(|| record.name.clone(), |p| p.display().to_string()))
}
