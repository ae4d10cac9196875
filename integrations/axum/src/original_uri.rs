//! Where a request was sent, before nested routers stripped their prefixes.

use axum::{
    extract::OriginalUri,
    http::{Extensions, Uri},
};

/// The URI that a client sent, which axum remembers when a request enters its outermost router. For
/// [`LeaderOnlyLayer::redirect_to_leader_at`](crate::LeaderOnlyLayer::redirect_to_leader_at).
#[must_use]
pub fn original_uri(extensions: &Extensions) -> Option<&Uri> {
    extensions.get::<OriginalUri>().map(|original| &original.0)
}
