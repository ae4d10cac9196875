//! What the election says about itself: targets, fields and texts of its events, in one place.
//!
//! One `info` for each transition, one `debug` for each renewal, `warn` for what someone should know.

use std::time::Duration;

use tracing::{debug, error, info, warn};

use crate::{
    instant::Instant,
    lease::{ElectionName, Fence, Identity, TermEnd},
    protocol::Timing,
    store::StoreError,
    term::Overran,
};

/// The target of every event.
const TARGET: &str = "tenure";

pub(crate) fn started(election: &ElectionName, identity: &Identity, timing: &Timing) {
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
}

pub(crate) fn term_started(election: &ElectionName, fence: Fence, deadline: Instant) {
    info!(target: TARGET, %election, %fence, %deadline, "term started");
}

pub(crate) fn renewed(election: &ElectionName, fence: Fence, deadline: Instant) {
    debug!(target: TARGET, %election, %fence, %deadline, "lease renewed");
}

pub(crate) fn term_cancelled(election: &ElectionName, fence: Fence, reason: TermEnd) {
    info!(target: TARGET, %election, %fence, %reason, "term cancelled, draining");
}

pub(crate) fn term_ended(election: &ElectionName, fence: Fence, reason: TermEnd) {
    info!(target: TARGET, %election, %fence, %reason, "term ended");
}

pub(crate) fn still_held(election: &ElectionName, fence: Fence, guards: usize) {
    warn!(target: TARGET, %election, %fence, guards, "the term is over and guards of it are still held");
}

pub(crate) fn callback_panicked(election: &ElectionName, callback: &str, said: &str) {
    error!(target: TARGET, %election, callback, said, "a callback panicked; the election goes on");
}

pub(crate) fn callback_timed_out(election: &ElectionName, callback: &str, after: Duration) {
    warn!(target: TARGET, %election, callback, ?after, "a callback took too long, and was dropped");
}

pub(crate) fn overran(overran: &Overran) {
    let Overran { election, identity, fence, guards } = overran;
    error!(
        target: TARGET,
        %election,
        %identity,
        %fence,
        guards,
        "the lease is over and guards of its term are still held: another candidate may lead by now"
    );
}

pub(crate) fn stopped(election: &ElectionName, guards: usize) {
    info!(target: TARGET, %election, guards, "stopped");
}

pub(crate) fn dropped(election: &ElectionName) {
    info!(target: TARGET, %election, "the candidacy was dropped, shutting down");
}

pub(crate) fn store_failed(election: &ElectionName, operation: &str, error: &StoreError) {
    let cause = error as &dyn std::error::Error;
    if error.is_fatal() {
        warn!(target: TARGET, %election, operation, error = cause, "the store can not be used until somebody mends it");
    } else {
        debug!(target: TARGET, %election, operation, error = cause, "a call to the store failed, trying again");
    }
}
