//! Which kind of store a place is, and opening it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::io::store::sqlite::Sqlite;
use crate::io::store::{LedgerStore, StoreError, Turn};

/// How the URL of a PostgreSQL database begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Where a ledger is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file of SQLite.
    File(PathBuf),
    /// In a PostgreSQL database: its URL, which may hold a password.
    Server(String),
}

impl Place {
    /// A URL with the scheme of PostgreSQL is that; whatever else is a path.
    pub fn of(place: &OsStr) -> Self {
        let server = |text: &&str| SCHEMES.iter().any(|scheme| text.starts_with(scheme));
        match place.to_str().filter(server) {
            Some(url) => Self::Server(url.to_owned()),
            None => Self::File(PathBuf::from(place)),
        }
    }

    /// The file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// Opens the ledger, and makes it where there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(&self, turn: &Turn<'_>) -> Result<Box<dyn LedgerStore>, StoreError> {
        match self {
            Self::File(path) => Ok(Box::new(Sqlite::open(path, turn)?)),
            Self::Server(url) => server(url, turn),
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Server(_) => f.debug_tuple("Server").finish_non_exhaustive(),
        }
    }
}

/// Opens the ledger at this path or URL, and makes it where there is none.
///
/// # Errors
/// [`StoreError`].
pub fn open(place: &str, turn: &Turn<'_>) -> Result<Box<dyn LedgerStore>, StoreError> {
    Place::of(OsStr::new(place)).open(turn)
}

#[cfg(feature = "postgres")]
fn server(url: &str, turn: &Turn<'_>) -> Result<Box<dyn LedgerStore>, StoreError> {
    use crate::io::store::postgres::{Clocks, Postgres};
    Ok(Box::new(Postgres::open(url, Clocks::Compared, turn)?))
}

#[cfg(not(feature = "postgres"))]
fn server(_: &str, _: &Turn<'_>) -> Result<Box<dyn LedgerStore>, StoreError> {
    let detail = "this persxfer was built without PostgreSQL (cargo feature `postgres`)".to_owned();
    Err(StoreError::Open { place: "postgresql://".to_owned(), detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_postgresql_is_a_server_and_whatever_else_a_file() {
        for url in ["postgres://h/d", "postgresql:///d?host=/run/postgresql"] {
            assert_eq!(Place::of(OsStr::new(url)), Place::Server(url.to_owned()));
        }
        for path in ["ledger.db", "/a/ledger.db", "postgres", "http://h/", "file:x"] {
            assert_eq!(Place::of(OsStr::new(path)).file(), Some(Path::new(path)));
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", Place::of(OsStr::new("postgres://u:secret@h/d")));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
