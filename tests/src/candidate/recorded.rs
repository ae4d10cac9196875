//! Tells of every call to a store.

use std::time::Duration;

use tenure::{
    DynStore, ElectionName, Lease, Store, StoreError,
    store::{
        AcquireRequest, Capabilities, Hints, Outcome, PlaceRequest, ReleaseRequest, RenewRequest,
        Session,
    },
};

use super::Reporter;
use crate::{Answer, Call, Event, Stamp};

/// A store of which every call is reported, with its answer; also that it was given up, if it was.
#[derive(Debug)]
pub(super) struct Recorded<S = DynStore> {
    inner: S,
    reporter: Reporter,
}

impl<S> Recorded<S> {
    pub(super) const fn new(inner: S, reporter: Reporter) -> Self {
        Self { inner, reporter }
    }
}

impl<S: Store> Store for Recorded<S> {
    type Session = Recorded<S::Session>;

    fn session(&self, election: &ElectionName) -> Self::Session {
        Recorded::new(self.inner.session(election), self.reporter.clone())
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}

impl<S: Session> Session for Recorded<S> {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        let call = Underway::new(Call::Inspect, &self.reporter);
        let answer = self.inner.inspect().await;
        call.answered(&answer, |_| Answer::Seen);
        answer
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        let call = Underway::new(Call::Place, &self.reporter);
        let answer = self.inner.place(request).await;
        call.answered(&answer, |_| Answer::Seen);
        answer
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let call = Underway::new(Call::Acquire, &self.reporter);
        let answer = self.inner.acquire(request).await;
        call.answered(&answer, of_outcome);
        answer
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        let call = Underway::new(Call::Renew, &self.reporter);
        let answer = self.inner.renew(request).await;
        call.answered(&answer, of_outcome);
        answer
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        let call = Underway::new(Call::Release, &self.reporter);
        let answer = self.inner.release(request).await;
        call.answered(&answer, of_outcome);
        answer
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.inner.limit_calls(limit);
    }

    fn hints(&mut self) -> Hints {
        self.inner.hints()
    }
}

const fn of_outcome(outcome: &Outcome) -> Answer {
    match outcome {
        Outcome::Won(_) => Answer::Won,
        Outcome::Lost(_) => Answer::Lost,
    }
}

/// A call, which is given up if it is dropped without an answer.
struct Underway {
    call: Call,
    from: Stamp,
    answer: Answer,
    reporter: Reporter,
}

impl Underway {
    fn new(call: Call, reporter: &Reporter) -> Self {
        let reporter = reporter.clone();
        Self { call, from: Stamp::now(), answer: Answer::GivenUp, reporter }
    }

    fn answered<T>(mut self, answer: &Result<T, StoreError>, what: impl FnOnce(&T) -> Answer) {
        self.answer = answer.as_ref().map_or(Answer::Failed, what);
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let &mut Self { call, from, answer, .. } = self;
        self.reporter.say(Event::Called { call, from, answer });
    }
}
