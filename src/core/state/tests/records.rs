//! Any record, written and read, is the same record.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{document, sample, text_of};
use crate::core::backoff::Backoff;
use crate::core::backoff::Policy;
use crate::core::digest::{Algorithm, Expected, Pieces};
use crate::core::file_xfer::dossier::{Dossier, Draft, IfRange, Joints, OriginNotes, Ranges};
use crate::core::giveup::GiveUpFrom;
use crate::core::pers_xfer::options::{AddressFamily, Existing, FailedPart, Mtime, NetOptions, Options};
use crate::core::pers_xfer::record::{
    Direction, Evidence, Finished, MirrorRecord, Past, Placed, Record, Standing, Status, XferId,
};
use crate::core::pers_xfer::sharing::{OwnerId, Wanted, Wish};
use crate::core::range::Length;
use crate::core::state::Document;
use crate::core::time::{Delay, Epoch};
use crate::core::upload::UploadOptions;
use crate::core::url::{MirrorUrl, Origin};
use crate::core::validator::{ETag, Validators};
use crate::core::verdict::Class;

/// Texts of every kind: markup, blanks at the ends, control characters, percent signs, what XML cannot hold.
fn text() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z ]{0,12}",
        "[<>&\"'%;# \t\r\n\\]a]{0,8}",
        any::<String>(),
        "[\u{0}-\u{1f}\u{7f}\u{fffe}\u{ffff}x]{0,4}",
        Just("]]>&#0;&amp;<!--".to_owned()),
    ]
    .boxed()
}

fn path() -> BoxedStrategy<PathBuf> {
    let any_bytes = vec(1_u8..=255, 0..12).prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
    prop_oneof!["/[a-z /%<&]{0,12}".prop_map(PathBuf::from), any_bytes].boxed()
}

fn url() -> BoxedStrategy<MirrorUrl> {
    let text = "https?://(u:p@)?[a-z]{1,6}\\.example(:[1-9][0-9]{1,3})?/[a-z%<&' ]{0,8}(\\?[a-z=&]{0,8})?";
    text.prop_filter_map("a URL", |t| MirrorUrl::parse(&t).ok()).boxed()
}

fn origin() -> impl Strategy<Value = Origin> {
    url().prop_map(|u| u.origin())
}

fn time() -> impl Strategy<Value = Epoch> {
    prop_oneof![1_700_000_000_000_000_i64..1_900_000_000_000_000, any::<i64>()]
        .prop_map(|micros| Epoch::from_micros(micros.max(i64::MIN + 1)))
}

/// A time in one of BOINC's elements, where 0 means none.
fn boinc_time() -> impl Strategy<Value = Option<Epoch>> {
    option::of(time().prop_filter("0 is none", |t| *t != Epoch::ZERO))
}

fn delay() -> impl Strategy<Value = Delay> {
    prop_oneof![Just(0), 0_u64..100_000_000_000, any::<u64>()].prop_map(Delay::from_micros)
}

fn backoff() -> BoxedStrategy<Backoff> {
    (0_u32..9, delay(), any::<u32>()).prop_map(|(n, previous, position)| Backoff { n, previous, position }).boxed()
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![Just(0), 0_u64..1 << 40, any::<u64>()].prop_map(Length)
}

fn class() -> impl Strategy<Value = Class> {
    prop::sample::select(Class::ALL.to_vec())
}

fn digest() -> BoxedStrategy<Expected> {
    use Algorithm::*;
    let sized = [(Blake3, 32), (Crc32c, 4), (Md5, 16), (Sha1, 20), (Sha256, 32), (Sha512, 64)];
    prop::sample::select(sized.to_vec())
        .prop_flat_map(|(algorithm, n)| vec(any::<u8>(), n).prop_map(move |bytes| Expected { algorithm, bytes }))
        .boxed()
}

/// What a metalink adds: the size that the file must have, and its pieces.
fn parts() -> BoxedStrategy<(Option<Length>, Option<Arc<Pieces>>)> {
    let pieces = (prop::sample::select(Algorithm::ALL.to_vec()), length(), 1_usize..5, any::<u8>());
    let pieces = pieces.prop_filter_map("pieces", |(algorithm, length, n, fill)| {
        Pieces::new(algorithm, length, vec![fill; n * algorithm.output_len()]).ok().map(Arc::new)
    });
    (option::of(length()), option::of(pieces)).boxed()
}

fn mirror() -> BoxedStrategy<MirrorRecord> {
    let standing = option::of((class(), text())).prop_map(|refused| match refused {
        Some((class, why)) => Standing::Refused { class, why },
        None => Standing::Usable,
    });
    let ends = (any::<bool>(), option::of(digest()));
    (url(), standing, any::<(bool, bool)>(), 0_u32..4, any::<u32>(), option::of(time()), ends)
        .prop_map(|(url, standing, (served, contributed), missing_passes, corrupt_fetches, not_before, ends)| {
            let (tried, named_with) = ends;
            MirrorRecord {
                url,
                standing,
                served,
                missing_passes,
                contributed,
                corrupt_fetches,
                not_before,
                tried,
                named_with,
            }
        })
        .boxed()
}

fn validators() -> BoxedStrategy<Validators> {
    let etag = (any::<bool>(), text()).prop_map(|(weak, t)| ETag { weak, opaque: format!("\"{t}\"") });
    (option::of(etag), option::of(time()), option::of(time()))
        .prop_map(|(etag, last_modified, date)| Validators { etag, last_modified, date })
        .boxed()
}

fn draft() -> BoxedStrategy<Draft> {
    let joints = prop::sample::select(vec![Joints::Length, Joints::Overlap, Joints::Validator]);
    let words = (option::of(text()), option::of(text()), option::of(any::<u64>()), vec(digest(), 0..3));
    (
        (length(), length()),
        option::of(length()),
        (vec((origin(), validators()), 0..3), vec((origin(), validators()), 0..3)),
        option::of(origin()),
        words,
        joints,
    )
        .prop_map(|((held, beyond), total, (validators, reserve), last_origin, words, joints)| {
            let (content_type, coding, inode, vouched) = words;
            Draft {
                held,
                beyond,
                total,
                validators,
                reserve,
                last_origin,
                content_type,
                coding,
                inode,
                joints,
                vouched,
            }
        })
        .boxed()
}

fn dossier() -> BoxedStrategy<Dossier> {
    let ranges = prop::sample::select(vec![Ranges::Unknown, Ranges::Work, Ranges::Broken]);
    let if_range = prop::sample::select(vec![IfRange::Best, IfRange::Date, IfRange::Bare]);
    let notes = (origin(), ranges, if_range, any::<(bool, bool)>(), option::of(1_u32..16)).prop_map(
        |(origin, ranges, if_range, (etags_lie, part_digests_lie), most)| OriginNotes {
            origin,
            ranges,
            if_range,
            etags_lie,
            part_digests_lie,
            most,
        },
    );
    (prop_oneof![Just(Draft::default()), draft()], option::of(draft()), vec(notes, 0..3), 0_u32..9)
        .prop_map(|(part, rival, origins, changes)| Dossier { part, rival, origins, changes })
        .boxed()
}

fn past() -> BoxedStrategy<Past> {
    (time(), text(), class(), text(), length())
        .prop_map(|(at, url, class, text, held)| Past { at, url, class, text, held })
        .boxed()
}

fn finished() -> BoxedStrategy<Finished> {
    use Evidence::*;
    let evidence = prop::sample::select(vec![None, Length, Overlap, Validator, Digest]);
    let sent = (option::of(any::<i64>()), option::of(digest()));
    let placed = (url(), length(), sent).prop_map(|(server, found, (ctime_ns, digest))| Placed {
        server,
        found,
        ctime_ns: ctime_ns.map(i128::from),
        digest,
    });
    let by = option::of(prop::sample::select(Algorithm::ALL.to_vec()));
    (time(), evidence, length(), any::<i64>(), any::<u64>(), by, option::of(placed))
        .prop_map(|(at, evidence, size, mtime, inode, server_digest, placed)| Finished {
            at,
            evidence,
            size,
            mtime_ns: i128::from(mtime) * 1_000,
            inode,
            server_digest,
            placed,
        })
        .boxed()
}

fn status() -> BoxedStrategy<Status> {
    prop_oneof![
        Just(Status::Pending),
        Just(Status::Suspended),
        Just(Status::Done),
        (i32::MIN..0, text()).prop_map(|(code, message)| Status::Failed { code, message }),
    ]
    .boxed()
}

fn net() -> BoxedStrategy<NetOptions> {
    let words = (option::of(text()), option::of(text()), option::of(text()), vec(text(), 0..3), vec(text(), 0..3));
    let files = (option::of(path()), option::of(path()), option::of(path()), option::of(path()));
    let family = prop::sample::select(vec![AddressFamily::Any, AddressFamily::V4, AddressFamily::V6]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (words, files, flags, family, (delay(), delay(), delay()))
        .prop_map(|(words, files, flags, family, times)| NetOptions {
            headers: words.3,
            user: words.0,
            netrc: flags.0,
            cookies: files.0,
            user_agent: words.1,
            proxy: words.2,
            cacert: files.1,
            cert: files.2,
            key: files.3,
            insecure: flags.1,
            resolve: words.4,
            family,
            location_trusted: flags.2,
            connect_timeout: times.0,
            first_byte_timeout: times.1,
            stall_timeout: times.2,
        })
        .boxed()
}

fn options() -> BoxedStrategy<Options> {
    use prop::sample::select;
    let policies = ["boinc", "boinc:exact", "boinc-7", "tor", "tor:base=6", "tor:spec:base=60", "ladder", "ranged"];
    let bounds = (option::of(1_000_u64..9_000), option::of(9_000_u64..u64::MAX));
    let policy = (select(policies.to_vec()), bounds).prop_map(|(name, (min, max))| {
        let bounded = |policy: Policy| policy.with_bounds(min.map(Delay::from_micros), max.map(Delay::from_micros));
        bounded(Policy::parse(name).expect("a policy")).expect("bounds that fit")
    });
    let ends = (
        select(vec![Existing::Refuse, Existing::Overwrite, Existing::Keep]),
        select(vec![FailedPart::Keep, FailedPart::Delete]),
        (select(vec![Mtime::Local, Mtime::Remote]), option::of(1_u16..99), option::of(url())),
        select(vec![Evidence::None, Evidence::Overlap, Evidence::Validator, Evidence::Digest]),
    );
    let window = (delay(), select(vec![GiveUpFrom::LastProgress, GiveUpFrom::FirstRequest]), vec(400_u16..600, 0..3));
    (ends, policy, window, prop_oneof![Just(NetOptions::default()), net()])
        .prop_map(|(ends, policy, (give_up, give_up_from, retry_on), net)| Options {
            existing: ends.0,
            require: ends.3,
            policy,
            give_up,
            give_up_from,
            retry_on,
            failed_part: ends.1,
            mtime: ends.2.0,
            connections: ends.2.1,
            report_url: ends.2.2,
            upload: UploadOptions::default(),
            net: Arc::new(net),
        })
        .boxed()
}

fn wish() -> BoxedStrategy<Wish> {
    let what = prop_oneof![
        prop::sample::select(vec![Wanted::Retry, Wanted::Suspend, Wanted::Resume, Wanted::Abort]),
        vec(url(), 0..3).prop_map(Wanted::Mirrors),
    ];
    (any::<u64>(), time(), what).prop_map(|(serial, at, what)| Wish { serial, at, what }).boxed()
}

/// What is of no process but the one that reads: how it was asked for, who runs it, what others want.
fn sharing() -> BoxedStrategy<(Arc<Options>, Option<OwnerId>, Vec<Wish>)> {
    let options = prop_oneof![Just(Options::default()), options()].prop_map(Arc::new);
    (options, option::of(any::<u64>().prop_map(OwnerId)), vec(wish(), 0..3)).boxed()
}

fn record() -> impl Strategy<Value = Record> {
    let direction = prop::sample::select(vec![Direction::Download, Direction::Upload]);
    let who = (any::<u64>(), text(), direction, option::of(path()), option::of(path()), vec(mirror(), 0..4));
    let what = (option::of(length()), option::of(length()), vec(digest(), 0..3), status(), dossier(), parts());
    let times = (boinc_time(), boinc_time(), delay(), delay(), option::of(time()));
    let counts = (any::<u32>(), 0_u32..100, length(), backoff(), length());
    (who, what, times, counts, vec(past(), 0..4), option::of(finished()), sharing()).prop_map(
        |(who, what, times, counts, history, finished, (options, owner, wishes))| Record {
            id: XferId(who.0),
            name: who.1,
            direction: who.2,
            path: who.3,
            folder: who.4,
            mirrors: who.5,
            nbytes: what.0,
            max_nbytes: what.1,
            digests: what.2,
            expected: what.5.0,
            pieces: what.5.1,
            status: what.3,
            num_retries: counts.0,
            sessions: counts.1,
            first_request_time: times.0,
            next_request_time: times.1,
            time_so_far: times.2,
            confirmed: counts.2,
            progress_mark: counts.4,
            backoff: counts.3,
            patience_used: times.3,
            patience_at: times.4,
            apart: what.4.changes % 2 == 1,
            dossier: what.4,
            uploads: Vec::new(),
            xml_signature: None,
            history,
            finished,
            options,
            owner,
            wishes,
        },
    )
}

#[test]
fn a_transfer_without_identity_keeps_that_it_is_given() {
    let text =
        "<client_state><file_info><name>x</name></file_info><file_info><name>x</name></file_info></client_state>";
    let read = document(text);
    let again = document(&text_of(&read));
    assert_eq!(read.ids().collect::<Vec<_>>(), again.ids().collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn a_record_survives_the_file(record in record()) {
        let mut written = Document::fresh();
        written.put(&record);
        prop_assert_eq!(written.fault(), None);
        let read = Document::parse(&written.to_bytes()).map_err(|d| TestCaseError::fail(d.to_string()))?;
        prop_assert_eq!(read.get(record.id), Some(record.clone()));
        prop_assert_eq!(read.transfers().collect::<Vec<_>>(), vec![record]);
        prop_assert_eq!(read.to_bytes(), written.to_bytes());
    }

    /// Over an older record, of whatever content, nothing of the older one shows through.
    #[test]
    fn a_record_replaces_an_older_one_whole(old in record(), new in record()) {
        let new = Record { id: old.id, direction: old.direction, ..new };
        let mut written = Document::fresh();
        written.put(&old);
        written.put(&new);
        prop_assert_eq!(written.len(), 1);
        let read = document(&text_of(&written));
        prop_assert_eq!(read.get(new.id), Some(new.clone()));
        if let Some(path) = &new.path {
            prop_assert_eq!(read.at_path(path), vec![new.id]);
            prop_assert_eq!(written.at_path(path), vec![new.id]);
        }
    }

    /// XML 1.0 readers other than ours can read what we write: no character that it forbids, no stray markup.
    #[test]
    fn what_is_written_is_xml(record in record()) {
        let mut written = Document::fresh();
        written.put(&record);
        let text = text_of(&written);
        let foul = text.contains(|c: char| (c < ' ' && c != '\n' && c != '\t') || matches!(c, '\u{fffe}' | '\u{ffff}'));
        prop_assert!(!foul, "{}", text);
        let mut strict = quick_xml::Reader::from_str(&text);
        while strict.read_event().map_err(|e| TestCaseError::fail(e.to_string()))? != quick_xml::events::Event::Eof {}
    }
}

#[test]
fn a_neighbour_is_not_touched() {
    let mut read = document(sample("future"));
    read.put(&super::queued(1, "neighbour"));
    let rewritten = text_of(&read);
    let start = sample("future").find("<file_info>").expect("a record");
    let end = sample("future").find("</file_info>").expect("its end");
    assert!(rewritten.contains(&sample("future")[start..end]));
    assert!(rewritten.find("neighbour") < rewritten.find("<postscript/>"), "new ones stand behind the last transfer");
}

#[test]
fn a_queued_transfer_is_small() {
    let mut read = Document::fresh();
    let before = read.to_bytes().len();
    read.put(&super::queued(1, "a-file-of-some-name.tar.gz"));
    assert!(read.to_bytes().len() - before < 450);
}

#[test]
fn only_the_newest_finished_ones_stay() {
    let mut document = document(sample("fresh"));
    for n in 1..=9_u64 {
        let finished = Finished {
            at: Epoch::from_secs(1_000 - n as i64),
            evidence: Evidence::Length,
            size: Length(1),
            mtime_ns: 0,
            server_digest: None,
            placed: None,
            inode: 1,
        };
        let status = if n == 5 { Status::Pending } else { Status::Done };
        document.put(&Record { status, finished: Some(finished), ..super::queued(n, &format!("f{n}")) });
    }
    document.prune_finished(3);
    let left = |document: &Document| document.transfers().map(|r| r.name).collect::<Vec<_>>();
    assert_eq!(left(&document), ["f1", "f2", "f3", "f5"]);
    let mut again = self::document(&text_of(&document));
    again.prune_finished(1);
    assert_eq!(left(&again), ["f1", "f5"]);
}

#[test]
fn wishes_and_unfinished_ones_are_found_without_parsing() {
    let mut document = document(sample("given_up"));
    let pending = super::queued(1, "pending");
    let wish = Wish { serial: 1, at: Epoch::ZERO, what: Wanted::Retry };
    document.put(&pending);
    let failed = document.transfers().find(|r| matches!(r.status, Status::Failed { .. })).expect("one");
    assert_eq!(document.perhaps_unfinished().collect::<Vec<_>>(), [pending.id]);
    assert_eq!(document.with_wishes().count(), 0);
    document.put(&Record { wishes: vec![wish], owner: Some(OwnerId(9)), ..failed.clone() });
    assert_eq!(document.with_wishes().collect::<Vec<_>>(), [failed.id]);
    assert_eq!(document.perhaps_unfinished().collect::<Vec<_>>(), [failed.id, pending.id]);
    assert_eq!((document.owner(failed.id), document.owner(pending.id)), (Some(OwnerId(9)), None));
}
