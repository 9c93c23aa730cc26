//! What a metalink demands of the file, and metalinks that come in its place.

use super::sim::{Ended, HONEST, KIB, Reply, Ways, World, bytes, head, serve, strong};
use super::*;
use crate::core::failure::BadAnswer;
use crate::core::validator::Validators;

fn expecting(size: u64) -> World {
    World { expected: Some(Length(size)), ..World::new() }
}

fn other_size(size: u64, expected: u64) -> Ended {
    Ended::Failed(Failure::OtherSize { size: Length(size), expected: Length(expected) })
}

#[test]
fn a_file_of_another_size_is_refused_before_its_first_byte() {
    let data = bytes(100 * KIB, 1);
    let mut w = expecting(90 * KIB);
    let end = w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &HONEST, ask));
    assert_eq!(end, other_size(100 * KIB, 90 * KIB));
    assert!(w.files.part.is_empty());
    let end = expecting(100 * KIB).session("http://a/f", &mut |ask| serve(&data, &strong("v"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
}

#[test]
fn a_range_of_a_file_of_another_size_is_refused() {
    let (data, longer) = (bytes(400 * KIB, 2), bytes(410 * KIB, 2));
    let mut w = expecting(400 * KIB);
    w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    let end = w.session("http://b/f", &mut |ask| serve(&longer, &strong("w"), &HONEST, ask));
    assert_eq!(end, other_size(410 * KIB, 400 * KIB));
    assert_eq!(w.files.part[..], data[..200 << 10], "what was held stays");
    let end = w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
}

#[test]
fn a_body_of_untold_length_is_measured_at_its_end_and_undone() {
    let (data, shorter) = (bytes(400 * KIB, 3), bytes(300 * KIB, 4));
    let untold = |data: &[u8], framing| {
        let mut head = head(200, Validators::default(), 0);
        head.framing = framing;
        Reply { head, body: data.to_vec(), cut: false }
    };
    for framing in [Framing::Marked, Framing::Close] {
        let mut w = expecting(400 * KIB);
        assert_eq!(w.session("http://a/f", &mut |_| untold(&shorter, framing)), other_size(300 * KIB, 400 * KIB));
        assert!(w.files.part.is_empty() && w.dossier.part.held == Length::ZERO, "nothing of it is kept");
        let end = w.session("http://b/f", &mut |ask| serve(&data, &strong("v"), &HONEST, ask));
        assert_eq!(end, Ended::Finished(data.clone(), Evidence::Validator));
    }
}

#[test]
fn what_was_held_survives_another_file_of_untold_length() {
    let (data, other) = (bytes(400 * KIB, 5), bytes(300 * KIB, 6));
    let mut w = expecting(400 * KIB);
    w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &Ways { limit: Some(200 * KIB), ..HONEST }, ask));
    let mut reply = head(200, strong("w"), 0);
    reply.framing = Framing::Marked;
    let end = w.session("http://b/f", &mut |_| Reply { head: reply.clone(), body: other.clone(), cut: false });
    assert_eq!(end, other_size(300 * KIB, 400 * KIB));
    assert_eq!((&w.files.part[..], w.files.rival.len()), (&data[..200 << 10], 0));
    let end = w.session("http://a/f", &mut |ask| serve(&data, &strong("v"), &HONEST, ask));
    assert_eq!(end, Ended::Finished(data, Evidence::Validator));
}

#[test]
fn the_expected_size_vouches_for_a_file_that_became_shorter() {
    let (old, new) = (bytes(400 * KIB, 7), bytes(300 * KIB, 8));
    let bare = |data: &[u8], kind: &str| {
        let mut reply = serve(data, &Validators::default(), &Ways { ranges: false, ..HONEST }, &super::plain_ask());
        reply.head.content_type = Some(kind.to_owned());
        reply
    };
    for (expected, finishes) in [(Some(Length(300 * KIB)), true), (None, false)] {
        let mut w = World { expected: None, ..World::new() };
        let mut cut = bare(&old, "a/b");
        (cut.body, cut.cut) = (old[..200 << 10].to_vec(), true);
        w.session("http://a/f", &mut |_| Reply { head: cut.head.clone(), body: cut.body.clone(), cut: true });
        w.expected = expected;
        let end = w.session("http://a/f", &mut |_| bare(&new, "c/d"));
        assert_eq!(matches!(end, Ended::Finished(..)), finishes, "{end:?}");
    }
}

#[test]
fn a_page_of_another_size_is_a_page_that_stands_in() {
    let mut page = head(200, Validators::default(), 600);
    page.content_type = Some("text/html".to_owned());
    let reply = |page: &AnswerHead| Reply { head: page.clone(), body: vec![b'x'; 600], cut: false };
    let html = Ended::Failed(Failure::BadAnswer(BadAnswer::HtmlPage));
    assert_eq!(expecting(90 * KIB).session("http://a/f", &mut |_| reply(&page)), html);
    page.framing = Framing::Marked;
    assert_eq!(expecting(90 * KIB).session("http://a/f", &mut |_| reply(&page)), html);
    page.framing = Framing::Length(Length(600));
    let end = expecting(600).session("http://a/f", &mut |_| reply(&page));
    assert!(matches!(end, Ended::Finished(..)), "an HTML file of that size: {end:?}");
}

#[test]
fn a_metalink_in_place_of_the_file_is_never_stored() {
    for kind in ["application/metalink4+xml", "application/metalink+xml"] {
        let mut list = head(200, strong("v"), 600);
        list.content_type = Some(kind.to_owned());
        let reply = || Reply { head: list.clone(), body: vec![b'<'; 600], cut: false };
        let mut w = World::new();
        let end = w.session("http://a/f.iso", &mut |_| reply());
        assert_eq!(end, Ended::Failed(Failure::BadAnswer(BadAnswer::Metalink)));
        assert!(w.files.part.is_empty());
        let mut w = World { metalink: MetalinkIs::TheFile, ..World::new() };
        let end = w.session("http://a/f.iso.meta4", &mut |_| reply());
        assert!(matches!(end, Ended::Finished(..)), "{end:?}");
    }
}

#[test]
fn names_tell_whether_a_metalink_is_the_file() {
    use MetalinkIs::{InItsPlace, TheFile};
    for (names, is) in [
        (&["f.iso", "f.iso"][..], InItsPlace),
        (&["f.iso", "out.META4"], TheFile),
        (&["f.metalink", ""], TheFile),
        (&["metalink", "mirrors.xml"], TheFile),
        (&["metalink", "metalink"], TheFile),
        (&["latest", "f.iso"], InItsPlace),
        (&[".bashrc", ""], TheFile),
        (&["list.php", "list.php"], InItsPlace),
    ] {
        assert_eq!(MetalinkIs::of_names(names), is, "{names:?}");
    }
}
