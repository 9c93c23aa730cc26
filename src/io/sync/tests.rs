//! Packed indexes and bombs, batches, manifests on disk, a look at files.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::*;
use crate::core::failure::LocalFault;
use crate::core::range::Length;
use crate::core::sync::index::MAX_HELD;
use crate::core::sync::kinds;
use crate::core::sync::listing::Entry;
use crate::core::sync::manifest::{Held, Memory, sha256};
use crate::core::sync::path::Part;
use crate::core::sync::source::Form;
use crate::core::time::Epoch;
use crate::io::durable::Clobber;

const INDEX: &[u8] = br#"{"path":"x","files":[{"path":"a","size":1},{"path":"b","size":2}]}"#;

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("packed")
}

fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("packed")
}

fn xz(bytes: &[u8], dictionary: u32) -> Vec<u8> {
    let mut options = lzma_rust2::XzOptions::with_preset(6);
    options.lzma_options.dict_size = dictionary;
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), options).expect("a packer");
    packer.write_all(bytes).expect("packed");
    packer.finish().expect("packed")
}

fn read(bytes: &[u8]) -> Result<usize, ReadFault> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("index");
    fs::write(&path, bytes).expect("written");
    read_index(&path, Form::Json, &[Part::All], "index.json").map(|index| index.listing.len())
}

#[test]
fn an_index_is_unpacked_whatever_it_is_called() {
    for packed in [INDEX.to_vec(), gz(INDEX), bz2(INDEX), xz(INDEX, 1 << 20)] {
        assert_eq!(read(&packed).expect("an index"), 2);
        let cut = read(&packed[..packed.len() - 9]).expect_err("cut");
        assert!(!matches!(cut, ReadFault::Local(_)), "{cut}");
    }
    let two = [gz(&INDEX[..20]), gz(&INDEX[20..])].concat();
    assert_eq!(read(&two).expect("an index"), 2, "several streams, one behind the other");
}

#[test]
fn what_is_packed_too_well_is_given_up() {
    let zeros = vec![b' '; 64 << 20];
    for packed in [gz(&zeros), bz2(&zeros), xz(&zeros, 1 << 20)] {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("page");
        fs::write(&path, &packed).expect("written");
        assert!(packed.len() < 1 << 20);
        let fault = read_small(&path).expect_err("too large").to_string();
        assert_eq!(fault, format!("it has more than {MAX_HELD} bytes"));
    }
    let hungry = xz(INDEX, 1 << 29);
    assert!(matches!(read(&hungry), Err(ReadFault::Packed(_))), "it asks for half a gigabyte of memory");
}

#[test]
fn a_batch_gives_names_to_whole_files_only() {
    let dir = tempfile::tempdir().expect("a folder");
    let (own, to) = (dir.path().join("own"), |name: &str| dir.path().join("tree/sub").join(name));
    fs::create_dir(&own).expect("made");
    fs::write(own.join("left"), "by an earlier process").expect("written");
    let mut batch = Batch::begin(own.clone()).expect("begun");
    assert!(!own.join("left").exists());
    let placed = |name: &str, clobber| Placed { path: to(name), clobber, modified: Some(Epoch::from_secs(77)) };
    let source = dir.path().join("source");
    fs::write(&source, "0123456789").expect("written");
    let pieces = [Piece::Bytes(b"<"), Piece::Of { file: &source, at: 3, length: 4 }, Piece::Bytes(b">")];
    batch.write(&pieces, placed("a", Clobber::Refuse)).expect("staged");
    batch.write(&[Piece::Bytes(b"ours")], placed("b", Clobber::Refuse)).expect("staged");
    batch.write(&[Piece::Bytes(b"ours")], placed("c", Clobber::Replace)).expect("staged");
    assert!(!dir.path().join("tree").exists(), "nothing is to be seen yet");
    fs::create_dir_all(to("")).expect("made");
    fs::write(to("b"), "theirs").expect("written");
    fs::write(to("c"), "older").expect("written");
    let mut refused = Vec::new();
    batch.commit(&mut |path| refused.push(path.to_owned())).expect("placed");
    let text = |name: &str| fs::read_to_string(to(name)).expect("there");
    assert_eq!((text("a"), text("b"), text("c")), ("<3456>".into(), "theirs".into(), "ours".into()));
    assert_eq!((refused, fs::read_dir(&own).expect("listed").count()), (vec![to("b")], 0));
    let stands = standing(&to("a")).expect("looked").expect("there");
    assert_eq!((stands.size, stands.modified), (Length(6), Epoch::from_secs(77)));
    set_time(&to("a"), Epoch::from_secs(-5)).expect("set");
    assert_eq!(standing(&to("a")).expect("looked").expect("there").modified, Epoch::from_secs(-5));
    assert_eq!(standing(Path::new("/no/such/file")), Ok(None));
    assert_eq!(standing(dir.path()), Ok(None), "a folder is no file");
}

#[test]
fn a_manifest_lives_on_and_a_torn_line_costs_no_other() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("manifest");
    let (mut book, manifest) = Book::open(path.clone()).expect("opened");
    assert!(manifest.files.is_empty());
    let digest = sha256([7; 32]);
    let entry = |path, tag| Entry { path, size: Some(Length(1)), modified: None, digest: Some((&digest).into()), tag };
    book.note(&entry("a", Held::Placing));
    book.note(&entry("b", Held::Fetched));
    book.flush().expect("flushed");
    book.note(&entry("a", Held::Merged));
    book.remember(&Memory { accepted: Some(Epoch::from_secs(9)), doubts: 0, loss: 0 });
    book.flush().expect("flushed");
    drop(book);
    let whole = fs::read(&path).expect("there");
    fs::write(&path, &whole[..whole.len() - 3]).expect("torn");
    let (mut book, manifest) = Book::open(path.clone()).expect("opened");
    let held: Vec<_> = manifest.files.iter().map(|e| (e.path, e.tag)).collect();
    assert_eq!((held, manifest.memory), (vec![("a", Held::Merged), ("b", Held::Fetched)], Memory::default()));
    book.note(&entry("c", Held::Fetched));
    book.flush().expect("flushed");
    drop(book);
    let (_, manifest) = Book::open(path).expect("opened");
    assert_eq!((manifest.files.len(), manifest.damaged), (3, false), "what was torn is gone");
}

#[test]
fn a_look_sees_what_would_be_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("2016-10-01-12-02-01");
    let kind = kinds::named("tordnsel").expect("known");
    let body = "Downloaded 2016-10-01 12:02:01\nExitNode A\n";
    let annotated = format!("@type tordnsel 1.0\n{body}");
    let mut seen = Vec::new();
    fs::write(&path, body).expect("written");
    let bare = look(&path, kind, &mut |segment| seen.push(segment)).expect("read");
    fs::write(&path, &annotated).expect("written");
    let whole = look(&path, kind, &mut |segment| seen.push(segment)).expect("read");
    assert_eq!((bare.size, bare.sha256), (whole.size, whole.sha256), "with its annotation it is the same");
    assert_eq!((whole.sha256, whole.prefix.as_str()), (whole.sha256_as_is, ""));
    assert!(bare.sha256_as_is != bare.sha256 && seen.len() == 2 && seen.iter().all(|s| s.verdict.is_ok()));
    assert!(matches!(look(dir.path(), kind, &mut |_| {}), Err(LocalFault::Io { .. })));
}

#[test]
fn a_place_is_free_or_taken_by_something_of_another_sort() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(dir.path().join("a/b")).expect("made");
    fs::write(dir.path().join("a/f"), "x").expect("written");
    for (path, free) in [("a/f", true), ("a/g", true), ("a/b", false), ("a/f/g", false), ("x/y/z", true), ("a", false)]
    {
        assert_eq!(is_free(dir.path(), path), Ok(free), "{path}");
    }
}

#[test]
fn only_what_an_index_can_list_is_listed() {
    let dir = tempfile::tempdir().expect("a folder");
    for path in ["a/b", "a/.hidden", "a/x.tmp", ".persxfer-sync/y", "c"] {
        fs::create_dir_all(dir.path().join(path).parent().expect("a folder")).expect("made");
        fs::write(dir.path().join(path), "x").expect("written");
    }
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).expect("linked");
    assert_eq!(files_below(dir.path()).expect("listed"), ["a/b", "c"]);
    assert_eq!(files_below(&dir.path().join("nowhere")).expect("listed"), [""; 0]);
}
