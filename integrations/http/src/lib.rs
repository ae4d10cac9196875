//! What a replica answers over HTTP when it is not the leader, as data: status, headers and body.
//!
//! The adapters for frameworks (`tenure-tower`, `tenure-axum` and others) put these answers on the wire; use this crate
//! directly if you write an adapter of your own, or a client that has to understand them. There are two answers, and
//! the difference matters to whoever sent the request:
//!
//! | answer | `tenure-reason` | what happened to the request | `retry-after` |
//! |---|---|---|---|
//! | [`Refusal`] | `refused` | nothing looked at it: send it again, here or to another replica | yes |
//! | [`Cut`] | `cut` | it was being worked on when the term ended: the outcome is unknown | no |
//!
//! Both are `503 Service Unavailable` with a body of type `application/problem+json` (RFC 9457) that names the
//! election, and for gRPC a status `UNAVAILABLE`; [`Form`] tells which a request asks for. In place of a refusal, a
//! [`Redirect`] can lead to the leader.
//!
//! ```
//! use std::time::Duration;
//! use http::{StatusCode, header::RETRY_AFTER};
//! use tenure::ElectionName;
//! use tenure_http::{REASON, Refusal};
//!
//! let refusal = Refusal::new(ElectionName::new("billing")?, Some(Duration::from_millis(2_300)));
//! let response = refusal.to_response();
//!
//! assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
//! assert_eq!(response.headers()[REASON], "refused");
//! assert_eq!(response.headers()[RETRY_AFTER], "3");
//! # Ok::<(), tenure::InvalidValue>(())
//! ```
//!
//! # Fences between services
//! A leader that calls another service stamps its requests with the term under which they are made ([`Stamp`]), and that
//! service refuses those of a term that is over ([`FenceRefusal`]).
//!
//! # Headers
//! | header | on | says |
//! |---|---|---|
//! | [`tenure-reason`](REASON) | answers | which answer it is: `refused`, `cut`, or a [reason](FenceRefusal::reason) of a [`FenceRefusal`] |
//! | [`tenure-election`](ELECTION) | stamped requests, answers to gRPC | the election, percent-encoded |
//! | [`tenure-fence`](FENCE) | stamped requests | the fence of the term under which the request is made, a decimal number |
//! | [`tenure-forwarded`](FORWARDED) | requests sent on to the leader | that it was sent on once already |
//! | [`tenure-leader`](LEADER) | refusals of gRPC that tell who leads | the leader's payload, percent-encoded |

mod cut;
mod drain;
mod fence_refusal;
mod form;
mod percent;
mod problem;
mod redirect;
mod refusal;
mod settings;
mod stamp;
mod view;

use http::HeaderName;

pub use self::{
    cut::Cut,
    drain::{Drain, Patience},
    fence_refusal::FenceRefusal,
    form::Form,
    redirect::Redirect,
    refusal::Refusal,
    settings::{RefusalSettings, RetryAfter},
    stamp::{Stamp, StampError},
    view::{LeadershipEvent, leadership_events, status_json, term_json},
};

/// The response header that says which answer this is: `refused`, `cut`, or a [reason](FenceRefusal::reason) of a
/// [`FenceRefusal`].
///
/// A `503` without it comes from somebody else, a proxy or the application itself.
pub const REASON: HeaderName = HeaderName::from_static("tenure-reason");

/// The header that names an election, percent-encoded: on requests the one of the term under which they are made, and on
/// answers to gRPC, which have no body, the one that they are about.
pub const ELECTION: HeaderName = HeaderName::from_static("tenure-election");

/// The request header with the fence of the term under which the request is made, a decimal number.
pub const FENCE: HeaderName = HeaderName::from_static("tenure-fence");

/// The request header of what was sent on to the leader by a replica that does not lead, or by a client on the advice of
/// one. Its presence counts; by convention its value is the fence of the leader it was sent to.
///
/// Whoever gets such a request and does not lead refuses it, and neither redirects nor forwards it.
pub const FORWARDED: HeaderName = HeaderName::from_static("tenure-forwarded");

/// The response header with which a refusal tells gRPC what the leader publishes, percent-encoded. In plain HTTP that
/// stands in the body.
pub const LEADER: HeaderName = HeaderName::from_static("tenure-leader");
