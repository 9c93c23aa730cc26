//! Uploads whose client is killed with -9 at random moments, and whose server or connection dies: in the end everything is
//! there, and nearly nothing went over the line twice.
//!
//! Of 8 MB, ten kills each; with `PERSXFER_UPLOAD_MB=64` of 64 MB, which takes minutes. The client holds itself back
//! (`--limit-rate`), so that no buffer of the system holds what it has sent when it dies.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::thread;

use support::{Px, ms, say};
use upload::{Boinc, BoincFault, Door, FrontEnd, Ietf, IetfFault, Manners, NAME, Sender};

/// So many deaths of each upload.
const DEATHS: u64 = 10;

/// A connection lives at least so long, in bytes; more than a block of 256 KiB.
const LEAST: u64 = 400_000;

/// Bytes of the file.
fn size() -> u64 {
    let mb: u64 = std::env::var("PERSXFER_UPLOAD_MB").map_or(8, |n| n.parse().expect("a number"));
    mb * 1_000_000
}

/// A server of one of the two protocols.
#[derive(Debug)]
enum Server {
    Boinc(Boinc, FrontEnd),
    Ietf(Ietf),
}

use Server::{Boinc as ByBoinc, Ietf as ByIetf};

impl Server {
    fn boinc(front: FrontEnd) -> Self {
        ByBoinc(Boinc::start(front), front)
    }

    fn ietf() -> Self {
        ByIetf(Ietf::start(Manners { repr_digest: true, ..Manners::default() }))
    }

    fn door(&self) -> &Door {
        match self {
            ByBoinc(server, _) => &server.door,
            ByIetf(server) => &server.door,
        }
    }

    fn url(&self) -> String {
        match self {
            ByBoinc(server, _) => server.url(),
            ByIetf(server) => format!("ietf+{}", server.url()),
        }
    }

    fn stored(&self) -> Vec<u8> {
        match self {
            ByBoinc(server, _) => server.stored(NAME).unwrap_or_default(),
            ByIetf(server) => server.stored().pop().unwrap_or_default(),
        }
    }

    /// How much of the file is there.
    fn held(&self) -> u64 {
        match self {
            ByBoinc(server, _) => fs::metadata(server.path(NAME)).map_or(0, |m| m.len()),
            ByIetf(server) => server.uploads().last().map_or(0, |upload| upload.offset),
        }
    }

    /// Bytes of the file that came, however often.
    fn received(&self) -> u64 {
        match self {
            ByBoinc(server, _) => {
                let heads: usize = server.seen().iter().map(|seen| seen.head.len()).sum();
                server.door.received() - u64::try_from(heads).unwrap()
            }
            ByIetf(server) => server.door.received(),
        }
    }

    /// The most that may come for a file of this size after so many deaths. Who keeps every byte gets each once, but for
    /// what was in its hands when the connection died; who keeps whole blocks gets again what of the begun one had come.
    fn most(&self, size: u64, deaths: u64) -> u64 {
        match self {
            ByBoinc(_, FrontEnd::Apache) => size + deaths * (256 << 10),
            _ => size + size / 10,
        }
    }

    /// The upload is cut after so many bytes of the next body.
    fn cut(&self, after: u64) {
        match self {
            ByBoinc(server, _) => server.uploads().next(BoincFault::Cut { after }),
            ByIetf(server) => server.faults().next(IetfFault::Cut { after }),
        }
    }

    #[track_caller]
    fn has_it(&self, sender: &Sender, deaths: u64) {
        let stored = self.stored();
        assert_eq!(stored.len(), sender.data.len());
        assert!(stored == sender.data[..], "it holds something else");
        let (came, size) = (self.received(), u64::try_from(sender.data.len()).unwrap());
        let name = match self {
            ByBoinc(_, front) => format!("boinc, {front:?}"),
            ByIetf(_) => "ietf".to_owned(),
        };
        say(&format!("{name}: {deaths} deaths, {came} bytes for a file of {size}"));
        assert!(came <= self.most(size, deaths), "{name}: {came} bytes came for a file of {size}");
    }
}

fn upload<'s>(sender: &'s Sender, server: &Server) -> Px<'s> {
    // The whole takes two seconds.
    sender.upload(&server.url()).args(&["--limit-rate", &(size() / 2).to_string()])
}

/// The state file can be read, and nothing in it is damaged.
#[track_caller]
fn state_is_sound(sender: &Sender) {
    if sender.world.state.exists() {
        sender.world.px(["state", "check"]).run().exits(0);
    }
}

fn has_everything(server: &Server) -> bool {
    server.held() >= size()
}

fn kill_the_client(server: &Server) {
    let sender = Sender::new(30, usize::try_from(size()).unwrap());
    let (mut died, mut under_way) = (0, 0);
    for n in 0..DEATHS {
        let from = server.received();
        let running = upload(&sender, server).start();
        if n % 3 == 0 {
            // Any moment, before the first request too.
            thread::sleep(ms(random() % 300));
        } else {
            // Some bytes after it was killed before, as far as the end is not there.
            let more = 1 + random() % (size() / DEATHS);
            support::eventually("it goes on", || server.received() > from + more || has_everything(server));
        }
        match running.try_end() {
            // Sent already.
            Ok(ran) => drop(ran.exits(0)),
            Err(running) => {
                drop(running);
                died += 1;
                under_way += u64::from(server.received() > from && !has_everything(server));
            }
        }
        state_is_sound(&sender);
    }
    assert!(under_way >= DEATHS / 2, "only {under_way} of {died} were killed with bytes on their way");
    upload(&sender, server).run().exits(0);
    server.has_it(&sender, died);
    state_is_sound(&sender);
    assert_eq!(sender.told()["status"], "done", "{}", sender.told());
}

#[test]
fn a_client_killed_at_ten_moments_boinc_where_every_byte_stays() {
    kill_the_client(&Server::boinc(FrontEnd::NginxStreaming));
}

#[test]
fn a_client_killed_at_ten_moments_boinc_where_whole_blocks_stay() {
    kill_the_client(&Server::boinc(FrontEnd::Apache));
}

#[test]
fn a_client_killed_at_ten_moments_ietf() {
    kill_the_client(&Server::ietf());
}

fn kill_the_server(server: &Server) {
    let sender = Sender::new(31, usize::try_from(size()).unwrap());
    let running = upload(&sender, server).start();
    let mut deaths = 0;
    while deaths < DEATHS && !has_everything(server) {
        // Some bytes after it was last seen, so that every life gets some.
        let from = server.received();
        let more = LEAST + random() % (size() / DEATHS - LEAST);
        support::eventually("it goes on", || server.received() >= from + more || has_everything(server));
        server.door().kill();
        deaths += 1;
        server.door().revive();
    }
    running.end().exits(0);
    server.has_it(&sender, deaths);
    state_is_sound(&sender);
}

#[test]
fn a_server_that_dies_up_to_ten_times_boinc() {
    kill_the_server(&Server::boinc(FrontEnd::NginxStreaming));
}

#[test]
fn a_server_that_dies_up_to_ten_times_ietf() {
    kill_the_server(&Server::ietf());
}

fn cut_the_line(server: &Server) {
    let sender = Sender::new(32, usize::try_from(size()).unwrap());
    for _ in 0..DEATHS {
        // Each leaves more than what counts as a stall, which would be followed by a request without data.
        server.cut(LEAST + random() % (size() / DEATHS - LEAST));
    }
    upload(&sender, server).run().exits(0);
    let cut = server.door().log().iter().filter(|e| e.answer.is_none()).count();
    assert_eq!(u64::try_from(cut).unwrap(), DEATHS, "every cut was met");
    server.has_it(&sender, DEATHS);
}

#[test]
fn a_line_that_is_cut_ten_times_boinc() {
    cut_the_line(&Server::boinc(FrontEnd::NginxStreaming));
}

#[test]
fn a_line_that_is_cut_ten_times_boinc_where_whole_blocks_stay() {
    cut_the_line(&Server::boinc(FrontEnd::Apache));
}

#[test]
fn a_line_that_is_cut_ten_times_ietf() {
    cut_the_line(&Server::ietf());
}

#[test]
fn a_state_file_that_was_never_written_whole_is_never_seen() {
    let (server, sender) = (Server::ietf(), Sender::new(33, usize::try_from(size()).unwrap()));
    let running = upload(&sender, &server).start();
    // As others see it at any moment.
    while server.door().received() < size() {
        if let Ok(text) = fs::read_to_string(&sender.world.state) {
            assert!(text.trim_end().ends_with("</client_state>"), "half a state file:\n{text}");
        }
        thread::sleep(ms(3));
    }
    running.end().exits(0);
}

/// From the operating system, by way of the standard library's hash keys: moments need no better randomness.
fn random() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
