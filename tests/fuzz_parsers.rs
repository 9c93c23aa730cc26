//! Every parser that reads from a server, from disk or from a person, under inputs that nobody would write
//! (`docs/testing.md`): what it accepts keeps its promises, what it refuses is told in printable words, nothing panics or
//! hangs, and time grows with the input and not with its square.
//!
//! A short run always; `tests/long` makes ten million executions of each. The journal of part files is private, so that
//! its target stands beside the code.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]

#[path = "support/fuzz/mod.rs"]
mod fuzz;
#[path = "support/fuzz_targets/mod.rs"]
mod fuzz_targets;

use fuzz::{fuzz, fuzz_for, grows_evenly};

/// The test of a target.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            let target = fuzz_targets::named(stringify!($name));
            fuzz(&target);
            grows_evenly(&target);
        })*

        #[test]
        fn every_target_has_its_test() {
            let tested = [$(stringify!($name)),*];
            for target in fuzz_targets::ALL {
                assert!(tested.contains(&target.name), "{}", target.name);
            }
            assert_eq!(tested.len(), fuzz_targets::ALL.len());
        }
    };
}

targets!(
    answer_head,
    content_range,
    http_date,
    retry_after,
    etag,
    link,
    digest_fields,
    disposition,
    file_name,
    location,
    url,
    header_text,
    metalink,
    client_state,
    checksums,
    digest,
    netrc,
    cookies,
    units,
    retry_policy,
    pin,
    proxy,
    printable,
    upload_answers,
    profiles,
    manifest,
    gui_rpc,
    metrics_request,
    sync_config,
    sync_index,
    sync_manifest,
    sync_descriptors,
);

#[test]
#[should_panic(expected = "fails (its message is above) on b\"bug\"")]
fn a_planted_fault_is_found_and_made_small() {
    let run = |data: &[u8]| {
        assert!(!data.windows(3).any(|w| w == b"bug"), "there is one");
        0
    };
    fuzz_for(&fuzz::Target { run, words: &["bu", "g"], ..fuzz_targets::named("printable") }, 1_000_000);
}

#[test]
#[should_panic(expected = "out of proportion")]
fn a_planted_square_is_found() {
    let run = |data: &[u8]| {
        let n = data.len().min(1 << 18);
        (0..n).fold(0, |sum, i| (0..i / 16).fold(sum, |sum, j| std::hint::black_box(sum ^ j as u32)))
    };
    grows_evenly(&fuzz::Target { run, ..fuzz_targets::named("printable") });
}
