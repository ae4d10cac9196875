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
//! election.
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

mod cut;
mod problem;
mod refusal;

use http::HeaderName;

pub use self::{cut::Cut, refusal::Refusal};

/// The response header that says which of the two answers this is: `refused` or `cut`.
///
/// A `503` without it comes from somebody else, a proxy or the application itself.
pub const REASON: HeaderName = HeaderName::from_static("tenure-reason");
