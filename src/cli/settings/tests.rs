//! From words typed to jobs and settings, and every mistake with its one line.

use clap::Parser;

use super::*;
use crate::cli::args::{Cli, Command};
use crate::cli::samples::url;
use crate::core::giveup::GiveUpFrom;
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::Length;
use crate::engine::{Existing, FailedPart, Mtime, Target};

const DIGEST: &str = "sha-256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn read_in(cwd: &Path, words: &[&str], stdin: &str) -> Result<Plan, String> {
    let cli = Cli::try_parse_from([&["persxfer", "download"], words].concat()).map_err(|e| e.to_string())?;
    let Command::Download(asked) = cli.command else { return Err("another command".into()) };
    let plan = plan(&asked, &Preferences::default(), Path::new("/s.xml"), cwd, &mut stdin.as_bytes());
    plan.map_err(|trouble| {
        assert_eq!(trouble.exit().code(), 2, "{trouble}");
        let text = trouble.to_string();
        assert!(!text.contains('\n'), "one line: {text}");
        text
    })
}

fn read(words: &str) -> Result<Plan, String> {
    read_in(Path::new("/nowhere"), &words.split_whitespace().collect::<Vec<_>>(), "")
}

fn seconds(plan: &Plan) -> [u64; 3] {
    let net = &plan.jobs[0].options.net;
    [net.connect_timeout, net.first_byte_timeout, net.stall_timeout].map(Delay::as_secs)
}

#[test]
fn what_holds_where_nothing_is_said() {
    let plan = read("http://h/f").expect("good");
    let s = &plan.settings;
    assert_eq!((s.max_transfers, s.max_per_host, s.limit_rate, s.max_time), (8, 2, None, None));
    assert_eq!((s.rounds, s.sync), (Rounds::UntilDone, crate::engine::SyncMode::Full));
    assert_eq!(seconds(&plan), [30, 300, 60]);
    let (job, options) = (&plan.jobs[0], &plan.jobs[0].options);
    assert_eq!((options.give_up, options.give_up_from), (Delay::from_days(14), GiveUpFrom::LastProgress));
    assert_eq!(
        (options.existing, options.failed_part, options.mtime),
        (Existing::Refuse, FailedPart::Keep, Mtime::Local)
    );
    assert_eq!((options.require, job.max_filesize, job.digests.len()), (Evidence::None, None, 0));
    assert_eq!(job.target, Target::File("/nowhere/f".into()));
    assert_eq!(plan.hooks, HookWords::default());
}

#[test]
fn every_flag_arrives() {
    let words = "-o x.bin -m http://b/f -m http://b/f http://a/f --remote-time --overwrite --require-evidence validator \
                 -j 3 --max-transfers-per-host 1 --limit-rate 2.5m --sync none --max-filesize 1g --min-delay 50ms --max-delay 1s \
                 --give-up 2h --give-up-from first-request --max-time 1d --retry-on 403,404 --connect-timeout 1s \
                 --first-byte-timeout 2s --stall-timeout 3s --once --delete-partial -c -L -C - --checksum";
    let plan = read(&format!("{words} {DIGEST}")).expect("good");
    let (s, job, options) = (&plan.settings, &plan.jobs[0], &plan.jobs[0].options);
    assert_eq!((s.max_transfers, s.max_per_host, s.limit_rate), (3, 1, Some(5 << 19)));
    assert_eq!(
        (s.rounds, s.sync, s.max_time),
        (Rounds::Once, crate::engine::SyncMode::None, Some(Delay::from_days(1)))
    );
    assert_eq!(seconds(&plan), [1, 2, 3]);
    assert_eq!(job.urls, [url("http://a/f"), url("http://b/f")], "each mirror once, the URL first");
    assert_eq!(
        (options.existing, options.failed_part, options.mtime),
        (Existing::Overwrite, FailedPart::Delete, Mtime::Remote)
    );
    assert_eq!((options.require, job.max_filesize, job.digests.len()), (Evidence::Validator, Some(Length(1 << 30)), 1));
    assert_eq!((options.give_up, options.give_up_from), (Delay::from_hours(2), GiveUpFrom::FirstRequest));
    assert_eq!(options.retry_on, [403, 404]);
    assert_eq!(job.target, Target::File("/nowhere/x.bin".into()));
}

#[test]
fn mistakes() {
    for (words, says) in [
        ("", "--input-file"),
        ("no-url", "no-url"),
        ("ftp://h/f", "ftp"),
        ("http://h/a http://h/b -o x", "--output"),
        ("http://h/a http://h/b -m http://h/c", "--mirror"),
        (&format!("http://h/a http://h/b --checksum {DIGEST}"), "--checksum"),
        ("http://h/a http://g/a", "/nowhere/a"),
        ("http://h/a --checksum sha-256=zz", "--checksum sha-256=zz"),
        ("http://h/a --checksum crc=00", "blake3"),
        ("http://h/a --give-up banana", "--give-up banana"),
        ("http://h/a --give-up 0s", "--give-up 0s"),
        ("http://h/a --stall-timeout 5", "--stall-timeout 5"),
        ("http://h/a --max-time x", "--max-time"),
        ("http://h/a --limit-rate fast", "--limit-rate"),
        ("http://h/a --max-filesize 1x", "--max-filesize"),
        ("http://h/a --min-delay 2s --max-delay 1s", "--min-delay --max-delay"),
        ("http://h/a --retry-policy fibonacci", "ladder"),
        ("http://h/a --retry-on 200", "--retry-on 200"),
        ("http://h/a --retry-on 503,", "--retry-on 503,"),
        ("http://h/a -C 100", "--continue-at 100"),
        ("http://h/a --cacert /no/such/ca.pem", "/no/such/ca.pem"),
        ("http://h/a --cacert /", "folder"),
        ("http://h/a --cookies /no/such/jar", "/no/such/jar"),
        ("http://h/a -i /no/such/list", "/no/such/list"),
        ("http://h/a --checksums /no/such/SHA256SUMS", "/no/such/SHA256SUMS"),
        ("http://h/a -H NoColon", "--header"),
        ("http://h/a -H Range:bytes=0-1", "--header Range"),
        ("http://h/a -u nobody", "--user"),
        ("http://h/a --resolve h:80", "--resolve"),
        ("http://h/a --proxy ftp://p", "--proxy"),
        ("http://h/a --on-complete 'x", "--on-complete"),
        ("http://h/a -o /dev/null", "device"),
        ("http://h/a -o -", "standard output"),
        ("http://h/a -j 0", "--max-transfers"),
        ("http://h/a --overwrite --no-clobber", "--no-clobber"),
        ("http://h/a -O -o x", "--output"),
        ("http://h/a -4 -6", "--ipv6"),
        ("http://h/a --connections 0", "--connections"),
        ("http://h/a -x 257", "--connections"),
    ] {
        let error = read(words).expect_err(words);
        let all = says.split(' ').all(|word| error.contains(word));
        assert!(all, "{words}: {error}");
    }
}

#[test]
fn secrets_are_not_repeated_in_mistakes() {
    for words in ["-H s3cret http://h/a", "-u s3cret http://h/a", "--proxy ftp://u:s3cret@p http://h/a"] {
        let error = read(words).expect_err(words);
        assert!(!error.contains("s3cret"), "{words}: {error}");
    }
}

#[test]
fn a_list_from_standard_input() {
    let list = format!("http://a/x\thttp://b/x\n  out=y.bin\n  checksum={DIGEST}\nhttp://a/z\n  dir=sub\n");
    let plan = read_in(Path::new("/nowhere"), &["-i", "-", "-d", "d", "http://a/w"], &list).expect("good");
    let targets: Vec<_> = plan.jobs.iter().map(|j| j.target.clone()).collect();
    assert_eq!(targets, ["/nowhere/d/w", "/nowhere/d/y.bin", "/nowhere/sub/z"].map(|p| Target::File(p.into())));
    assert_eq!(plan.jobs.iter().map(|j| (j.urls.len(), j.digests.len())).collect::<Vec<_>>(), [(1, 0), (2, 1), (1, 0)]);
}

#[test]
fn mistakes_in_a_list_name_their_line() {
    for (list, says) in [
        ("http://a/x\n  split=5\n", "line 2: the key"),
        ("# c\nnot-a-url\n", "line 2: "),
        ("http://a/x\n  checksum=md5=0\n", "line 1: checksum"),
        ("http://a/x\nhttp://b/x\n", "/nowhere/x"),
        ("", "nothing to download"),
    ] {
        let error = read_in(Path::new("/nowhere"), &["-i", "-"], list).expect_err(list);
        assert!(error.contains(says), "{list:?}: {error}");
    }
}

#[test]
fn checksums_are_found_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let sums = dir.path().join("SHA256SUMS");
    let digest = &DIGEST["sha-256=".len()..];
    std::fs::write(&sums, format!("{digest}  a.bin\n{digest} *./sub/b.bin\n")).expect("written");
    let sums = sums.to_string_lossy().into_owned();
    let plan =
        read_in(Path::new("/nowhere"), &["--checksums", &sums, "http://h/a.bin", "http://h/b.bin"], "").expect("good");
    assert!(plan.jobs.iter().all(|job| job.digests.len() == 1));
    let renamed = read_in(Path::new("/nowhere"), &["--checksums", &sums, "-o", "c.bin", "http://h/a.bin"], "")
        .expect("by the URL's name");
    assert_eq!(renamed.jobs[0].digests.len(), 1);
    let error = read_in(Path::new("/nowhere"), &["--checksums", &sums, "http://h/d.bin"], "").expect_err("not in it");
    assert!(error.contains("d.bin") && error.contains("SHA256SUMS"), "{error}");
    assert!(read_in(Path::new("/nowhere"), &["--checksums", &sums, "-J", "http://h/a.bin"], "").is_err());
}

#[test]
fn the_state_file_is_absolute_and_no_folder() {
    assert_eq!(state_file(Some(Path::new("s.xml")), Path::new("/nowhere")).expect("good"), Path::new("/nowhere/s.xml"));
    assert_eq!(state_file(Some(Path::new("/")), Path::new("/nowhere")).expect_err("a folder").exit().code(), 2);
    assert!(state_file(None, Path::new("/nowhere")).expect("good").ends_with("persxfer/client_state.xml"));
}

#[test]
fn a_metalink_from_standard_input() {
    let (_, hex) = DIGEST.split_once('=').expect("a digest");
    let file = |name: &str, inner: &str| format!("<file name=\"{name}\">{inner}<url>http://b/{name}</url></file>");
    let sums = format!("<size>7</size><hash type=\"sha-256\">{hex}</hash><hash type=\"md5\">{}</hash>", "0".repeat(32));
    let text = format!(
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">{}{}</metalink>",
        file("x/y.bin", &format!("{sums}<url priority=\"1\">http://a/y</url><url>ftp://c/y</url>")),
        file("z", ""),
    );
    let plan = read_in(Path::new("/nowhere"), &["-M", "-", "-d", "d", "http://a/w"], &text).expect("good");
    let targets: Vec<_> = plan.jobs.iter().map(|j| j.target.clone()).collect();
    assert_eq!(targets, ["/nowhere/d/w", "/nowhere/d/y.bin", "/nowhere/d/z"].map(|p| Target::File(p.into())));
    let job = &plan.jobs[1];
    assert_eq!(job.urls, [url("http://a/y"), url("http://b/x/y.bin")]);
    assert_eq!(job.expected, Some(Length(7)));
    assert_eq!(job.digests.iter().map(ToString::to_string).collect::<Vec<_>>(), [DIGEST], "the strongest is law");
    assert_eq!(plan.remarks, ["y.bin: left out 1 URL that http and https do not serve"]);
    assert_eq!((plan.jobs[0].expected, plan.jobs[0].digests.len()), (None, 0));
    let error = read_in(Path::new("/nowhere"), &["-M", "-", "-J"], &text).expect_err("names come from the metalink");
    assert!(error.contains("--remote-header-name"), "{error}");
}
