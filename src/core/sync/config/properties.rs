//! Java's properties syntax, as `java.util.Properties` reads it: comments, continuation lines, escapes. In UTF-8.

use super::{BadConfig, Setting, Value};

/// What ends a key, beside blanks.
const BLANKS: [char; 3] = [' ', '\t', '\x0c'];

/// The settings of a file, in order.
pub(super) fn read(text: &str) -> Result<Vec<Setting>, BadConfig> {
    let mut settings = Vec::new();
    let mut lines = (1..).zip(natural_lines(text.trim_start_matches('\u{feff}')));
    while let Some((line, first)) = lines.next() {
        let first = first.trim_start_matches(BLANKS);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = String::new();
        let mut piece = first;
        while continues(piece) {
            logical.push_str(&piece[..piece.len() - 1]);
            // A backslash at the end of the file continues with nothing.
            let Some((_, next)) = lines.next() else {
                piece = "";
                break;
            };
            piece = next.trim_start_matches(BLANKS);
        }
        logical.push_str(piece);
        settings.push(setting(line, &logical)?);
    }
    Ok(settings)
}

/// Lines end in `\n`, `\r`, or both.
fn natural_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// Does an odd number of backslashes stand at its end?
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1
}

fn setting(line: usize, text: &str) -> Result<Setting, BadConfig> {
    let end = key_end(text);
    let key = unescaped(&text[..end]).map_err(|why| BadConfig::new(line, &text[..end], why))?;
    let rest = text[end..].trim_start_matches(BLANKS);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(BLANKS);
    let value = unescaped(rest).map_err(|why| BadConfig::new(line, &key, why))?;
    Ok(Setting { key, line, value: Value::Text(value) })
}

/// Where the first separator stands that no backslash precedes.
fn key_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '=' | ':' => return at,
            c if BLANKS.contains(&c) => return at,
            _ => {}
        }
    }
    text.len()
}

fn unescaped(text: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => out.push(unicode(&mut chars)?),
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

/// The character of `uXXXX`; of two surrogates, written one behind the other, one.
fn unicode(chars: &mut std::str::Chars<'_>) -> Result<char, &'static str> {
    const LONE: &str = "half of a surrogate pair (\\uD800 to \\uDFFF) stands alone";
    let first = unit(chars)?;
    if !(0xd800..0xe000).contains(&first) {
        return char::from_u32(first).ok_or(LONE);
    }
    if first >= 0xdc00 || chars.next() != Some('\\') || chars.next() != Some('u') {
        return Err(LONE);
    }
    let second = unit(chars)?;
    if !(0xdc00..0xe000).contains(&second) {
        return Err(LONE);
    }
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or(LONE)
}

fn unit(chars: &mut std::str::Chars<'_>) -> Result<u32, &'static str> {
    let mut unit = 0;
    for _ in 0..4 {
        let digit = chars.next().and_then(|c| c.to_digit(16));
        unit = unit * 16 + digit.ok_or("\\u wants four hex digits behind it")?;
    }
    Ok(unit)
}
