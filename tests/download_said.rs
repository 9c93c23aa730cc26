//! What several servers, or several answers of one, say of the whole file: heeded where it is of the whole, and where they
//! contradict each other, the file decides.

mod support;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::{Ran, Rig, Served, World, digest, ms, noise};

const MB: usize = 1 << 20;

/// The digest as a field has it.
fn named(data: &[u8]) -> String {
    let text = digest("sha-256", data);
    let digits = text.split_once('=').map_or("", |(_, digits)| digits);
    format!("sha-256=:{}:", STANDARD.encode(hex::decode(digits).unwrap_or_default()))
}

/// A mirror, at a pace at which others have time to join in.
fn mirror(served: Served) -> Rig {
    Rig::start(move |a| served.reply(a).pace(64 << 10, ms(10)))
}

/// One that names the digest of each part that it sends.
fn of_parts(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a| {
        let reply = served.reply(a);
        let name = named(reply.bytes());
        reply.header("Repr-Digest", &name).pace(64 << 10, ms(10))
    })
}

fn from_both(first: &Rig, second: &Rig, data: &Arc<Vec<u8>>) -> Ran {
    let w = World::new();
    let ran = w.download(&first.url("/f")).mirror(&second.url("/g")).run();
    ran.exits(0);
    w.holds(data);
    assert!(second.asked().iter().any(|a| a.from() > 0), "the second was asked for nothing");
    ran
}

#[test]
fn another_mirrors_digest_of_the_whole_is_evidence() {
    let data = noise(1800, 4 * MB);
    let first = mirror(Served::new(&data).no_etag());
    let second = mirror(Served::new(&data).no_etag().header("Repr-Digest", &named(&data)));
    from_both(&first, &second, &data).says(&["evidence: digest sha-256 by the server"]);
}

/// Further connections ask for the digest of the whole as the first one does: a server that names it only to those who ask
/// would else contradict itself, or say nothing where it could vouch.
#[test]
fn whoever_names_digests_only_when_asked_is_asked_over_every_connection() {
    let data = noise(1803, 4 * MB);
    let (plain, naming) = (Served::new(&data).no_etag(), Served::new(&data).no_etag());
    let name = named(&data);
    let first = mirror(Served::new(&data).no_etag());
    let second = Rig::start(move |a| match a.header("want-repr-digest") {
        Some(want) if want.contains("sha-256") => naming.reply(a).header("Repr-Digest", &name).pace(64 << 10, ms(10)),
        _ => plain.reply(a).pace(64 << 10, ms(10)),
    });
    from_both(&first, &second, &data).says(&["evidence: digest sha-256 by the server"]);
    for asked in [first.asked(), second.asked()].concat() {
        assert!(asked.header("want-repr-digest").is_some(), "asked for nothing, from {}", asked.from());
    }
}

#[test]
fn digests_of_parts_are_found_out_and_do_no_harm() {
    let data = noise(1801, 4 * MB);
    let (first, second) = (mirror(Served::new(&data)), of_parts(&data));
    let ran = from_both(&first, &second, &data);
    assert!(!ran.stderr.contains("by the server"), "{ran}");
    assert!(first.sent() + second.sent() < 5 * MB as u64, "fetched once");
    let (w, alone) = (World::new(), of_parts(&data));
    let ran = w.download(&alone.url("/f")).args(&["--connections", "4"]).run();
    ran.exits(0).says(&["evidence: digest sha-256 by the server"]);
    w.holds(&data);
    assert!(alone.sent() < 5 * MB as u64, "what it says with its whole answer is right, and the rest is not heeded");
}

#[test]
fn where_two_contradict_each_other_the_file_decides() {
    let data = noise(1802, 4 * MB);
    let (right, wrong) = (named(&data), named(b"another file"));
    for (one, other) in [(&right, &wrong), (&wrong, &right)] {
        let first = mirror(Served::new(&data).header("Repr-Digest", one));
        let second = mirror(Served::new(&data).header("Repr-Digest", other));
        let ran = from_both(&first, &second, &data);
        ran.says(&["servers name different digests", "evidence: digest sha-256 by the server"]);
        assert!(first.sent() + second.sent() < 5 * MB as u64, "fetched once");
    }
}
