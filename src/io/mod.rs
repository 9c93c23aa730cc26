//! The hands: each file owns one kind of effect, and decides nothing.

pub mod clock;
pub mod driver;
pub mod durable;
#[cfg(not(feature = "failpoints"))]
mod effects;
#[cfg(feature = "failpoints")]
pub mod effects;
pub mod entropy;
pub mod lane;
pub mod limits;
pub mod listen;
pub mod lock;
pub mod owner;
pub mod part;
pub(crate) mod regular;
pub mod rpc_auth;
pub mod service_manager;
pub mod state_file;
pub mod store;
pub mod sync;
pub mod transport;
