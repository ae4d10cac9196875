//! What the election says about itself: its events and spans. What it counts is in [`metrics`].
//!
//! One `info` for each transition, one `debug` for each renewal, `warn` and `error` for what someone should know.

pub mod metrics;

use std::time::Duration;

use tracing::{Span, debug, error, info, info_span, warn};

use self::metrics::{CallOutcome, Metrics, RequestOutcome};
use crate::{
    instant::Instant,
    lease::{ElectionName, Fence, Identity, TermEnd},
    protocol::Timing,
    store::StoreError,
    term::Overran,
};

/// The target of every event.
const TARGET: &str = "tenure";

/// The voice of one candidate, which knows its names.
#[derive(Clone, Debug)]
pub(crate) struct Telemetry {
    election: ElectionName,
    identity: Identity,
    metrics: Metrics,
}

impl Telemetry {
    /// An identity that is drawn anew for each elector would make metrics without end, so it is a label only if it is fixed.
    pub(crate) fn new(election: ElectionName, identity: Identity, is_fixed: bool) -> Self {
        let metrics = Metrics::new(&election, is_fixed.then_some(&identity));
        Self { election, identity, metrics }
    }

    pub(crate) fn election(&self) -> &ElectionName {
        &self.election
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn started(&self, timing: &Timing) {
        let Self { election, identity, .. } = self;
        let worst = timing.worst_case();
        info!(
            target: TARGET,
            %election,
            %identity,
            lease = ?timing.lease_duration(),
            fail_over = ?worst.fail_over,
            hand_over = ?worst.hand_over,
            survived_outage = ?worst.survived_outage,
            "taking part"
        );
        self.metrics.follows();
    }

    /// Of a term, for the work that is done in it.
    pub(crate) fn span(&self, fence: Fence) -> Span {
        let Self { election, identity, .. } = self;
        info_span!(target: TARGET, parent: None, "term", %election, %identity, %fence)
    }

    pub(crate) fn term_started(&self, fence: Fence, deadline: Instant, remaining: Duration) {
        let Self { election, .. } = self;
        info!(target: TARGET, %election, %fence, %deadline, "term started");
        self.metrics.term_started(fence, remaining);
    }

    pub(crate) fn renewed(&self, fence: Fence, deadline: Instant, remaining: Duration) {
        let Self { election, .. } = self;
        debug!(target: TARGET, %election, %fence, %deadline, "lease renewed");
        self.metrics.remaining(remaining);
    }

    pub(crate) fn term_cancelled(&self, fence: Fence, reason: TermEnd) {
        let Self { election, .. } = self;
        info!(target: TARGET, %election, %fence, %reason, "term cancelled, draining");
        self.metrics.follows();
    }

    /// The watchdog has found the term over: what it counts as, before the elector knows.
    pub(crate) fn term_is_over(&self) {
        self.metrics.follows();
    }

    pub(crate) fn term_ended(&self, fence: Fence, reason: TermEnd, drained: Option<Duration>) {
        let Self { election, .. } = self;
        info!(target: TARGET, %election, %fence, %reason, "term ended");
        self.metrics.term_ended(reason, drained);
    }

    pub(crate) fn still_held(&self, fence: Fence, guards: usize) {
        let Self { election, .. } = self;
        warn!(target: TARGET, %election, %fence, guards, "the term is over and guards of it are still held");
    }

    pub(crate) fn overran(&self, overran: &Overran) {
        let Overran { election, identity, fence, guards } = overran;
        error!(
            target: TARGET,
            %election,
            %identity,
            %fence,
            guards,
            "the lease is over and guards of its term are still held: another candidate may lead by now"
        );
        self.metrics.overran();
    }

    pub(crate) fn callback_panicked(&self, callback: &'static str, said: &str) {
        let Self { election, .. } = self;
        error!(target: TARGET, %election, callback, said, "a callback panicked; the election goes on");
        self.metrics.callback_failed(callback, "panicked");
    }

    pub(crate) fn callback_timed_out(&self, callback: &'static str, after: Duration) {
        let Self { election, .. } = self;
        warn!(target: TARGET, %election, callback, ?after, "a callback took too long, and was dropped");
        self.metrics.callback_failed(callback, "timed_out");
    }

    pub(crate) fn stopped(&self, guards: usize) {
        let Self { election, .. } = self;
        info!(target: TARGET, %election, guards, "stopped");
    }

    pub(crate) fn dropped(&self) {
        let Self { election, .. } = self;
        info!(target: TARGET, %election, "the candidacy was dropped, shutting down");
    }

    /// A call to the store has come to its end, after that long.
    pub(crate) fn called(&self, operation: &'static str, outcome: CallOutcome, took: Duration) {
        self.metrics.called(operation, outcome, took);
    }

    pub(crate) fn store_failed(&self, operation: &str, error: &StoreError) {
        let Self { election, .. } = self;
        let cause = error as &dyn std::error::Error;
        if error.is_fatal() {
            warn!(target: TARGET, %election, operation, error = cause, "the store can not be used until somebody mends it");
        } else {
            debug!(target: TARGET, %election, operation, error = cause, "a call to the store failed, trying again");
        }
    }

    pub(crate) fn request(&self, outcome: RequestOutcome) {
        self.metrics.request(outcome);
    }
}
