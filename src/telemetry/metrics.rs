//! What an election counts and measures: names, labels and units, in one place.
//!
//! With the feature `metrics` everything here goes to the recorder that the application has installed for the crate
//! [`metrics`](https://docs.rs/metrics); without it nothing is compiled. Every metric has the label `election`, and
//! `identity` if that is [fixed](crate::ElectorBuilder::fixed_identity_risking_two_leaders): one that is drawn anew for each
//! elector would make new series without end.
//!
//! | metric | kind | further labels | what it says |
//! |---|---|---|---|
//! | [`IS_LEADER`] | gauge | | 1 while this candidate leads, else 0 |
//! | [`FENCE`] | gauge | | the fence of its last term |
//! | [`TERM_REMAINING`] | gauge | | seconds that the term lasts if no further renewal is confirmed, as of the last one; 0 without a term |
//! | [`TRANSITIONS`] | counter | `to`, `reason` | terms that began (`leading`, `elected`) and ended (`following`, and why) |
//! | [`DRAIN_DURATION`] | histogram | | seconds from the request to hand over until the term had ended |
//! | [`STORE_CALLS`] | counter | `operation`, `outcome` | calls of the store: `ok`, `lost`, `transient`, `fatal`, `timeout` |
//! | [`STORE_CALL_DURATION`] | histogram | `operation` | seconds that they took |
//! | [`REQUESTS`] | counter | `outcome` | work that adapters `admitted` or `refused`, and admitted work that was `cut` |
//! | [`OVERRUNS`] | counter | | terms of which guards were held beyond the lease |
//! | [`CALLBACK_FAILURES`] | counter | `callback`, `how` | callbacks that `panicked` or `timed_out` |
//!
//! A follower that looks at a lease which somebody else holds has made a call that is `ok`. Losing a race for a lease is
//! `lost`, and no failure either.

#![cfg_attr(not(feature = "metrics"), allow(dead_code, unreachable_pub, unused_variables))]

use std::time::Duration;

use crate::lease::{ElectionName, Fence, Identity, TermEnd};

/// Whether this candidate leads.
pub const IS_LEADER: &str = "tenure_is_leader";
/// The fence of its last term.
pub const FENCE: &str = "tenure_fence";
/// How long the term lasts if nobody extends it.
pub const TERM_REMAINING: &str = "tenure_term_remaining_seconds";
/// Terms that began and ended.
pub const TRANSITIONS: &str = "tenure_transitions_total";
/// How long hand-overs waited for work.
pub const DRAIN_DURATION: &str = "tenure_drain_duration_seconds";
/// Calls of the store.
pub const STORE_CALLS: &str = "tenure_store_calls_total";
/// How long they took.
pub const STORE_CALL_DURATION: &str = "tenure_store_call_duration_seconds";
/// Requests, and other work that adapters admit.
pub const REQUESTS: &str = "tenure_requests_total";
/// Guards that were held beyond their lease.
pub const OVERRUNS: &str = "tenure_overruns_total";
/// Callbacks that went wrong.
pub const CALLBACK_FAILURES: &str = "tenure_callback_failures_total";

/// All names.
pub const ALL: [&str; 10] = [
    IS_LEADER,
    FENCE,
    TERM_REMAINING,
    TRANSITIONS,
    DRAIN_DURATION,
    STORE_CALLS,
    STORE_CALL_DURATION,
    REQUESTS,
    OVERRUNS,
    CALLBACK_FAILURES,
];

/// Tells the recorder what the metrics mean, and their units. Call it once, after the recorder was installed.
#[cfg(feature = "metrics")]
pub fn describe() {
    use ::metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

    describe_gauge!(IS_LEADER, "1 while this candidate leads, else 0");
    describe_gauge!(FENCE, "the fence of this candidate's last term");
    describe_gauge!(
        TERM_REMAINING,
        Unit::Seconds,
        "how long the term lasts if no further renewal is confirmed, as of the last one"
    );
    describe_counter!(TRANSITIONS, Unit::Count, "terms that began and ended");
    describe_histogram!(
        DRAIN_DURATION,
        Unit::Seconds,
        "from the request to hand over until the term had ended"
    );
    describe_counter!(STORE_CALLS, Unit::Count, "calls of the store");
    describe_histogram!(STORE_CALL_DURATION, Unit::Seconds, "how long calls of the store took");
    describe_counter!(REQUESTS, Unit::Count, "work that was admitted, refused and cut");
    describe_counter!(OVERRUNS, Unit::Count, "terms of which guards were held beyond the lease");
    describe_counter!(CALLBACK_FAILURES, Unit::Count, "callbacks that panicked or timed out");
}

/// What came of a call of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Ok,
    Lost,
    Transient,
    Fatal,
    Timeout,
}

impl CallOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Lost => "lost",
            Self::Transient => "transient",
            Self::Fatal => "fatal",
            Self::Timeout => "timeout",
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Admitted,
    Refused,
    Cut,
}

impl RequestOutcome {
    const ALL: [Self; 3] = [Self::Admitted, Self::Refused, Self::Cut];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Cut => "cut",
        }
    }
}

/// The metrics of one candidate.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    #[cfg(feature = "metrics")]
    labels: std::sync::Arc<[::metrics::Label]>,
    /// Of [`REQUESTS`], made once: nothing is allocated for a request.
    #[cfg(feature = "metrics")]
    requests: std::sync::Arc<[::metrics::Key; RequestOutcome::ALL.len()]>,
}

type Labels<'a> = &'a [(&'static str, &'static str)];

impl Metrics {
    #[cfg(feature = "metrics")]
    pub(super) fn new(election: &ElectionName, identity: Option<&Identity>) -> Self {
        use ::metrics::{Key, Label};

        let label =
            |key: &'static str, value: &str| Label::new(key, std::sync::Arc::<str>::from(value));
        let identity = identity.map(|identity| label("identity", identity.as_str()));
        let labels: Vec<Label> =
            [label("election", election.as_str())].into_iter().chain(identity).collect();
        let requests = RequestOutcome::ALL.map(|outcome| {
            let outcome = Label::from_static_parts("outcome", outcome.as_str());
            Key::from_parts(REQUESTS, [labels.clone(), vec![outcome]].concat())
        });
        Self { labels: labels.into(), requests: requests.into() }
    }

    #[cfg(not(feature = "metrics"))]
    pub(super) fn new(election: &ElectionName, identity: Option<&Identity>) -> Self {
        Self {}
    }

    pub(super) fn follows(&self) {
        self.set(IS_LEADER, 0.0);
        self.set(TERM_REMAINING, 0.0);
    }

    pub(super) fn term_started(&self, fence: Fence, remaining: Duration) {
        self.set(IS_LEADER, 1.0);
        // Exact up to the year 287396 of a clock in milliseconds.
        self.set(FENCE, i64::from(fence) as f64);
        self.remaining(remaining);
        self.count(TRANSITIONS, &[("to", "leading"), ("reason", "elected")]);
    }

    pub(super) fn remaining(&self, remaining: Duration) {
        self.set(TERM_REMAINING, remaining.as_secs_f64());
    }

    pub(super) fn term_ended(&self, reason: TermEnd, drained: Option<Duration>) {
        self.follows();
        self.count(TRANSITIONS, &[("to", "following"), ("reason", name(reason))]);
        if let Some(drained) = drained {
            self.record(DRAIN_DURATION, &[], drained);
        }
    }

    pub(super) fn overran(&self) {
        self.count(OVERRUNS, &[]);
    }

    pub(super) fn callback_failed(&self, callback: &'static str, how: &'static str) {
        self.count(CALLBACK_FAILURES, &[("callback", callback), ("how", how)]);
    }

    pub(super) fn called(&self, operation: &'static str, outcome: CallOutcome, took: Duration) {
        self.count(STORE_CALLS, &[("operation", operation), ("outcome", outcome.as_str())]);
        self.record(STORE_CALL_DURATION, &[("operation", operation)], took);
    }

    pub(super) fn request(&self, outcome: RequestOutcome) {
        #[cfg(feature = "metrics")]
        ::metrics::with_recorder(|recorder| {
            use ::metrics::{Level, Metadata};

            const METADATA: Metadata<'_> =
                Metadata::new(module_path!(), Level::INFO, Some(module_path!()));
            recorder.register_counter(&self.requests[outcome as usize], &METADATA).increment(1);
        });
    }

    fn set(&self, name: &'static str, value: f64) {
        #[cfg(feature = "metrics")]
        ::metrics::gauge!(name, self.with(&[])).set(value);
    }

    fn count(&self, name: &'static str, labels: Labels<'_>) {
        #[cfg(feature = "metrics")]
        ::metrics::counter!(name, self.with(labels)).increment(1);
    }

    fn record(&self, name: &'static str, labels: Labels<'_>, duration: Duration) {
        #[cfg(feature = "metrics")]
        ::metrics::histogram!(name, self.with(labels)).record(duration.as_secs_f64());
    }

    #[cfg(feature = "metrics")]
    fn with(&self, labels: Labels<'_>) -> Vec<::metrics::Label> {
        let own = self.labels.iter().cloned();
        let more =
            labels.iter().map(|(key, value)| ::metrics::Label::from_static_parts(key, value));
        own.chain(more).collect()
    }
}

const fn name(reason: TermEnd) -> &'static str {
    match reason {
        TermEnd::Expired => "expired",
        TermEnd::Lost => "lost",
        TermEnd::Resigned => "resigned",
        TermEnd::Shutdown => "shutdown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_table() {
        let text = include_str!("metrics.rs");
        for name in ALL {
            let constant = text.lines().find(|line| line.ends_with(&format!("\"{name}\";")));
            let constant = constant.and_then(|line| line.split([' ', ':']).nth(2)).unwrap();
            let row = format!("//! | [`{constant}`] |");
            assert_eq!(text.matches(&row).count(), 1, "{row}");
        }
        let rows = text.lines().filter(|line| line.starts_with("//! | [`")).count();
        assert_eq!(rows, ALL.len());
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn a_recorder_is_told_what_every_metric_means_and_the_unit_of_those_in_seconds() {
        use metrics_util::debugging::DebuggingRecorder;

        let recorder = DebuggingRecorder::new();
        let described = ::metrics::with_local_recorder(&recorder, || {
            describe();
            for gauge in [IS_LEADER, FENCE, TERM_REMAINING] {
                ::metrics::gauge!(gauge).set(0.0);
            }
            for counter in [TRANSITIONS, STORE_CALLS, REQUESTS, OVERRUNS, CALLBACK_FAILURES] {
                ::metrics::counter!(counter).increment(1);
            }
            for histogram in [DRAIN_DURATION, STORE_CALL_DURATION] {
                ::metrics::histogram!(histogram).record(0.0);
            }
            recorder.snapshotter().snapshot().into_vec()
        });
        assert_eq!(described.len(), ALL.len());
        for (key, unit, means, _) in described {
            let name = key.key().name();
            assert!(means.is_some_and(|means| !means.is_empty()), "{name}");
            let in_seconds = unit == Some(::metrics::Unit::Seconds);
            assert_eq!(in_seconds, name.ends_with("_seconds"), "{name}: {unit:?}");
        }
    }
}
