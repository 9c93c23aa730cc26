//! The digest that an answer names for its own body (Content-Digest, RFC 9530): compared as the body comes, over one
//! connection and over several.

mod support;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::{Asked, End, Reply, Rig, Served, World, digest, ms, noise};

const MB: usize = 1 << 20;

/// The digest as a field has it.
fn named(data: &[u8]) -> String {
    let text = digest("sha-256", data);
    let digits = text.split_once('=').map_or("", |(_, digits)| digits);
    format!("sha-256=:{}:", STANDARD.encode(hex::decode(digits).unwrap_or_default()))
}

/// What a server sends that names the digest of each body, and what comes of it where a byte is turned over on the way.
struct Way {
    right: Served,
    damaged: Served,
}

impl Way {
    fn new(data: &Arc<Vec<u8>>, at: usize) -> Arc<Self> {
        let mut bad = data.to_vec();
        bad[at] ^= 0x40;
        Arc::new(Self { right: Served::new(data), damaged: Served::new(&Arc::new(bad)) })
    }

    fn right(&self, asked: &Asked) -> Reply {
        let reply = self.right.reply(asked);
        let name = named(reply.bytes());
        reply.header("Content-Digest", &name)
    }

    fn damaged(&self, asked: &Asked) -> Reply {
        let name = named(self.right.reply(asked).bytes());
        self.damaged.reply(asked).header("Content-Digest", &name)
    }
}

fn past_caches(asked: &Asked) -> bool {
    asked.header("cache-control") == Some("no-cache")
}

#[test]
fn a_damaged_rest_is_dropped_and_fetched_again_and_what_was_held_stays() {
    let (w, data) = (World::new(), noise(1700, 3 * MB));
    let way = Way::new(&data, 2 * MB);
    let rig = Rig::start(move |a| match a.n {
        // Cut: its digest says nothing of a part.
        0 => way.right(a).cut(MB, End::Close),
        _ if past_caches(a) => way.right(a),
        _ => way.damaged(a),
    });
    w.download(&rig.url("/f")).args(&["--connections", "1"]).run().exits(0).says(&["Content-Digest"]);
    w.holds(&data);
    assert_eq!(rig.count(), 3);
    assert!(rig.asked()[2].from() >= MB - (64 << 10), "what was right is not fetched again: {:?}", rig.froms());
}

#[test]
fn a_damaged_range_of_several_is_found_before_the_file_is_called_whole() {
    for at in [5 * MB / 2, 4 * MB - 1] {
        let (w, data) = (World::new(), noise(1701, 4 * MB));
        let way = Way::new(&data, at);
        let rig = Rig::start(move |a| {
            let reply = if a.from() == 0 || past_caches(a) { way.right(a) } else { way.damaged(a) };
            reply.pace(128 << 10, ms(10))
        });
        w.download(&rig.url("/f")).args(&["--connections", "4"]).run().exits(0);
        w.holds(&data);
        let again = rig.asked().into_iter().filter(past_caches).count();
        assert!(again > 0 && rig.sent() < 6 * MB as u64, "{again} past the caches, {} bytes", rig.sent());
    }
}

#[test]
fn one_that_is_wrong_each_time_is_refused() {
    let (w, data) = (World::new(), noise(1702, MB));
    let way = Way::new(&data, 1000);
    let rig = Rig::start(move |a| way.damaged(a));
    w.download(&rig.url("/f")).delays("1h", "2h").run().exits(3).says(&["Content-Digest"]);
    w.holds_nothing();
    assert_eq!(rig.count(), 2);
}

#[test]
fn the_other_mirror_brings_what_one_damages() {
    let (w, data) = (World::new(), noise(1703, 4 * MB));
    let (way, good) = (Way::new(&data, 3 * MB), Served::new(&data));
    let first = Rig::start(move |a| good.reply(a).pace(32 << 10, ms(10)));
    let second = Rig::start(move |a| way.damaged(a).pace(64 << 10, ms(10)));
    w.download(&first.url("/f")).mirror(&second.url("/g")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_digest_of_the_whole_in_the_wrong_field_and_one_beside_a_law_do_no_harm() {
    let data = noise(1704, 3 * MB);
    let whole = named(&data);
    let served = Served::new(&data).header("Repr-Digest", &whole).header("Content-Digest", &whole);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { served.reply(a) });
    let w = World::new();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    let w = World::new();
    let served = Served::new(&data).header("Content-Digest", &named(b"another"));
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0);
    assert_eq!(rig.count(), 1);
}
