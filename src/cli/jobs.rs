//! The downloads that were asked for, from URLs, mirrors, metalinks and the input file to one [`Job`] each.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::args::{self, Download, Required};
use crate::cli::foreign::{self, Sums};
use crate::cli::input_file::{self, Entry};
use crate::cli::metalink;
use crate::cli::settings::{delay, positive, size};
use crate::cli::target;
use crate::cli::trouble::Trouble;
use crate::core::backoff::Policy;
use crate::core::digest::{Expected, Pieces};
use crate::core::giveup::GiveUpFrom;
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::Length;
use crate::core::url::MirrorUrl;
use crate::engine::{Existing, FailedPart, Job, Mtime, NetOptions, Options, Target};

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The downloads; at least one.
    pub(crate) jobs: Vec<Job>,
    /// What was left out, a line each, printable.
    pub(crate) remarks: Vec<String>,
}

/// One download as far as its own words go: URLs, target, digests.
pub(crate) struct Wish {
    pub(crate) urls: Vec<MirrorUrl>,
    pub(crate) target: Target,
    /// Those that are law.
    pub(crate) digests: Vec<Expected>,
    /// What a metalink tells.
    pub(crate) told: FromMetalink,
}

/// What a metalink tells of a file; nothing where there is none.
#[derive(Default)]
pub(crate) struct FromMetalink {
    /// Every digest, to which others must not be contrary.
    pub(crate) digests: Vec<Expected>,
    pub(crate) size: Option<Length>,
    pub(crate) pieces: Option<Arc<Pieces>>,
}

/// Reads all downloads.
pub(crate) fn read(asked: &Download, net: Arc<NetOptions>, cwd: &Path, stdin: &mut dyn Read) -> Result<Asked, Trouble> {
    one_standard_input(asked)?;
    let metalinks = metalink::read(&asked.sources.metalinks, stdin)?;
    let given = digests_for_one(asked, asked.urls.len() + metalinks.iter().map(|m| m.files.len()).sum::<usize>())?;
    let mut wishes = typed(asked, cwd)?;
    wishes.extend(metalink::wishes(&metalinks, &asked.place, cwd)?);
    let remarks = metalink::remarks(&metalinks);
    if let Some(list) = &asked.sources.input_file {
        wishes.extend(listed(asked, list, cwd, stdin)?);
    }
    if wishes.is_empty() {
        let why = "nothing to download; give a URL, a list with --input-file, or a metalink with --metalink";
        return Err(Trouble::Usage(why.into()));
    }
    for (text, digest) in given {
        // There is one wish, or none was given.
        let refuse = |why: String| Trouble::option("--checksum", text, why);
        wishes.iter_mut().try_for_each(|wish| wish.must_have(digest.clone())).map_err(refuse)?;
    }
    if let Some(path) = &asked.proof.checksum_file {
        add_checksums(&mut wishes, path)?;
    }
    refuse_twins(&wishes)?;
    let max_filesize = size("--max-filesize", asked.max_filesize.as_deref())?.map(Length);
    let options = Arc::new(options(asked, net)?);
    let job = |Wish { urls, target, digests, told }| {
        let options = Arc::clone(&options);
        let (expected, pieces) = (told.size, told.pieces);
        Job { urls, target, digests, expected, pieces, max_filesize, xml_signature: None, options }
    };
    Ok(Asked { jobs: wishes.into_iter().map(job).collect(), remarks })
}

impl Wish {
    /// A digest that the user gives is law, and what a metalink tells must agree with it.
    fn must_have(&mut self, digest: Expected) -> Result<(), String> {
        let same = |other: &&Expected| other.algorithm == digest.algorithm;
        if let Some(other) = self.told.digests.iter().find(same).filter(|other| **other != digest) {
            return Err(format!("the metalink says {other}; one of the two is wrong, leave that one out"));
        }
        if !self.digests.contains(&digest) {
            self.digests.push(digest);
        }
        Ok(())
    }
}

/// What `--checksum` gives, with the words for it, where `files` URLs and files of metalinks are asked for.
fn digests_for_one<'a>(asked: &'a Download, files: usize) -> Result<Vec<(&'a String, Expected)>, Trouble> {
    if files != 1 || asked.sources.input_file.is_some() {
        only_one("--output", "file", asked.place.output.is_some())?;
        only_one("--checksum", "file", !asked.proof.checksums.is_empty())?;
    }
    let digest = |text: &'a String| match foreign::parse_digest(text) {
        Ok(digest) => Ok((text, digest)),
        Err(why) => Err(Trouble::option("--checksum", text, why)),
    };
    asked.proof.checksums.iter().map(digest).collect()
}

/// Standard input can be read once.
fn one_standard_input(asked: &Download) -> Result<(), Trouble> {
    let files = asked.sources.metalinks.iter().chain(&asked.sources.input_file);
    if files.filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Trouble::Usage(
            "standard input (-) can be read only once; give the other files by their names".into(),
        ));
    }
    Ok(())
}

/// The URLs of the command line.
fn typed(asked: &Download, cwd: &Path) -> Result<Vec<Wish>, Trouble> {
    if asked.urls.len() != 1 || asked.sources.input_file.is_some() || !asked.sources.metalinks.is_empty() {
        only_one("--mirror", "URL", !asked.sources.mirrors.is_empty())?;
    }
    let wish = |first: &String| {
        let urls = urls(std::iter::once(first).chain(&asked.sources.mirrors)).map_err(Trouble::Usage)?;
        let (out, dir) = (asked.place.output.as_deref(), asked.place.dir.as_deref());
        let target = target::resolve(target::Asked { place: &asked.place, out, dir, url: &urls[0] }, cwd)?;
        Ok(Wish { urls, target, digests: Vec::new(), told: FromMetalink::default() })
    };
    asked.urls.iter().map(wish).collect()
}

fn only_one(option: &str, what: &str, given: bool) -> Result<(), Trouble> {
    if given {
        Err(Trouble::Usage(format!("{option} goes with exactly one {what}; for several files use --input-file")))
    } else {
        Ok(())
    }
}

/// The URLs, each once, in order.
fn urls<'a>(texts: impl Iterator<Item = &'a String>) -> Result<Vec<MirrorUrl>, String> {
    let mut urls = Vec::new();
    for text in texts {
        let url = MirrorUrl::parse(text).map_err(|e| e.to_string())?;
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    Ok(urls)
}

/// The downloads of an input file.
fn listed(asked: &Download, path: &Path, cwd: &Path, stdin: &mut dyn Read) -> Result<Vec<Wish>, Trouble> {
    let refuse = |why: String| Trouble::option("--input-file", path.to_string_lossy(), why);
    let mut text = String::new();
    let read = if path == Path::new("-") {
        stdin.read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut f| f.read_to_string(&mut text))
    };
    read.map_err(|e| refuse(unreadable(&e)))?;
    let entries = input_file::parse(&text).map_err(|e| refuse(e.to_string()))?;
    entries.iter().map(|e| entry(asked, e, cwd).map_err(|t| refuse(format!("line {}: {t}", e.line)))).collect()
}

fn entry(asked: &Download, entry: &Entry, cwd: &Path) -> Result<Wish, Trouble> {
    let urls = urls(entry.urls.iter()).map_err(Trouble::Usage)?;
    let digest = |text: &String| foreign::parse_digest(text).map_err(|why| Trouble::option("checksum", text, why));
    let digests = entry.checksums.iter().map(digest).collect::<Result<_, _>>()?;
    let dir = entry.dir.as_deref().map(Path::new).or(asked.place.dir.as_deref());
    let out = entry.out.as_deref().map(Path::new);
    let target = target::resolve(target::Asked { place: &asked.place, out, dir, url: &urls[0] }, cwd)?;
    Ok(Wish { urls, target, digests, told: FromMetalink::default() })
}

/// Gives every download its digests from a file as `sha256sum` writes it: by the name it gets here, else by its URL's.
fn add_checksums(wishes: &mut [Wish], path: &Path) -> Result<(), Trouble> {
    let refuse = |why: String| Trouble::option("--checksums", path.to_string_lossy(), why);
    let text = std::fs::read(path).map_err(|e| refuse(unreadable(&e)))?;
    let list = path.file_name().unwrap_or_default().to_string_lossy();
    let sums = Sums::parse(&text, &list).map_err(refuse)?;
    for wish in wishes {
        let Target::File(target) = &wish.target else {
            return Err(refuse("the file's name must be known for that; leave out --remote-header-name".into()));
        };
        let local = target.file_name().unwrap_or_default().to_string_lossy();
        let found = sums.find(&local).or_else(|why| sums.find(&foreign::name_from_url(&wish.urls[0])).map_err(|_| why));
        let advice = |why| refuse(format!("{why}; add one, or leave that download out"));
        found.map_err(advice)?.into_iter().try_for_each(|digest| wish.must_have(digest)).map_err(refuse)?;
    }
    Ok(())
}

pub(crate) fn unreadable(error: &std::io::Error) -> String {
    format!("cannot read it: {}; name a file that can be read", foreign::plain_error(error))
}

/// Two downloads of one target would weave one file.
fn refuse_twins(wishes: &[Wish]) -> Result<(), Trouble> {
    let mut seen: HashMap<(&Path, Option<&url::Url>), &MirrorUrl> = HashMap::new();
    for wish in wishes {
        let (path, url) = match &wish.target {
            Target::File(path) | Target::Source(path) => (path.as_path(), None),
            Target::ServerNamed(folder) => (folder.as_path(), Some(wish.urls[0].secret_url())),
        };
        if let Some(other) = seen.insert((path, url), &wish.urls[0]) {
            let path = foreign::printable(&path.display().to_string());
            return Err(Trouble::Usage(format!(
                "{other} and {} would both be written to {path}; give them different names or folders (out= and dir= in an \
                 input file), or name them as mirrors of one file",
                wish.urls[0]
            )));
        }
    }
    Ok(())
}

/// What was said of any transfer: how patient to be, and how requests travel.
pub(crate) fn lasting(
    patience: &args::Patience,
    around: &args::Around,
    net: Arc<NetOptions>,
) -> Result<Options, Trouble> {
    Ok(Options { report_url: around.report_url.as_deref().map(report_url).transpose()?, ..patient(patience, net)? })
}

/// How patient to be, and how requests travel.
pub(crate) fn patient(patience: &args::Patience, net: Arc<NetOptions>) -> Result<Options, Trouble> {
    Ok(Options {
        policy: policy(patience)?,
        give_up: positive("--give-up", &patience.give_up)?,
        give_up_from: match patience.give_up_from {
            args::GiveUpFrom::LastProgress => GiveUpFrom::LastProgress,
            args::GiveUpFrom::FirstRequest => GiveUpFrom::FirstRequest,
        },
        retry_on: patience.retry_on.as_deref().map_or(Ok(Vec::new()), statuses)?,
        net,
        ..Options::default()
    })
}

/// What holds for every download of one command.
fn options(asked: &Download, net: Arc<NetOptions>) -> Result<Options, Trouble> {
    Ok(Options {
        existing: match (asked.place.overwrite, asked.place.no_clobber) {
            (true, _) => Existing::Overwrite,
            (_, true) => Existing::Keep,
            _ => Existing::Refuse,
        },
        require: match asked.proof.require_evidence {
            None => Evidence::None,
            Some(Required::Length) => Evidence::Length,
            Some(Required::Overlap) => Evidence::Overlap,
            Some(Required::Validator) => Evidence::Validator,
            Some(Required::Digest) => Evidence::Digest,
        },
        failed_part: if asked.delete_partial { FailedPart::Delete } else { FailedPart::Keep },
        connections: asked.connections,
        mtime: if asked.place.remote_time { Mtime::Remote } else { Mtime::Local },
        ..lasting(&asked.patience, &asked.around, net)?
    })
}

/// What is wrong with it is told without the secrets that it may hold.
fn report_url(text: &str) -> Result<MirrorUrl, Trouble> {
    MirrorUrl::parse(text).map_err(|error| Trouble::Usage(format!("--report-url: {error}")))
}

fn policy(asked: &args::Patience) -> Result<Policy, Trouble> {
    let min = delay("--min-delay", asked.min_delay.as_deref())?;
    let max = delay("--max-delay", asked.max_delay.as_deref())?;
    let text = &asked.retry_policy;
    let policy = foreign::policy(text).map_err(|why| Trouble::option("--retry-policy", text, why))?;
    foreign::bounded(policy, min, max).map_err(Trouble::Usage)
}

/// Statuses that are failures: 400 to 599.
fn statuses(text: &str) -> Result<Vec<u16>, Trouble> {
    let status = |t: &str| t.trim().parse().ok().filter(|code| (400..=599).contains(code));
    let codes = text.split(',').map(status).collect::<Option<Vec<_>>>();
    codes.ok_or_else(|| {
        Trouble::option("--retry-on", text, "these are statuses from 400 to 599 with commas between, such as 403,404")
    })
}

/// The folders that must exist before the downloads begin, each once.
pub(crate) fn folders(jobs: &[Job]) -> Vec<PathBuf> {
    let folders: BTreeSet<&Path> = jobs.iter().filter_map(|job| target::folder(&job.target)).collect();
    folders.into_iter().map(Path::to_owned).collect()
}
