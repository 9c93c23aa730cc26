//! The library without the command line: a file goes to the first of some servers that takes it whole.
//!
//! `cargo run --example upload -- FILE PROTOCOL URL [ALTERNATE...]`

use std::io::Write;
use std::path::absolute;
use std::sync::Arc;

use anyhow::{Context, bail};
use persxfer::core::upload::{Protocol, UploadOptions};
use persxfer::core::url::MirrorUrl;
use persxfer::engine::{self, Ending, Job, Notice, Options, Rounds, Settings, Steer, Stop, SyncMode, Target};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(file), Some(word)) = (words.next(), words.next()) else { bail!("usage: FILE PROTOCOL URL...") };
    let protocol = Protocol::from_word(&word).context("boinc, put, put-range, tus or ietf")?;
    let urls: Vec<MirrorUrl> = words.map(|w| MirrorUrl::parse(&w)).collect::<Result<_, _>>()?;
    let protocols = urls.iter().map(|url| (url.clone(), protocol)).collect();
    let upload = UploadOptions { protocols, ..UploadOptions::default() };
    let job = Job {
        urls,
        target: Target::Source(absolute(&file)?),
        digests: Vec::new(),
        expected: None,
        pieces: None,
        max_filesize: None,
        xml_signature: None,
        options: Arc::new(Options { upload, ..Options::default() }),
    };
    let settings = Settings {
        state_file: absolute(format!("{file}.client_state.xml"))?,
        rounds: Rounds::UntilDone,
        max_time: None,
        max_transfers: 1,
        max_per_host: 1,
        limit_rate: None,
        sync: SyncMode::Full,
        prefs: Arc::default(),
        steer: Steer::new(),
    };

    let mut out = std::io::stdout();
    let reports = engine::run(settings, vec![job], &Stop::new(), &mut |notice| {
        // A reader that went away is no reason to stop an upload.
        let _ = match notice {
            Notice::Session { url, held, .. } => writeln!(out, "asking {url}, which confirmed {held} bytes"),
            Notice::Progress { held, .. } => writeln!(out, "{held} bytes confirmed"),
            Notice::Failed { url, failure, .. } => writeln!(out, "{url}: {failure}"),
            Notice::Remark { text, .. } => writeln!(out, "{text}"),
            Notice::Waiting { delay: Some(delay), .. } => writeln!(out, "waiting {} s", delay.as_secs()),
            _ => Ok(()),
        };
    })?;

    match &reports.first().context("one job, one report")?.ending {
        Ending::Complete { evidence } | Ending::Unchanged { evidence } => {
            writeln!(out, "{file} is at the server, on the evidence of its {}", evidence.word())?;
            Ok(())
        }
        other => bail!("{other:?}"),
    }
}
