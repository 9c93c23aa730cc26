//! The samples read as what they say.

use super::{document, named, queued, sample, text_of};
use crate::core::file_xfer::dossier::Ranges;
use crate::core::pers_xfer::record::{Direction, Evidence, Standing, Status, XferId};
use crate::core::range::Length;
use crate::core::state::{Document, Found, Kind};
use crate::core::time::{Delay, Epoch};
use crate::core::verdict::Class;

#[test]
fn what_we_wrote_is_rewritten_to_the_byte() {
    for name in ["fresh", "waiting", "given_up", "future"] {
        let read = document(sample(name));
        assert_eq!(text_of(&read), sample(name), "{name}, untouched");
        assert_eq!(read.kind(), Kind::Ours, "{name}");
    }
    for name in ["waiting", "given_up"] {
        let mut read = document(sample(name));
        let records: Vec<_> = read.transfers().collect();
        records.iter().for_each(|r| read.put(r));
        assert_eq!(text_of(&read), sample(name), "{name}, every record put again");
    }
}

#[test]
fn a_fresh_document_is_the_fresh_sample() {
    let mut fresh = Document::fresh();
    fresh.next_generation();
    assert_eq!(text_of(&fresh), sample("fresh"));
    assert!(fresh.is_empty() && !fresh.is_changed());
}

#[test]
fn waiting_downloads() {
    let read = document(sample("waiting"));
    assert_eq!((read.len(), read.generation(), read.format()), (2, 17, 1));
    let image = named(&read, "image.iso");
    assert_eq!(image.id, XferId(0x5be1_f0a9_4c7d_2e36));
    assert_eq!((image.status, image.num_retries, image.sessions), (Status::Pending, 3, 7));
    assert_eq!(image.next_request_time, Some(Epoch::from_micros(1_767_226_211_750_000)));
    assert_eq!(image.patience_used, Delay::from_secs(7205));
    assert_eq!(image.mirrors[1].url.secret_url().as_str(), "https://m2.example/image.iso?a=1&b=2");
    assert!(image.mirrors[0].served && image.mirrors[0].not_before.is_some());
    assert_eq!(
        image.mirrors[2].standing,
        Standing::Refused { class: Class::Denied, why: "the server answered 403 Forbidden".to_owned() }
    );
    assert_eq!(image.dossier.part.total, Some(Length(1 << 31)));
    assert_eq!(image.dossier.part.validators[0].1.etag.as_ref().map(|t| t.opaque.as_str()), Some("\"5f1-63a9c0\""));
    assert_eq!(image.dossier.origins[0].ranges, Ranges::Work);
    assert_eq!(image.history.len(), 2);
    assert_eq!(read.hosts()[0].closed_until, Some(Epoch::from_secs(1_767_226_800)));
    let notes = named(&read, "notes.txt");
    assert_eq!((notes.nbytes, notes.max_nbytes), (None, Some(Length(1 << 20))));
    assert_eq!((notes.digests.len(), notes.first_request_time), (1, None));
}

#[test]
fn given_up_and_done() {
    let read = document(sample("given_up"));
    let survey = named(&read, "survey.csv");
    assert!(matches!(survey.status, Status::Failed { code: -182, ref message } if message.starts_with("gave up")));
    assert_eq!((survey.num_retries, survey.confirmed), (91, Length(1 << 20)));
    let results = named(&read, "results.tar");
    assert_eq!(results.status, Status::Done);
    assert_eq!(results.finished.map(|f| (f.evidence, f.inode)), Some((Evidence::Validator, 1_048_601)));
}

#[test]
fn damage_is_named_by_its_place() {
    let damage = Document::parse(sample("damaged").as_bytes()).expect_err("damaged");
    assert_eq!((damage.line, damage.column), (15, 51));
    assert_eq!(damage.expected, "the end of \"</download_ur\\n\"");
}

#[test]
fn a_boinc_clients_file() {
    let read = document(sample("boinc_client"));
    assert_eq!((read.kind(), read.len()), (Kind::Foreign, 5));
    let basis = named(&read, "basis_0042.dat");
    assert_eq!((basis.direction, basis.status, basis.num_retries), (Direction::Download, Status::Pending, 3));
    assert_eq!((basis.mirrors.len(), basis.digests.len()), (2, 1));
    let run = named(&read, "run_0042_1");
    assert_eq!((run.direction, run.status, run.mirrors.len()), (Direction::Upload, Status::Pending, 1));
    let odd = named(&read, "R&D_input");
    assert_eq!((odd.nbytes, odd.num_retries, odd.mirrors.len()), (Some(Length(1500)), 8, 1));
    assert_eq!((odd.first_request_time, odd.next_request_time), (Some(Epoch::from_secs(1_767_218_400)), None));
    let lost = named(&read, "lost.dat");
    assert_eq!(lost.status, Status::Failed { code: -224, message: "permanent HTTP error".to_owned() });
    assert_eq!(read.find("lost.dat"), Found::One(lost.id));
}

#[test]
fn identities_of_a_boinc_client_are_the_same_at_every_reading() {
    let ids = |text: &str| document(text).ids().collect::<Vec<_>>();
    let all = ids(sample("boinc_client"));
    assert_eq!(all, ids(sample("boinc_client")));
    let fewer = sample("boinc_client").replace("<name>basis_1.02_x86_64-pc-linux-gnu</name>", "<name>other</name>");
    assert_eq!(all[1..], ids(&fewer)[1..], "another file's going changes no identity");
}

#[test]
fn names_that_two_projects_share_are_ambiguous() {
    let file = |name| format!("<file><name>{name}</name></file>");
    let project = "<project></project>";
    let text = format!("<client_state>{project}{}{}{project}{0}</client_state>", file("a"), file("b"));
    let read = document(&text);
    assert!(matches!(read.find("a"), Found::Many(ids) if ids.len() == 2));
    assert!(matches!(read.find("b"), Found::One(_)));
    assert_eq!(read.find("c"), Found::None);
}

#[test]
fn a_transfer_is_found_by_name_path_and_identity() {
    let read = document(sample("waiting"));
    let id = XferId(0xc01d_3f5a_77e9_b802);
    for word in ["notes.txt", "/home/ada/notes.txt", "c01d3f5a77e9b802"] {
        assert_eq!(read.find(word), Found::One(id), "{word}");
    }
    assert_eq!(read.at_path("/home/ada/notes.txt".as_ref()), [id]);
    assert_eq!(read.find("/home/ada/"), Found::None);
}

#[test]
fn names_are_unique() {
    let mut read = document(sample("waiting"));
    assert_eq!(read.unique_name("new.txt"), "new.txt");
    for (id, expected) in [(1, "notes.txt~2"), (2, "notes.txt~3")] {
        let name = read.unique_name("notes.txt");
        assert_eq!(name, expected);
        read.put(&queued(id, &name));
    }
    assert_eq!(read.unique_name(" a\u{1}b\n"), "a_b");
    assert_eq!(read.unique_name(""), "unnamed");
}

#[test]
fn a_record_put_as_it_was_is_no_change() {
    let mut read = document(sample("waiting"));
    let mut notes = named(&read, "notes.txt");
    read.put(&notes);
    assert!(!read.is_changed());
    notes.num_retries += 1;
    read.put(&notes);
    assert!(read.is_changed());
}

#[test]
fn a_removed_transfer_is_gone() {
    let mut read = document(sample("waiting"));
    let Found::One(id) = read.find("image.iso") else { panic!("there") };
    assert!(read.remove(id) && !read.remove(id));
    assert_eq!((read.len(), read.find("image.iso"), read.get(id)), (1, Found::None, None));
    let again = document(&text_of(&read));
    assert_eq!(again.transfers().map(|r| r.name).collect::<Vec<_>>(), ["notes.txt"]);
}

#[test]
fn a_handwritten_file_becomes_ours() {
    let mut read =
        document("<client_state>\n<file_info><name>x</name><url>http://h.example/x</url></file_info></client_state>");
    assert_eq!((read.kind(), read.generation()), (Kind::Other, 0));
    let x = named(&read, "x");
    read.put(&x);
    let again = document(&text_of(&read));
    assert_eq!((again.kind(), again.get(x.id)), (Kind::Ours, Some(x)));
    assert!(text_of(&read).contains("<project>"));
}

#[test]
fn a_copied_identity_hides_no_transfer() {
    let one =
        |name| format!("<file_info><name>{name}</name><persxfer><id>00000000000000aa</id></persxfer></file_info>");
    let read = document(&format!("<client_state>{}{}</client_state>", one("a"), one("b")));
    assert_eq!(read.len(), 2);
    assert_eq!(named(&read, "a").id, XferId(0xaa));
    assert_ne!(named(&read, "b").id, XferId(0xaa));
}

#[test]
fn an_xml_declaration_is_accepted_and_not_written() {
    let text = format!("\u{feff}<?xml version=\"1.0\"?>\n<!-- hello -->\n{}<!-- bye -->\n", sample("fresh"));
    let rewritten = text_of(&document(&text));
    assert!(rewritten.starts_with("<client_state>\n<persxfer>"));
    assert!(rewritten.contains("<!-- hello -->") && rewritten.contains("<!-- bye -->\n</client_state>"));
}

#[test]
fn bytes_that_are_no_utf8_are_read_from_a_boinc_client_only() {
    let latin1 =
        |text: &str| text.replace("Beta", "B?ta").bytes().map(|b| if b == b'?' { 0xe9 } else { b }).collect::<Vec<_>>();
    let foreign = Document::parse(&latin1(&sample("boinc_client").replace("dat?a=1", "dat"))).expect("read");
    assert_eq!(foreign.len(), 5);
    let ours = sample("fresh").replace("<project_name>persxfer", "<project_name>?");
    let damage = Document::parse(&latin1(&ours)).expect_err("damaged");
    assert_eq!((damage.line, damage.column), (8, 19));
}
