//! The server's side of fencing between services: requests of a term that is over are refused.

mod future;
mod keep;
mod layer;
mod service;

pub use self::{
    future::RequireFenceFuture,
    keep::{HighestSeen, KeepFences},
    layer::RequireFence,
    service::RequireFenceService,
};
