//! What a draft's file looked like when it was last left in order. Where it still looks so, nobody has written into it since.
//!
//! A program that changes bytes can set the modification time back, but not the time of the last change of the inode.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use crate::io::part::record::Reader;

/// The looks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its inode.
    inode: u64,
    /// Its length.
    size: u64,
    /// When its bytes last changed.
    modified: Stamp,
    /// When anything about it last changed.
    changed: Stamp,
}

/// A time as the file system keeps it: seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(i64, u32);

impl Seen {
    /// As it looks now; `None` where its times are too coarse to tell anything: a change in the same second would not show.
    pub(super) fn now(file: &File) -> Option<Self> {
        Self::of(&file.metadata().ok()?)
    }

    fn of(meta: &Metadata) -> Option<Self> {
        // Nanoseconds are below 10^9.
        let modified = Stamp(meta.mtime(), meta.mtime_nsec() as u32);
        let changed = Stamp(meta.ctime(), meta.ctime_nsec() as u32);
        (changed.1 != 0).then_some(Self { inode: meta.ino(), size: meta.len(), modified, changed })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.inode.to_le_bytes());
        out.extend(self.size.to_le_bytes());
        for Stamp(seconds, nanoseconds) in [self.modified, self.changed] {
            out.extend(seconds.to_le_bytes());
            out.extend(nanoseconds.to_le_bytes());
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Option<Self> {
        let (inode, size) = (r.u64()?, r.u64()?);
        let stamp = |r: &mut Reader<'_>| Some(Stamp(r.u64()?.cast_signed(), r.u32()?));
        Some(Self { inode, size, modified: stamp(r)?, changed: stamp(r)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::time::Duration;

    #[test]
    fn a_change_shows_though_the_modification_time_is_set_back() {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(b"abc", 0).expect("written");
        let (before, modified) = (Seen::now(&file), file.metadata().and_then(|m| m.modified()).expect("a time"));
        assert!(before.is_some());
        assert_eq!(Seen::now(&file), before);
        // Times of the kernel advance in ticks.
        std::thread::sleep(Duration::from_millis(30));
        file.write_all_at(b"x", 1).expect("written");
        file.set_modified(modified).expect("set back");
        let after = Seen::now(&file);
        assert_eq!(after.map(|s| (s.inode, s.size, s.modified)), before.map(|s| (s.inode, s.size, s.modified)));
        assert_ne!(after, before);
    }
}
