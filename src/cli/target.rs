//! Where a download goes: from `-o`, `-O`, `--dir`, `--remote-header-name` and the URL to one absolute target.

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use crate::cli::args::Place;
use crate::cli::foreign;
use crate::cli::trouble::Trouble;
use crate::core::failure::LocalFault;
use crate::core::name::SAFE_MAX;
use crate::core::url::MirrorUrl;
use crate::engine::Target;

/// What was said about the target of one download: `out` and `dir` by an input file, else by options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The options.
    pub(crate) place: &'a Place,
    /// `-o` or `out=`, where given.
    pub(crate) out: Option<&'a Path>,
    /// `--dir` or `dir=`, where given.
    pub(crate) dir: Option<&'a Path>,
    /// The first URL.
    pub(crate) url: &'a MirrorUrl,
}

/// The target, absolute; relative to `cwd` where a relative one was asked for.
pub(crate) fn resolve(asked: Asked<'_>, cwd: &Path) -> Result<Target, Trouble> {
    let folder = asked.dir.map_or_else(|| cwd.to_owned(), |dir| cwd.join(dir));
    if let Some(out) = asked.out {
        check_out(out)?;
        return file(&absolute(&folder, out)?);
    }
    let folder = absolute(&folder, Path::new(""))?;
    if asked.place.remote_header_name {
        let folder = tidy(&folder);
        return check_length(&folder).map(|()| Target::ServerNamed(folder));
    }
    file(&folder.join(foreign::name_from_url(asked.url)))
}

/// A path as it is meant in the folder `cwd`, which is empty where the current folder was deleted: only an absolute path
/// leads anywhere then.
pub(crate) fn absolute(cwd: &Path, path: &Path) -> Result<PathBuf, Trouble> {
    let path = cwd.join(path);
    if path.is_absolute() {
        return Ok(path);
    }
    let detail = "it was deleted; go to another folder, or give absolute paths".to_owned();
    Err(Trouble::Io { doing: "find", path: "the current folder".to_owned(), detail })
}

/// May the path be looked up at all? What is missing yet would be found too long only when it is created.
fn check_length(path: &Path) -> Result<(), Trouble> {
    let bad = |why: String| Err(Trouble::option("the output", path.to_string_lossy(), why));
    if let Some(long) = path.components().map(|c| c.as_os_str().len()).find(|bytes| *bytes > SAFE_MAX) {
        return bad(format!("a name in it has {long} bytes, and may have {SAFE_MAX} at most; give a shorter one"));
    }
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::InvalidFilename => {
            bad("it is longer than the system takes; give a shorter one".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_out(out: &Path) -> Result<(), Trouble> {
    let text = out.to_string_lossy();
    let why = match &*text {
        "" => "it is empty; give a file's name",
        "-" => "writing to standard output is not possible, a download that resumes needs a file; give a file's name",
        _ if text.ends_with('/') => "it is a folder; use --dir for that, or give a file's name",
        _ => return Ok(()),
    };
    Err(Trouble::option("--output", text, why))
}

/// A path that may become a file of ours: not a folder, nor a device.
fn file(path: &Path) -> Result<Target, Trouble> {
    let path = tidy(path);
    let bad = |why| Err(Trouble::option("the output", path.to_string_lossy(), why));
    let Some(name) = path.file_name() else {
        return bad("it is a folder; give a file's name, or use --dir");
    };
    if foreign::is_working_name(name) {
        return bad("a download keeps its unfinished bytes under such names; give another one");
    }
    check_length(&path)?;
    // Through a link we would replace what somebody else has put there, or the link itself.
    match std::fs::symlink_metadata(&path).map(|m| m.file_type()) {
        Ok(kind) if kind.is_symlink() => bad("it is a symbolic link; name the file that it is to lead to"),
        Ok(kind) if kind.is_dir() => bad("it is a folder; give a file's name, or use --dir"),
        Ok(kind) if kind.is_char_device() || kind.is_block_device() => {
            bad("it is a device; only a regular file can be resumed")
        }
        Ok(kind) if kind.is_fifo() || kind.is_socket() => {
            bad("it is a pipe or a socket; only a regular file can be resumed")
        }
        _ => Ok(Target::File(path)),
    }
}

/// One spelling for one place: no `.` in it, and where there is a `..` the folder as the system sees it.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    let plain: PathBuf = path.components().collect();
    if !plain.components().any(|c| c == Component::ParentDir) {
        return plain;
    }
    match (plain.parent().map(Path::canonicalize), plain.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => plain,
    }
}

/// Is this one of the files that the state is kept in?
pub(crate) fn is_of_state(path: &Path, state_file: &Path) -> bool {
    let names = |p: &Path| p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let (name, current) = (names(path), names(state_file));
    let stem = current.strip_suffix(".xml").unwrap_or(&current);
    let rest = name.strip_prefix(stem);
    let ours = |rest: &str| {
        matches!(rest, ".xml" | "" | "_next.xml" | "_prev.xml" | "_next" | "_prev" | ".lock")
            || rest.starts_with(".run-")
            || rest.contains(".damaged-")
    };
    path.parent() == state_file.parent() && rest.is_some_and(ours)
}

/// The folder that must exist before the transfer begins; nothing is created for an upload.
pub(crate) fn folder(target: &Target) -> Option<&Path> {
    match target {
        Target::File(path) => Some(path.parent().unwrap_or(path)),
        Target::ServerNamed(folder) => Some(folder),
        Target::Source(_) => None,
    }
}

/// Creates such a folder, with its parents.
pub(crate) fn create_folder(folder: &Path) -> Result<(), Trouble> {
    let trouble = |detail: String| Trouble::Io {
        doing: "create the folder",
        path: foreign::printable(&folder.display().to_string()),
        detail: format!("{detail}; give another folder with --dir, or see to this one"),
    };
    foreign::create_folder(folder).map_err(|fault| match fault {
        LocalFault::Io { detail, .. } | LocalFault::DiskFull { detail, .. } => trouble(detail),
        other => trouble(other.to_string()),
    })?;
    if folder.is_dir() { Ok(()) } else { Err(trouble("a file stands there".into())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        place: Place,
    }

    fn target(words: &str, url: &str) -> Result<Target, String> {
        let place = Line::parse_from(std::iter::once("x").chain(words.split_whitespace())).place;
        let url = samples::url(url);
        let asked = Asked { place: &place, out: place.output.as_deref(), dir: place.dir.as_deref(), url: &url };
        resolve(asked, Path::new("/nowhere/here")).map_err(|t| t.to_string())
    }

    #[test]
    fn targets() {
        for (words, url, path) in [
            ("", "http://h/a/b.iso?x=1", "/nowhere/here/b.iso"),
            ("-O", "http://h/b.iso", "/nowhere/here/b.iso"),
            ("-o c.iso", "http://h/b.iso", "/nowhere/here/c.iso"),
            ("-o ./s/c.iso -d d", "http://h/b.iso", "/nowhere/here/d/s/c.iso"),
            ("-o /nowhere/c.iso", "http://h/b.iso", "/nowhere/c.iso"),
            ("-P /nowhere/e", "http://h/b.iso", "/nowhere/e/b.iso"),
            ("--directory-prefix e", "http://h/b.iso", "/nowhere/here/e/b.iso"),
        ] {
            assert_eq!(target(words, url), Ok(Target::File(path.into())), "{words}");
        }
        assert_eq!(target("-J -d d", "http://h/b"), Ok(Target::ServerNamed("/nowhere/here/d".into())));
    }

    #[test]
    fn what_no_file_can_be() {
        for (words, url, says) in [
            ("-o /dev/null", "http://h/b", "device"),
            ("-o /", "http://h/b", "folder"),
            ("-o /usr", "http://h/b", "folder"),
            ("-o x/", "http://h/b", "folder"),
            ("-o -", "http://h/b", "standard output"),
        ] {
            let error = target(words, url).expect_err(words);
            assert!(error.contains(says), "{words}: {error}");
        }
    }

    #[test]
    fn names_that_no_system_takes() {
        for (bytes, fits) in [(1, true), (240, true), (255, true), (256, false), (300, false)] {
            let name = "n".repeat(bytes);
            for words in [format!("-o {name}"), format!("-o {name}/f"), format!("-d {name}"), format!("-J -d {name}")] {
                let told = target(&words, "http://h/b");
                assert_eq!(told.is_ok(), fits, "{bytes}: {told:?}");
                assert!(fits || told.is_err_and(|why| why.contains(&format!("{bytes} bytes"))));
            }
        }
        let deep = target(&format!("-o {}", "d/".repeat(2_100) + "f"), "http://h/b").expect_err("too long");
        assert!(deep.contains("longer than the system takes"), "{deep}");
    }

    #[test]
    fn without_a_current_folder_only_absolute_paths_lead_anywhere() {
        let target = |words: &str| {
            let place = Line::parse_from(std::iter::once("x").chain(words.split_whitespace())).place;
            let url = samples::url("http://h/b");
            let asked = Asked { place: &place, out: place.output.as_deref(), dir: place.dir.as_deref(), url: &url };
            resolve(asked, Path::new("")).map_err(|t| (t.exit().code(), t.to_string()))
        };
        assert_eq!(target("-o /nowhere/f"), Ok(Target::File("/nowhere/f".into())));
        assert_eq!(target("-o f -d /nowhere"), Ok(Target::File("/nowhere/f".into())));
        assert_eq!(target("-d /nowhere"), Ok(Target::File("/nowhere/b".into())));
        for words in ["", "-o f", "-d d", "-J", "-o f -d d"] {
            let (exit, why) = target(words).expect_err(words);
            assert!(exit == 5 && why.contains("current folder"), "{words}: {exit} {why}");
        }
    }

    #[test]
    fn a_folder_is_created_with_its_parents_or_named() {
        let dir = tempfile::tempdir().expect("a folder");
        create_folder(&dir.path().join("a/b")).expect("created");
        assert!(dir.path().join("a/b").is_dir());
        std::fs::write(dir.path().join("plain"), "").expect("a file");
        let error = create_folder(&dir.path().join("plain")).expect_err("a file stands there");
        assert!(error.to_string().contains("plain"), "{error}");
        assert_eq!(error.exit().code(), 5);
    }
}
