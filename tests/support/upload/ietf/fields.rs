//! The fields of the draft as the server sends them, by interop version.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::super::faults::lock;
use super::super::visit::Visit;
use super::State;

/// `Upload-Limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) max_size: Option<u64>,
    pub(crate) min_size: Option<u64>,
    pub(crate) max_append: Option<u64>,
    /// Not held against the last body.
    pub(crate) min_append: Option<u64>,
    /// Told, and never acted on. In seconds.
    pub(crate) age: Option<u64>,
}

pub(super) type Fields = Vec<(&'static str, String)>;

impl Limits {
    /// As it is written; `None` without limits.
    fn text(self, interop: Option<u8>) -> Option<String> {
        let age = if interop == Some(6) { "expires" } else { "max-age" };
        let keys = [
            ("max-size", self.max_size),
            ("min-size", self.min_size),
            ("max-append-size", self.max_append),
            ("min-append-size", self.min_append),
            (age, self.age),
        ];
        let told: Vec<_> = keys.iter().filter_map(|(key, n)| n.map(|n| format!("{key}={n}"))).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

impl State {
    /// The version, where one is named.
    pub(super) fn version(&self) -> Fields {
        let version = self.manners.interop.map(|n| ("Upload-Draft-Interop-Version", n.to_string()));
        version.into_iter().collect()
    }

    pub(super) fn limits(&self) -> Fields {
        self.manners.limits.text(self.manners.interop).map(|text| ("Upload-Limit", text)).into_iter().collect()
    }

    /// For OPTIONS, where a server without limits says so, too.
    pub(super) fn announced(&self) -> Fields {
        let limits = self.limits();
        if limits.is_empty() { vec![("Upload-Limit", "min-size=0".to_owned())] } else { limits }
    }

    pub(super) fn location(&self, visit: &Visit, id: &str) -> (&'static str, String) {
        let host = visit.header("host").unwrap_or_default();
        let origin = if self.manners.relative_location { String::new() } else { format!("http://{host}") };
        ("Location", format!("{origin}/uploads/{id}"))
    }

    /// SHA-256 of what is stored, or of something else.
    pub(super) fn digest(&self, id: &str) -> Fields {
        if !self.manners.repr_digest {
            return Vec::new();
        }
        let mut data = fs::read(self.path(id)).unwrap_or_default();
        if *lock(&self.lies) {
            data.push(0);
        }
        vec![("Repr-Digest", format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(&data))))]
    }
}

/// `?0` or `?1`.
pub(super) fn boolean(visit: &Visit, name: &str) -> Option<bool> {
    match visit.header(name)? {
        "?0" => Some(false),
        "?1" => Some(true),
        _ => None,
    }
}

/// The field that says whether an upload is complete.
pub(super) fn completes(complete: bool) -> (&'static str, String) {
    ("Upload-Complete", if complete { "?1" } else { "?0" }.to_owned())
}

/// A problem of the draft's own types, with the members that follow its title.
pub(super) fn problem(kind: &str, members: &str) -> String {
    format!(
        "{{\"type\":\"https://iana.org/assignments/http-problem-types#{kind}\",\"title\":\"{}\"{members}}}\n",
        kind.replace('-', " ")
    )
}
