//! The project: BOINC's tools name a transfer by its project and its file, and all of ours belong to one.

use crate::core::state::MASTER_URL;

/// Its name, for people.
pub const PROJECT_NAME: &str = "persxfer";

/// Is this address the project's? As BOINC compares: whatever the scheme, `www.`, the case of letters and a slash at the end.
pub fn is_our_project(url: &str) -> bool {
    canonical(url) == canonical(MASTER_URL)
}

fn canonical(url: &str) -> String {
    let lower = url.trim().to_ascii_lowercase();
    let rest = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest);
    let rest = rest.strip_prefix("www.").unwrap_or(rest);
    rest.trim_end_matches('/').to_owned()
}
