//! Where threads meet: the types of the standard library and of tokio, whose names they keep.
//!
//! `cargo xtask interleavings` compiles the tests with `--cfg tenure_loom`, which puts their like in place that loom
//! knows, so that it explores what ships. Nobody else sees any of that.

#[cfg(not(all(test, tenure_loom)))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(not(all(test, tenure_loom)))]
pub(crate) use tokio::sync::{Notify, futures::OwnedNotified, watch};
#[cfg(not(all(test, tenure_loom)))]
pub(crate) use tokio_util::sync::CancellationToken;

#[cfg(all(test, tenure_loom))]
pub(crate) use self::explored::{
    CancellationToken, Mutex, MutexGuard, Notify, OwnedNotified, atomic, explore, watch,
};

#[cfg(all(test, tenure_loom))]
mod explored;
