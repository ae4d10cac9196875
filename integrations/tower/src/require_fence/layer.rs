//! The layer, and what can be set on it.

use std::sync::Arc;

use tenure::ElectionName;
use tower_layer::Layer;

use super::{HighestSeen, RequireFenceService};

/// Lets requests through that are made under the latest term seen, and refuses the others: late ones of a leader that was
/// frozen or held up in the network while another one took over. Goes around a service that leaders send requests to,
/// stamped by a [`FenceHeader`](crate::FenceHeader).
///
/// Requests say themselves under which term they were made, so let only those in here who may send requests at all: a fence
/// that somebody made up locks the true leader out. Only elections that are named here count.
///
/// | the request | the answer ([`FenceRefusal`](tenure_http::FenceRefusal)) |
/// |---|---|
/// | of the latest term seen, or a later one | that of the inner service, which finds the [`Stamp`](tenure_http::Stamp) in the extensions |
/// | of an earlier term | `412 Precondition Failed` |
/// | of another election | `412 Precondition Failed` |
/// | without a stamp | `428 Precondition Required`, or as if it were of the latest term if that is [allowed](Self::allow_unstamped) |
/// | with headers that are no stamp | `400 Bad Request` |
/// | while what was seen can't be told | `503 Service Unavailable` |
///
/// # What it can not do
/// Requests are compared when they are admitted. One of an earlier term that was admitted before, and is still being worked
/// on, goes on. If its effect may not come after one of the later term, compare the fence once more where the effect takes
/// place, for example in the `WHERE` of the `UPDATE`; the handler has it in the stamp.
///
/// ```
/// use axum::{Extension, Router, routing::post};
/// use tenure::ElectionName;
/// use tenure_http::Stamp;
/// use tenure_tower::RequireFence;
///
/// async fn add_entry(Extension(stamp): Extension<Stamp>) -> String {
///     format!("added for term {}", stamp.fence())
/// }
///
/// let app: Router = Router::new()
///     .route("/entries", post(add_entry))
///     .route_layer(RequireFence::new(ElectionName::new("billing")?));
/// # Ok::<(), tenure::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct RequireFence<K = HighestSeen> {
    rules: Rules,
    keep: K,
}

/// Which requests are compared at all.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) elections: Arc<[ElectionName]>,
    pub(super) allow_unstamped: bool,
}

impl RequireFence {
    /// Refuses requests of all terms of `election` but the latest seen, which is kept in memory: what services of this layer
    /// and of its clones have seen.
    pub fn new(election: ElectionName) -> Self {
        let rules = Rules { elections: [election].into(), allow_unstamped: false };
        Self { rules, keep: HighestSeen::new() }
    }
}

impl<K> RequireFence<K> {
    /// Also lets in requests of another election's leader, whose fences have nothing to do with those of the first.
    pub fn or_of(mut self, election: ElectionName) -> Self {
        self.rules.elections = self.rules.elections.iter().cloned().chain([election]).collect();
        self
    }

    /// Lets requests through that carry no stamp, while not all who send any have learnt to. They are protected from
    /// nothing.
    pub fn allow_unstamped(mut self) -> Self {
        self.rules.allow_unstamped = true;
        self
    }

    /// Keeps the highest fences elsewhere, for example in a database.
    pub fn kept_by<K2>(self, keep: K2) -> RequireFence<K2> {
        RequireFence { rules: self.rules, keep }
    }
}

impl<S, K: Clone> Layer<S> for RequireFence<K> {
    type Service = RequireFenceService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        RequireFenceService::new(inner, self.rules.clone(), self.keep.clone())
    }
}
