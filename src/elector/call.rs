//! What passes between the protocol and a store: calls and replies, what is published with them, and panics.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::panic_message;
use crate::{
    lease::Payload,
    protocol::{Call, Reply},
    store::{DynSession, Outcome, Session, StoreError},
    telemetry::metrics::CallOutcome,
};

/// What is published beside the lease, and whether the store has confirmed it.
pub(super) struct Published {
    payload: Payload,
    is_confirmed: bool,
}

impl Published {
    /// Nothing of it has reached the store yet.
    pub(super) fn new(payload: Payload) -> Self {
        Self { payload, is_confirmed: false }
    }

    pub(super) fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Puts into the call what is to be published with it.
    pub(super) fn enclose(&self, mut call: Call) -> Call {
        match &mut call {
            Call::Acquire(request) => request.payload = self.payload.clone(),
            Call::Renew(request) if !self.is_confirmed => {
                request.payload = Some(self.payload.clone());
            }
            Call::Renew(_) | Call::Inspect | Call::Place(_) | Call::Release(_) => {}
        }
        call
    }

    /// Takes note of what the store has confirmed. The payload may have been replaced since the call was made.
    pub(super) fn note(&mut self, call: &Call, reply: &Reply) {
        let sent = match (call, reply) {
            (Call::Acquire(request), Reply::Acquired(Outcome::Won(_))) => Some(&request.payload),
            (Call::Renew(request), Reply::Renewed(Outcome::Won(_))) => request.payload.as_ref(),
            _ => None,
        };
        if let Some(sent) = sent {
            self.is_confirmed = *sent == self.payload;
        }
    }
}

/// What an error or an event calls the operation.
pub(super) fn name(call: &Call) -> &'static str {
    match call {
        Call::Inspect => "inspect",
        Call::Place(_) => "place",
        Call::Acquire(_) => "acquire",
        Call::Renew(_) => "renew",
        Call::Release(_) => "release",
    }
}

/// What it counts as that a call was answered so, by a panic perhaps.
pub(super) fn outcome<P>(answer: &Result<Result<Reply, StoreError>, P>) -> CallOutcome {
    match answer {
        Ok(Ok(reply)) if is_lost(reply) => CallOutcome::Lost,
        Ok(Ok(_)) => CallOutcome::Ok,
        Ok(Err(error)) if error.is_fatal() => CallOutcome::Fatal,
        Ok(Err(_)) | Err(_) => CallOutcome::Transient,
    }
}

fn is_lost(reply: &Reply) -> bool {
    match reply {
        Reply::Acquired(outcome) | Reply::Renewed(outcome) | Reply::Released(outcome) => {
            matches!(outcome, Outcome::Lost(_))
        }
        Reply::Inspected(_) | Reply::Placed(_) | Reply::Failed => false,
    }
}

pub(super) async fn exchange(session: &mut DynSession, call: &Call) -> Result<Reply, StoreError> {
    Ok(match call {
        Call::Inspect => Reply::Inspected(session.inspect().await?),
        Call::Place(request) => Reply::Placed(session.place(request).await?),
        Call::Acquire(request) => Reply::Acquired(session.acquire(request).await?),
        Call::Renew(request) => Reply::Renewed(session.renew(request).await?),
        Call::Release(request) => Reply::Released(session.release(request).await?),
    })
}

/// Drops what came from a store. That may panic as well, and is nothing to end an elector for.
pub(super) fn discard<T>(of_the_store: T) {
    // The panic hook has reported it, and whatever broke is gone.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(of_the_store)));
}

pub(super) fn panicked(operation: &str, panic: &(dyn Any + Send)) -> StoreError {
    let message = panic_message(panic);
    StoreError::transient(format!(
        "the store panicked in `{operation}`: {message}; please report it to the store's authors"
    ))
}
