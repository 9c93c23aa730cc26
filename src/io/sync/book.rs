//! A manifest on disk: read, appended to, and written anew once it holds much that no longer counts.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::core::failure::LocalFault;
use crate::core::sync::listing::Entry;
use crate::core::sync::manifest::{Held, Manifest, Memory, Reading, line, line_of_memory};
use crate::io::durable::{self, Clobber, local_fault};
use crate::io::effects;
use crate::io::regular::{read_regular, regular};

/// A line is at most so long.
const MAX_LINE: u64 = 8 << 10;
/// It is written anew from so many surplus lines on, where they are more than those that count.
const SURPLUS: usize = 1_000;

/// The manifest of one module in one source's folder. The folder's lock is held.
#[derive(Debug)]
pub struct Book {
    path: PathBuf,
    file: Option<File>,
    held: String,
}

impl Book {
    /// Reads the manifest of that path, and opens it for more; there need be none.
    ///
    /// # Errors
    /// What the system said.
    pub fn open(path: PathBuf) -> Result<(Self, Manifest), LocalFault> {
        let manifest = read(&path)?;
        let mut book = Self { path, file: None, held: String::new() };
        // A damaged end is cut off by writing what is sound anew.
        if manifest.damaged
            || (manifest.surplus > SURPLUS && manifest.surplus > manifest.files.len())
            || !book.path.exists()
        {
            book.write_anew(&manifest)?;
        }
        Ok((book, manifest))
    }

    /// Says something of a file; it is written with the next [`Book::flush`].
    pub fn note(&mut self, entry: &Entry<'_, Held>) {
        self.held.push_str(&line(entry));
    }

    /// Remembers what indexes said.
    pub fn remember(&mut self, memory: &Memory) {
        self.held.push_str(&line_of_memory(memory));
    }

    /// Writes and flushes what was said.
    ///
    /// # Errors
    /// What the system said; what was said may be there, or not.
    pub fn flush(&mut self) -> Result<(), LocalFault> {
        if self.held.is_empty() {
            return Ok(());
        }
        let local = |error| local_fault("write", &self.path, &error);
        if self.file.is_none() {
            self.file = Some(append_to(&self.path).map_err(local)?);
        }
        let Some(file) = &self.file else { return Ok(()) };
        effects::Writer(file).write_all(self.held.as_bytes()).map_err(local)?;
        effects::sync_data(file).map_err(local)?;
        self.held.clear();
        Ok(())
    }

    fn write_anew(&mut self, manifest: &Manifest) -> Result<(), LocalFault> {
        let next = self.path.with_extension("next");
        durable::write_new(&next, manifest.lines(), durable::PRIVATE)?;
        durable::publish(&next, &self.path, Clobber::Replace)?;
        durable::sync_dir(durable::folder_of(&self.path))
    }
}

fn append_to(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    effects::open(&options, path).and_then(regular)
}

fn read(path: &Path) -> Result<Manifest, LocalFault> {
    let local = |error| local_fault("read", path, &error);
    let file = match read_regular(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Manifest::default()),
        other => other.map_err(local)?,
    };
    let (mut file, mut line, mut reading) = (BufReader::new(file), Vec::new(), Reading::default());
    loop {
        line.clear();
        let n = (&mut file).take(MAX_LINE).read_until(b'\n', &mut line).map_err(local)?;
        match line.strip_suffix(b"\n") {
            Some(whole) if reading.line(whole) => {}
            Some(_) => return Ok(reading.finish(false)),
            None => return Ok(reading.finish(n > 0)),
        }
    }
}
