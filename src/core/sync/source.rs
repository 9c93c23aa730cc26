//! Sources: the instances that a tree is fetched from, where their index is, and the folder that each has here (B8.3).

use std::fmt;

use crate::core::printable::printable;
use crate::core::url::{BadUrl, MirrorUrl};

/// One source of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name in reports: as configured, else its folder's.
    pub name: String,
    /// The root of its tree; its path ends in `/`. Paths of an index are meant from here, whatever the index says.
    pub base: MirrorUrl,
    /// Where its index is.
    pub index: MirrorUrl,
    /// What kind of index that is.
    pub form: Form,
    /// Its folder here.
    pub folder: FolderKey,
}

/// What kind of index a source has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// CollecTor's `index.json`, perhaps compressed.
    Json,
    /// A page that a web server makes of each folder.
    Pages,
    /// A list of checksums, such as SHA256SUMS.
    Sums,
    /// A metalink.
    Metalink,
}

/// The folder of a source below `SyncFolder`: one component, made of the URL's host, port and path. Never of user and
/// password.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FolderKey(String);

/// Why a text is no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSource {
    /// No URL.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// More words than two.
    #[error("\"{text}\" is no source: write [NAME ]URL, and a comma before the next")]
    Words {
        /// The text, printable.
        text: String,
    },
    /// A word before `+` that names no kind of index.
    #[error("\"{word}+\" is no kind of index; there are json+, pages+, sums+ and metalink+")]
    Form {
        /// The word, printable.
        word: String,
    },
}

/// Where an index stands below the root of a tree, if nothing else is said (B2).
const DEFAULT_INDEX: &str = "index/index.json";

impl Source {
    /// Reads `[NAME ][FORM+]URL`.
    ///
    /// A URL that ends in `/`, or has no path, is the root of the tree; its index is `index/index.json` below it, or with
    /// `pages+` the page of each folder. Any other is that of the index itself: the root is then the folder that it is in,
    /// or the one above where that is called `index`.
    ///
    /// # Errors
    /// [`BadSource`].
    pub fn parse(text: &str) -> Result<Self, BadSource> {
        let mut words = text.split_whitespace();
        let (name, url) = match (words.next(), words.next(), words.next()) {
            (Some(url), None, _) => (None, url),
            (Some(name), Some(url), None) => (Some(name), url),
            // A URL may hold a password, so that it is not repeated.
            _ => return Err(BadSource::Words { text: printable(text.split("://").next().unwrap_or_default()).into() }),
        };
        let (form, url) = form_of(url)?;
        let url = MirrorUrl::parse(url)?;
        let (base, index) = base_and_index(&url, form)?;
        let form = form.unwrap_or_else(|| by_ending(index.secret_url().path()));
        let folder = FolderKey::of(&base);
        Ok(Self {
            name: name.map_or_else(|| folder.0.clone(), |n| printable(n).into_owned()),
            base,
            index,
            form,
            folder,
        })
    }

    /// The URL of a file, or with a `/` behind it of a folder, below the root.
    pub fn url_of(&self, path: &str) -> Option<MirrorUrl> {
        let mut url = self.base.secret_url().clone();
        url.path_segments_mut().ok()?.pop_if_empty().extend(path.split('/'));
        MirrorUrl::parse(url.as_str()).ok()
    }
}

fn form_of(url: &str) -> Result<(Option<Form>, &str), BadSource> {
    let Some((word, rest)) = url.split_once('+').filter(|(word, _)| !word.contains([':', '/'])) else {
        return Ok((None, url));
    };
    let form = match word {
        "json" => Form::Json,
        "pages" => Form::Pages,
        "sums" => Form::Sums,
        "metalink" => Form::Metalink,
        _ => return Err(BadSource::Form { word: printable(word).into_owned() }),
    };
    Ok((Some(form), rest))
}

fn base_and_index(url: &MirrorUrl, form: Option<Form>) -> Result<(MirrorUrl, MirrorUrl), BadSource> {
    let mut base = url.secret_url().clone();
    let path = base.path().to_owned();
    if let Some(form) = Some(path.as_str()).filter(|path| path.ends_with('/')).map(|_| form.unwrap_or(Form::Json)) {
        let mut index = base.clone();
        if form == Form::Json {
            index.set_path(&format!("{path}{DEFAULT_INDEX}"));
        }
        return Ok((url.clone(), MirrorUrl::parse(index.as_str())?));
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    base.set_path(&format!("{}/", folder.strip_suffix("/index").unwrap_or(folder)));
    base.set_query(None);
    Ok((MirrorUrl::parse(base.as_str())?, url.clone()))
}

fn by_ending(path: &str) -> Form {
    let path = path.to_ascii_lowercase();
    if path.ends_with('/') {
        Form::Pages
    } else if path.ends_with(".meta4") || path.ends_with(".metalink") {
        Form::Metalink
    } else if crate::core::digest::Algorithm::of_list_name(&path).is_some() {
        Form::Sums
    } else {
        Form::Json
    }
}

impl FolderKey {
    /// The folder of a tree's root: the host in lower case, an IPv6 address without brackets and with `-` for `:`, then
    /// `_` and the port where it is not the scheme's own, then `_` and a short digest of the path where there is one.
    pub fn of(base: &MirrorUrl) -> Self {
        use sha2::Digest as _;
        let url = base.secret_url();
        // The host is in lower case; a host that could be taken for something else in a path is not one that a URL has.
        let mut key = base.host().trim_matches(['[', ']']).replace(':', "-").replace(['/', '\\', '%'], "_");
        if let Some(port) = url.port() {
            key.push_str(&format!("_{port}"));
        }
        let (path, query) = (url.path().trim_matches('/'), url.query());
        if !path.is_empty() || query.is_some() {
            let digest = sha2::Sha256::digest(format!("{path}?{}", query.unwrap_or_default()));
            key.push_str(&format!("_{}", hex::encode(&digest[..4])));
        }
        if key.starts_with('.') {
            key.insert(0, '_');
        }
        Self(key)
    }

    /// The folder's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FolderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FolderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn key(url: &str) -> String {
        source(url).folder.as_str().to_owned()
    }

    #[test]
    fn b12_folders_are_distinct_safe_and_stable() {
        assert_eq!(key("https://collector.torproject.org"), "collector.torproject.org");
        assert_eq!(key("https://collector.torproject.org/"), "collector.torproject.org");
        assert_eq!(key("https://COLLECTOR.TorProject.org:443/"), "collector.torproject.org");
        assert_eq!(key("http://h.example:8080/"), "h.example_8080");
        assert_eq!(key("http://h.example:8081/"), "h.example_8081");
        assert_eq!(key("http://[2001:DB8::1]/"), "2001-db8--1");
        assert_eq!(key("http://[2001:db8::1]:81/"), "2001-db8--1_81");
        assert_eq!(key("http://me:s3cret@h.example/"), "h.example");
        let (one, other) = (key("http://h.example/a/"), key("http://h.example/b/"));
        assert!(one != other && one.starts_with("h.example_") && one == key("http://h.example/a/"), "{one} {other}");
        assert_eq!(key("http://h.example/a/index/index.json.xz"), one, "the root counts, not the index");
        for url in ["http://..%2f..%2fetc/", "http://a%00b/"] {
            assert!(Source::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn where_the_index_is_and_what_kind() {
        for (text, base, index, form) in [
            ("http://h", "http://h/", "http://h/index/index.json", Form::Json),
            ("http://h/t/", "http://h/t/", "http://h/t/index/index.json", Form::Json),
            ("http://h/index/index.json.xz", "http://h/", "http://h/index/index.json.xz", Form::Json),
            ("pages+http://h/t/", "http://h/t/", "http://h/t/", Form::Pages),
            ("http://h/t/SHA256SUMS", "http://h/t/", "http://h/t/SHA256SUMS", Form::Sums),
            ("http://h/t/all.meta4", "http://h/t/", "http://h/t/all.meta4", Form::Metalink),
            ("sums+http://h/t/list.txt", "http://h/t/", "http://h/t/list.txt", Form::Sums),
            ("json+http://h/t/list", "http://h/t/", "http://h/t/list", Form::Json),
        ] {
            let source = source(text);
            let shown = (source.base.to_string(), source.index.to_string());
            assert_eq!((shown.0.as_str(), shown.1.as_str(), source.form), (base, index, form), "{text}");
        }
    }

    #[test]
    fn names_and_what_is_no_source() {
        assert_eq!(source("main https://h.example/").name, "main");
        assert_eq!(source("https://h.example/").name, "h.example");
        for text in ["", "a b c", "ftp://h/", "atom+http://h/", "h.example"] {
            let error = Source::parse(text).expect_err(text).to_string();
            assert!(!error.is_empty());
        }
        let error = Source::parse("a b http://me:s3cret@h/").expect_err("three words").to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn urls_of_files_are_below_the_root_whatever_their_names() {
        let source = source("http://h/t/");
        let url = |path: &str| source.url_of(path).map(|url| url.secret_url().to_string());
        assert_eq!(url("recent/a b?c#d%2e"), Some("http://h/t/recent/a%20b%3Fc%23d%252e".to_owned()));
    }
}
