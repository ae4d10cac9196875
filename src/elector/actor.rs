//! Drives the protocol against a session: makes its calls, applies its changes, publishes what came of it.

use std::{
    collections::VecDeque,
    future::pending,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::{FutureExt, StreamExt, future::OptionFuture};
use tokio::{select, task::consume_budget};

use super::{
    Parts,
    call::{Published, discard, exchange, name, outcome, panicked},
};
use crate::{
    instant::Instant,
    leadership::{LastError, Leader, Publisher, Requests},
    lease::{Fence, TermEnd},
    protocol::{Call, Change, Input, Jitter, Levels, Phase, Protocol, Reply, Step},
    store::{DynSession, Hints, Session, Store, StoreError},
    sync::Notify,
    telemetry::metrics::CallOutcome,
    term::{Term, TermParts, watchdog},
};

/// One elector at work. Dropping it, for whatever reason, ends its term and publishes that it has stopped: that is the
/// publisher's doing.
pub(super) struct Actor {
    parts: Parts,
    publisher: Publisher,
    requests: Arc<Requests>,
    /// What was asked for and is still to be told to the protocol: at most one of each.
    asked: VecDeque<Input>,
    /// The highest ticket of a resignation that is under way.
    resigning: Option<u64>,
    protocol: Protocol,
    /// Made when it is first needed, and anew after a panic.
    session: Option<DynSession>,
    /// What the session gave; `None` when that has ended.
    hints: Option<Hints>,
    payload: Published,
    /// The term that runs, or the last one while guards of it are held.
    term: Option<Running>,
    /// When a voluntary end of the term began.
    cancelled_at: Option<Instant>,
    /// Told by the term when its guards or its work in flight are gone, when it becomes ready, and when it is over.
    changed: Arc<Notify>,
    /// How many guards were left when the protocol stopped.
    stopped: Option<usize>,
}

struct Running {
    term: Term,
    watch: Option<watchdog::Watch>,
}

impl Actor {
    pub(super) fn new(parts: Parts, publisher: Publisher, requests: Arc<Requests>) -> Self {
        let mut protocol = Protocol::new(parts.identity.clone(), parts.timing, parts.eligible);
        if !parts.releases {
            protocol = protocol.without_release();
        }
        let payload = Published::new(parts.payload.clone());
        Self {
            parts,
            publisher,
            requests,
            asked: VecDeque::new(),
            resigning: None,
            protocol,
            session: None,
            hints: None,
            payload,
            term: None,
            cancelled_at: None,
            changed: Arc::new(Notify::new()),
            stopped: None,
        }
    }

    /// Takes part until a shutdown is complete; returns how many guards of the last term are still held then.
    pub(super) async fn run(mut self) -> usize {
        let mut step = self.advance(Input::Wake);
        loop {
            if let Some(guards) = self.stopped {
                discard(self.session.take());
                discard(self.hints.take());
                return guards;
            }
            step = match step.call {
                Some(call) => self.converse(call, step.wake).await,
                None => {
                    let input = self.event(step.wake).await;
                    self.advance(input)
                }
            };
        }
    }

    /// Makes a call, and goes on with everything else until it is answered or abandoned.
    async fn converse(&mut self, call: Call, mut wake: Option<Instant>) -> Step {
        let call = self.payload.enclose(call);
        let sent = self.parts.clock.now();
        let mut session = match self.take_session() {
            Ok(session) => session,
            Err(error) => return self.failed(&call, error),
        };
        // A panic inside a store is an error like another; whatever it broke goes with the session.
        let exchange = AssertUnwindSafe(exchange(&mut session, &call)).catch_unwind();
        let mut exchange = Box::pin(exchange);
        let answer = loop {
            select! {
                biased;
                answer = &mut exchange => break answer,
                input = self.event(wake) => {
                    let step = self.advance(input);
                    if step.abandon {
                        discard(exchange);
                        discard(session);
                        self.called(&call, sent, CallOutcome::Timeout);
                        return self.abandoned(&call, step);
                    }
                    wake = step.wake;
                }
            }
        };
        drop(exchange);
        self.called(&call, sent, outcome(&answer));
        match answer {
            Ok(answer) => {
                self.session = Some(session);
                match answer {
                    Ok(reply) => self.answered(&call, reply),
                    Err(error) => self.failed(&call, error),
                }
            }
            Err(panic) => {
                discard(session);
                self.failed(&call, panicked(name(&call), &*panic))
            }
        }
    }

    fn called(&self, call: &Call, sent: Instant, outcome: CallOutcome) {
        let took = self.parts.clock.now().saturating_since(sent);
        self.parts.telemetry.called(name(call), outcome, took);
    }

    /// The session, with somebody listening to its hints.
    fn take_session(&mut self) -> Result<DynSession, StoreError> {
        let open = || {
            let mut session = match self.session.take() {
                Some(session) => session,
                None => {
                    let mut session = self.parts.store.session(&self.parts.election);
                    session.limit_calls(self.parts.timing.operation_timeout());
                    self.hints = None;
                    session
                }
            };
            // After a stream of hints has ended the session is asked for another one with the next call, and no sooner.
            self.hints.get_or_insert_with(|| session.hints());
            session
        };
        catch_unwind(AssertUnwindSafe(open)).map_err(|panic| panicked("session", &*panic))
    }

    fn answered(&mut self, call: &Call, reply: Reply) -> Step {
        let (seen, received) = (reply.lease().cloned(), self.parts.clock.now());
        self.publisher.succeeded();
        self.payload.note(call, &reply);
        let step = self.advance(Input::Reply(reply));
        // Only now: that a term has begun or ended is told before who holds the lease, which is what came of it.
        self.publisher.observed(seen.as_ref(), received);
        step
    }

    fn failed(&mut self, call: &Call, error: StoreError) -> Step {
        self.store_failed(name(call), error);
        self.advance(Input::Reply(Reply::Failed))
    }

    /// The call was given up: it took too long, or a shutdown wants no answer to it. Its session is dropped with it, so
    /// that the next call begins on a fresh one.
    fn abandoned(&mut self, call: &Call, step: Step) -> Step {
        if self.stopped.is_none() {
            let limit = self.parts.timing.operation_timeout();
            let text = format!("`{}` was not answered within {limit:?}", name(call));
            self.store_failed(name(call), StoreError::transient(text));
        }
        step
    }

    fn store_failed(&self, operation: &str, error: StoreError) {
        self.parts.telemetry.store_failed(operation, &error);
        self.publisher.failed(LastError::Store(Arc::new(error)));
    }

    /// Waits for the next thing that the protocol wants to know of.
    async fn event(&mut self, wake: Option<Instant>) -> Input {
        loop {
            if let Some(input) = self.take_request() {
                return input;
            }
            let timer = wake.map(|wake| self.parts.clock.sleep_until(wake));
            let timer = OptionFuture::from(timer);
            let hint = async {
                match &mut self.hints {
                    Some(hints) => {
                        // A stream that always has one more would keep this thread from all other electors.
                        consume_budget().await;
                        AssertUnwindSafe(hints.next()).catch_unwind().await
                    }
                    None => pending().await,
                }
            };
            select! {
                () = self.requests.changed() => {}
                () = self.changed.notified() => {
                    if self.protocol.phase() == Phase::Leading {
                        // The term has become ready: the same status reads differently now.
                        self.publisher.bump();
                    }
                    return Input::Wake;
                }
                Some(()) = timer => return Input::Wake,
                hint = hint => match hint {
                    Ok(Some(())) => return Input::Hint,
                    Ok(None) => discard(self.hints.take()),
                    Err(panic) => {
                        discard(self.hints.take());
                        self.store_failed("hints", panicked("hints", &*panic));
                    }
                }
            }
        }
    }

    /// The next thing that somebody asked for.
    fn take_request(&mut self) -> Option<Input> {
        if self.asked.is_empty() {
            let requested = self.requests.take();
            if let Some(payload) = requested.payload {
                self.publisher.publishes(payload.clone());
                self.payload = Published::new(payload);
            }
            self.resigning = requested.resign.max(self.resigning);
            self.asked.extend(requested.eligible.map(Input::Eligible));
            self.asked.extend(requested.resign.map(|_| Input::Resign));
            self.asked.extend(requested.shutdown.map(|drain| Input::ShutdownWithin { drain }));
        }
        self.asked.pop_front()
    }

    /// Goes on by one input, and makes everything public that came of it before anything else is done.
    fn advance(&mut self, input: Input) -> Step {
        let mut asked = Step::default();
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let mut step = self.step(input);
            let mut is_over = false;
            for change in mem::take(&mut step.changes) {
                is_over |= !self.apply(change);
            }
            if is_over {
                // Whoever saw the deadline pass has read the clock after the protocol did, and has had the last word.
                next = Some(Input::Over);
            } else if step.recount {
                next = Some(Input::Wake);
            }
            asked = asked.then(step);
        }
        self.publish_standing();
        asked
    }

    fn step(&mut self, input: Input) -> Step {
        // Without random bits all candidates come at once, which costs a few lost races.
        let jitter = Jitter::new(getrandom::u32().unwrap_or_default() as u16);
        let levels = self.term.as_ref().map_or_else(Levels::default, |running| Levels {
            guards: running.term.guards(),
            in_flight: running.term.in_flight(),
        });
        self.protocol.step(self.parts.clock.now(), jitter, levels, input)
    }

    /// Applies a change; false if the term turned out to be over already.
    fn apply(&mut self, change: Change) -> bool {
        match change {
            Change::Started { fence, deadline } => return self.start(fence, deadline),
            Change::Extended { deadline } => return self.extend(deadline),
            Change::Cancelled(reason) => self.cancel(reason),
            Change::Ended(reason) => self.end(reason),
            Change::StillHeld { guards } => self.still_held(guards),
            Change::Stopped { guards } => {
                self.parts.telemetry.stopped(guards);
                self.stopped = Some(guards);
            }
        }
        true
    }

    fn start(&mut self, fence: Fence, deadline: Instant) -> bool {
        let term = Term::start(TermParts {
            telemetry: self.parts.telemetry.clone(),
            fence,
            deadline,
            ready: self.parts.ready,
            clock: self.parts.clock.clone(),
            changed: Arc::clone(&self.changed),
        });
        // Watched before anybody can see it. What nobody watches does not begin.
        let orders = self.orders();
        let watch = watchdog::watch(&term, orders);
        let is_watched = watch.is_ok();
        self.term = Some(Running { term: term.clone(), watch: watch.ok() });
        if is_watched {
            self.parts.telemetry.term_started(fence, deadline, term.remaining());
            let payload = self.payload.payload().clone();
            let leader = Leader::new(self.parts.identity.clone(), fence, payload);
            self.publisher.started(term, leader);
        }
        is_watched
    }

    fn orders(&self) -> watchdog::Orders {
        let herald = Arc::new(self.publisher.herald());
        let (announce, overran) = (Arc::clone(&herald), Arc::clone(&herald));
        let telemetry = self.parts.telemetry.clone();
        watchdog::Orders {
            publish: Box::new(move || {
                telemetry.term_is_over();
                herald.bump();
            }),
            announce: Box::new(move |term| announce.announce(term)),
            margin: self.parts.timing.safety_margin(),
            overrun: self.parts.overrun.clone(),
            overran: Box::new(move |guards| overran.overran(guards)),
        }
    }

    fn extend(&mut self, deadline: Instant) -> bool {
        let Some(Running { term, watch }) = &self.term else { return true };
        let is_earlier = deadline < term.deadline();
        let is_extended = term.extend(deadline);
        if let (true, Some(watch)) = (is_extended && is_earlier, watch) {
            watch.earlier();
        }
        if is_extended {
            self.parts.telemetry.renewed(term.fence(), deadline, term.remaining());
        }
        is_extended
    }

    fn cancel(&mut self, reason: TermEnd) {
        let Some(Running { term, .. }) = &self.term else { return };
        self.parts.telemetry.term_cancelled(term.fence(), reason);
        self.publisher.cancel(term, reason);
        self.cancelled_at = Some(self.parts.clock.now());
    }

    /// The lease is released by a later call.
    fn end(&mut self, reason: TermEnd) {
        let Some(Running { term, watch }) = &self.term else { return };
        let reason = self.publisher.end(term, reason);
        if let Some(watch) = watch {
            // It goes on watching for guards that are held beyond the lease.
            watch.ended();
        }
        let drained =
            self.cancelled_at.take().map(|at| self.parts.clock.now().saturating_since(at));
        self.parts.telemetry.term_ended(term.fence(), reason, drained);
    }

    fn still_held(&self, guards: usize) {
        if let Some(Running { term, .. }) = &self.term {
            self.parts.telemetry.still_held(term.fence(), guards);
        }
    }

    /// Publishes where the protocol stands now, and which resignations are complete: those of a candidate that follows.
    fn publish_standing(&mut self) {
        let phase = self.protocol.phase();
        let has_followed = matches!(phase, Phase::Following | Phase::Stopped);
        if has_followed {
            self.term = None;
        }
        let resigned =
            if has_followed && self.asked.is_empty() { self.resigning.take() } else { None };
        self.publisher.stands(phase, resigned);
    }
}
