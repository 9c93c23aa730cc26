//! The hosts of AWS: `s3.REGION.amazonaws.com`, older forms of it, and a bucket in front.

use super::BadPlace;
use crate::core::url::MirrorUrl;

const SUFFIXES: [&str; 2] = [".amazonaws.com", ".amazonaws.com.cn"];

/// What a host of S3 at AWS names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AwsHost {
    pub(super) bucket: Option<String>,
    pub(super) region: Option<String>,
    /// The host without the bucket.
    pub(super) rest: String,
}

impl AwsHost {
    /// Reads a host; `None` where it is none of S3 at AWS.
    pub(super) fn read(host: &str) -> Option<Self> {
        let labels = SUFFIXES.iter().find_map(|suffix| host.strip_suffix(suffix))?;
        let all: Vec<&str> = labels.split('.').collect();
        let at = all.iter().rposition(|label| *label == "s3" || label.starts_with("s3-"))?;
        let behind = all[at + 1..].iter().find(|label| **label != "dualstack");
        // `s3-eu-west-1` is an old form; the others with a hyphen are services.
        let inside = all[at].strip_prefix("s3-").filter(|word| word.bytes().any(|b| b.is_ascii_digit()));
        let region = behind.copied().or(inside).map(str::to_owned);
        let before = all[..at].join(".");
        let rest = if at == 0 { host } else { host.get(before.len() + 1..)? };
        let bucket = (at > 0).then_some(before);
        Some(Self { bucket, region, rest: rest.to_owned() })
    }
}

/// The endpoint of a region.
pub(super) fn endpoint(region: &str) -> Result<MirrorUrl, BadPlace> {
    let suffix = if region.starts_with("cn-") { SUFFIXES[1] } else { SUFFIXES[0] };
    Ok(MirrorUrl::parse(&format!("https://s3.{region}{suffix}/"))?)
}
