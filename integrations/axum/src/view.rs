//! What the routes show, as JSON.

use std::{error::Error, iter, time::Duration};

use serde::Serialize;
use tenure::{LastError, Leader, Status, Term};

/// What this replica knows. Members are `null` where it knows nothing, so that every answer has them all.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
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
pub(crate) struct Known<'a> {
    identity: &'a str,
    fence: u64,
    /// `null` if it is no text.
    payload: Option<&'a str>,
}

/// This replica as the leader.
#[derive(Debug, Serialize)]
pub(crate) struct Leads<'a> {
    election: &'a str,
    identity: &'a str,
    fence: u64,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure::StoreError;

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
}
