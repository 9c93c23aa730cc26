//! Rust source as tokens, for rules about it: comments, texts in quotes and test modules left out.

/// Names, `::` and single other characters.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        found.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    found
}

/// Leaves out what stands behind `#[cfg(test)]`: a module with its body, or one item up to its `;` or body.
pub(crate) fn without_tests(words: Vec<String>) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::with_capacity(words.len()), 0);
    while at < words.len() {
        if words[at..].iter().map(String::as_str).take(MARK.len()).eq(MARK) {
            at = end_of_item(&words, at + MARK.len());
        } else {
            kept.push(words[at].clone());
            at += 1;
        }
    }
    kept
}

fn end_of_item(words: &[String], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return at,
            "}" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

/// The text with comments, strings and characters turned into blanks.
pub(crate) fn blanked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skip = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest, 1),
            'r' | 'b' | 'c' if !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => literal(rest),
            '\'' => character(rest),
            _ => 0,
        };
        match skip {
            0 => out.push(first),
            _ => out.push(' '),
        }
        rest = &rest[skip.max(first.len_utf8())..];
    }
    out
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a quoted text whose opening quote ends at `from`.
fn quoted(text: &str, from: usize) -> usize {
    let mut escaped = false;
    for (at, c) in text[from..].char_indices() {
        match c {
            '"' if !escaped => return from + at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// The length of a literal with a prefix (`r#"..."#`, `b"..."`, `br"..."`, `b'x'`); zero where it is none.
fn literal(text: &str) -> usize {
    let prefix = text.find(|c| !matches!(c, 'r' | 'b' | 'c')).unwrap_or(0);
    let raw = text[..prefix].contains('r');
    let hashes = text[prefix..].bytes().take_while(|b| *b == b'#').count();
    match text[prefix + hashes..].chars().next() {
        Some('"') if raw && prefix <= 2 => {
            let close = format!("\"{}", "#".repeat(hashes));
            let from = prefix + hashes + 1;
            text[from..].find(&close).map_or(text.len(), |at| from + at + close.len())
        }
        Some('"') if hashes == 0 && prefix == 1 => quoted(text, prefix + 1),
        Some('\'') if hashes == 0 && prefix == 1 => prefix + character(&text[prefix..]),
        _ => 0,
    }
}

/// The length of a character literal; zero for a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text[1..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), Some(escaped)) => {
            let from = 2 + escaped.len_utf8();
            text[from..].find('\'').map_or(0, |at| from + at + 1)
        }
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}
