//! Leader election for services that share nothing but a database.

mod clock;
mod instant;
mod leadership;
mod lease;
mod memory;
pub mod protocol;
pub mod store;
mod term;

pub use clock::Clock;
#[cfg(feature = "test-util")]
pub use clock::ManualClock;
pub use instant::Instant;
pub use leadership::{
    IfLeader, LastError, Leader, LeaderOnlyError, Leadership, Status, Stopped, Terms, Transition,
    Transitions,
};
pub use lease::{
    ElectionName, Fence, Identity, InvalidValue, Lease, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, Payload,
    TermEnd, Version,
};
pub use memory::{MemoryBackup, MemorySession, MemoryStore};
pub use protocol::Phase;
pub use store::{DynStore, Store, StoreError};
pub use term::{Cancelled, EndWake, Ended, InFlight, LeaderOnly, Term, TermEnded, TermGuard};
