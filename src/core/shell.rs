//! Words as a POSIX shell reads them, for `--on-complete` and `--on-failure`, and quoting for commands that we print.
//!
//! No shell is run: there are blanks, quotes and backslashes here, and no variables, globs, pipes or lists.

/// Why a command cannot be split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWords {
    /// A quote is never closed.
    #[error("the quote {0} is never closed")]
    Quote(char),
    /// A backslash stands at the end.
    #[error("it ends in a backslash")]
    Backslash,
    /// There is no word in it.
    #[error("it is empty")]
    Empty,
}

/// Splits a command into its words: POSIX quoting, nothing else.
///
/// # Errors
/// [`BadWords`].
pub fn split(text: &str) -> Result<Vec<String>, BadWords> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => single(&mut chars, word.get_or_insert_default())?,
            '"' => double(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next().ok_or(BadWords::Backslash)?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) { Err(BadWords::Empty) } else { Ok(words) }
}

fn single(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), BadWords> {
    loop {
        match chars.next().ok_or(BadWords::Quote('\''))? {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
}

/// Between double quotes a backslash counts before `"`, `\`, `$` and a backtick only.
fn double(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), BadWords> {
    loop {
        match chars.next().ok_or(BadWords::Quote('"'))? {
            '"' => return Ok(()),
            '\\' => match chars.next().ok_or(BadWords::Quote('"'))? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

/// One word, quoted where a shell would otherwise take it for something else.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words() {
        for (text, words) in [
            ("notify-send done", vec!["notify-send", "done"]),
            ("  a\t'b c'  \"d e\"f ", vec!["a", "b c", "d ef"]),
            (r#"say "a \"b\" \n" 'it'\''s'"#, vec!["say", r#"a "b" \n"#, "it's"]),
            (r"a\ b ''", vec!["a b", ""]),
            ("echo $HOME | cat", vec!["echo", "$HOME", "|", "cat"]),
        ] {
            assert_eq!(
                split(text).as_deref(),
                Ok(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
        for (text, error) in [
            ("a 'b", BadWords::Quote('\'')),
            ("\"", BadWords::Quote('"')),
            ("a\\", BadWords::Backslash),
            (" ", BadWords::Empty),
            ("''", BadWords::Empty),
        ] {
            assert_eq!(split(text), Err(error), "{text}");
        }
    }

    #[test]
    fn plain_words_stay_plain() {
        assert_eq!(quote("https://example.org:81/a%20b"), "https://example.org:81/a%20b");
        assert_eq!(quote("http://h/?a=1&b"), "'http://h/?a=1&b'");
        assert_eq!(quote(""), "''");
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_one_word(word in "\\PC+") {
            prop_assert_eq!(split(&quote(&word)), Ok(vec![word]));
        }
    }
}
