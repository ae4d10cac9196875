//! Leases in a NATS JetStream key-value bucket, for [tenure].

mod api;
mod bucket;
mod entry;
mod error;
mod hints;
mod key;
mod link;
mod migrate;
mod session;
mod settings;
mod setup;
mod store;
mod value;

pub use async_nats;

pub use self::{
    bucket::BucketError,
    error::{NatsError, Refusal},
    migrate::migrate,
    session::NatsSession,
    settings::{Difference, Setting, Storage},
    setup::SetupError,
    store::NatsStore,
    value::ValueError,
};
