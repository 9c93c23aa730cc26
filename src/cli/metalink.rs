//! `--metalink`: the files of metalinks as downloads, and what was left out of them.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::cli::args::Place;
use crate::cli::foreign::{self, MetaFile, counted};
use crate::cli::jobs::{FromMetalink, Wish, unreadable};
use crate::cli::target;
use crate::cli::trouble::Trouble;

/// A metalink that was read.
#[derive(Debug)]
pub(crate) struct List {
    /// Its files; at least one, each with a URL.
    pub(crate) files: Vec<MetaFile>,
}

/// Reads metalinks; `stdin` where `-` stands for one.
pub(crate) fn read(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<List>, Trouble> {
    paths.iter().map(|path| read_one(path, stdin)).collect()
}

fn read_one(path: &Path, stdin: &mut dyn Read) -> Result<List, Trouble> {
    let refuse = |why: String| refuse(path, why);
    let bytes = if path == Path::new("-") {
        foreign::read_metalink(stdin)
    } else {
        std::fs::File::open(path).and_then(|mut file| foreign::read_metalink(&mut file))
    };
    let files = foreign::parse_metalink(&bytes.map_err(|e| refuse(unreadable(&e)))?).map_err(refuse)?;
    match files.iter().find(|file| file.urls.is_empty()) {
        Some(file) => Err(refuse(nowhere(file))),
        None => Ok(List { files }),
    }
}

fn refuse(path: &Path, why: String) -> Trouble {
    Trouble::option("--metalink", path.to_string_lossy(), why)
}

fn nowhere(file: &MetaFile) -> String {
    let others = match file.urls_left_out {
        0 => String::new(),
        n => format!(" ({} left out)", counted(n, "other URL")),
    };
    format!("{} has no http or https URL{others}; add one, or take that file out", file.name)
}

/// The downloads; the target of each is what was said with options, else its name in the metalink.
pub(crate) fn wishes(lists: &[List], place: &Place, cwd: &Path) -> Result<Vec<Wish>, Trouble> {
    lists.iter().flat_map(|list| &list.files).map(|file| wish(file, place, cwd)).collect()
}

fn wish(file: &MetaFile, place: &Place, cwd: &Path) -> Result<Wish, Trouble> {
    let urls: Vec<_> = file.urls.iter().map(|u| u.url.clone()).collect();
    let out = Some(place.output.as_deref().unwrap_or(file.name.as_ref()));
    let target = target::resolve(target::Asked { place, out, dir: place.dir.as_deref(), url: &urls[0] }, cwd)?;
    let told = FromMetalink { digests: file.digests.clone(), size: file.size, pieces: file.pieces.clone() };
    Ok(Wish { urls, target, digests: file.law().cloned().into_iter().collect(), told })
}

/// What was left out, for people.
pub(crate) fn remarks(lists: &[List]) -> Vec<String> {
    lists.iter().flat_map(|list| &list.files).flat_map(remarks_of).collect()
}

fn remarks_of(file: &MetaFile) -> Vec<String> {
    let name = &file.name;
    let urls = (file.urls_left_out > 0)
        .then(|| format!("{name}: left out {} that http and https do not serve", counted(file.urls_left_out, "URL")));
    let pieces = file.pieces_left_out.map(|why| format!("{name}: left out the digests of its pieces: {why}"));
    urls.into_iter().chain(pieces).collect()
}
