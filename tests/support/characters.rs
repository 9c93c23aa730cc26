//! Characters: what a simulated mirror is like, and how a session with it turns out.

use persxfer::core::failure::{BadAnswer, Cut, Failure};
use persxfer::core::file_xfer::End;
use persxfer::core::pers_xfer::record::Evidence;
use persxfer::core::range::Offset;
use persxfer::core::time::Delay;
use rand::RngExt;
use rand::rngs::StdRng;

/// What a mirror is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Character {
    /// Takes no connection, or lets it hang.
    Dead,
    /// 503, now and then 429.
    Busy,
    /// 503 with a Retry-After of up to two days.
    Asking,
    /// A page in place of the file.
    Portal,
    /// 404 or 410.
    Gone,
    /// Serves, and breaks off; at times it is not there.
    Flaky,
    /// Serves wrong bytes.
    Lying,
    /// Dead until this moment, good from then on.
    RecoversAt(Delay),
    /// Serves for a while, then says 404 until the second moment.
    GoneBetween(Delay, Delay),
    /// Holds another file.
    Odd,
}

impl Character {
    /// How many bytes a session will bring, and how it will end.
    pub(crate) fn session(self, t: Delay, missing: u64, rng: &mut StdRng) -> (u64, End) {
        let failed = |failure| (0, End::Failed(failure));
        match self {
            Character::Dead => failed(silence(rng)),
            Character::RecoversAt(at) if t < at => failed(silence(rng)),
            Character::Busy => {
                failed(Failure::Status { code: [503, 429, 500][rng.random_range(0..3)], retry_after: None })
            }
            Character::Asking => {
                let asked = Delay::from_secs(rng.random_range(1..200_000));
                failed(Failure::Status { code: 503, retry_after: Some(asked) })
            }
            Character::Portal => failed(Failure::BadAnswer(BadAnswer::HtmlPage)),
            Character::Gone => failed(Failure::Status { code: [404, 410][rng.random_range(0..2)], retry_after: None }),
            Character::GoneBetween(from, until) if (from..until).contains(&t) => {
                failed(Failure::Status { code: 404, retry_after: None })
            }
            Character::Odd => failed(Failure::OddMirror { at: Offset::ZERO }),
            Character::Flaky if rng.random_bool(0.3) => failed(silence(rng)),
            Character::Flaky | Character::GoneBetween(..) => served(missing, 0.1, rng),
            Character::Lying | Character::RecoversAt(_) => served(missing, 0.7, rng),
        }
    }
}

fn silence(rng: &mut StdRng) -> Failure {
    match rng.random_range(0..3) {
        0 => Failure::Connect { detail: "refused".to_owned() },
        1 => Failure::NoAnswer { waited: Delay::from_secs(30) },
        _ => Failure::Resolve { host: "m".to_owned(), detail: "no such name".to_owned() },
    }
}

fn served(missing: u64, whole: f64, rng: &mut StdRng) -> (u64, End) {
    let gain = if rng.random_bool(whole) { missing } else { rng.random_range(0..3 << 20).min(missing) };
    if gain == missing {
        return (gain, End::Complete { evidence: Evidence::Digest });
    }
    let broken = Failure::Cut(Cut::Broken { detail: "reset".to_owned() });
    let stalled = Failure::Stalled { floor: 10, window: Delay::from_secs(60) };
    (gain, End::Failed(if rng.random_bool(0.5) { broken } else { stalled }))
}

pub(crate) fn wrong_digest() -> Failure {
    Failure::Digest { algorithm: "sha-256", expected: "00".to_owned(), found: "11".to_owned() }
}
