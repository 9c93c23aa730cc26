//! What passed by day, kept in the file.

use crate::core::civil::Day;
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::PerDirection;
use crate::core::schedule::History;
use crate::core::state::Document;

#[test]
fn what_passed_by_day_is_kept_and_what_is_too_old_is_not() {
    let mut document = Document::fresh();
    let mut more = History::default();
    more.count(Day(20_000), Direction::Download, 1 << 40);
    more.count(Day(20_000), Direction::Upload, 3);
    more.count(Day(19_000), Direction::Upload, 3);
    document.count(&more, Day(20_001));
    assert!(document.is_changed());
    let mut read = Document::parse(&document.to_bytes()).expect("what was written");
    assert_eq!(read.history().days().collect::<Vec<_>>(), [(Day(20_000), PerDirection { up: 3, down: 1 << 40 })]);
    read.count(&History::default(), Day(20_001));
    assert!(!read.is_changed(), "nothing is new");
    read.count(&more, Day(20_001));
    assert_eq!(read.history().of(Day(20_000)).up, 6, "what two processes counted is added up");
    let text = "<client_state><persxfer><day><when>x</when></day><day><when>5</when><up>-1</up></day></persxfer></client_state>";
    assert!(Document::parse(text.as_bytes()).expect("a file").history().is_empty());
}
