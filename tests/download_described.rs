//! A metalink that the server names for its file (`Link: rel=describedby`, RFC 6249): its digest is the server's word, its
//! mirrors are used where that proves the file, and whatever is wrong with it costs the download nothing.

mod support;

use std::sync::Arc;

use support::{Asked, End, Reply, Rig, Served, World, digest, noise};

const MB: usize = 1 << 20;
const LINK: &str = "</f.meta4>; rel=describedby; type=\"application/metalink4+xml\"";

/// A metalink of one file.
fn metalink(name: &str, size: usize, sum: &str, urls: &[String]) -> Vec<u8> {
    let (algorithm, hex) = sum.split_once('=').unwrap_or_default();
    let urls: String = urls.iter().map(|url| format!("<url>{url}</url>")).collect();
    format!(
        "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"{name}\">\
         <size>{size}</size><hash type=\"{algorithm}\">{hex}</hash>{urls}</file></metalink>"
    )
    .into_bytes()
}

/// A server of the file, which says where its description is, and of that.
fn server(data: &Arc<Vec<u8>>, meta: Vec<u8>) -> impl Fn(&Asked) -> Reply + Send + Sync + 'static {
    let (served, meta) = (Served::new(data).no_etag().header("Link", LINK), Arc::new(meta));
    move |asked| {
        if asked.target.ends_with(".meta4") {
            Reply::status(200).header("Content-Length", &meta.len().to_string()).body(&meta, 0..meta.len())
        } else {
            served.reply(asked)
        }
    }
}

#[test]
fn its_digest_is_evidence_and_nothing_of_the_users_goes_there() {
    let (w, data) = (World::new(), noise(900, 2 * MB));
    let rig = Rig::start(server(&data, metalink("f", data.len(), &digest("sha-256", &data), &[])));
    let mine = ["-u", "me:secret", "-H", "X-Mine: 1", "--require-evidence", "digest"];
    w.download(&rig.url("/f")).args(&mine).run().exits(0).says(&["digest sha-256 by the server"]);
    w.holds(&data);
    let asked = rig.asked();
    let meta: Vec<_> = asked.iter().filter(|a| a.target.ends_with(".meta4")).collect();
    assert_eq!(meta.len(), 1);
    assert!(meta[0].header("authorization").is_none() && meta[0].header("x-mine").is_none());
}

#[test]
fn damage_is_found_by_it() {
    let (w, data) = (World::new(), noise(901, MB));
    let mut damaged = data.to_vec();
    damaged[MB / 2] ^= 1;
    let meta = metalink("f", data.len(), &digest("sha-256", &data), &[]);
    let (bad, good) = (server(&Arc::new(damaged), meta.clone()), server(&data, meta));
    let rig = Rig::start(move |a| if a.header("cache-control").is_none() { bad(a) } else { good(a) });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn its_mirrors_take_over() {
    let (w, data) = (World::new(), noise(902, 3 * MB));
    let plain = Served::new(&data);
    let near = Rig::start(move |a| plain.reply(a));
    let meta = metalink("f", data.len(), &digest("sha-256", &data), &[near.url("/y")]);
    let first = server(&data, meta);
    let first = Rig::start(move |a| match (a.target.ends_with(".meta4"), a.n) {
        (true, _) => first(a),
        // Slow enough for the description to be there before it breaks off.
        (_, 0) => first(a).pace(256 << 10, std::time::Duration::from_millis(100)).cut(2 * MB, End::Close),
        _ => Reply::status(503),
    });
    w.download(&first.url("/f")).delays("1h", "2h").run().exits(0).says(&["1 more mirror named by"]);
    w.holds(&data);
    assert!(near.count() > 0);
}

#[test]
fn what_is_wrong_with_it_costs_nothing() {
    let data = noise(903, MB);
    let right = digest("sha-256", &data);
    let other = digest("sha-256", &noise(904, 10));
    let metas = [
        metalink("f", data.len() + 1, &other, &[]),
        metalink("another", 5, &other, &[]),
        b"<metalink".to_vec(),
        b"not found, but with status 200".to_vec(),
    ];
    for meta in metas {
        let w = World::new();
        let rig = Rig::start(server(&data, meta));
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
    }
    // It hangs, or is not there: the file is whole all the same; and what the user says is law.
    for script in [Reply::status(404), Reply::status(200).header("Content-Length", "99").then(End::Hang)] {
        let w = World::new();
        let served = Served::new(&data).header("Link", LINK);
        let script = std::sync::Mutex::new(Some(script));
        let rig = Rig::start(move |a| {
            let meta = a.target.ends_with(".meta4").then(|| script.lock().ok().and_then(|mut s| s.take()));
            meta.flatten().unwrap_or_else(|| served.reply(a))
        });
        w.download(&rig.url("/f")).args(&["--checksum", &right]).run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn a_checksum_that_was_given_outweighs_it() {
    let (w, data) = (World::new(), noise(905, MB));
    let rig = Rig::start(server(&data, metalink("f", data.len(), &digest("sha-256", &noise(906, 9)), &[])));
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0);
    w.holds(&data);
}
