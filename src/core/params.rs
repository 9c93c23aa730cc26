//! Parameters of a header field, `; name=value; other="a \"quoted\" value"` (RFC 9110 5.6.6), as servers really write
//! them.
//!
//! Nothing is refused here: a stray `;`, a missing value or a quote that never ends gives what can be had. A backslash
//! counts as an escape only before a quote or another backslash, so that the file paths of careless servers stay paths.

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    /// Its name, lower case; may be empty.
    pub(crate) name: String,
    /// Its value, unquoted, blanks around it removed; empty where there was none.
    pub(crate) value: String,
}

/// Where a list of parameters ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// With the text.
    End,
    /// At a comma that is not quoted, where the field's next member begins.
    Comma,
}

/// Reads parameters from the start of the text, a leading `;` or none; gives them and what comes after their end.
pub(crate) fn read_params(text: &str, until: Until) -> (Vec<Param>, &str) {
    let (mut params, mut rest) = (Vec::new(), text);
    loop {
        let name;
        (name, rest) = split_before(rest, until, &['=', ';']);
        let value;
        (value, rest) = match rest.strip_prefix('=') {
            Some(after) => read_value(after, until),
            None => (String::new(), rest),
        };
        if !name.trim().is_empty() || !value.is_empty() {
            params.push(Param { name: name.trim().to_ascii_lowercase(), value });
        }
        match rest.strip_prefix(';') {
            Some(after) => rest = after,
            None => return (params, rest),
        }
    }
}

/// A value and what follows it, from the `;` (or comma) on.
fn read_value(text: &str, until: Until) -> (String, &str) {
    let start = text.trim_start();
    let Some(quoted) = start.strip_prefix('"') else {
        let (value, rest) = split_before(text, until, &[';']);
        return (value.trim().to_owned(), rest);
    };
    let (value, after) = unquote(quoted);
    // Whatever stands between the closing quote and the next parameter means nothing.
    (value, split_before(after, until, &[';']).1)
}

/// The text up to the closing quote, and what follows that.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => return (value, &text[at + 1..]),
            ('\\', Some(&(_, escaped @ ('"' | '\\')))) => {
                value.push(escaped);
                chars.next();
            }
            _ => value.push(c),
        }
    }
    (value, "")
}

/// Splits before the first of these characters, or before the comma that ends the list.
fn split_before<'a>(text: &'a str, until: Until, stops: &[char]) -> (&'a str, &'a str) {
    let stop = |c: char| stops.contains(&c) || (until == Until::Comma && c == ',');
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, until: Until) -> (Vec<(String, String)>, &str) {
        let (params, rest) = read_params(text, until);
        (params.into_iter().map(|p| (p.name, p.value)).collect(), rest)
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn ordinary_ones() {
        let text = "; Rel=\"duplicate; one, two\" ; pri = 1;pref; geo=gb, <next>";
        let want = pairs(&[("rel", "duplicate; one, two"), ("pri", "1"), ("pref", ""), ("geo", "gb")]);
        assert_eq!(read(text, Until::Comma), (want, ", <next>"));
    }

    #[test]
    fn careless_ones() {
        assert_eq!(read(";;; a=b;;", Until::End), (pairs(&[("a", "b")]), ""));
        assert_eq!(read("a=my file, v2.txt", Until::End), (pairs(&[("a", "my file, v2.txt")]), ""));
        assert_eq!(read("a=\"never ends; b=c", Until::End), (pairs(&[("a", "never ends; b=c")]), ""));
        assert_eq!(read("a=\"x\" junk; b=c", Until::End), (pairs(&[("a", "x"), ("b", "c")]), ""));
        assert_eq!(read("=x", Until::End), (pairs(&[("", "x")]), ""));
        assert_eq!(read("", Until::Comma), (vec![], ""));
    }

    #[test]
    fn escapes_are_quotes_and_backslashes_only() {
        assert_eq!(read(r#"a="say \"hi\" \\ C:\dir\x""#, Until::End).0, pairs(&[("a", r#"say "hi" \ C:\dir\x"#)]));
        assert_eq!(read("a=\"x\\", Until::End).0, pairs(&[("a", "x\\")]));
    }

    proptest! {
        #[test]
        fn anything_may_come(text in "(?s)[;=\",\\\\ a\u{e9}]{0,40}|(?s).{0,60}") {
            let (_, rest) = read_params(&text, Until::Comma);
            prop_assert!(rest.is_empty() || rest.starts_with(','));
            prop_assert_eq!(read_params(&text, Until::End).1, "");
        }
    }
}
