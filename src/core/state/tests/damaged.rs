//! Nothing that is not whole is taken for a state file, and nothing makes the reader panic.

use super::{sample, text_of};
use crate::core::state::{Damage, Document, MAX_BYTES};
use proptest::prelude::*;

const SOUND: [&str; 5] = ["fresh", "waiting", "given_up", "boinc_client", "future"];

fn damage(text: &str) -> String {
    Document::parse(text.as_bytes()).expect_err("damaged").to_string()
}

#[test]
fn a_file_cut_anywhere_is_damaged() {
    for name in SOUND {
        let whole = sample(name).trim_end();
        for cut in 0..whole.len() {
            let read = Document::parse(&whole.as_bytes()[..cut]);
            assert!(read.is_err(), "{name} cut at {cut}");
        }
        assert!(Document::parse(whole.as_bytes()).is_ok(), "{name} without its last newline");
    }
}

#[test]
fn what_is_no_state_file_says_what_was_expected() {
    assert_eq!(damage(""), "line 1, column 1: expected <client_state>, found the end of the file");
    assert!(damage("\0\0\0\0").starts_with("line 1, column 1: expected text, found \"\\0"));
    assert!(damage("<html></html>").contains("expected <client_state>, found \"<html>"));
    assert!(damage("<client_state>\n<file_info>\n<name>x</na").starts_with("line 3, column 8"));
    assert!(
        damage("<client_state></client_state>\n<more/>").contains("line 2, column 1: expected the end of the file")
    );
    assert!(damage("<client_state>loose</client_state>").contains("expected an element or </client_state>"));
    assert!(damage("<!DOCTYPE client_state [<!ENTITY a \"b\">]><client_state/>").contains("expected <client_state>"));
}

#[test]
fn a_number_of_ours_that_is_none_is_damage() {
    let waiting = sample("waiting");
    let bad = waiting.replace("<held>20971520</held>\n                <total>", "<held>2097I520</held>\n<total>");
    assert!(damage(&bad).starts_with("line 57, column 17: expected a number in <held>, found \"<held>2097I520<"));
    let bad = waiting.replace("<generation>17</generation>", "<generation></generation>");
    assert!(damage(&bad).contains("a number in <generation>"));
    let bad = waiting.replace("<id>5be1f0a94c7d2e36</id>", "<id>5be1</id>");
    assert!(damage(&bad).contains("16 hex digits in <id>"));
    let lenient = waiting.replace("<num_retries>3</num_retries>", "<num_retries>three</num_retries>");
    assert!(Document::parse(lenient.as_bytes()).is_ok(), "BOINC's own are read as BOINC reads them");
}

#[test]
fn too_large_a_file_is_not_read() {
    assert_eq!(Damage::too_large(MAX_BYTES as u64), None);
    let damage = Damage::too_large(MAX_BYTES as u64 + 1).expect("too large");
    assert!(damage.to_string().contains("at most 1073741824 bytes, found 1073741825"));
}

#[test]
fn a_record_beyond_the_limits_is_refused_and_nothing_changes() {
    let mut read = Document::fresh();
    let mut record = super::queued(1, "x");
    record.name = "n".repeat(crate::core::state::MAX_TEXT + 1);
    read.put(&record);
    assert!(read.fault().is_some_and(|f| f.contains("bytes of text")));
    assert!(read.is_empty() && !read.is_changed());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Document::parse(&bytes);
    }

    /// A sample with some bytes replaced, taken out or doubled: damage, or a document that reads itself again.
    #[test]
    fn mangled_files_never_panic(which in 0_usize..5, at in any::<prop::sample::Index>(), len in 0_usize..40,
                                 new in prop_oneof!["[ -~]{0,6}", "</?[a-z]{1,4}/?>", "&[a-z#0-9]{0,4};?", "<!--|]]>|<!\\[CDATA\\["]) {
        let mut bytes = sample(SOUND[which]).as_bytes().to_vec();
        let at = at.index(bytes.len());
        let end = (at + len).min(bytes.len());
        bytes.splice(at..end, new.bytes());
        if let Ok(mut read) = Document::parse(&bytes) {
            let records: Vec<_> = read.transfers().collect();
            records.iter().for_each(|r| read.put(r));
            let again = Document::parse(text_of(&read).as_bytes());
            prop_assert_eq!(again.map(|d| d.transfers().collect::<Vec<_>>()), Ok(records));
        }
    }
}
