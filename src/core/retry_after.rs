//! retry_after
use crate::core::time::{Delay, Epoch};
/// stub
pub fn parse(_t: &str, _d: Option<Epoch>, _n: Epoch) -> Option<Delay> { None }
