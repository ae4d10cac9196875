//! What this replica knows about its election, as the routes of the frameworks' adapters show it.

use std::{error::Error, iter, time::Duration};

use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use tenure::{LastError, Leader, Leadership, Status, Term, Transition};

/// What a replica knows, as JSON: the answer to `GET /leadership`. Members are `null` where it knows nothing, so that every
/// answer has them all.
///
/// It contains the leader's payload, the identity of this replica (with its host name), and the text of the last error.
///
/// ```
/// use tenure::{Elector, MemoryStore};
///
/// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
/// let shown = tenure_http::status_json(&elector.leadership().status());
/// let shown: serde_json::Value = serde_json::from_str(&shown)?;
/// assert_eq!(shown["election"], "billing");
/// assert_eq!(shown["is_leader"], false);
/// assert_eq!(shown["leader"], serde_json::Value::Null);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn status_json(status: &Status) -> String {
    to_json(&Report::from(status))
}

/// A term of this replica's, as JSON: the answer to `GET /leader` while it leads.
#[must_use]
pub fn term_json(term: &Term) -> String {
    to_json(&Leads::from(term))
}

/// What happens in an election, for `GET /leadership/events`: first the status, then each transition, beginning with what
/// holds already. The stream ends when the elector has stopped.
pub fn leadership_events(
    leadership: &Leadership,
) -> impl Stream<Item = LeadershipEvent> + Send + use<> {
    // Asked for before the status is read, so that nothing happens between the two.
    let transitions = leadership.transitions();
    let now = LeadershipEvent::of_status(&leadership.status());
    let then = transitions.filter_map(async |transition| LeadershipEvent::of(&transition));
    stream::iter(iter::once(now)).chain(then)
}

/// A server-sent event.
///
/// | name | data |
/// |---|---|
/// | `status` | [the whole status](status_json) |
/// | `started` | [the term](term_json) that this replica was elected to |
/// | `ended` | the same with the `reason` |
/// | `new_leader` | `identity`, `fence` and `payload` of who leads |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadershipEvent {
    name: &'static str,
    data: String,
}

impl LeadershipEvent {
    /// The status as it is now.
    #[must_use]
    pub fn of_status(status: &Status) -> Self {
        Self { name: "status", data: status_json(status) }
    }

    /// `None` of a kind that is newer than this crate.
    #[must_use]
    pub fn of(transition: &Transition) -> Option<Self> {
        let (name, data) = match transition {
            Transition::Started(term) => ("started", term_json(term)),
            Transition::Ended { term, reason } => {
                ("ended", to_json(&Ended { term: term.into(), reason: reason.to_string() }))
            }
            Transition::NewLeader(leader) => ("new_leader", to_json(&Known::from(leader))),
            _ => return None,
        };
        Some(Self { name, data })
    }

    /// What kind of event it is.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// JSON without line breaks.
    #[must_use]
    pub fn data(&self) -> &str {
        &self.data
    }

    /// As it stands in a body of type `text/event-stream`.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.name, self.data)
    }
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    election: &'a str,
    identity: &'a str,
    phase: String,
    is_leader: bool,
    /// Of this replica's own term.
    fence: Option<u64>,
    /// How long this replica leads if no further renewal is confirmed.
    remaining_ms: Option<u64>,
    /// Who held the lease when this replica last looked; maybe itself.
    leader: Option<Known<'a>>,
    /// How long ago the store last answered.
    observed_age_ms: Option<u64>,
    last_error: Option<String>,
}

/// The leader that stands in the record.
#[derive(Debug, Serialize)]
struct Known<'a> {
    identity: &'a str,
    fence: u64,
    /// `null` if it is no text.
    payload: Option<&'a str>,
}

/// This replica as the leader.
#[derive(Debug, Serialize)]
struct Leads<'a> {
    election: &'a str,
    identity: &'a str,
    fence: u64,
}

/// The end of a term.
#[derive(Debug, Serialize)]
struct Ended<'a> {
    #[serde(flatten)]
    term: Leads<'a>,
    reason: String,
}

impl<'a> From<&'a Status> for Report<'a> {
    fn from(status: &'a Status) -> Self {
        Self {
            election: status.election().as_str(),
            identity: status.identity().as_str(),
            phase: status.phase().to_string(),
            is_leader: status.is_leader(),
            fence: status.fence().map(u64::from),
            remaining_ms: status.remaining().map(millis),
            leader: status.leader().map(Known::from),
            observed_age_ms: status.observed_age().map(millis),
            last_error: status.last_error().map(with_causes),
        }
    }
}

impl<'a> From<&'a Leader> for Known<'a> {
    fn from(leader: &'a Leader) -> Self {
        Self {
            identity: leader.identity().as_str(),
            fence: leader.fence().into(),
            payload: leader.payload().as_str(),
        }
    }
}

impl<'a> From<&'a Term> for Leads<'a> {
    fn from(term: &'a Term) -> Self {
        Self {
            election: term.election().as_str(),
            identity: term.identity().as_str(),
            fence: term.fence().into(),
        }
    }
}

/// One line: what went wrong, and why.
fn with_causes(error: &LastError) -> String {
    let causes = iter::successors(error.source(), |cause| (*cause).source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| {
        // Some errors repeat their cause themselves.
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn to_json(shown: &impl Serialize) -> String {
    serde_json::to_string(shown).expect("strings and numbers always become JSON")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure::{Fence, Identity, StoreError};

    use super::*;

    #[test]
    fn a_cause_that_its_error_repeats_is_given_once() {
        let error = StoreError::transient("cannot connect: connection refused")
            .with_source(StoreError::transient("connection refused").with_source("os error 111"));
        assert_eq!(
            with_causes(&LastError::Store(Arc::new(error))),
            "a call to the store failed: cannot connect: connection refused: os error 111"
        );
    }

    #[test]
    fn an_event_has_one_line_of_data_whatever_the_payload() {
        let identity = Identity::new("web-7").unwrap();
        let leader = |payload: &[u8]| Leader::new(identity.clone(), Fence::MIN, payload.into());
        let event = |payload| LeadershipEvent::of(&Transition::NewLeader(leader(payload))).unwrap();
        assert_eq!(
            event(b"two\nlines\r\n").to_text(),
            "event: new_leader\ndata: {\"identity\":\"web-7\",\"fence\":1,\"payload\":\"two\\nlines\\r\\n\"}\n\n"
        );
        assert!(event(&[0xff]).data().ends_with("\"payload\":null}"));
    }
}
