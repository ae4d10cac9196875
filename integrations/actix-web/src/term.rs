//! The term, for handlers.

use std::{
    fmt,
    future::{Ready, ready},
};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest, ResponseError, dev::Payload, http::StatusCode,
};
use tenure::Term;

/// The term under which a request was admitted, for handlers behind a [`LeaderOnly`](crate::LeaderOnly).
///
/// It is the same as `ReqData<Term>`, but a route that is not behind the middleware says so clearly. It is not taken from
/// anywhere else: without the middleware nothing would stop the handler when the term ends, and a term in its hands would
/// promise what nobody keeps. Behind two of them, of two elections, it is the inner one's.
///
/// `Option<LeaderTerm>` is for handlers that serve both kinds of routes.
///
/// ```
/// use tenure_actix_web::LeaderTerm;
///
/// async fn run_job(LeaderTerm(term): LeaderTerm) -> String {
///     let report = term.spawn(async { println!("reported") }); // ends with the term
///     drop(report);
///     format!("done in term {}", term.fence())
/// }
/// # drop(actix_web::web::post().to(run_job));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made to be taken apart in a handler's arguments")]
pub struct LeaderTerm(pub Term);

impl FromRequest for LeaderTerm {
    type Error = LeaderTermRejection;
    type Future = Ready<Result<Self, LeaderTermRejection>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(request.extensions().get().cloned().map(Self).ok_or(LeaderTermRejection))
    }
}

/// There is no term in the request's extensions. That is a mistake in how the routes were put together, so it is a
/// `500 Internal Server Error`, and not a `503`: it does not depend on who leads.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LeaderTermRejection;

impl fmt::Display for LeaderTermRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the route is not behind a `LeaderOnly`, or behind one without extension, and has no term",
        )
    }
}

impl std::error::Error for LeaderTermRejection {}

impl ResponseError for LeaderTermRejection {
    fn status_code(&self) -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}
