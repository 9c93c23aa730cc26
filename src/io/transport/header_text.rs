//! Headers as users write them (`-H`), in curl's forms.

use std::fmt;

use http::header::{self, HeaderName, HeaderValue};

/// A header that goes along with requests. Shown without its value.
#[derive(Clone, PartialEq, Eq)]
pub struct UserHeader {
    name: HeaderName,
    value: HeaderValue,
}

/// Why a text is no header. The value is never told: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// Neither `Name: value` nor `Name;`.
    #[error(
        "a header is written 'Name: value', or 'Name;' for an empty one; this one has no colon (it has {length} characters)"
    )]
    NoColon {
        /// How long the text is.
        length: usize,
    },
    /// A name that no header can have.
    #[error("{name:?} is no name of a header")]
    Name {
        /// The name.
        name: String,
    },
    /// `Name:` without a value.
    #[error("the header {name} has no value; write '{name};' to send it empty")]
    NoValue {
        /// The name.
        name: String,
    },
    /// A value with a line break or another control character.
    #[error("the value of the header {name} holds a control character")]
    Value {
        /// The name.
        name: String,
    },
    /// A header on which the transfer itself depends.
    #[error("the header {name} is set by persxfer itself: a transfer that resumes depends on it")]
    Ours {
        /// The name.
        name: String,
    },
}

/// Set from the state of the transfer, or by the connection.
const OURS: [HeaderName; 12] = [
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::EXPECT,
];

impl UserHeader {
    /// Reads `Name: value`, or `Name;` for an empty value. `Accept-Encoding` is read and has no effect.
    pub fn parse(text: &str) -> Result<Self, BadHeader> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, value.trim()),
            None => (text.strip_suffix(';').ok_or(BadHeader::NoColon { length: text.chars().count() })?, ""),
        };
        let name = name.trim_end();
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BadHeader::Name { name: name.to_owned() })?;
        if OURS.contains(&known) {
            return Err(BadHeader::Ours { name: name.to_owned() });
        }
        if value.is_empty() && text.contains(':') {
            return Err(BadHeader::NoValue { name: name.to_owned() });
        }
        let bad_value = |_| BadHeader::Value { name: name.to_owned() };
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(bad_value)?;
        value.set_sensitive(is_credential(&known));
        Ok(Self { name: known, value })
    }

    /// Its name, in lower case.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }
    /// Its value, which may be a secret: for the wire and the state file only.
    pub fn secret_value(&self) -> &HeaderValue {
        &self.value
    }
    /// It belongs to one origin: credentials, and the name of the host itself.
    pub fn is_for_one_origin(&self) -> bool {
        is_credential(&self.name) || self.name == header::HOST
    }
}

fn is_credential(name: &HeaderName) -> bool {
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION].contains(name)
}

impl fmt::Debug for UserHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ...", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curls_forms_are_read() {
        let read = |text| UserHeader::parse(text).map(|h| (h.name.to_string(), h.value.to_str().unwrap().to_owned()));
        assert_eq!(read("X-Token:  a:b "), Ok(("x-token".to_owned(), "a:b".to_owned())));
        assert_eq!(read("X-Empty;"), Ok(("x-empty".to_owned(), String::new())));
        assert_eq!(read("X-Semicolon: a;"), Ok(("x-semicolon".to_owned(), "a;".to_owned())));
    }

    #[test]
    fn what_is_no_header_is_told_without_its_value() {
        assert_eq!(UserHeader::parse("hunter2"), Err(BadHeader::NoColon { length: 7 }));
        assert_eq!(UserHeader::parse("Accept:"), Err(BadHeader::NoValue { name: "Accept".into() }));
        assert_eq!(UserHeader::parse("a b: c"), Err(BadHeader::Name { name: "a b".into() }));
        assert_eq!(UserHeader::parse(": c"), Err(BadHeader::Name { name: String::new() }));
        assert_eq!(UserHeader::parse("range: bytes=0-"), Err(BadHeader::Ours { name: "range".into() }));
        let smuggled = UserHeader::parse("X: secret\r\nHost: evil").unwrap_err();
        assert_eq!(smuggled, BadHeader::Value { name: "X".into() });
        assert!(!format!("{smuggled} {smuggled:?}").contains("secret"));
    }

    #[test]
    fn a_header_is_shown_without_its_value() {
        let header = UserHeader::parse("Authorization: Bearer secret").unwrap();
        assert_eq!(format!("{header:?}"), "authorization: ...");
    }
}
