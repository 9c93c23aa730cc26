//! Randomness: the only file that seeds a generator.
//!
//! Every generator is seeded by the operating system (design section 4), so that no two processes of a fleet draw the
//! same delays.

use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};

/// The operating system gave no random bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes ({detail}); is /dev/urandom there?")]
pub struct NoEntropy {
    /// What the system said.
    pub detail: String,
}

/// A cryptographic generator (ChaCha12), seeded by the operating system.
///
/// # Errors
/// [`NoEntropy`] where the system call fails; no Linux since 3.17 does that once it is up.
pub fn system_rng() -> Result<impl rand::Rng + Send + 'static, NoEntropy> {
    StdRng::try_from_rng(&mut SysRng).map_err(|e| NoEntropy { detail: e.to_string() })
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn two_generators_draw_different_numbers() {
        let (mut one, mut two) = (system_rng().unwrap(), system_rng().unwrap());
        assert_ne!([one.next_u64(), one.next_u64()], [two.next_u64(), two.next_u64()]);
    }
}
