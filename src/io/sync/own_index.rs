//! Our own index of our own `recent`: written last, plain and packed, all of one content, each given its name whole.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::OWN;
use super::batch::{Batch, Staged};
use super::look::standing;
use crate::core::failure::LocalFault;
use crate::core::sync::path::check_name;
use crate::core::sync::stamp;
use crate::core::time::Epoch;
use crate::io::durable::{Clobber, local_fault};
use crate::io::effects;
use crate::io::regular::read_regular;

/// What an index is made of.
#[derive(Clone, Copy, Debug)]
pub struct OwnIndex<'a> {
    /// The tree.
    pub recent: &'a Path,
    /// The file of the plain one; the packed ones stand beside it.
    pub index: &'a Path,
    /// The URL of our instance.
    pub base_url: &'a str,
    /// Now.
    pub now: Epoch,
}

/// The files below a folder, by their paths, in order; none of what is ours, or could not be listed by an index.
///
/// # Errors
/// A folder cannot be read.
pub fn files_below(root: &Path) -> Result<Vec<String>, LocalFault> {
    let (mut found, mut folders) = (Vec::new(), vec![(root.to_owned(), String::new())]);
    while let Some((folder, path)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|error| local_fault("list", &folder, &error))?,
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| *name != OWN && check_name(name).is_ok()) else { continue };
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push((entry.path(), path)),
                Ok(kind) if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes the index of a tree in all its variants.
///
/// # Errors
/// What the system said; older variants then still stand.
pub fn write_own_index(own: OwnIndex<'_>, staging: PathBuf) -> Result<(), LocalFault> {
    let root = read_tree(own.recent)?;
    let tree = own.recent.file_name().unwrap_or_default().to_string_lossy();
    let mut recent = root.json(&tree)?;
    recent["path"] = json!(tree);
    let index = json!({
        "index_created": stamp::minute(own.now),
        "path": own.base_url.trim_end_matches('/'),
        "directories": [recent],
    });
    let text = serde_json::to_vec(&index).unwrap_or_default();
    let mut batch = Batch::begin(staging.clone())?;
    for (n, variant) in VARIANTS.iter().enumerate() {
        let from = staging.join(format!("index-{n}"));
        pack(&from, *variant, &text).map_err(|error| local_fault("write", &from, &error))?;
        let mut to = own.index.as_os_str().to_owned();
        to.push(variant.ending());
        batch.add(Staged { from, to: to.into(), clobber: Clobber::Replace });
    }
    batch.commit(&mut |_| {})
}

#[derive(Clone, Copy, Debug)]
enum Variant {
    Plain,
    Gz,
    Bz2,
    Xz,
}

/// The plain one last: whoever sees it finds the others of the same content.
const VARIANTS: [Variant; 4] = [Variant::Gz, Variant::Bz2, Variant::Xz, Variant::Plain];

impl Variant {
    const fn ending(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Gz => ".gz",
            Self::Bz2 => ".bz2",
            Self::Xz => ".xz",
        }
    }
}

fn pack(path: &Path, variant: Variant, text: &[u8]) -> io::Result<()> {
    let file: File = effects::open(OpenOptions::new().write(true).create_new(true).mode(0o666), path)?;
    let out = BufWriter::new(effects::Writer(&file));
    let mut out = match variant {
        Variant::Plain => {
            let mut out = out;
            out.write_all(text)?;
            out
        }
        Variant::Gz => {
            let mut packer = flate2::write::GzEncoder::new(out, flate2::Compression::best());
            packer.write_all(text)?;
            packer.finish()?
        }
        Variant::Bz2 => {
            let mut packer = bzip2::write::BzEncoder::new(out, bzip2::Compression::best());
            packer.write_all(text)?;
            packer.finish()?
        }
        Variant::Xz => {
            let mut packer = lzma_rust2::XzWriter::new(out, lzma_rust2::XzOptions::with_preset(6))?;
            packer.write_all(text)?;
            packer.finish()?
        }
    };
    out.flush()
}

/// A folder as an index has it.
#[derive(Debug, Default)]
struct Folder {
    files: Vec<serde_json::Value>,
    folders: BTreeMap<String, Folder>,
}

impl Folder {
    fn json(&self, path: &str) -> Result<serde_json::Value, LocalFault> {
        let mut folder = json!({ "path": path });
        if !self.files.is_empty() {
            folder["files"] = json!(self.files);
        }
        if !self.folders.is_empty() {
            let inner = self.folders.iter().map(|(name, inner)| inner.json(name)).collect::<Result<Vec<_>, _>>()?;
            folder["directories"] = json!(inner);
        }
        Ok(folder)
    }
}

fn read_tree(root: &Path) -> Result<Folder, LocalFault> {
    let mut tree = Folder::default();
    for path in files_below(root)? {
        let file = root.join(&path);
        let Some(stands) = standing(&file)? else { continue };
        let digest = sha256_of(&file).map_err(|error| local_fault("read", &file, &error))?;
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let mut folder = &mut tree;
        for component in folders.split('/').filter(|component| !component.is_empty()) {
            folder = folder.folders.entry(component.to_owned()).or_default();
        }
        folder.files.push(json!({
            "path": name,
            "size": stands.size.0,
            "last_modified": stamp::minute(stands.modified),
            "sha256": base64::engine::general_purpose::STANDARD.encode(digest),
        }));
    }
    Ok(tree)
}

fn sha256_of(path: &Path) -> io::Result<[u8; 32]> {
    let (mut file, mut sum) = (read_regular(path)?, Sha256::new());
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(sum.finalize().into()),
            n => sum.update(&piece[..n]),
        }
    }
}
