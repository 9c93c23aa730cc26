//! The password of GUI RPC: `gui_rpc_auth.cfg` beside the state file, as BOINC has it. It is made where it is missing.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::core::failure::LocalFault;
use crate::core::rpc::password_of;
use crate::io::durable::{self, PRIVATE, local_fault};
use crate::io::entropy::system_rng;

/// BOINC's name for it.
const NAME: &str = "gui_rpc_auth.cfg";
/// No more of it is read.
const MOST: u64 = 1024;
/// A new password has so many characters, each one of 64: 192 bits.
const LENGTH: usize = 32;
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The file that belongs to a state file.
pub fn path_of(state_file: &Path) -> PathBuf {
    durable::folder_of(state_file).join(NAME)
}

/// The password in this file, which is made, readable by its owner alone, where it is missing. An empty one is none.
///
/// # Errors
/// What the system said.
pub fn password(path: &Path) -> Result<String, LocalFault> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(file) => {
            file.take(MOST).read_to_end(&mut text).map_err(|e| local_fault("read", path, &e))?;
            Ok(password_of(&String::from_utf8_lossy(&text)).to_owned())
        }
        Err(e) if e.kind() == ErrorKind::NotFound => make(path),
        Err(e) => Err(local_fault("read", path, &e)),
    }
}

fn make(path: &Path) -> Result<String, LocalFault> {
    let mut rng = system_rng().map_err(|e| LocalFault::Io {
        doing: "make",
        path: path.display().to_string(),
        detail: e.to_string(),
    })?;
    let draw = |_| char::from(CHARACTERS[usize::from(rand::RngExt::random::<u8>(&mut rng)) % CHARACTERS.len()]);
    let password: String = (0..LENGTH).map(draw).collect();
    durable::create_folder(durable::folder_of(path), durable::PRIVATE_FOLDER)?;
    durable::write_new(path, [format!("{password}\n")], PRIVATE)?;
    Ok(password)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path_of(&folder.path().join("sub/client_state.xml"));
        let first = password(&path).expect("made");
        assert_eq!((first.len(), &password(&path).expect("read")), (LENGTH, &first));
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = password(&path_of(&folder.path().join("client_state.xml"))).expect("made");
        assert_ne!(first, other);
    }

    #[test]
    fn one_that_is_there_counts_by_its_first_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path_of(&folder.path().join("client_state.xml"));
        std::fs::write(&path, " word \r\nmore\n").expect("written");
        assert_eq!(password(&path), Ok("word".to_owned()));
        std::fs::write(&path, "\nword\n").expect("written");
        assert_eq!(password(&path), Ok(String::new()));
    }
}
