//! Servers that draw their behaviour for each request.

use proptest::prelude::*;

use super::super::dossier::Dossier;
use super::super::*;
use super::sim::{self, Ended, KIB, Reply, Ways, World, bare, bytes, serve, strong, weak};
use crate::core::time::Epoch;
use crate::core::validator::Validators;

/// A server that draws its behaviour for each request.
#[derive(Clone, Debug)]
struct Whim {
    version: usize,
    tag: u8,
    ranges: u8,
    limit: Option<u64>,
    status: u16,
}

fn whim() -> impl Strategy<Value = Whim> {
    let limit = prop_oneof![Just(None), (0..200 * KIB).prop_map(Some)];
    let status = prop_oneof![8 => Just(200u16), 1 => Just(503), 1 => Just(404)];
    (0..3usize, 0..5u8, 0..6u8, limit, status).prop_map(|(version, tag, ranges, limit, status)| Whim {
        version,
        tag,
        ranges,
        limit,
        status,
    })
}

fn whimsical(versions: &[Vec<u8>], whim: &Whim, n: usize, ask: &Ask) -> Reply {
    if whim.status != 200 {
        return bare(whim.status);
    }
    let validators = match whim.tag {
        0 => Validators::default(),
        1 => weak("same"),
        2 => strong(&format!("edge-{n}")),
        3 => Validators { last_modified: Some(Epoch::from_secs(1_000_000)), ..Validators::default() },
        _ => strong(&format!("v{}", whim.version)),
    };
    let ways = Ways { ranges: whim.ranges != 0, if_range: whim.ranges != 1, limit: whim.limit };
    let mut reply = serve(&versions[whim.version], &validators, &ways, ask);
    match (whim.ranges, reply.head.status) {
        (2, 206) => reply.head.content_range = None,
        (3, 206) => reply.head.content_range = Some(format!("bytes 0-{}/*", reply.body.len().max(1) - 1)),
        (4, 206) => reply.head.content_type = Some("multipart/byteranges".to_owned()),
        _ => {}
    }
    reply
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever servers do with validators, ranges, cuts and versions: what is finished is one version, whole.
    #[test]
    fn what_is_finished_is_one_version(whims in prop::collection::vec(whim(), 1..40)) {
        let versions = [bytes(130 * KIB, 21), bytes(130 * KIB, 22), bytes(150 * KIB, 23)];
        let mut w = World::new();
        let mut n = 0;
        let hosts = ["http://a/f", "http://b/f"];
        for turn in 0..whims.len() {
            w.company = if turn % 3 == 0 { Company::Others } else { Company::Alone };
            let end = w.session(hosts[turn % 2], &mut |ask| {
                n += 1;
                whimsical(&versions, &whims[n % whims.len()], n, ask)
            });
            if let Ended::Finished(data, _) = end {
                prop_assert!(versions.contains(&data), "{} bytes of no version", data.len());
                w.dossier = Dossier::default();
                w.files = sim::Files::default();
            }
        }
    }
}
