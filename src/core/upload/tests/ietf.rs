//! The IETF's resumable uploads: careful creation, 104, limits, conflicts, and the application's last word.

use super::super::*;
use super::ietf_server::IetfServer;
use super::sim::{Came, MIB, Server, Sim, bytes, digest_of};
use crate::core::digest::Algorithm;

const CLOSED: Came = Came::End(UpEnd::Stored { confirmed: Proof::Status });

fn ietf_by(interop: Interop, server: IetfServer) -> Sim<IetfServer> {
    Sim::new(server, "http://up.example/new", bytes(2 * MIB, 3), move || Box::new(Ietf::new(interop)))
}

fn ietf(server: IetfServer) -> Sim<IetfServer> {
    ietf_by(Interop::Eight, server)
}

fn failed(sim: &mut Sim<IetfServer>) -> UpFailure {
    match sim.session() {
        Came::End(UpEnd::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn careful_creation_and_one_body() {
    for (interop, number) in [(Interop::Six, "6"), (Interop::Seven, "7"), (Interop::Eight, "8"), (Interop::Final, "-")]
    {
        let mut sim = ietf_by(interop, IetfServer { interop: number, ..IetfServer::new() });
        assert_eq!(sim.session(), CLOSED, "{interop:?}");
        assert_eq!(sim.log.iter().map(|(m, _)| *m).collect::<Vec<_>>(), [Method::Post, Method::Patch]);
        assert_eq!(sim.server.stored(), Some(&sim.source[..]));
    }
}

#[test]
fn an_empty_file_is_closed() {
    let mut sim = ietf(IetfServer::new());
    (sim.source, sim.stamp.size) = (Vec::new(), Length(0));
    assert_eq!(sim.session(), CLOSED);
    assert_eq!(sim.server.stored(), Some(&[][..]));
}

#[test]
fn a_104_names_the_upload_and_one_of_another_version_does_not() {
    let mut sim = ietf(IetfServer { only_104: true, ..IetfServer::new() });
    assert_eq!(sim.session(), CLOSED);
    let mut sim = ietf(IetfServer { only_104: true, interop: "5", ..IetfServer::new() });
    let failure = failed(&mut sim);
    assert!(matches!(failure, UpFailure::Unsupported { why: FoundAtServer::Version, .. }), "{failure}");
}

#[test]
fn the_record_is_stored_at_the_104() {
    let sim = ietf(IetfServer::new());
    let mut xfer = sim.xfer();
    xfer.start(sim.now);
    let interim =
        |fields: &[(&str, &str)]| Event::Informed(Interim { status: 104, fields: super::sim::header_map(fields) });
    let step = xfer.handle(interim(&[("location", "/upload/9"), ("upload-draft-interop-version", "8")]), sim.now);
    assert_eq!(step, Step { persist: Persist::Now, next: Next::Await });
    assert!(xfer.session().url().is_some());
    let step = xfer.handle(interim(&[("upload-offset", "77")]), sim.now);
    assert_eq!(step, Step { persist: Persist::Not, next: Next::Await });
}

#[test]
fn a_server_that_takes_the_empty_body_for_the_file_is_not_believed() {
    let mut sim = ietf(IetfServer { knows_nothing: true, interop: "0", ..IetfServer::new() });
    assert_eq!(judge(&failed(&mut sim)).scope, UpScope::RefuseProtocol);
    assert_eq!(sim.sent, 0);
}

#[test]
fn limits_are_obeyed() {
    let limit = Some("max-append-size=500000, min-append-size=100000, max-age=60, new=?1");
    let mut sim = ietf(IetfServer { limit_field: limit, max_append: Some(500_000), ..IetfServer::new() });
    assert_eq!(sim.session(), CLOSED);
    assert!(sim.bodies.iter().all(|b| b.length().0 <= 500_000));
    assert!(!sim.log.iter().any(|(_, code)| *code == 413), "it was told before");
    for (limit, fits) in
        [("max-size=5", false), ("min-size=9000000", false), ("max-size=?1", true), ("max-size=", true)]
    {
        let mut sim = ietf(IetfServer { limit_field: Some(limit), ..IetfServer::new() });
        assert_eq!(sim.session() == CLOSED, fits, "{limit}");
    }
}

#[test]
fn an_untold_limit_is_learned() {
    let mut sim = ietf(IetfServer { max_append: Some(300_000), ..IetfServer::new() });
    assert_eq!(sim.session(), CLOSED);
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
}

#[test]
fn the_offset_of_a_conflict_is_taken() {
    let mut sim = ietf(IetfServer::new());
    sim.cuts = vec![MIB].into();
    sim.server.instead = [(Method::Head, 503)].into();
    failed(&mut sim);
    let mut record = sim.disk.clone().expect("a record");
    record.confirmed = crate::core::range::Offset(0);
    sim.disk = Some(record);
    assert_eq!(sim.session(), CLOSED);
    assert_eq!(sim.sent, 2 * MIB);
    // The server moved between the look and the body: what the conflict tells is where it goes on.
    let mut sim = ietf(IetfServer { limit_field: Some("max-append-size=1048576"), ..IetfServer::new() });
    sim.server.shift = -1;
    assert_eq!(sim.session(), CLOSED, "back to the start is no step");
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
}

#[test]
fn an_offset_that_goes_back_voids_the_upload() {
    let mut sim = ietf(IetfServer::new());
    sim.cuts = vec![MIB].into();
    sim.server.instead = [(Method::Head, 503)].into();
    failed(&mut sim);
    sim.disk.as_mut().expect("a record").confirmed = crate::core::range::Offset(MIB + 1);
    assert_eq!(sim.session(), CLOSED);
    assert_eq!(sim.server.created, 2);
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
}

#[test]
fn all_bytes_there_is_not_yet_complete() {
    let mut sim = ietf(IetfServer::new());
    // The last body arrived up to its last byte, and was cut there.
    sim.cuts = vec![2 * MIB - 1].into();
    sim.server.instead = [].into();
    assert_eq!(sim.session(), CLOSED);
    let mut sim = ietf(IetfServer::new());
    sim.session();
    sim.server.complete = false;
    let source = Source { stamp: sim.stamp, mark: None, digest: None };
    let mut record = UploadSession::new(Protocol::Ietf, sim.url.clone(), source, sim.now);
    record.handle = Some(Handle::Url(super::sim::url("http://up.example/upload/1")));
    record.reached = sim.stamp.size.as_end();
    sim.disk = Some(record);
    (sim.log, sim.sent) = (Vec::new(), 0);
    assert_eq!(sim.session(), CLOSED);
    assert_eq!((sim.sent, sim.server.complete), (0, true));
    assert_eq!(sim.log.iter().map(|(m, _)| *m).collect::<Vec<_>>(), [Method::Head, Method::Patch]);
}

#[test]
fn a_lost_answer_to_the_last_body_is_found_complete() {
    let mut sim = ietf(IetfServer::new());
    sim.lost_answers = 100;
    assert!(matches!(sim.session(), Came::End(UpEnd::Failed(_))));
    sim.lost_answers = 0;
    sim.session();
    assert_eq!(sim.server.stored(), Some(&sim.source[..]));
}

#[test]
fn the_application_has_the_last_word() {
    for code in [400, 422, 500] {
        let mut sim = ietf(IetfServer { application: code, ..IetfServer::new() });
        assert_eq!(failed(&mut sim), UpFailure::Application { code, said: String::new() });
        assert_eq!(sim.bodies.len(), 1, "it is not sent again");
    }
}

#[test]
fn a_digest_that_the_server_names_is_compared() {
    use base64::Engine;
    let field = |bytes: &[u8]| {
        let digest = digest_of(Algorithm::Sha256, bytes);
        Some(format!("sha-256=:{}:", base64::engine::general_purpose::STANDARD.encode(&digest.bytes)))
    };
    let mut sim = ietf(IetfServer::new());
    sim.digest = Some(digest_of(Algorithm::Sha256, &sim.source));
    sim.server.repr_digest = field(&sim.source);
    assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Sha256) }));
    sim.server = IetfServer { repr_digest: field(b"else"), ..IetfServer::new() };
    assert!(matches!(failed(&mut sim), UpFailure::WrongDigest { .. }));
    assert_eq!((sim.server.created, sim.bodies.len()), (2, 3), "once more from the start, then it is said");
}

#[test]
fn statuses_that_keep_or_lose_the_upload() {
    for (code, created) in [(401, 1), (403, 1), (423, 1), (429, 1), (500, 1), (503, 1), (404, 2), (410, 2)] {
        let mut sim = ietf(IetfServer { instead: [(Method::Patch, code)].into(), ..IetfServer::new() });
        assert!(matches!(sim.run(2), UpEnd::Stored { .. }), "{code}");
        assert_eq!(sim.server.created, created, "{code}");
    }
    for code in [400, 405, 412, 415, 501] {
        let mut sim = ietf(IetfServer { instead: [(Method::Patch, code)].into(), ..IetfServer::new() });
        let scope = judge(&failed(&mut sim)).scope;
        assert_eq!(scope, if code == 412 { UpScope::RefuseProtocol } else { UpScope::RefuseServer }, "{code}");
    }
}
