//! The library without the command line: one file from several mirrors, with the engine's notices as they come.
//!
//! `cargo run --example download_with_mirrors -- FILE SHA-256 URL [MIRROR...]`

use std::io::Write;
use std::path::absolute;
use std::sync::Arc;

use anyhow::{Context, bail};
use persxfer::core::digest::Expected;
use persxfer::core::pers_xfer::record::Evidence;
use persxfer::core::url::MirrorUrl;
use persxfer::engine::{self, Ending, Job, Notice, Options, Rounds, Settings, Steer, Stop, SyncMode, Target};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(file), Some(sum)) = (words.next(), words.next()) else { bail!("usage: FILE SHA-256 URL [MIRROR...]") };
    let job = Job {
        urls: words.map(|w| MirrorUrl::parse(&w)).collect::<Result<_, _>>()?,
        target: Target::File(absolute(&file)?),
        digests: vec![Expected::parse(&format!("sha-256={sum}"))?],
        expected: None,
        pieces: None,
        max_filesize: None,
        xml_signature: None,
        options: Arc::new(Options { require: Evidence::Digest, ..Options::default() }),
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
        // A reader that went away is no reason to stop a download.
        let _ = match notice {
            Notice::Session { url, held, .. } => writeln!(out, "asking {url}, {held} bytes held"),
            Notice::Failed { url, failure, .. } => writeln!(out, "{url}: {failure}"),
            Notice::Waiting { delay: Some(delay), .. } => writeln!(out, "waiting {} s", delay.as_secs()),
            _ => Ok(()),
        };
    })?;

    match &reports.first().context("one job, one report")?.ending {
        Ending::Complete { evidence } | Ending::Unchanged { evidence } => {
            writeln!(out, "{file} is complete, on the evidence of its {}", evidence.word())?;
            Ok(())
        }
        other => bail!("{other:?}"),
    }
}
