//! Redirects to the leader.

use std::future::{Ready, ready};

use bytes::Bytes;
use http::{Extensions, Request, Response, Uri};
use http_body_util::Full;
use tenure::Leadership;
use tenure_http::{Form, Redirect, Refusal};

use super::Refuse;

/// Answers `307` to where the leader is, or as [`Unavailable`](super::Unavailable) if that is not known. Made by
/// [`LeaderOnlyLayer::redirect_to_leader`](crate::LeaderOnlyLayer::redirect_to_leader).
#[derive(Clone, Debug)]
pub struct RedirectToLeader {
    leadership: Leadership,
    /// Finds the URI that the client sent, if it was rewritten since.
    sent: fn(&Extensions) -> Option<&Uri>,
}

impl RedirectToLeader {
    pub(crate) fn new(leadership: Leadership, sent: fn(&Extensions) -> Option<&Uri>) -> Self {
        Self { leadership, sent }
    }

    fn redirect<A>(&self, request: &Request<A>) -> Option<Redirect> {
        let status = self.leadership.status();
        let uri = (self.sent)(request.extensions()).unwrap_or(request.uri());
        Redirect::from_standby(&status, uri, request.headers())
    }
}

impl<A, E> Refuse<A, E> for RedirectToLeader {
    type Body = Full<Bytes>;
    type Future = Ready<Result<Response<Full<Bytes>>, E>>;

    fn refuse(&self, refusal: Refusal, request: Request<A>) -> Self::Future {
        let form = Form::of(&request);
        let redirect = self.redirect(&request).and_then(|redirect| redirect.to_response_in(form));
        let response = redirect.unwrap_or_else(|| refusal.to_response_in(form));
        ready(Ok(response.map(Full::new)))
    }
}
