//! Object stores on the command line, without a server: where an object is, whose keys are used, what is told and what is kept.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;

use support::{Px, World, noise};

const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI-s3cret";

/// A world with a file to send.
fn world() -> World {
    let w = World::new();
    fs::write(w.path("f 1.zip"), &noise(1, 3000)[..]).unwrap();
    w
}

fn with_keys(px: Px<'_>) -> Px<'_> {
    px.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET)
}

/// Where a dry run would send it.
#[track_caller]
fn goes_to(px: Px<'_>) -> String {
    let ran = px.run();
    ran.exits(0).hides("s3cret");
    let line = ran.stdout.lines().find(|line| line.contains(" to ")).expect("it says where to").trim();
    line.to_owned()
}

#[test]
fn an_object_is_named_in_many_ways() {
    let w = world();
    for (words, url) in [
        (&["s3://bucket/k"][..], "https://bucket.s3.us-east-1.amazonaws.com/k"),
        (&["S3://bucket/a%20/"], "https://bucket.s3.us-east-1.amazonaws.com/a%2520/f%201.zip"),
        (&["s3://bucket"], "https://bucket.s3.us-east-1.amazonaws.com/f%201.zip"),
        (&["--name", "g", "s3://bucket/in/"], "https://bucket.s3.us-east-1.amazonaws.com/in/g"),
        (&["--region", "eu-central-1", "s3://b.with.dots/k"], "https://s3.eu-central-1.amazonaws.com/b.with.dots/k"),
        (&["--endpoint-url", "http://h:9000", "s3://bucket/k"], "http://h:9000/bucket/k"),
        (&["--endpoint-url", "https://h/sub", "s3://bucket/k"], "https://h/sub/bucket/k"),
        (&["s3+http://h:9000/bucket/d/"], "http://h:9000/bucket/d/f%201.zip"),
        (&["--protocol", "s3", "http://h:9000/bucket"], "http://h:9000/bucket/f%201.zip"),
        (&["s3+https://bucket.s3.eu-west-1.amazonaws.com/k"], "https://bucket.s3.eu-west-1.amazonaws.com/k"),
        (&["--protocol", "s3", "https://h/b/k?X-Amz-Signature=s3cret"], "https://h/b/k?X-Amz-Signature=***"),
    ] {
        let words = [&["upload", "--dry-run", "f 1.zip"], words].concat();
        assert_eq!(goes_to(with_keys(w.px(words.iter().copied()))), format!("to {url} by s3"), "{words:?}");
    }
    assert!(!w.state.exists(), "nothing was written");
}

#[test]
fn keys_in_a_url_are_refused_and_not_repeated() {
    let w = world();
    for words in [
        &["s3://me:s3cret@bucket/k"][..],
        &["s3+https://me:s3cret@h/b/k"],
        &["s3+https://me:s3cret@h/b/k?X-Amz-Signature=s3cret"],
        &["--endpoint-url", "http://me:s3cret@h", "s3://bucket/k"],
    ] {
        let ran = with_keys(w.px([&["upload", "f 1.zip"], words].concat())).run();
        ran.complains_in_one_line(2, "keys are not written into the URL").hides("s3cret");
    }
    assert!(!w.state.exists(), "nothing was written");
}

#[test]
fn the_environment_and_profiles_say_where_and_who() {
    let w = world();
    let aws = w.folder("home/.aws");
    fs::write(aws.join("credentials"), format!("[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"))
        .unwrap();
    fs::write(
        aws.join("config"),
        "[profile lab]\nregion = eu-west-1\n[profile near]\nendpoint_url = http://near:9000\n",
    )
    .unwrap();
    let dry = |words: &[&str]| w.px([&["upload", "--dry-run"], words, &["f 1.zip", "s3://bucket/k"]].concat());
    assert_eq!(goes_to(dry(&["--profile", "lab"])), "to https://bucket.s3.eu-west-1.amazonaws.com/k by s3");
    assert_eq!(goes_to(dry(&[]).env("AWS_PROFILE", "lab")), "to https://bucket.s3.eu-west-1.amazonaws.com/k by s3");
    let near = || with_keys(dry(&[])).env("AWS_PROFILE", "near");
    assert_eq!(goes_to(near()), "to http://near:9000/bucket/k by s3");
    assert_eq!(goes_to(near().env("AWS_ENDPOINT_URL", "http://all")), "to http://all/bucket/k by s3");
    let both = near().env("AWS_ENDPOINT_URL", "http://all").env("AWS_ENDPOINT_URL_S3", "http://s3");
    assert_eq!(goes_to(both), "to http://s3/bucket/k by s3");
    let typed =
        with_keys(dry(&["--endpoint-url", "http://typed", "--region", "r"])).env("AWS_ENDPOINT_URL_S3", "http://s3");
    assert_eq!(goes_to(typed), "to http://typed/bucket/k by s3");
    dry(&["--profile", "near"]).run().complains_in_one_line(5, "AWS_ACCESS_KEY_ID");
    dry(&[]).env("AWS_ACCESS_KEY_ID", KEY).run().complains_in_one_line(5, "AWS_SECRET_ACCESS_KEY is not");
    dry(&[])
        .env("AWS_ENDPOINT_URL", "http://me:s3cret@h")
        .run()
        .hides("s3cret")
        .complains_in_one_line(2, "not written");
    fs::remove_file(aws.join("credentials")).unwrap();
    fs::create_dir(aws.join("credentials")).unwrap();
    dry(&[]).run().complains_in_one_line(5, ".aws/credentials");
}

#[test]
fn what_is_entered_finds_its_keys_when_it_is_run_and_keeps_none() {
    let w = world();
    let words =
        ["add", "upload", "--region", "eu-x-1", "--endpoint-url", "http://127.0.0.1:9", "f 1.zip", "s3://bucket/in/"];
    w.px(words).run().exits(0).says(&["added"]);
    with_keys(w.px(words)).run().exits(0).says(&["is there already"]);
    let state = w.state_text();
    assert!(state.contains("http://127.0.0.1:9/bucket/in/f%201.zip") && state.contains("eu-x-1"), "{state}");
    assert!(!state.contains(KEY) && !state.contains(SECRET), "{state}");
    let shown = w.px(["state", "show", "f 1.zip"]).run();
    assert!(shown.stdout.contains("http://127.0.0.1:9/bucket/in/f%201.zip, by s3"), "{shown}");
    w.px(["run", "--once"]).run().exits(5).says(&["AWS_ACCESS_KEY_ID"]);
}

#[test]
fn a_stopped_upload_says_how_it_goes_on_without_a_secret() {
    let w = world();
    let words = [
        "upload",
        "--once",
        "--profile",
        "lab",
        "--region",
        "eu-x-1",
        "--endpoint-url",
        "http://127.0.0.1:9",
        "f 1.zip",
        "s3://bucket/k",
    ];
    let aws = w.folder("home/.aws");
    fs::write(aws.join("credentials"), format!("[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"))
        .unwrap();
    let ran = w.px(words).run();
    ran.exits(4)
        .hides("s3cret")
        .says(&["persxfer upload --profile lab --region eu-x-1 --endpoint-url http://127.0.0.1:9 --once"]);
    assert!(ran.stderr.contains("'f 1.zip' s3://bucket/k"), "{ran}");
    assert!(!w.state_text().contains(SECRET));
}
