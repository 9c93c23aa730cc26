//! Fetching indexes: each a transfer like any other, asked for conditionally, small enough, and read at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::module::Work;
use super::source::At;
use super::{Halt, SourceState, SyncNotice};
use crate::core::printable::printable;
use crate::core::range::Length;
use crate::core::sync::index::{Index, MAX_SENT, Pages};
use crate::core::sync::source::Form;
use crate::core::url::MirrorUrl;
use crate::engine::{Ending, EngineError, Existing, Job, Options, Report, Rounds, Settings, SyncMode, Target, run};
use crate::io::durable::{self, SHARED_FOLDER};
use crate::io::state_file::StateFile;
use crate::io::sync::{read_index, read_small};

/// So many pages of one source are looked at.
const MAX_PAGES: usize = 20_000;
/// So many pages are fetched in one run of the engine.
const PAGES_AT_ONCE: usize = 256;

impl Work<'_, '_> {
    /// Reads the index of every source that can be read.
    pub(super) fn fetch_indexes(&mut self, sources: &mut [At<'_>]) -> Result<(), Halt> {
        let listed: Vec<usize> = (0..sources.len()).filter(|n| sources[*n].source.form != Form::Pages).collect();
        let jobs = listed.iter().map(|n| self.index_job(sources[*n].source.index.clone(), index_file(&sources[*n])));
        let jobs = jobs.collect();
        let reports = self.transfer(jobs, SyncMode::Full)?;
        for (n, report) in listed.into_iter().zip(&reports) {
            match failure(report) {
                Some(why) => self.source_failed(n, why),
                None => self.read_index(n, &mut sources[n]),
            }
        }
        // The sync's own rhythm says when an index is asked for again, and not a backoff; unless a part of it is here.
        self.forget(reports.iter().filter(|report| failure(report).is_some() && report.held == Length::ZERO))?;
        for (n, at) in sources.iter_mut().enumerate() {
            if at.source.form == Form::Pages {
                self.fetch_pages(n, at)?;
            }
        }
        Ok(())
    }

    fn read_index(&mut self, n: usize, at: &mut At<'_>) {
        let file = index_file(at);
        let name = at.source.index.secret_url().path().to_owned();
        match read_index(&file, at.source.form, &self.module.parts, &name) {
            Ok(index) => self.accept(n, at, index),
            Err(fault) => {
                // Asked again, the server need not be believed that it has not changed.
                let _ = durable::remove(&file);
                self.source_failed(n, fault.to_string());
            }
        }
    }

    fn accept(&mut self, n: usize, at: &mut At<'_>, index: Index) {
        self.report.sources[n].state = SourceState::Read;
        let claimed = index.claimed_base.as_deref().and_then(|text| MirrorUrl::parse(text).ok());
        if let Some(other) = claimed.filter(|other| other.origin() != at.source.base.origin()) {
            let (name, origin) = (&at.source.name, at.source.base.origin());
            self.warn(format!(
                "{name}: its index is that of {}; files are fetched from {origin} all the same",
                other.origin()
            ));
        }
        let refused = &index.refused;
        for line in &refused.told {
            self.warn(format!("{}: refused: {line}", at.source.name));
        }
        if refused.count > refused.told.len() {
            let more = refused.count - refused.told.len();
            self.warn(format!("{}: refused: {more} more", at.source.name));
        }
        at.index = Some(index);
    }

    /// The pages of a source, from its root down, one level after the other.
    fn fetch_pages(&mut self, n: usize, at: &mut At<'_>) -> Result<(), Halt> {
        let mut pages = Pages::new(&self.module.parts);
        let (mut level, mut seen) = (vec![String::new()], 0);
        while !level.is_empty() {
            seen += level.len();
            if seen > MAX_PAGES {
                self.source_failed(n, format!("it has more than {MAX_PAGES} folders"));
                return Ok(());
            }
            let mut next = Vec::new();
            for folders in level.chunks(PAGES_AT_ONCE) {
                match self.some_pages(at, folders, &mut pages)? {
                    Ok(below) => next.extend(below),
                    Err(why) => {
                        self.source_failed(n, why);
                        return Ok(());
                    }
                }
            }
            level = next;
        }
        self.accept(n, at, pages.finish());
        Ok(())
    }

    /// One page that cannot be had is a source that cannot be read: what it lists would look as if it were gone.
    fn some_pages(
        &mut self,
        at: &At<'_>,
        folders: &[String],
        pages: &mut Pages,
    ) -> Result<Result<Vec<String>, String>, Halt> {
        let files: Vec<PathBuf> = (0..folders.len()).map(|n| at.own.join("pages").join(format!("{n}.html"))).collect();
        for file in &files {
            // Pages are made as they are asked for; what an earlier one held proves nothing.
            durable::remove(file)?;
        }
        let jobs = folders.iter().zip(&files);
        let jobs: Option<Vec<_>> =
            jobs.map(|(folder, file)| Some(self.index_job(page_url(at, folder)?, file.clone()))).collect();
        let Some(jobs) = jobs else { return Ok(Err("the URL of a folder cannot be made".to_owned())) };
        let reports = self.transfer(jobs, SyncMode::None)?;
        self.forget(reports.iter())?;
        let mut below = Vec::new();
        for ((report, folder), file) in reports.iter().zip(folders).zip(&files) {
            let place = || if folder.is_empty() { "its root".to_owned() } else { printable(folder).into_owned() };
            if let Some(why) = failure(report) {
                return Ok(Err(format!("{}: {why}", place())));
            }
            let bytes = match read_small(file) {
                Ok(bytes) => bytes,
                Err(fault) => return Ok(Err(format!("{}: {fault}", place()))),
            };
            match pages.take(folder, &bytes) {
                Ok(folders) => below.extend(folders),
                Err(bad) => return Ok(Err(format!("{}: {bad}", place()))),
            }
        }
        Ok(Ok(below))
    }

    fn index_job(&self, url: MirrorUrl, file: PathBuf) -> Job {
        Job { max_filesize: Some(Length(MAX_SENT)), ..self.job_of(vec![url], file) }
    }

    /// A transfer to a file that is ours.
    pub(super) fn job_of(&self, urls: Vec<MirrorUrl>, file: PathBuf) -> Job {
        let options = Options { existing: Existing::Overwrite, ..(*self.job.options).clone() };
        Job {
            urls,
            target: Target::File(file),
            digests: Vec::new(),
            expected: None,
            pieces: None,
            max_filesize: None,
            xml_signature: None,
            options: Arc::new(options),
        }
    }

    /// Runs transfers, each mirror asked once.
    pub(super) fn transfer(&mut self, jobs: Vec<Job>, sync: SyncMode) -> Result<Vec<Report>, Halt> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        for job in &jobs {
            if let Target::File(path) = &job.target {
                durable::create_folder(durable::folder_of(path), SHARED_FOLDER)?;
            }
        }
        let settings = Settings { rounds: Rounds::Once, sync, ..self.job.settings.clone() };
        let tell = &mut *self.tell;
        Ok(run(settings, jobs, self.stop, &mut |notice| tell(SyncNotice::Transfer(Box::new(notice))))?)
    }

    /// Takes transfers out of the state that need not be remembered.
    pub(super) fn forget<'r>(&self, reports: impl Iterator<Item = &'r Report>) -> Result<(), Halt> {
        let ids: Vec<_> = reports.map(|report| report.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let removed = StateFile::at(&self.job.settings.state_file).commit(|document| {
            ids.iter().for_each(|id| _ = document.remove(*id));
        });
        Ok(removed.map_err(EngineError::from)?)
    }
}

fn index_file(at: &At<'_>) -> PathBuf {
    at.own.join("index")
}

fn page_url(at: &At<'_>, folder: &str) -> Option<MirrorUrl> {
    if folder.is_empty() { Some(at.source.base.clone()) } else { at.source.url_of(&format!("{folder}/")) }
}

/// Why a transfer did not bring its file, for people.
pub(super) fn failure(report: &Report) -> Option<String> {
    match &report.ending {
        Ending::Complete { .. } | Ending::Unchanged { .. } => None,
        Ending::Failed { message, .. } => Some(message.clone()),
        Ending::Stopped { why, .. } => Some(why.clone()),
        Ending::Local(fault) => Some(fault.to_string()),
    }
}

/// The name of a file for people.
pub(super) fn shown(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}
