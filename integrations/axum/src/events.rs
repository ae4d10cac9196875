//! Transitions as server-sent events.

use std::convert::Infallible;

use axum::{
    extract::State,
    response::{
        IntoResponse, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::StreamExt;
use tenure::Leadership;
use tenure_http::leadership_events;

pub(crate) async fn events(State(leadership): State<Leadership>) -> impl IntoResponse {
    let events = leadership_events(&leadership)
        .map(|event| Ok::<_, Infallible>(Event::default().event(event.name()).data(event.data())));
    // A comment every 15 s, by which proxies and clients tell a quiet election from a dead connection.
    Sse::new(events).keep_alive(KeepAlive::default())
}
