//! Pages that web servers make of a folder: Apache's, nginx's (also its JSON), lighttpd's.
//!
//! Of HTML, the links count, with what stands behind each up to the next: a time, and a size where it is exact. What leads
//! out of the folder (to the parent, to other orders of the same page) is no entry.

use percent_encoding::percent_decode_str;

use super::BadIndex;
use super::json::{Token, Tokens};
use crate::core::range::Length;
use crate::core::sync::stamp;
use crate::core::time::Epoch;

/// What is in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its files, in the page's order.
    pub files: Vec<Listed>,
    /// The names of the folders in it.
    pub folders: Vec<String>,
}

/// A file of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its name; anything.
    pub name: String,
    /// Its size, where the page tells it to the byte.
    pub size: Option<Length>,
    /// When it was changed, by the server's clock and in its zone; nginx and lighttpd tell UTC.
    pub modified: Option<Epoch>,
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// [`BadIndex`]: it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadIndex> {
        match bytes.trim_ascii_start().first() {
            Some(b'[') => of_json(bytes),
            _ => of_html(bytes),
        }
    }

    fn add(&mut self, listed: Listed, is_folder: bool) {
        match is_folder {
            true => self.folders.push(listed.name),
            false => self.files.push(listed),
        }
    }
}

/// nginx's `autoindex_format json`: a list of objects.
fn of_json(bytes: &[u8]) -> Result<Page, BadIndex> {
    let (mut page, mut depth, mut key) = (Page::default(), 0, String::new());
    let (mut listed, mut is_folder) = (Listed::default(), false);
    let mut see = |token: Token<'_>| {
        match token {
            Token::BeginObject | Token::BeginArray => {
                depth += 1;
                if depth == 2 {
                    (listed, is_folder) = (Listed::default(), false);
                }
            }
            Token::EndObject | Token::EndArray => {
                depth -= 1;
                if depth == 1 && !listed.name.is_empty() {
                    page.add(std::mem::take(&mut listed), is_folder);
                }
            }
            _ if depth != 2 => {}
            Token::Key(name) => name.clone_into(&mut key),
            Token::Text(text) => match key.as_str() {
                "name" => text.clone_into(&mut listed.name),
                "type" => is_folder = text == "directory",
                "mtime" => listed.modified = http_date(text),
                _ => {}
            },
            Token::Number(text) if key == "size" => listed.size = text.parse().ok().map(Length),
            Token::Number(_) | Token::Word => {}
        }
        Ok(())
    };
    let mut tokens = Tokens::new();
    tokens.feed(bytes, &mut see)?;
    tokens.finish(&mut see)?;
    Ok(page)
}

fn of_html(bytes: &[u8]) -> Result<Page, BadIndex> {
    let text = String::from_utf8_lossy(bytes);
    let lower = text.to_ascii_lowercase();
    if !lower.contains("<html") || !lower.contains("<a ") {
        return Err(BadIndex::Shape { what: "it is no page of a folder" });
    }
    if !lower.contains("</html>") {
        return Err(BadIndex::Ended);
    }
    let mut page = Page::default();
    let starts: Vec<usize> = lower.match_indices("<a ").map(|(at, _)| at).collect();
    for (n, start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(text.len());
        // Both texts have the same length: ASCII letters alone were changed.
        if let Some((listed, is_folder)) = link(&text[*start..end], &lower[*start..end]) {
            page.add(listed, is_folder);
        }
    }
    // Apache links the icon of a file as well.
    page.files.dedup_by(|later, first| {
        let same = later.name == first.name;
        if same {
            first.size = first.size.or(later.size);
            first.modified = first.modified.or(later.modified);
        }
        same
    });
    page.folders.dedup();
    Ok(page)
}

/// A link, and what stands behind it.
fn link(text: &str, lower: &str) -> Option<(Listed, bool)> {
    let tag_end = lower.find('>')?;
    let at = lower[..tag_end].find("href=")? + "href=".len();
    let quote = lower[at..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let href = text[at + 1..].split(quote).next()?;
    let href = unentitied(href);
    let href = href.strip_prefix("./").unwrap_or(&href);
    let (raw, is_folder) = href.strip_suffix('/').map_or((href, false), |name| (name, true));
    if raw.is_empty() || raw == ".." || raw == "." || raw.contains(['?', '#', '/']) || has_scheme(raw) {
        return None;
    }
    let name = percent_decode_str(raw).decode_utf8().ok()?.into_owned();
    let behind = lower.find("</a>").map_or("", |end| &text[end + "</a>".len()..]);
    let words = untagged(behind);
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let dated = words.windows(2).position(|two| day_and_time(two[0], two[1]).is_some());
    let modified = dated.and_then(|at| day_and_time(words[at], words[at + 1]));
    // `1.2K` is not exact; digits alone are.
    let size = dated.and_then(|at| words.get(at + 2)).and_then(|word| word.parse().ok()).map(Length);
    Some((Listed { name, size, modified }, is_folder))
}

/// `mailto:x`, and the like; a name with a colon in it is written with `./` in front, or as `%3A`.
fn has_scheme(href: &str) -> bool {
    href.split_once(':').is_some_and(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Without tags, each of which becomes a blank.
fn untagged(html: &str) -> String {
    let mut within = false;
    let shown = html.chars().map(|c| match c {
        '<' => {
            within = true;
            ' '
        }
        '>' => {
            within = false;
            ' '
        }
        _ if within => ' ',
        c => c,
    });
    shown.collect::<String>().replace("&nbsp;", " ")
}

fn unentitied(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&#x2F;", "/")];
    let plain = pairs.iter().fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain));
    plain.replace("&amp;", "&")
}

/// `01-Oct-2016 12:00`, `2016-10-01 12:00`, `2016-Oct-01 12:00:00`.
fn day_and_time(day: &str, time: &str) -> Option<Epoch> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = day.splitn(3, '-');
    let (first, month, last) = (parts.next()?, parts.next()?, parts.next()?);
    let month = match MONTHS.iter().position(|m| m.eq_ignore_ascii_case(month)) {
        Some(n) => format!("{:02}", n + 1),
        None => month.to_owned(),
    };
    let (year, day) = if first.len() == 4 { (first, last) } else { (last, first) };
    stamp::parse(&format!("{year}-{month}-{day} {time}"))
}

fn http_date(text: &str) -> Option<Epoch> {
    let at = httpdate::parse_http_date(text).ok()?;
    let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Epoch::from_secs(i64::try_from(since.as_secs()).ok()?))
}
