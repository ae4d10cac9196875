//! Transitions as server-sent events.

use std::{convert::Infallible, iter};

use axum::{
    extract::State,
    response::{
        IntoResponse, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use tenure::{Leadership, Transition};

use crate::view::{Known, Leads, Report};

pub(crate) async fn events(State(leadership): State<Leadership>) -> impl IntoResponse {
    // A comment every 15 s, by which proxies and clients tell a quiet election from a dead connection.
    Sse::new(stream_of(&leadership)).keep_alive(KeepAlive::default())
}

fn stream_of(
    leadership: &Leadership,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + use<> {
    // Asked for before the status is read, so that nothing happens between the two.
    let transitions = leadership.transitions();
    let now = event("status", &Report::from(&leadership.status()));
    stream::iter(iter::once(now)).chain(transitions.filter_map(async |t| of(&t))).map(Ok)
}

/// The end of a term.
#[derive(Serialize)]
struct Ended<'a> {
    #[serde(flatten)]
    term: Leads<'a>,
    reason: String,
}

/// `None` of a kind that is newer than this crate.
fn of(transition: &Transition) -> Option<Event> {
    Some(match transition {
        Transition::Started(term) => event("started", &Leads::from(term)),
        Transition::Ended { term, reason } => {
            event("ended", &Ended { term: term.into(), reason: reason.to_string() })
        }
        Transition::NewLeader(leader) => event("new_leader", &Known::from(leader)),
        _ => return None,
    })
}

fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).json_data(data).expect("strings and numbers always become JSON")
}
