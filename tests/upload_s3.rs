//! Uploads to an object store through the built program: `moto` behind a proxy that cuts, loses, delays and lies.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs;
use std::sync::Arc;

use support::{Px, Ran, World, eventually, ms, noise, say};
use upload::{Door, Exchange, Mischief, Moto, Proxy, Raw, Way};

const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+s3cret";
const MIB: usize = 1 << 20;
/// The size of parts.
const PART: u64 = 8 << 20;

/// A store behind a proxy, and a file.
struct Bench {
    moto: Moto,
    proxy: Proxy,
    w: World,
    data: Arc<Vec<u8>>,
}

impl Bench {
    fn new(size: usize) -> Self {
        let moto = Moto::start();
        moto.bucket("bucket");
        let (proxy, w, data) = (Proxy::before(moto.daemon.port()), World::new(), noise(3, size));
        fs::write(w.path("f.bin"), &data[..]).unwrap();
        Self { moto, proxy, w, data }
    }

    /// The same store without the object, and another world around it.
    fn again(self, size: usize) -> Self {
        self.moto.ask("DELETE", "/bucket/f.bin");
        let (w, data) = (World::new(), noise(3, size));
        fs::write(w.path("f.bin"), &data[..]).unwrap();
        Self { proxy: Proxy::before(self.moto.daemon.port()), w, data, ..self }
    }

    /// As slow as a line of some ten megabytes a second.
    fn slow(self) -> Self {
        self.proxy.now(Mischief::Paces { bytes: 64 << 10, rest: ms(6) });
        self
    }

    fn px<'w>(&'w self, words: &[&str]) -> Px<'w> {
        let px = self.w.px(words.iter().copied());
        px.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET)
    }

    /// `persxfer upload ... f.bin s3://bucket/f.bin`, by way of the proxy.
    fn upload(&self, more: &[&str]) -> Px<'_> {
        let words = [&["upload", "-vv"], more, &["f.bin", "s3://bucket/"]].concat();
        let px = self.px(&words).env("AWS_ENDPOINT_URL", &self.proxy.door.url(""));
        px.delays("50ms", "200ms").give_up("60s")
    }

    /// Kills one as soon as so many parts were answered, and some of the next has arrived.
    #[track_caller]
    fn kill_after_parts(&self, parts: usize) {
        self.upload(&[]).start().kill_when(|| {
            let puts = self.puts();
            let next = puts.last().is_some_and(|put| put.answer.is_none() && put.received > 0);
            answered(&puts) == parts && next
        });
    }

    fn puts(&self) -> Vec<Exchange> {
        self.proxy.door.by("PUT")
    }

    /// Bytes of the file that reached the proxy.
    fn sent(&self) -> u64 {
        self.puts().iter().map(|put| put.received).sum()
    }

    /// Names of multipart uploads that are open.
    fn open(&self) -> Vec<String> {
        let heard = self.moto.ask("GET", "/bucket?uploads");
        assert_eq!(heard.status(), Some(200));
        values(&heard.text(), "UploadId")
    }

    /// It is there, whole, with nothing left open, on the evidence of a digest; no secret was told or kept.
    #[track_caller]
    fn is_sent(&self, ran: &Ran) {
        ran.exits(0).says(&["evidence: digest (server's md5)"]);
        self.is_there();
        assert_eq!(self.open(), [""; 0], "an upload is left open");
        self.hides(ran);
    }

    #[track_caller]
    fn is_there(&self) {
        let stored = self.moto.stored("bucket", "f.bin");
        assert!(
            stored.as_deref() == Some(&self.data[..]),
            "another object stands there, of {:?} bytes",
            stored.map(|s| s.len())
        );
    }

    /// Neither the keys nor the name of an upload are told, and the keys are not kept.
    #[track_caller]
    fn hides(&self, ran: &Ran) {
        ran.hides(SECRET).hides("s3cret").hides("AWS4-HMAC");
        for put in self.puts() {
            if let Some((_, id)) = put.target.split_once("uploadId=") {
                ran.hides(id.split('&').next().unwrap_or(id));
            }
        }
        let state = self.w.state_text();
        assert!(!state.contains(SECRET) && !state.contains(KEY), "{state}");
    }
}

fn answered(puts: &[Exchange]) -> usize {
    puts.iter().filter(|put| put.answer == Some(200)).count()
}

/// How often each part was begun to be sent.
fn begun(puts: &[Exchange], number: u32) -> usize {
    puts.iter().filter(|put| put.target.contains(&format!("partNumber={number}&"))).count()
}

/// What stands in the elements of a name.
fn values(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let texts = xml.split(&open).skip(1).filter_map(|rest| rest.split_once(&close));
    texts.map(|(text, _)| text.to_owned()).collect()
}

#[test]
fn files_of_every_size() {
    let mut b = Bench::new(0);
    for (size, puts) in [(0, 1), (1000, 1), (8 * MIB, 1), (17 * MIB, 3)] {
        b = b.again(size);
        b.is_sent(&b.upload(&["--content-type", "application/x-test"]).run());
        assert_eq!((b.puts().len(), b.sent()), (puts, size as u64));
        let head = b.moto.ask("HEAD", "/bucket/f.bin");
        assert_eq!(head.header("content-type"), Some("application/x-test"));
        for asked in b.proxy.door.log() {
            assert!(asked.header("authorization").is_some_and(|v| v.starts_with("AWS4-HMAC-SHA256 ")), "{asked:?}");
        }
        b.upload(&[]).run().exits(0).says(&["sent already to http://127.0.0.1:", "and not changed since"]);
    }
}

#[test]
fn a_killed_upload_goes_on_with_the_parts_that_the_store_has() {
    let b = Bench::new(25 * MIB).slow();
    b.kill_after_parts(2);
    let killed = b.sent();
    assert!(killed < 3 * PART);
    b.proxy.now(Mischief::None);
    let ran = b.upload(&[]).run();
    b.is_sent(&ran);
    let puts = b.puts();
    assert_eq!((begun(&puts, 1), begun(&puts, 2), begun(&puts, 3), begun(&puts, 4)), (1, 1, 2, 1), "{ran}");
    assert_eq!(b.proxy.door.by("GET").len(), 1, "the parts are listed");
    assert!(b.sent() <= 25 * MIB as u64 + PART);
}

#[test]
fn a_store_that_dies_and_comes_back_empty_gets_all_of_it_again() {
    let mut b = Bench::new(17 * MIB).slow();
    let running = b.upload(&[]).start();
    eventually("a part arrives", || answered(&b.puts()) == 1);
    b.proxy.now(Mischief::Answers { status: 503, retry_after: None });
    b.moto.daemon.kill();
    b.moto.daemon.revive();
    b.moto.bucket("bucket");
    b.proxy.now(Mischief::None);
    let ran = running.end();
    b.is_sent(&ran);
}

#[test]
fn a_line_that_dies_costs_the_part_that_was_on_it() {
    let b = Bench::new(17 * MIB);
    b.proxy.next(Mischief::None);
    b.proxy.next(Mischief::Cuts { after: 5 << 20, way: Way::Reset });
    b.is_sent(&b.upload(&[]).run());
    let puts = b.puts();
    assert_eq!((begun(&puts, 1), begun(&puts, 2), begun(&puts, 3)), (1, 2, 1));
}

#[test]
fn what_is_given_up_leaves_no_upload_behind() {
    let b = Bench::new(17 * MIB).slow();
    b.kill_after_parts(1);
    assert_eq!(b.open().len(), 1);
    let keyless = b.w.px(["abort", "f.bin"]).run();
    keyless.exits(0).says(&["was not asked to drop it: cannot use the keys of the object store"]);
    assert_eq!(b.open().len(), 1);
    b.px(&["state", "forget", "f.bin"]).run().exits(0).hides(SECRET);
    eventually("the upload is gone", || b.open().is_empty());
    assert_eq!(b.moto.stored("bucket", "f.bin"), None);
}

#[test]
fn the_answer_to_the_closing_request_is_lost() {
    let b = Bench::new(9 * MIB);
    b.proxy.next_of("POST /bucket/f.bin?uploadId", Mischief::LosesAnswer);
    b.is_sent(&b.upload(&[]).run());
    assert_eq!(b.sent(), 9 * MIB as u64, "nothing is sent again");
}

#[test]
fn busy_stores_are_waited_for() {
    let mut b = Bench::new(0);
    let busy = |status| Mischief::Answers { status, retry_after: Some(1) };
    for (begins, status) in [
        ("HEAD", 503),
        ("POST /bucket/f.bin?uploads", 503),
        ("PUT", 503),
        ("PUT", 500),
        ("POST /bucket/f.bin?uploadId", 429),
    ] {
        b = b.again(9 * MIB);
        b.proxy.next_of(begins, busy(status));
        b.is_sent(&b.upload(&[]).run());
        assert_eq!(answered(&b.puts()), 2, "{begins}");
    }
}

#[test]
fn an_error_in_a_good_answer_is_an_error() {
    let mut b = Bench::new(0);
    let body = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code><Message>again</Message></Error>";
    for mischief in [Mischief::Replaces { status: 200, body }, Mischief::Says { status: 200, body }] {
        b = b.again(9 * MIB);
        b.proxy.next_of("POST /bucket/f.bin?uploadId", mischief);
        b.is_sent(&b.upload(&[]).run());
        assert_eq!(b.sent(), 9 * MIB as u64, "nothing is sent again");
    }
    b = b.again(9 * MIB);
    b.proxy.next_of("POST /bucket/f.bin?uploadId", Mischief::Says { status: 200, body });
    let ran = b.upload(&["--once"]).run();
    ran.exits(4).says(&["InternalError"]);
    assert_eq!(b.moto.stored("bucket", "f.bin"), None);
    b.hides(&ran);
}

#[test]
fn a_signed_url_is_one_put_with_nothing_added() {
    let b = Bench::new(9 * MIB);
    let url = b.proxy.door.url("/bucket/f.bin?X-Amz-Signature=s3cret&X-Amz-SignedHeaders=host");
    b.proxy.next(Mischief::Cuts { after: 1 << 20, way: Way::Reset });
    let px = b.w.px(["upload", "-vv", "--protocol", "s3", "f.bin", &url]).delays("50ms", "200ms").give_up("60s");
    let ran = px.run();
    ran.hides(SECRET).hides("s3cret").exits(0).says(&["evidence: digest (server's md5)"]);
    b.is_there();
    assert_eq!(b.proxy.door.log().len(), 2, "two PUTs and nothing else");
    for put in b.puts() {
        let added = put
            .headers
            .iter()
            .find(|(n, _)| n.starts_with("x-amz") || n.starts_with("content-t") || n == "authorization");
        assert_eq!((put.method.as_str(), added), ("PUT", None));
    }
}

#[test]
fn nothing_of_the_users_goes_along_with_a_signature() {
    let b = Bench::new(1000);
    fs::write(b.w.path("cookies"), "127.0.0.1\tFALSE\t/\tFALSE\t0\tc\ts3cret\n").unwrap();
    let dead = "put+http://127.0.0.1:9/in/";
    let more = [
        "-H",
        "x-amz-acl: s3cret",
        "-H",
        "Content-Type: text/s3cret",
        "-u",
        "me:s3cret",
        "-b",
        "cookies",
        "--location-trusted",
    ];
    let ran = b.upload(&more).args(&[dead]).run();
    b.is_sent(&ran);
    for asked in b.proxy.door.log() {
        let theirs =
            asked.headers.iter().find(|(n, v)| v.contains("s3cret") || n == "cookie" || v.starts_with("Basic"));
        assert_eq!(theirs, None);
        assert!(asked.header("authorization").is_some_and(|v| v.starts_with("AWS4-HMAC-SHA256 ")));
    }
}

/// A manifest of URLs by way of the proxy, for an upload that was begun for it.
fn manifest(b: &Bench, upload: &str, signature: &str) {
    let object = b.proxy.door.url("/bucket/f.bin");
    let rest = format!("uploadId={upload}&X-Amz-Signature={signature}");
    let parts: Vec<_> = (1..=4).map(|n| format!("{object}?partNumber={n}&{rest}")).collect();
    let whole = format!("{object}?{rest}");
    let json = serde_json::json!({
        "persxfer_upload": 1, "part_size": PART, "parts": parts,
        "complete": &whole, "abort": &whole, "list": &whole, "head": format!("{object}?X-Amz-Signature={signature}"),
    });
    fs::write(b.w.path("urls.json"), json.to_string()).unwrap();
}

#[test]
fn a_manifest_of_signed_urls_is_resumed_by_new_ones() {
    let b = Bench::new(25 * MIB).slow();
    let begun_by = Raw::new("POST", &b.moto.daemon.url("/bucket/f.bin?uploads")).body(b"").send();
    let id = values(&begun_by.text(), "UploadId").pop().expect("an upload is begun");
    manifest(&b, &id, "s3cret-1");
    let by_manifest =
        || b.w.px(["upload", "-vv", "--s3-manifest", "urls.json", "f.bin"]).delays("50ms", "200ms").give_up("60s");
    by_manifest().start().kill_when(|| answered(&b.puts()) == 2 && b.puts().len() == 3);
    manifest(&b, &id, "s3cret-2");
    b.proxy.now(Mischief::None);
    let ran = by_manifest().run();
    b.is_sent(&ran);
    let puts = b.puts();
    assert_eq!((begun(&puts, 1), begun(&puts, 2), begun(&puts, 3), begun(&puts, 4)), (1, 1, 2, 1));
    assert!(puts.iter().all(|put| put.header("authorization").is_none() && put.header("content-type").is_none()));
    assert!(puts.last().is_some_and(|put| put.target.contains("s3cret-2")), "the new URLs are used");
}

#[test]
fn a_file_edited_between_two_runs_is_sent_anew_and_the_old_upload_ended() {
    let mut b = Bench::new(17 * MIB).slow();
    b.kill_after_parts(1);
    b.proxy.now(Mischief::None);
    b.data = noise(4, 17 * MIB);
    fs::write(b.w.path("f.bin"), &b.data[..]).unwrap();
    let ran = b.upload(&[]).run();
    b.is_sent(&ran);
    ran.says(&["the file changed since its upload"]);
    assert_eq!(begun(&b.puts(), 1), 2);
}

#[test]
fn wrong_keys_are_said_and_told_to_nobody() {
    let body = format!("<Error><Code>InvalidAccessKeyId</Code><Message>no such key as {KEY}</Message></Error>");
    let door = Door::open(move |visit| match visit.drain() {
        Ok(_) => visit.answer(403, &[("Content-Type", "application/xml".to_owned())], &body),
        Err(_) => Way::Close,
    });
    for size in [1000, 9 * MIB] {
        let w = World::new();
        fs::write(w.path("f.bin"), &noise(3, size)[..]).unwrap();
        let words = ["upload", "--once", "-vv", "--endpoint-url", &door.url(""), "f.bin", "s3://bucket/"];
        let px = w.px(words).env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        let ran = px.env("AWS_SESSION_TOKEN", "t0ken-s3cret").run();
        ran.exits(4).says(&["InvalidAccessKeyId"]).hides(SECRET).hides("s3cret").hides("AWS4-HMAC");
        let state = w.state_text();
        assert!(!state.contains("s3cret"), "{state}");
        let shown = w.px(["state", "show", "f.bin"]).run();
        shown.exits(0);
        assert!(shown.stdout.contains("InvalidAccessKeyId"), "{shown}");
    }
    let asked = door.log();
    assert!(asked.iter().all(|asked| asked.header("x-amz-security-token") == Some("t0ken-s3cret")), "{asked:?}");
}

/// Kills at random moments. The part on the line is lost with each: that is in the nature of parts, which are kept whole or not
/// at all. Nothing else is sent again.
#[test]
fn ten_kills_cost_a_part_each_at_most() {
    let (b, size) = (Bench::new(25 * MIB).slow(), 25 * MIB as u64);
    let moments = noise(11, 10);
    let mut kills = 0;
    for moment in moments.iter() {
        let running = b.upload(&[]).start();
        std::thread::sleep(ms(150 + u64::from(*moment) * 4));
        match running.try_end() {
            Ok(ran) => {
                ran.exits(0);
            }
            Err(running) => {
                kills += 1;
                running.kill_when(|| true);
            }
        }
    }
    b.proxy.now(Mischief::None);
    let ran = b.upload(&[]).run();
    ran.exits(0).says(&["evidence: digest (server's md5)"]);
    b.is_there();
    // One that was created the very moment a client died is nobody's: its name was never heard.
    let open = b.open();
    assert!(open.len() <= 1, "uploads are left open: {open:?}");
    b.hides(&ran);
    let bound = size + size / 10 + kills * PART;
    assert!(b.sent() <= bound, "{} bytes were sent in {kills} kills, {bound} at most", b.sent());
    say(&format!("{} of {size} bytes were sent in {kills} kills", b.sent()));
    let whole: Vec<_> = (1..=4).map(|n| whole_puts(&b.puts(), n)).collect();
    assert!(kills > 0 && whole.iter().all(|times| *times == 1), "each part arrives once: {whole:?}");
}

/// How often a part arrived and was answered.
fn whole_puts(puts: &[Exchange], number: u32) -> usize {
    let of = |put: &&Exchange| put.target.contains(&format!("partNumber={number}&")) && put.answer == Some(200);
    puts.iter().filter(of).count()
}
