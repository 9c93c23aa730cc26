//! The library without the command line: one file from several mirrors, with the engine's notices as they come.
//!
//! `cargo run --example download_with_mirrors -- FILE SHA-256 URL [MIRROR...]`

use std::io::Write;
use std::path::absolute;

use anyhow::{Context, bail};
use persxfer::core::backoff::Policy;
use persxfer::core::digest::Expected;
use persxfer::core::giveup::GiveUpFrom;
use persxfer::core::pers_xfer::record::Evidence;
use persxfer::core::time::Delay;
use persxfer::core::url::MirrorUrl;
use persxfer::engine::{
    self, Ending, Existing, FailedPart, Job, Mtime, Notice, Rounds, Settings, Stop, SyncMode, Target, Timeouts,
};
use persxfer::io::transport::{Credentials, NetSettings};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(file), Some(sum)) = (words.next(), words.next()) else { bail!("usage: FILE SHA-256 URL [MIRROR...]") };
    let job = Job {
        urls: words.map(|w| MirrorUrl::parse(&w)).collect::<Result<_, _>>()?,
        target: Target::File(absolute(&file)?),
        existing: Existing::Refuse,
        digests: vec![Expected::parse(&format!("sha-256={sum}"))?],
        require: Evidence::Digest,
        max_filesize: None,
        policy: Policy::default(),
        give_up: Delay::from_days(14),
        give_up_from: GiveUpFrom::LastProgress,
        retry_on: Vec::new(),
        failed_part: FailedPart::Keep,
        mtime: Mtime::Local,
    };
    let settings = Settings {
        state_file: absolute(format!("{file}.client_state.xml"))?,
        net: NetSettings::default(),
        credentials: Credentials::default(),
        timeouts: Timeouts { first_byte: Delay::from_secs(300), stall: Delay::from_secs(60), stall_rate: 10 },
        rounds: Rounds::UntilDone,
        max_time: None,
        max_transfers: 1,
        max_per_host: 1,
        limit_rate: None,
        sync: SyncMode::Full,
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
