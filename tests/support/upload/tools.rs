//! Tools: where the programs are that the servers are, and what to do where one is not.

use std::path::{Path, PathBuf};

/// The program, by its name in the folders of PATH and those of system daemons.
///
/// # Panics
/// Where it is in none of them: `package` is Debian's package that brings it.
#[track_caller]
pub(crate) fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed: apt-get install {package}, or run tests/run, which does"))
}

/// A part that a program loads at run time, by its whole path.
#[track_caller]
pub(crate) fn part(path: &str, package: &str) -> PathBuf {
    let file = PathBuf::from(path);
    assert!(file.is_file(), "{path} is not installed: apt-get install {package}, or run tests/run, which does");
    file
}

/// The Python that has the servers written in it.
#[track_caller]
pub(crate) fn python() -> PathBuf {
    installed("venv").join("bin/python")
}

/// The folder `node_modules` with the servers written for Node.
#[track_caller]
pub(crate) fn node_modules() -> PathBuf {
    installed("node").join("node_modules")
}

/// A server that is a crate. Building them takes minutes, so that only the long tests want them.
#[track_caller]
pub(crate) fn crate_program(name: &str) -> PathBuf {
    let folder = cache().join("crates");
    let done = folder.join("installed");
    assert!(
        done.is_file(),
        "{} is not there: run tests/support/upload/install crates (tests/long does)",
        done.display()
    );
    folder.join("bin").join(name)
}

/// What `install`, beside this file, leaves behind when it has ended well.
#[track_caller]
fn installed(which: &str) -> PathBuf {
    let folder = cache().join(which);
    let done = folder.join("installed");
    assert!(done.is_file(), "{} is not there: run tests/support/upload/install (tests/run does)", done.display());
    folder
}

fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("PERSXFER_TOOLS").unwrap_or_else(|| {
        let home = || Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cache");
        set("XDG_CACHE_HOME").unwrap_or_else(home).join("persxfer-tests")
    })
}
