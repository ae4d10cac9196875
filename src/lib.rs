//! Leader election for services that share nothing but a database.

mod instant;
mod lease;
pub mod protocol;
pub mod store;

pub use instant::Instant;
pub use lease::{
    ElectionName, Fence, Identity, InvalidValue, Lease, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, Payload,
    TermEnd, Version,
};
pub use store::{DynStore, Store, StoreError};
