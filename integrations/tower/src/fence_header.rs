//! The client's side of fencing between services: requests that say under which term they are made.

use std::task::{Context, Poll};

use http::Request;
use tenure::Term;
use tenure_http::Stamp;
use tower_layer::Layer;
use tower_service::Service;

/// Stamps requests with the term under which they are made, for services that refuse those of a term that is over
/// ([`RequireFence`](crate::RequireFence)). Goes around an HTTP client.
///
/// The stamp is that of the term in which the decision to send was taken, and not of whichever term is current when the
/// request leaves: a request that is held up, queued or repeated is still that of its own term, and is refused as such.
///
/// ```
/// use http::Request;
/// use tenure::{Elector, MemoryStore};
/// use tenure_http::FENCE;
/// use tenure_tower::FenceHeader;
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let client = service_fn(async |request: Request<String>| {
/// #     Ok::<_, std::convert::Infallible>(request.headers()[FENCE].clone())
/// # });
/// let client = ServiceBuilder::new().layer(FenceHeader::new()).service(client);
///
/// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
/// let leadership = elector.leadership();
/// let candidacy = elector.spawn();
/// let term = leadership.leading().await?;
///
/// let mut request = Request::post("http://ledger/entries").body(String::from("42 EUR"))?;
/// request.extensions_mut().insert(term.clone());
/// let sent_with = client.oneshot(request).await?;
/// assert_eq!(sent_with, term.fence().to_string());
/// # candidacy.shutdown().await?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct FenceHeader {
    stamp: Option<Stamp>,
}

impl FenceHeader {
    /// Stamps with the [`Term`] in each request's extensions. A request without one is sent as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stamps all requests with `term`, whatever is in their extensions: for a client that is made for one term.
    pub fn of(term: &Term) -> Self {
        Self { stamp: Some(Stamp::of(term)) }
    }
}

impl<S> Layer<S> for FenceHeader {
    type Service = FenceHeaderService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FenceHeaderService { inner, stamp: self.stamp.clone() }
    }
}

/// Stamps requests before it hands them on. Made by [`FenceHeader`].
#[derive(Clone, Debug)]
pub struct FenceHeaderService<S> {
    inner: S,
    stamp: Option<Stamp>,
}

impl<S, A> Service<Request<A>> for FenceHeaderService<S>
where
    S: Service<Request<A>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<A>) -> S::Future {
        let own = || request.extensions().get().map(Stamp::of);
        if let Some(stamp) = self.stamp.clone().or_else(own) {
            stamp.write(request.headers_mut());
        }
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::HeaderMap;
    use tower::{ServiceBuilder, ServiceExt};

    use super::*;
    use crate::test_helpers::{Replica, request};

    async fn sent(layer: FenceHeader, request: Request<()>) -> Option<Stamp> {
        let headers =
            async |request: Request<()>| Ok::<HeaderMap, Infallible>(request.headers().clone());
        let service = ServiceBuilder::new().layer(layer).service_fn(headers);
        Stamp::read(&service.oneshot(request).await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_request_carries_the_fence_of_its_own_term_whatever_is_current() {
        let (replica, term) = Replica::leading().await;
        let mut late = request();
        late.extensions_mut().insert(term.clone());
        replica.leadership.resign().await;
        let next = replica.leadership.leading().await.unwrap();
        assert_ne!(next.fence(), term.fence());

        assert_eq!(sent(FenceHeader::new(), late.clone()).await, Some(Stamp::of(&term)));
        assert_eq!(sent(FenceHeader::of(&term), request()).await, Some(Stamp::of(&term)));
        assert_eq!(sent(FenceHeader::of(&next), late).await, Some(Stamp::of(&next)));
    }

    #[tokio::test]
    async fn a_request_without_a_term_is_sent_as_it_is() {
        assert_eq!(sent(FenceHeader::new(), request()).await, None);
    }
}
