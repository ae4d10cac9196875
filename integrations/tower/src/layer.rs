//! The layer, and what can be set on it.

use http::{Extensions, Response, Uri, request::Parts};
use tenure::Leadership;
use tenure_http::{Drain, Refusal, RefusalSettings, RetryAfter};
use tower_layer::Layer;

use crate::{LeaderOnlyService, OnReject, Otherwise, RedirectToLeader, Unavailable};

/// Wraps services so that they are called only while this replica leads. [The crate's page](crate) says what happens
/// to a request.
///
/// `R` is what answers when it does not lead. Of [`redirect_to_leader`](Self::redirect_to_leader),
/// [`on_reject`](Self::on_reject) and [`otherwise`](Self::otherwise) the last one counts.
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
    pub(crate) refusals: RefusalSettings,
    pub(crate) drain: Drain,
}

impl LeaderOnlyLayer {
    /// Lets requests through while `leadership` says that this replica leads and is ready, and answers the others with
    /// [`Unavailable`].
    pub fn new(leadership: Leadership) -> Self {
        let refusals = RefusalSettings::new();
        let options = Options { extension: true, refusals, drain: Drain::Finish };
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
        self.options.refusals = self.options.refusals.advertise_leader();
        self
    }

    /// When whoever is refused is asked to come back. By default that is when the lease will have run out; behind a load
    /// balancer that tries another replica, a second may suit better.
    pub fn retry_after(mut self, retry_after: RetryAfter) -> Self {
        self.options.refusals = self.options.refusals.retry_after(retry_after);
        self
    }

    /// What a hand-over does to streams: [`Drain::Finish`] by default.
    pub fn drain(mut self, drain: Drain) -> Self {
        self.options.drain = drain;
        self
    }

    /// Leads requests to the leader, with `307 Temporary Redirect`, which keeps method and body. The leader's payload has
    /// to be its `http` or `https` URL; path and query are appended to it.
    ///
    /// The answer stays the usual `503` if nobody or this very replica is known to lead, if the payload is no such URL, if
    /// the redirect would lead in a circle ([`tenure_http::Redirect`] says when), and for gRPC, whose clients follow none.
    ///
    /// ```
    /// use tenure::{Elector, MemoryStore};
    /// use tenure_tower::LeaderOnlyLayer;
    ///
    /// let elector = Elector::builder("billing", MemoryStore::new())
    ///     .payload("http://10.0.0.7:8080") // where this replica is found
    ///     .build()?;
    /// let layer = LeaderOnlyLayer::new(elector.leadership()).redirect_to_leader();
    /// # Ok::<(), tenure::ConfigError>(())
    /// ```
    pub fn redirect_to_leader(self) -> LeaderOnlyLayer<RedirectToLeader> {
        self.redirect_to_leader_at(|_| None)
    }

    /// The same where a request's URI is rewritten before it comes here, as routers do that strip a prefix: `sent` finds
    /// the URI that the client sent. If it gives none, the request's own is taken.
    ///
    /// (For axum, `tenure_axum::original_uri` does it.)
    pub fn redirect_to_leader_at(
        self,
        sent: fn(&Extensions) -> Option<&Uri>,
    ) -> LeaderOnlyLayer<RedirectToLeader> {
        let redirect = RedirectToLeader::new(self.leadership.clone(), sent);
        self.refuse_by(redirect)
    }

    /// Answers requests that are refused with what `answer` makes of them. It gets what there is to say, and the request's
    /// head.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::{Response, StatusCode, request::Parts};
    /// use http_body_util::Full;
    /// use tenure::{Elector, MemoryStore};
    /// use tenure_tower::{LeaderOnlyLayer, Refusal};
    ///
    /// fn answer(refusal: Refusal, asked: &Parts) -> Response<Full<Bytes>> {
    ///     let text = format!("{} is for the leader of {}", asked.uri.path(), refusal.election());
    ///     let mut response = Response::new(Full::from(text));
    ///     *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    ///     response
    /// }
    ///
    /// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
    /// let layer = LeaderOnlyLayer::new(elector.leadership()).on_reject(answer);
    /// # Ok::<(), tenure::ConfigError>(())
    /// ```
    pub fn on_reject<F, B>(self, answer: F) -> LeaderOnlyLayer<OnReject<F>>
    where
        F: Fn(Refusal, &Parts) -> Response<B>,
    {
        self.refuse_by(OnReject::new(answer))
    }

    /// Hands requests that are refused to another service, for example one that forwards them to the leader. It finds the
    /// [`Refusal`] in the request's extensions. Its errors are those of the inner service; a clone of it is polled ready for
    /// each request.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use http::{Request, Response};
    /// use tenure::{Elector, MemoryStore};
    /// use tenure_tower::{LeaderOnlyLayer, Refusal};
    /// use tower::service_fn;
    ///
    /// async fn ask_the_leader<B>(request: Request<B>) -> Result<Response<String>, Infallible> {
    ///     let refusal = request.extensions().get::<Refusal>().expect("it was refused");
    ///     Ok(Response::new(format!("asking the leader of {}", refusal.election())))
    /// }
    ///
    /// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
    /// let layer = LeaderOnlyLayer::new(elector.leadership())
    ///     .otherwise(service_fn(ask_the_leader::<String>));
    /// # Ok::<(), tenure::ConfigError>(())
    /// ```
    pub fn otherwise<S>(self, service: S) -> LeaderOnlyLayer<Otherwise<S>> {
        self.refuse_by(Otherwise::new(service))
    }

    /// Answers requests that are refused by an implementation of [`Refuse`](crate::Refuse).
    pub fn refuse_by<R2>(self, refuse: R2) -> LeaderOnlyLayer<R2> {
        LeaderOnlyLayer { leadership: self.leadership, options: self.options, refuse }
    }
}

impl<S, R: Clone> Layer<S> for LeaderOnlyLayer<R> {
    type Service = LeaderOnlyService<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        LeaderOnlyService::new(inner, self.leadership.clone(), self.options, self.refuse.clone())
    }
}
