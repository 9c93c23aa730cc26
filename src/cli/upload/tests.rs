//! From words typed to the job of an upload, and every mistake with its one line and its exit status.

use clap::Parser;

use super::*;
use crate::cli::args::{Cli, Command};
use crate::cli::settings::{self, Plan};
use crate::core::time::Delay;
use crate::core::upload::ReadBack;
use crate::engine::Rounds;

/// A folder with a file of 20 bytes, and what else the words are about.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
    write("out.zip", "twenty bytes of data");
    write("a b%?.zip", "x");
    write("good.sig", "00ff\nAB12\n.\n");
    write("bad.sig", "00ff</xml_signature>");
    write("none.sig", " \n");
    std::fs::create_dir(dir.path().join("folder")).expect("made");
    dir
}

fn plan_in(cwd: &Path, words: &[&str]) -> Result<Plan, (u8, String)> {
    let cli = Cli::try_parse_from([&["persxfer", "upload"], words].concat()).map_err(|e| (2, e.to_string()))?;
    let Command::Upload(asked) = cli.command else { return Err((0, "another command".into())) };
    let plan = settings::plan_upload(&asked, &crate::core::prefs::Preferences::default(), Path::new("/s.xml"), cwd);
    plan.map_err(|trouble| {
        let text = trouble.to_string();
        assert!(!text.contains('\n') && !text.contains("s3cret"), "one line, no secret: {text}");
        (trouble.exit().code(), text)
    })
}

fn plan(words: &str) -> Result<Plan, (u8, String)> {
    let dir = folder();
    plan_in(dir.path(), &words.split_whitespace().collect::<Vec<_>>())
}

/// The URLs with the protocols that servers are spoken to by.
fn spoken(plan: &Plan) -> Vec<(String, &'static str)> {
    let job = &plan.jobs[0];
    let one = |url: &MirrorUrl| (url.secret_url().to_string(), job.options.upload.protocol_of(url).word());
    job.urls.iter().map(one).collect()
}

fn speaks(words: &str) -> Vec<(String, &'static str)> {
    spoken(&plan(words).expect(words))
}

#[test]
fn what_holds_where_nothing_is_said() {
    let dir = folder();
    let plan = plan_in(dir.path(), &["out.zip", "http://h/in/x"]).expect("good");
    let job = &plan.jobs[0];
    assert_eq!(job.target, Target::Source(dir.path().join("out.zip")));
    assert_eq!((job.max_filesize, job.xml_signature.as_ref()), (None, None));
    assert_eq!(job.options.upload, UploadOptions::default());
    assert_eq!((plan.settings.rounds, plan.settings.max_time), (Rounds::UntilDone, None));
    assert_eq!(job.options.give_up, Delay::from_days(14));
    assert!(!plan.dry_run);
}

#[test]
fn every_option_arrives() {
    let words = "--protocol tus --name other.zip --content-type application/zip --verify always --surplus done --keep-authority \
                 --interop final --max-nbytes 1k --give-up 2h --retry-policy tor --retry-on 403 --once --max-time 1d \
                 --limit-rate 1m -j 3 -k -4 --stall-timeout 3s --on-complete true --dry-run -H X-A:b -u me:s3cret \
                 --boinc-signature";
    let dir = folder();
    let signature = dir.path().join("good.sig").display().to_string();
    let urls = ["out.zip", "http://h/a", "boinc+http://h/b", "ietf+http://h/c", "put+http://h/d/"];
    let words: Vec<&str> = words.split_whitespace().chain([signature.as_str()]).chain(urls).collect();
    let plan = plan_in(dir.path(), &words).expect("good");
    let (job, upload) = (&plan.jobs[0], &plan.jobs[0].options.upload);
    assert_eq!((upload.name.as_deref(), upload.media_type.as_deref()), (Some("other.zip"), Some("application/zip")));
    assert_eq!((upload.read_back, upload.surplus), (ReadBack::Always, Surplus::Done));
    assert_eq!((upload.authority, upload.interop), (Authority::Ours, Interop::Final));
    assert_eq!((job.max_filesize, job.xml_signature.as_deref()), (Some(Length(1024)), Some("00ff\nAB12\n.\n")));
    let said: Vec<_> = spoken(&plan).into_iter().map(|(url, protocol)| format!("{protocol} {url}")).collect();
    assert_eq!(said, ["tus http://h/a", "boinc http://h/b", "ietf http://h/c", "put http://h/d/other.zip"]);
    assert_eq!((plan.settings.rounds, plan.settings.max_time), (Rounds::Once, Some(Delay::from_days(1))));
    assert_eq!((plan.settings.max_transfers, plan.settings.limit_rate), (3, Some(1 << 20)));
    assert_eq!((job.options.give_up, &job.options.retry_on), (Delay::from_hours(2), &vec![403]));
    assert_eq!((job.options.net.user.as_deref(), job.options.net.headers.len()), (Some("me:s3cret"), 1));
    assert!(plan.dry_run && plan.hooks.complete.is_some());
}

#[test]
fn the_limit_goes_by_the_name_that_other_programs_have_for_it() {
    let plan = plan("--max-overall-upload-limit 1m out.zip http://h/x").expect("good");
    assert_eq!(plan.settings.limit_rate, Some(1 << 20));
}

#[test]
fn protocols_come_from_the_prefix_then_the_option_then_the_url() {
    let of = |url: &str, protocol| vec![(url.to_owned(), protocol)];
    assert_eq!(speaks("out.zip http://h/x"), of("http://h/x", "put"));
    assert_eq!(speaks("out.zip http://h/cgi/file_upload_handler"), of("http://h/cgi/file_upload_handler", "boinc"));
    assert_eq!(speaks("out.zip put+http://h/file_upload_handler"), of("http://h/file_upload_handler", "put"));
    assert_eq!(speaks("--protocol ietf out.zip https://h/x"), of("https://h/x", "ietf"));
    assert_eq!(speaks("--protocol ietf out.zip TUS+https://h/x"), of("https://h/x", "tus"));
    let both = speaks("out.zip put-range+http://u:s3cret@h/a+b http://h/x http://h/x");
    assert_eq!(both, [("http://u:s3cret@h/a+b".into(), "put-range"), ("http://h/x".into(), "put")], "each once");
}

#[test]
fn a_folder_gets_the_name_where_the_url_is_the_place() {
    for (words, url) in [
        ("out.zip http://h", "http://h/out.zip"),
        ("out.zip http://h/d/", "http://h/d/out.zip"),
        ("out.zip http://h/d", "http://h/d"),
        ("out.zip put-range+http://h/d/", "http://h/d/out.zip"),
        ("--name y(1).zip out.zip http://h/d/", "http://h/d/y%281%29.zip"),
        ("out.zip http://h/d/?sig=s3cret", "http://h/d/?sig=s3cret"),
        ("out.zip tus+http://h/files/", "http://h/files/"),
        ("out.zip ietf+http://h/files/", "http://h/files/"),
        ("out.zip boinc+http://h/", "http://h/"),
    ] {
        assert_eq!(speaks(words)[0].0, url, "{words}");
    }
    let dir = folder();
    let plan = plan_in(dir.path(), &["a b%?.zip", "http://h/d/"]).expect("good");
    assert_eq!(spoken(&plan)[0].0, "http://h/d/a%20b%25%3F.zip");
}

#[test]
fn mistakes() {
    for (words, says) in [
        ("", "<FILE>"),
        ("out.zip", "<URL>..."),
        ("- http://h/x", "standard input cannot be sent"),
        ("out.zip no-url", "no-url"),
        ("out.zip ftp://h/f", "ftp"),
        ("out.zip rsync+http://me:s3cret@h/f", "rsync boinc put put-range tus ietf"),
        ("out.zip tus+ftp://h/f", "ftp"),
        ("out.zip tus+http://h/f put+http://h/f", "twice tus put"),
        ("--protocol gopher out.zip http://h/f", "gopher put-range"),
        ("--verify sometimes out.zip http://h/f", "sometimes always"),
        ("--interop 5 out.zip ietf+http://h/f", "5 final"),
        ("--surplus maybe out.zip boinc+http://h/f", "maybe conflict"),
        ("--name a/b out.zip http://h/f/", "--name a/b /"),
        ("--name .. out.zip http://h/f/", "--name folder"),
        ("--name x out.zip http://h/f", "--name ends in"),
        ("--name x out.zip ietf+http://h/f/", "--name ietf"),
        ("--content-type zip out.zip http://h/f", "--content-type application/zip"),
        ("--content-type a/b out.zip boinc+http://h/f", "--content-type boinc"),
        ("--verify never out.zip boinc+http://h/f", "--verify put-range tus"),
        ("--verify always out.zip ietf+http://h/f", "--verify put-range tus"),
        ("--surplus done out.zip http://h/f", "--surplus boinc"),
        ("--max-nbytes 1g out.zip http://h/f", "--max-nbytes boinc"),
        ("--boinc-signature good.sig out.zip http://h/f", "--boinc-signature boinc"),
        ("--keep-authority out.zip http://h/f", "--keep-authority tus"),
        ("--interop 6 out.zip http://h/f", "--interop ietf"),
        ("--boinc-signature /no/such out.zip boinc+http://h/f", "/no/such can be read"),
        ("--max-nbytes 1x out.zip boinc+http://h/f", "--max-nbytes 64k"),
        ("--max-nbytes 19 out.zip boinc+http://h/f", "--max-nbytes 19 20 bytes"),
        ("--give-up 0s out.zip http://h/f", "--give-up"),
        ("-C 100 out.zip http://h/f", "--continue-at"),
        ("-H NoColon out.zip http://h/f", "--header"),
        ("-u nobody out.zip http://h/f", "--user"),
        // What only a download has a use for.
        ("-o x out.zip http://h/f", "-o"),
        ("-x 4 out.zip http://h/f", "-x"),
        ("--overwrite out.zip http://h/f", "--overwrite"),
        ("--remote-time out.zip http://h/f", "--remote-time"),
        ("--checksum md5=00 out.zip http://h/f", "--checksum"),
        ("--max-filesize 1g out.zip http://h/f", "--max-filesize"),
        ("--sync none out.zip http://h/f", "--sync"),
        ("--delete-partial out.zip http://h/f", "--delete-partial"),
        ("-m http://h/g out.zip http://h/f", "-m"),
        ("--max-overall-download-limit 1m out.zip http://h/f", "--max-overall-download-limit"),
        ("--on-download-complete x out.zip http://h/f", "--on-download-complete"),
    ] {
        let (exit, error) = plan(words).expect_err(words);
        assert_eq!(exit, 2, "{words}: {error}");
        assert!(says.split(' ').all(|word| error.contains(word)), "{words}: {error}");
    }
}

#[test]
fn a_signature_is_hex_and_nothing_that_could_leave_its_element() {
    let dir = folder();
    for (file, good) in [("good.sig", true), ("bad.sig", false), ("none.sig", false), ("folder", false)] {
        let path = dir.path().join(file).display().to_string();
        let read = plan_in(dir.path(), &["--boinc-signature", &path, "out.zip", "boinc+http://h/f"]);
        assert_eq!(read.is_ok(), good, "{file}");
        assert!(good || read.is_err_and(|(exit, text)| exit == 2 && text.contains(file)), "{file}");
    }
}

#[test]
fn a_file_that_cannot_be_sent_is_trouble_here() {
    let dir = folder();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    for (file, says) in
        [("missing.zip", "missing.zip: no such file"), ("folder", "it is a folder"), ("pipe", "no regular file")]
    {
        let (exit, error) = plan_in(dir.path(), &[file, "http://h/f"]).expect_err(file);
        assert_eq!(exit, 5, "{error}");
        assert!(error.to_lowercase().contains(says), "{error}");
    }
}
