//! Digests of pieces, and the size that a file must have.

use std::sync::Arc;

use super::{document, queued, text_of};
use crate::core::digest::{Algorithm, Pieces};
use crate::core::pers_xfer::record::Record;
use crate::core::range::Length;
use crate::core::state::Document;

fn with(pieces: Pieces) -> Record {
    Record { expected: Some(Length(25)), pieces: Some(Arc::new(pieces)), ..queued(1, "x") }
}

fn three() -> Pieces {
    let bytes = (0..12).collect();
    Pieces::new(Algorithm::Crc32c, Length(10), bytes).expect("good")
}

#[test]
fn they_stand_in_one_element() {
    let mut written = Document::fresh();
    written.put(&with(three()));
    let text = text_of(&written);
    let element = "<pieces>\n                <algorithm>crc32c</algorithm>\n                <length>10</length>\n                \
                   <digests>000102030405060708090a0b</digests>\n            </pieces>";
    let squeezed = |t: &str| t.split_whitespace().collect::<String>();
    assert!(squeezed(&text).contains(&squeezed(element)), "{text}");
    assert!(text.contains("<expected_nbytes>25</expected_nbytes>"), "{text}");
}

#[test]
fn damaged_ones_are_dropped_and_the_transfer_stays() {
    let mut written = Document::fresh();
    let record = with(three());
    written.put(&record);
    let text = text_of(&written);
    for (good, bad) in [
        ("000102", "0001"),
        ("000102", "00010x"),
        ("<algorithm>crc32c", "<algorithm>crc99"),
        ("<length>10<", "<length>0<"),
        ("<digests>000102030405060708090a0b</digests>", ""),
    ] {
        assert!(text.contains(good), "{good}");
        let read = document(&text.replace(good, bad)).get(record.id);
        assert_eq!(read, Some(Record { pieces: None, ..record.clone() }), "{bad}");
    }
    let no_number = text.replace("<length>10<", "<length>ten<");
    assert!(Document::parse(no_number.as_bytes()).expect_err("damaged").expected.contains("<length>"));
}

#[test]
fn the_most_that_there_may_be_can_be_written_and_read() {
    let bytes = vec![0xab; Pieces::MAX_BYTES];
    let record = with(Pieces::new(Algorithm::Sha1, Length(1 << 18), bytes).expect("as many as may be"));
    let mut written = Document::fresh();
    written.put(&record);
    assert_eq!(written.fault(), None);
    assert_eq!(document(&text_of(&written)).get(record.id), Some(record));
}
