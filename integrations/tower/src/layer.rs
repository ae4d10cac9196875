//! The layer, and what can be set on it.

use tenure::Leadership;
use tower_layer::Layer;

use crate::{LeaderOnlyService, Unavailable};

/// Wraps services so that they are called only while this replica leads. [The crate's page](crate) says what happens
/// to a request.
///
/// `R` is what answers when it does not lead.
///
/// ```
/// use tenure::{Elector, MemoryStore};
/// use tenure_tower::LeaderOnlyLayer;
/// use tower_layer::Layer;
///
/// # let inner = ();
/// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
/// let service = LeaderOnlyLayer::new(elector.leadership()).advertise_leader().layer(inner);
/// # Ok::<(), tenure::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct LeaderOnlyLayer<R = Unavailable> {
    leadership: Leadership,
    options: Options,
    refuse: R,
}

/// What was set on the layer and decides in its services.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether the term goes into the request's extensions.
    pub(crate) extension: bool,
    /// Whether a refusal tells who leads.
    pub(crate) advertise: bool,
}

impl LeaderOnlyLayer {
    /// Lets requests through while `leadership` says that this replica leads and is ready, and answers the others with
    /// [`Unavailable`].
    pub fn new(leadership: Leadership) -> Self {
        let options = Options { extension: true, advertise: false };
        Self { leadership, options, refuse: Unavailable::new() }
    }
}

impl<R> LeaderOnlyLayer<R> {
    /// Leaves the [`Term`](tenure::Term) out of the request's extensions, which saves an allocation per request. By
    /// default it is put there.
    pub fn without_extension(mut self) -> Self {
        self.options.extension = false;
        self
    }

    /// Tells whoever is refused who leads: identity, fence and payload. By default that is not told, since the payload
    /// is often an internal address.
    pub fn advertise_leader(mut self) -> Self {
        self.options.advertise = true;
        self
    }
}

impl<S, R: Clone> Layer<S> for LeaderOnlyLayer<R> {
    type Service = LeaderOnlyService<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        LeaderOnlyService::new(inner, self.leadership.clone(), self.options, self.refuse.clone())
    }
}
