//! The term, for handlers.

use std::convert::Infallible;

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use tenure::Term;

/// The term under which a request was admitted, for handlers behind a [`LeaderOnlyLayer`](crate::LeaderOnlyLayer).
///
/// It is the same as `Extension<Term>`, but a route that is not behind the layer says so clearly. It is not taken from
/// anywhere else: without the layer nothing would stop the handler when the term ends, and a term in its hands would
/// promise what nobody keeps. Behind two layers of two elections it is the inner one's.
///
/// `Option<LeaderTerm>` is for handlers that serve both kinds of routes.
///
/// ```
/// use tenure_axum::LeaderTerm;
///
/// async fn run_job(LeaderTerm(term): LeaderTerm) -> String {
///     let report = term.spawn(async { println!("reported") }); // ends with the term
///     drop(report);
///     format!("done in term {}", term.fence())
/// }
/// # drop(axum::routing::post::<_, _, ()>(run_job));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made to be taken apart in a handler's arguments")]
pub struct LeaderTerm(pub Term);

impl<S: Sync> FromRequestParts<S> for LeaderTerm {
    type Rejection = LeaderTermRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, LeaderTermRejection> {
        parts.extensions.get().cloned().map(Self).ok_or(LeaderTermRejection)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for LeaderTerm {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get().cloned().map(Self))
    }
}

/// There is no term in the request's extensions. That is a mistake in how the routes were put together, so it is a
/// `500 Internal Server Error`, and not a `503`: it does not depend on who leads.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the route is not behind a `LeaderOnlyLayer`, or behind one without extension, and has no term"
)]
#[non_exhaustive]
pub struct LeaderTermRejection;

impl LeaderTermRejection {
    /// `500 Internal Server Error`.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }

    /// What the response says.
    #[must_use]
    pub fn body_text(&self) -> String {
        self.to_string()
    }
}

impl IntoResponse for LeaderTermRejection {
    fn into_response(self) -> Response {
        (self.status(), self.body_text()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, http::Request, routing::get};
    use tenure::{Elector, MemoryStore};
    use tower::ServiceExt;

    use super::*;
    use crate::LeaderOnlyLayer;

    async fn fence(LeaderTerm(term): LeaderTerm) -> String {
        term.fence().to_string()
    }

    async fn maybe(term: Option<LeaderTerm>) -> String {
        term.map_or("none".into(), |LeaderTerm(term)| term.fence().to_string())
    }

    async fn ask(app: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn handlers_behind_the_layer_get_their_term() {
        let candidacy = Elector::builder("billing", MemoryStore::new()).build().unwrap().spawn();
        let leadership = candidacy.leadership();
        let term = leadership.leading().await.unwrap();
        let app = Router::new()
            .route("/fence", get(fence))
            .route("/maybe", get(maybe))
            .route_layer(LeaderOnlyLayer::new(leadership));
        let expected = (StatusCode::OK, term.fence().to_string());
        assert_eq!(ask(&app, "/fence").await, expected);
        assert_eq!(ask(&app, "/maybe").await, expected);
    }

    #[tokio::test]
    async fn a_route_without_the_layer_says_what_is_wrong_with_it() {
        let app = Router::new().route("/fence", get(fence)).route("/maybe", get(maybe));
        let (status, text) = ask(&app, "/fence").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(text.contains("not behind a `LeaderOnlyLayer`"), "{text}");
        assert_eq!(ask(&app, "/maybe").await, (StatusCode::OK, "none".into()));
    }
}
