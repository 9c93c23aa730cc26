//! The `<name>` of a transfer in the client-state file, such that a real BOINC client accepts it too.
//!
//! BOINC refuses a name that is empty or contains `..` or `%`, and keeps 255 bytes of it; its parser takes blanks
//! around it away and knows XML's five escapes only. A name of ours has none of all that, and room for the `~2` that
//! makes it unique.

use crate::core::printable::is_hidden;

/// The longest such name, in bytes.
const LONGEST: usize = 240;

/// The name for a file of this name (or for any other text). Two files may get the same; the state file tells them
/// apart.
pub fn boinc_name(file_name: &str) -> String {
    let mut name = String::new();
    for c in file_name.trim().chars() {
        let again = c == '.' && name.ends_with('.');
        let refused = is_hidden(c) || "%/\\<>&\"'".contains(c) || again;
        name.push(if refused { '_' } else { c });
    }
    name.truncate(name.floor_char_boundary(LONGEST));
    match name.trim() {
        "" | "." => "transfer".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_boinc_refuses_is_replaced() {
        assert_eq!(boinc_name("file.tar.gz"), "file.tar.gz");
        assert_eq!(boinc_name("my file~2"), "my file~2");
        assert_eq!(boinc_name("a..b%20c"), "a._b_20c");
        assert_eq!(boinc_name("..."), "._.");
        assert_eq!(boinc_name("</name>&\n"), "__name__");
        assert_eq!(boinc_name("../x\\y"), ".__x_y");
        for nothing in ["", " ", ".", "\t\n"] {
            assert_eq!(boinc_name(nothing), "transfer");
        }
    }

    proptest! {
        #[test]
        fn boinc_accepts_whatever_comes(text in "(?s)[.% ]{0,4}.{0,300}") {
            let name = boinc_name(&text);
            prop_assert!(!name.is_empty() && name.len() <= LONGEST && name.trim() == name);
            prop_assert!(!name.contains("..") && !name.contains('%') && !name.contains(is_hidden));
            prop_assert_eq!(boinc_name(&name), name);
        }
    }
}
