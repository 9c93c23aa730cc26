//! The command that continues a run: what was typed, quoted for a shell, and without a secret in it.

use std::path::Path;

use clap::{ArgAction, ArgMatches, CommandFactory, parser::ValueSource};

use crate::cli::args::Cli;
use crate::cli::foreign::printable;
use crate::core::shell::quote;

/// What stands in the place of a secret.
const HIDDEN: &str = "<hidden>";

/// The command line, and whether something in it is hidden and must be typed again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resume {
    /// Ready for a shell.
    pub(crate) line: String,
    /// It holds the mark of a secret.
    pub(crate) hides: bool,
}

/// From the matches of the program: of its command `download`, `upload` or `run`, whichever was given.
pub(crate) fn command(matches: &ArgMatches) -> Resume {
    let Some((name, matches)) = matches.subcommand() else { return Resume::default() };
    let mut cli = Cli::command();
    cli.build();
    let mut words = vec!["persxfer".to_owned(), name.to_owned()];
    let mut places = Vec::new();
    for arg in cli.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments) {
        let id = arg.get_id().as_str();
        // An argument that is unknown to the matches, such as --help, was not typed.
        let typed = matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine);
        if !typed || arg.is_hide_set() {
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten().map(|v| hide(id, &v.to_string_lossy()));
        match (arg.get_long(), arg.get_action()) {
            (None, _) => places.extend(values),
            (Some(long), ArgAction::SetTrue) => words.push(format!("--{long}")),
            (Some(long), ArgAction::Count) => words.extend((0..matches.get_count(id)).map(|_| format!("--{long}"))),
            (Some(long), _) if arg.is_require_equals_set() => words.extend(values.map(|v| format!("--{long}={v}"))),
            (Some(long), _) => words.extend(values.flat_map(|v| option(long, v))),
        }
    }
    words.extend(places.iter().map(|word| if word.starts_with('-') { format!("./{word}") } else { word.clone() }));
    let hides = words.iter().any(|w| w.contains(HIDDEN));
    let line = words.iter().map(|w| quote(&printable(w))).collect::<Vec<_>>().join(" ");
    Resume { line, hides }
}

/// The command that has a suspended transfer go on.
pub(crate) fn of_transfer(name: &str, state_file: Option<&Path>) -> String {
    let mut words = vec!["persxfer".to_owned(), "resume".to_owned()];
    words.extend(state_file.into_iter().flat_map(|path| option("state-file", path.to_string_lossy().into_owned())));
    words.extend(name.starts_with('-').then(|| "--".to_owned()));
    words.push(name.to_owned());
    words.iter().map(|word| quote(&printable(word))).collect::<Vec<_>>().join(" ")
}

/// An option with its value, in one word where the value could be taken for an option.
fn option(long: &str, value: String) -> Vec<String> {
    if value.starts_with('-') { vec![format!("--{long}={value}")] } else { vec![format!("--{long}"), value] }
}

/// The value without what is secret in it.
fn hide(id: &str, value: &str) -> String {
    match id {
        "headers" => match value.split_once(':') {
            Some((name, _)) => format!("{name}: {HIDDEN}"),
            None => HIDDEN.into(),
        },
        "user" => HIDDEN.into(),
        // The path of a file, whatever it looks like.
        "file" => value.to_owned(),
        _ => hide_in_url(value).unwrap_or_else(|| value.to_owned()),
    }
}

/// A URL without user-info and query values; `None` where there is nothing to hide.
fn hide_in_url(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    if user.is_none() && query.is_none() {
        return None;
    }
    let user = user.map(|_| format!("{HIDDEN}@")).unwrap_or_default();
    let query =
        query.map(|q| format!("?{}", q.split('&').map(hide_pair).collect::<Vec<_>>().join("&"))).unwrap_or_default();
    Some(format!("{scheme}://{user}{host}{path}{query}"))
}

fn hide_pair(pair: &str) -> String {
    pair.split_once('=').map_or_else(|| HIDDEN.into(), |(key, _)| format!("{key}={HIDDEN}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resumed(words: &[&str]) -> Resume {
        let matches =
            Cli::command().try_get_matches_from([&["persxfer"], words].concat()).expect("a good command line");
        command(&matches)
    }

    #[test]
    fn what_was_typed_comes_back() {
        for (typed, line) in [
            (&["download", "http://h/f"][..], "persxfer download http://h/f"),
            (
                &["--state-file", "s.xml", "download", "-q", "-o", "it's here", "http://h/f"],
                "persxfer download --output 'it'\\''s here' --state-file s.xml --quiet http://h/f",
            ),
            (
                &["download", "-c", "-L", "-C", "-", "-O", "http://h/f", "-vv"],
                "persxfer download --remote-name --verbose --verbose http://h/f",
            ),
            (
                &["download", "-m", "http://b/f", "-m", "http://c/f", "http://a/f", "-j", "3"],
                "persxfer download --mirror http://b/f --mirror http://c/f --max-transfers 3 http://a/f",
            ),
            (&["download", "-i-", "--progress", "json"], "persxfer download --input-file=- --progress json"),
            (&["run"], "persxfer run"),
            (&["run", "--gui-rpc", "--metrics", "9"], "persxfer run --gui-rpc=127.0.0.1:31416 --metrics 9"),
            (
                &[
                    "-q",
                    "run",
                    "--state-file",
                    "my state.xml",
                    "-j3",
                    "--limit-rate",
                    "2m",
                    "--once",
                    "--on-complete",
                    "x {path}",
                ],
                "persxfer run --max-transfers 3 --limit-rate 2m --once --on-complete 'x {path}' --state-file 'my state.xml' --quiet",
            ),
        ] {
            assert_eq!(resumed(typed), Resume { line: line.into(), hides: false });
        }
    }

    #[test]
    fn an_upload_comes_back_whole_and_without_its_secrets() {
        let got = resumed(&[
            "upload",
            "-q",
            "--protocol",
            "tus",
            "--name",
            "my file",
            "--keep-authority",
            "--boinc-signature",
            "run.sig",
            "--verify=always",
            "--once",
            "-u",
            "me:s3cret",
            "--",
            "-out.zip",
            "tus+https://me:s3cret@h/files/?sig=s3cret",
            "put-range+http://b/in/",
        ]);
        assert!(got.hides);
        insta::assert_snapshot!(got.line, @"persxfer upload --protocol tus --name 'my file' --verify always --boinc-signature run.sig --keep-authority --user '<hidden>' --once --quiet ./-out.zip 'tus+https://<hidden>@h/files/?sig=<hidden>' put-range+http://b/in/");
        assert_eq!(resumed(&["upload", "a://b?c=d", "http://h/"]).line, "persxfer upload 'a://b?c=d' http://h/");
    }

    #[test]
    fn a_transfer_is_resumed_by_its_name_in_its_state_file() {
        assert_eq!(of_transfer("a b~2", Some(Path::new("s.xml"))), "persxfer resume --state-file s.xml 'a b~2'");
        assert_eq!(of_transfer("-x", None), "persxfer resume -- -x");
    }

    #[test]
    fn secrets_do_not() {
        let got = resumed(&[
            "download",
            "-HAuthorization: Bearer s3cret",
            "--header=X-Key:s3cret",
            "-u",
            "me:s3cret",
            "--proxy",
            "socks5://p:s3cret@proxy:1080",
            "https://me:s3cret@h:81/f;v=1?sig=s3cret&s3cret#x",
            "http://h/g?k=s3cret",
        ]);
        assert!(got.hides);
        insta::assert_snapshot!(got.line, @"persxfer download --header 'Authorization: <hidden>' --header 'X-Key: <hidden>' --user '<hidden>' --proxy 'socks5://<hidden>@proxy:1080' 'https://<hidden>@h:81/f;v=1?sig=<hidden>&<hidden>' 'http://h/g?k=<hidden>'");
    }
}
