//! The middleware: what can be set on it, and where it is decided whether a request is refused.

use std::{fmt, sync::Arc};

use actix_web::{
    Error, FromRequest, Handler, HttpMessage, HttpRequest, HttpResponse, Responder,
    body::MessageBody,
    dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready},
};
use tenure::Leadership;
use tenure_http::{Drain, Refusal, RefusalSettings, RetryAfter};

use crate::{LeaderBody, LeaderFuture, convert, refuse::Refuse};

/// Wraps an app, a scope or a resource so that its services are called only while this replica leads. [The crate's
/// page](crate) says what happens to a request.
///
/// Of [`redirect_to_leader`](Self::redirect_to_leader), [`on_reject`](Self::on_reject) and [`otherwise`](Self::otherwise)
/// the last one counts.
///
/// ```
/// use actix_web::{App, web};
/// use tenure::{Elector, MemoryStore};
/// use tenure_actix_web::LeaderOnly;
///
/// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
/// let gate = LeaderOnly::new(elector.leadership()).advertise_leader();
/// let app = App::new()
///     .service(web::resource("/jobs").wrap(gate).route(web::post().to(async || "done")));
/// # Ok::<(), tenure::ConfigError>(())
/// ```
#[derive(Clone)]
#[must_use = "a middleware does nothing until something is wrapped in it"]
pub struct LeaderOnly(Gate);

#[derive(Clone)]
struct Gate {
    leadership: Leadership,
    /// Whether the term goes into the request's extensions.
    extension: bool,
    refusals: RefusalSettings,
    drain: Drain,
    refuse: Refuse,
}

impl LeaderOnly {
    /// Lets requests through while `leadership` says that this replica leads and is ready, and answers the others with
    /// `503 Service Unavailable`.
    pub fn new(leadership: Leadership) -> Self {
        Self(Gate {
            leadership,
            extension: true,
            refusals: RefusalSettings::new(),
            drain: Drain::Finish,
            refuse: Refuse::Unavailable,
        })
    }

    /// Leaves the [`Term`](tenure::Term) out of the request's extensions, which saves an allocation per request. By
    /// default it is put there.
    pub fn without_extension(mut self) -> Self {
        self.0.extension = false;
        self
    }

    /// Tells whoever is refused who leads: identity, fence and payload. By default that is not told, since the payload
    /// is often an internal address.
    pub fn advertise_leader(mut self) -> Self {
        self.0.refusals = self.0.refusals.advertise_leader();
        self
    }

    /// When whoever is refused is asked to come back. By default that is when the lease will have run out; behind a load
    /// balancer that tries another replica, a second may suit better.
    pub fn retry_after(mut self, retry_after: RetryAfter) -> Self {
        self.0.refusals = self.0.refusals.retry_after(retry_after);
        self
    }

    /// What a hand-over does to streams: [`Drain::Finish`] by default.
    pub fn drain(mut self, drain: Drain) -> Self {
        self.0.drain = drain;
        self
    }

    /// Leads requests to the leader, with `307 Temporary Redirect`, which keeps method and body. The leader's payload has
    /// to be its `http` or `https` URL; path and query are appended to it.
    ///
    /// The answer stays the usual `503` if nobody or this very replica is known to lead, if the payload is no such URL, if
    /// the redirect would lead in a circle ([`tenure_http::Redirect`] says when), and for gRPC, whose clients follow none.
    pub fn redirect_to_leader(mut self) -> Self {
        self.0.refuse = Refuse::Redirect;
        self
    }

    /// Answers requests that are refused with what `answer` makes of them. It gets what there is to say, and the request
    /// without its body. It is never asked about a request that was cut by the end of a term.
    ///
    /// ```
    /// use actix_web::{HttpRequest, HttpResponse, http::StatusCode};
    /// use tenure::{Elector, MemoryStore};
    /// use tenure_actix_web::{LeaderOnly, Refusal};
    ///
    /// fn answer(refusal: Refusal, asked: &HttpRequest) -> HttpResponse {
    ///     let text = format!("{} is for the leader of {}", asked.path(), refusal.election());
    ///     HttpResponse::build(StatusCode::MISDIRECTED_REQUEST).body(text)
    /// }
    ///
    /// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
    /// let gate = LeaderOnly::new(elector.leadership()).on_reject(answer);
    /// # Ok::<(), tenure::ConfigError>(())
    /// ```
    pub fn on_reject<F>(mut self, answer: F) -> Self
    where
        F: Fn(Refusal, &HttpRequest) -> HttpResponse + Send + Sync + 'static,
    {
        self.0.refuse = Refuse::Answer(Arc::new(answer));
        self
    }

    /// Hands requests that are refused to another handler, for example one that forwards them to the leader. It takes what
    /// any handler takes, bodies included, and finds the [`Refusal`] in the request's extensions. It is never given a
    /// request that was cut by the end of a term.
    ///
    /// ```
    /// use actix_web::{HttpResponse, Responder, web::{Bytes, ReqData}};
    /// use tenure::{Elector, MemoryStore};
    /// use tenure_actix_web::{LeaderOnly, Refusal};
    ///
    /// async fn ask_the_leader(refusal: ReqData<Refusal>, body: Bytes) -> impl Responder {
    ///     HttpResponse::Ok().body(format!("asking the leader of {}", refusal.election()))
    /// }
    ///
    /// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
    /// let gate = LeaderOnly::new(elector.leadership()).otherwise(ask_the_leader);
    /// # Ok::<(), tenure::ConfigError>(())
    /// ```
    pub fn otherwise<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args, Output: Responder> + Send + Sync,
        Args: FromRequest + 'static,
    {
        self.0.refuse = Refuse::hand_to(handler);
        self
    }
}

impl<S, B> Transform<S, ServiceRequest> for LeaderOnly
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Response = ServiceResponse<LeaderBody<B>>;
    type Error = Error;
    type Transform = LeaderOnlyService<S>;
    type InitError = ();
    type Future = std::future::Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        std::future::ready(Ok(LeaderOnlyService { inner, gate: self.0.clone() }))
    }
}

/// Calls the inner service while this replica leads, and refuses otherwise. Made by [`LeaderOnly`].
///
/// Errors of the inner service pass through unchanged; a refusal is none.
pub struct LeaderOnlyService<S> {
    inner: S,
    gate: Gate,
}

impl<S, B> Service<ServiceRequest> for LeaderOnlyService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Response = ServiceResponse<LeaderBody<B>>;
    type Error = Error;
    type Future = LeaderFuture<S::Future>;

    // Ready when the inner service is. Whether this replica leads is asked in `call`: an answer given here might be old by
    // then, and `Pending` would queue what is to be refused.
    forward_ready!(inner);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        // Guarded until this returns: the inner service may work in `call` already, before its future is polled.
        let Some((in_flight, _guard)) = self.gate.leadership.admit() else {
            let refusal = self.gate.refusals.refusal(&self.gate.leadership);
            return LeaderFuture::refused(self.gate.refuse.refuse(
                refusal,
                &self.gate.leadership,
                request,
            ));
        };
        let form = convert::form(request.request());
        if self.gate.extension {
            request.extensions_mut().insert(in_flight.term().clone());
        }
        // From here on nobody else may hold the request: routing takes it apart.
        LeaderFuture::leading(self.inner.call(request), in_flight, form, self.gate.drain)
    }
}

impl fmt::Debug for LeaderOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(&mut f.debug_struct("LeaderOnly"))
    }
}

impl<S: fmt::Debug> fmt::Debug for LeaderOnlyService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.gate.debug(f.debug_struct("LeaderOnlyService").field("inner", &self.inner))
    }
}

impl Gate {
    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) -> fmt::Result {
        f.field("leadership", &self.leadership)
            .field("extension", &self.extension)
            .field("refusals", &self.refusals)
            .field("drain", &self.drain)
            .finish_non_exhaustive()
    }
}
