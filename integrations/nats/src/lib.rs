//! Leases in a NATS JetStream key-value bucket, for [tenure].

mod api;
mod bucket;
mod entry;
mod error;
mod hints;
mod key;
mod link;
mod session;
mod setup;
mod store;
mod value;

pub use async_nats;

pub use self::{
    bucket::{BucketError, Difference, Setting, Storage},
    error::{NatsError, Refusal},
    session::NatsSession,
    setup::SetupError,
    store::NatsStore,
    value::ValueError,
};
