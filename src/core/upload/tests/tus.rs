//! tus: its statuses row by row (facts of uploads, 2.2), its extensions, and the ways of real servers.

use super::super::*;
use super::sim::{Came, KIB, MIB, Sim, bytes};
use super::tus_server::TusServer;

const STORED: Came = Came::End(UpEnd::Stored { confirmed: Proof::Size });

fn tus_of(size: u64, server: TusServer) -> Sim<TusServer> {
    Sim::new(server, "http://up.example/files", bytes(size, 1), || Box::new(Tus::default()))
}

fn tus(server: TusServer) -> Sim<TusServer> {
    tus_of(2 * MIB, server)
}

fn failed(sim: &mut Sim<TusServer>) -> UpFailure {
    match sim.session() {
        Came::End(UpEnd::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn methods(sim: &Sim<TusServer>) -> Vec<Method> {
    sim.log.iter().map(|(method, _)| *method).collect()
}

#[test]
fn the_flow() {
    use Method::{Head, Options, Patch, Post};
    let mut sim = tus(TusServer::new());
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim), [Options, Post, Patch, Head]);
    assert_eq!(sim.server.metadata, "filename Zi5iaW4=,filetype YXBwbGljYXRpb24vb2N0ZXQtc3RyZWFt");
    let mut sim = tus_of(0, TusServer::new());
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim), [Options, Post, Head], "no PATCH for no bytes");
}

#[test]
fn options_may_be_refused() {
    let mut sim = tus(TusServer { extensions: None, ..TusServer::new() });
    assert_eq!(sim.session(), STORED);
}

#[test]
fn another_version_and_a_limit_are_known_before_a_byte() {
    let mut sim = tus(TusServer { max: Some(MIB), ..TusServer::new() });
    let failure = failed(&mut sim);
    assert!(matches!(failure, UpFailure::Unsupported { why: FoundAtServer::AtMost(Length(MIB)), .. }), "{failure}");
    assert_eq!(sim.sent, 0);
    for code in [412, 415, 413, 404] {
        let mut sim = tus(TusServer { instead: [(Method::Post, code)].into(), ..TusServer::new() });
        let scope = judge(&failed(&mut sim)).scope;
        assert_eq!(scope, if code == 412 { UpScope::RefuseProtocol } else { UpScope::RefuseServer }, "{code}");
    }
}

#[test]
fn locations_of_every_kind() {
    let kinds: [fn(&str) -> String; 4] = [
        |path| format!("http://up.example{path}"),
        |path| path.to_owned(),
        |path| format!("//up.example{path}"),
        |path| format!("{path}?token=x"),
    ];
    for location in kinds {
        assert_eq!(tus(TusServer { location, ..TusServer::new() }).session(), STORED);
    }
    let inside: fn(&str) -> String = |path| format!("http://10.0.0.1:8080{path}");
    let mut sim = tus(TusServer { location: inside, ..TusServer::new() });
    assert_eq!(failed(&mut sim), UpFailure::ElsewhereNamed { to: "http://10.0.0.1:8080".to_owned() });
    sim.make = Box::new(|| Box::new(Tus::new(Authority::Ours)));
    assert_eq!(sim.session(), STORED);
}

#[test]
fn a_part_of_a_body_is_a_part() {
    let mut sim = tus(TusServer { takes: Some(100_000), ..TusServer::new() });
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.bodies[1].start.0, 100_000);
}

#[test]
fn an_answer_without_an_offset_is_asked_about() {
    let mut sim = tus(TusServer { silent: true, ..TusServer::new() });
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim)[3..], [Method::Head, Method::Head]);
    assert_eq!(sim.sent, 2 * MIB);
}

#[test]
fn refusals_of_a_body_that_a_look_cures() {
    for (code, scope) in [(400, UpScope::RefuseServer), (409, UpScope::Doubtful)] {
        let mut sim = tus(TusServer { instead: [(Method::Patch, code)].into(), ..TusServer::new() });
        assert_eq!(sim.session(), STORED, "{code}");
        assert_eq!(methods(&sim)[2..5], [Method::Patch, Method::Head, Method::Patch]);
        let mut sim = tus(TusServer { instead: [(Method::Patch, code); 2].into(), ..TusServer::new() });
        assert_eq!(judge(&failed(&mut sim)).scope, scope, "{code} twice without growth");
    }
}

#[test]
fn a_busy_server_keeps_the_session() {
    for code in [401, 403, 408, 423, 425, 429, 500, 502, 503, 504] {
        let mut sim = tus(TusServer { instead: [(Method::Patch, code)].into(), ..TusServer::new() });
        assert!(matches!(sim.run(2), UpEnd::Stored { .. }), "{code}");
        assert_eq!(sim.server.uploads.len(), 1, "{code}");
    }
}

#[test]
fn small_files_go_along_with_the_creation_where_that_is_offered() {
    let with = |size| tus_of(size, TusServer { extensions: Some("creation-with-upload"), ..TusServer::new() });
    let mut sim = with(100 * KIB);
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim), [Method::Options, Method::Post, Method::Head]);
    let mut sim = with(MIB + 1);
    assert_eq!(sim.session(), STORED);
    assert_eq!(methods(&sim)[2], Method::Patch, "its URL would be lost with the answer");
    let mut sim = with(100 * KIB);
    sim.cuts = vec![50 * KIB].into();
    assert!(matches!(sim.run(3), UpEnd::Stored { .. }));
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
}

#[test]
fn checksums_only_where_they_are_checked() {
    let mut sim = tus(TusServer { extensions: Some("creation, checksum"), spoil: 2, ..TusServer::new() });
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.log.iter().filter(|(_, code)| *code == 460).count(), 2);
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
    let mut sim = tus(TusServer { extensions: Some("creation,checksum"), spoil: 9, ..TusServer::new() });
    let failure = failed(&mut sim);
    assert!(matches!(failure, UpFailure::Status { code: 460, .. }), "{failure}");
    assert_eq!(sim.log.iter().filter(|(_, code)| *code == 460).count(), 3);
}

#[test]
fn past_its_time_an_upload_is_looked_at_first() {
    let lives = Some(Delay::from_secs(100));
    let mut sim = tus(TusServer { lives, ..TusServer::new() });
    sim.cuts = vec![MIB].into();
    sim.server.instead = [(Method::Head, 503)].into();
    failed(&mut sim);
    sim.now = sim.now + Delay::from_secs(200);
    assert_eq!(sim.session(), STORED);
    assert_eq!(sim.server.uploads.len(), 2, "410: a new one");
    assert_eq!(sim.server.uploads[1].bytes, sim.source);
    // It says that its time is over, and is still there.
    let mut sim = tus(TusServer::new());
    sim.cuts = vec![MIB].into();
    sim.server.instead = [(Method::Head, 503)].into();
    failed(&mut sim);
    sim.disk.as_mut().expect("a record").expires = Some(sim.now);
    assert_eq!(sim.session(), STORED);
    assert_eq!((sim.sent, sim.server.uploads.len()), (2 * MIB, 1));
}

use super::sim::Server as _;

/// A server that died within a body may have stored more of it than its offset tells, and appends all the same.
#[test]
fn after_a_body_that_broke_off_the_size_of_what_is_stored_is_looked_at_where_that_is_allowed() {
    let cut = |hides: bool, uncounted: &[usize]| {
        let uncounted = uncounted.iter().copied().collect();
        let mut sim = tus(TusServer { hides, uncounted, block: 1 << 20, ..TusServer::new() });
        sim.cuts.push_back(3 * MIB / 2);
        sim
    };
    let gets = |sim: &Sim<TusServer>| methods(sim).iter().filter(|m| **m == Method::Get).count();
    // Nobody may read it, or it has the right size.
    for (hides, confirmed) in [(true, Proof::Status), (false, Proof::Size)] {
        let mut sim = cut(hides, &[]);
        assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed }));
        assert_eq!(gets(&sim), 1);
        assert_eq!(sim.server.uploads.len(), 1);
    }
    // Too much is stored: once more from the start, which goes well, for nothing breaks off.
    let mut sim = cut(false, &[1 << 20]);
    assert_eq!(sim.session(), STORED);
    assert_eq!((gets(&sim), sim.server.uploads.len()), (1, 2));
}
