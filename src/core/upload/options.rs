//! What a command said about an upload beyond its file and its servers, as a later process needs it to go on.

use std::path::PathBuf;

use super::boinc::Surplus;
use super::ietf::Interop;
use super::protocol::Protocol;
use super::tus::Authority;
use crate::core::range::Length;
use crate::core::url::MirrorUrl;

/// A file up to this size is read back and compared where the server names no digest and nothing else was said.
const SMALL: Length = Length(1 << 20);

/// The options of one upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadOptions {
    /// Servers that were given with a protocol; any other has that of [`Protocol::of_url`].
    pub protocols: Vec<(MirrorUrl, Protocol)>,
    /// The name that the file is to have at the server, where the protocol has a word for it; else the file's own.
    pub name: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// Is what was stored read back?
    pub read_back: ReadBack,
    /// `boinc`: what a server means that holds more than the file has.
    pub surplus: Surplus,
    /// `tus`: whose host and port a session URL has.
    pub authority: Authority,
    /// `ietf`: which text is spoken.
    pub interop: Interop,
    /// `s3`: the profile whose keys are used. The keys themselves are stored nowhere.
    pub profile: Option<String>,
    /// `s3`: the region to ask first.
    pub region: Option<String>,
    /// `s3`: a file with a list of signed URLs; absolute.
    pub manifest: Option<PathBuf>,
}

/// Is what was stored read back and compared, where the server names no digest of it?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadBack {
    /// Small files are.
    #[default]
    Small,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl UploadOptions {
    /// How this server is spoken to.
    pub fn protocol_of(&self, server: &MirrorUrl) -> Protocol {
        let given = self.protocols.iter().find(|(url, _)| url == server);
        given.map_or_else(|| Protocol::of_url(server), |(_, protocol)| *protocol)
    }
}

impl ReadBack {
    /// Up to which size.
    pub const fn up_to(self) -> Length {
        match self {
            Self::Small => SMALL,
            Self::Always => Length(u64::MAX),
            Self::Never => Length::ZERO,
        }
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// What that word says.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Small, Self::Always, Self::Never].into_iter().find(|r| r.word() == word)
    }
}
