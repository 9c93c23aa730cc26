//! stub
use crate::core::state::Document;
use std::path::{Path, PathBuf};
/// e
#[derive(Debug, thiserror::Error)]
#[error("state")]
pub struct StateError;
/// f
#[derive(Debug)]
pub struct StateFile(PathBuf);
/// l
#[derive(Debug)]
pub struct Loaded { /// d
 pub document: Document, /// w
 pub warnings: Vec<String> }
impl StateFile {
    /// a
    pub fn at(p: &Path) -> Self { Self(p.into()) }
    /// l
    pub fn load(&self) -> Result<Loaded, StateError> { let document = match std::fs::read(&self.0) { Ok(b) => Document::parse(&b).map_err(|_| StateError)?, Err(_) => Document::fresh() }; Ok(Loaded { document, warnings: vec![] }) }
    /// c
    pub fn commit<R>(&self, f: impl FnOnce(&mut Document) -> R) -> Result<R, StateError> { let mut d = self.load()?.document; let r = f(&mut d); std::fs::write(&self.0, d.to_bytes()).map_err(|_| StateError)?; Ok(r) }
}
