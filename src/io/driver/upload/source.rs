//! The file that is sent: opened once a session, read by position, looked at again by its name.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::digest::{Algorithm, Expected};
use crate::core::failure::LocalFault;
use crate::core::printable::plain_error;
use crate::core::range::{ByteRange, Length};
use crate::core::upload::{Mark, Named, Sight, Source, Stamp};
use crate::io::part::Digests;
use crate::io::regular::read_regular;

/// So much is read and digested at once; in between, others on this lane have their turn.
const PIECE: usize = 1 << 20;

/// A file as an earlier session of this process knew it. Its time of change cannot be set back by a program, so that the
/// digest is still that of the file while all of this is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    source: Source,
    /// Numbers of inodes are those of one device.
    device: u64,
}

/// An open source.
#[derive(Debug)]
pub(super) struct OpenSource {
    path: PathBuf,
    pub(super) file: Arc<File>,
    meta: Metadata,
    /// Its digest, where it is known of the file as it was when it was opened.
    digest: Option<Expected>,
    buffer: Vec<u8>,
}

impl OpenSource {
    /// Opens it, and knows it again where it is as an earlier session knew it.
    pub(super) fn open(path: &Path, known: Option<&Known>) -> Result<Self, LocalFault> {
        let fault = |detail: String| LocalFault::Io { doing: "read", path: path.display().to_string(), detail };
        let file = read_regular(path).map_err(|e| fault(plain_error(&e)))?;
        let meta = file.metadata().map_err(|e| fault(plain_error(&e)))?;
        let mut source = Self { path: path.to_owned(), file: Arc::new(file), meta, digest: None, buffer: Vec::new() };
        let is_the_same = |known: &&Known| **known == source.as_known(known.source.digest.clone());
        source.digest = known.filter(is_the_same).and_then(|known| known.source.digest.clone());
        Ok(source)
    }

    fn as_known(&self, digest: Option<Expected>) -> Known {
        Known { source: Source { digest, ..identity_of(&self.meta) }, device: self.meta.dev() }
    }

    /// What later sessions may rely on.
    pub(super) fn known(&self) -> Option<Known> {
        self.digest.is_some().then(|| self.as_known(self.digest.clone()))
    }

    pub(super) fn inode(&self) -> u64 {
        self.meta.ino()
    }

    /// Its identity, as far as it is known.
    pub(super) fn identity(&self) -> Source {
        self.as_known(self.digest.clone()).source
    }

    pub(super) fn size(&self) -> Length {
        Length(self.meta.len())
    }

    /// The digest of the whole, computed where it is not known.
    pub(super) async fn know(&mut self, algorithm: Algorithm) -> Result<(), LocalFault> {
        if self.digest.is_none() {
            let whole = ByteRange::new(crate::core::range::Offset::ZERO, self.size().as_end());
            self.digest = Some(self.digest_of(whole, algorithm).await?);
        }
        Ok(())
    }

    /// The digest of a range. Other tasks of the lane have their turn meanwhile.
    pub(super) async fn digest_of(&mut self, range: ByteRange, algorithm: Algorithm) -> Result<Expected, LocalFault> {
        let mut digests = Digests::new(&[algorithm]);
        let mut at = range.start.0;
        self.buffer.resize(PIECE, 0);
        while at < range.end.0 {
            let want = usize::try_from(range.end.0 - at).unwrap_or(PIECE).min(PIECE);
            let read = self.file.read_at(&mut self.buffer[..want], at);
            let n = match read {
                Ok(0) => return Err(self.fault("it has become shorter".to_owned())),
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.fault(plain_error(&e))),
            };
            digests.update(&self.buffer[..n]);
            at += n as u64;
            tokio::task::yield_now().await;
        }
        self.buffer = Vec::new();
        let bytes = digests.finish().pop().map(|(_, bytes)| bytes).unwrap_or_default();
        let digest = Expected { algorithm, bytes };
        if range.start.0 == 0 && range.end.0 == self.meta.len() {
            self.digest = Some(digest.clone());
        }
        Ok(digest)
    }

    fn fault(&self, detail: String) -> LocalFault {
        LocalFault::Io { doing: "read", path: self.path.display().to_string(), detail }
    }

    /// What the file system says of the open file now, and whether its name still leads to it.
    pub(super) fn look(&self) -> Result<Sight, String> {
        let open = self.file.metadata().map_err(|e| plain_error(&e))?;
        let named = std::fs::metadata(&self.path).map_err(|e| plain_error(&e))?;
        let is_one = (open.dev(), open.ino()) == (named.dev(), named.ino());
        let name = if is_one { Named::Open } else { Named::Another };
        Ok(Sight { stamp: stamp_of(&open), mark: Some(mark_of(&open)), name })
    }
}

/// The identity of a file without its digest.
pub fn identity_of(meta: &Metadata) -> Source {
    Source { stamp: stamp_of(meta), mark: Some(mark_of(meta)), digest: None }
}

fn mark_of(meta: &Metadata) -> Mark {
    Mark { ctime_ns: nanoseconds(meta.ctime(), meta.ctime_nsec()), inode: meta.ino() }
}

/// The digest of a whole file, read at once.
pub fn digest_of_file(path: &Path, algorithm: Algorithm) -> std::io::Result<Expected> {
    use std::io::Read as _;

    let mut file = File::open(path)?;
    let (mut digests, mut buffer) = (Digests::new(&[algorithm]), vec![0; PIECE]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => digests.update(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let bytes = digests.finish().pop().map(|(_, bytes)| bytes).unwrap_or_default();
    Ok(Expected { algorithm, bytes })
}

fn stamp_of(meta: &Metadata) -> Stamp {
    Stamp { size: Length(meta.len()), mtime_ns: nanoseconds(meta.mtime(), meta.mtime_nsec()) }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::range::Offset;

    fn known_of(path: &Path) -> Known {
        let mut source = OpenSource::open(path, None).expect("it opens");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(source.know(Algorithm::Blake3)).expect("it is read");
        source.known().expect("known now")
    }

    #[test]
    fn a_file_is_known_again_until_it_is_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, vec![7; 3 << 20]).expect("written");
        let known = known_of(&path);
        let again = OpenSource::open(&path, Some(&known)).expect("it opens");
        assert_eq!(again.known().as_ref(), Some(&known));
        // Same size, and the time of modification set back: its time of change tells.
        let modified = again.file.metadata().expect("there").modified().expect("a time");
        std::fs::write(&path, vec![8; 3 << 20]).expect("written");
        File::options().write(true).open(&path).expect("open").set_modified(modified).expect("set");
        let edited = OpenSource::open(&path, Some(&known)).expect("it opens");
        assert_eq!(edited.identity().stamp, again.identity().stamp);
        assert_eq!(edited.known(), None);
        assert_ne!(known_of(&path).source.digest, known.source.digest);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = OpenSource::open(&folder.path().join("none"), None).expect_err("missing").to_string();
        assert!(missing.contains("none"), "{missing}");
        assert!(OpenSource::open(folder.path(), None).is_err(), "a folder is no file");
    }

    #[tokio::test]
    async fn one_that_became_shorter_has_no_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, vec![7; 100]).expect("written");
        let mut source = OpenSource::open(&path, None).expect("it opens");
        File::options().write(true).open(&path).expect("open").set_len(50).expect("cut");
        let range = ByteRange::new(Offset(10), Offset(100));
        assert!(source.digest_of(range, Algorithm::Md5).await.is_err());
    }
}
