//! What an application asked to be called for, called on the application's own runtime.
//!
//! One task reads the [transitions](crate::Transitions) of the election and calls, in order. The elector waits for nothing
//! here: a callback that hangs or panics holds up the callbacks after it, and a shutdown for as long as is said, but no
//! election.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use tokio::{
    runtime::Handle,
    task::{AbortHandle, JoinHandle},
    time,
};

use super::panic_message;
use crate::{
    leadership::{Leader, Leadership, Transition, Transitions},
    lease::TermEnd,
    telemetry::Telemetry,
    term::Term,
};

/// How long a callback may take that is not for the length of a term.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);

type OnStarted = Box<dyn FnMut(Term) -> BoxFuture<'static, ()> + Send>;
type OnStopped = Box<dyn FnMut(Term, TermEnd) -> BoxFuture<'static, ()> + Send>;
type OnNewLeader = Box<dyn FnMut(Leader) -> BoxFuture<'static, ()> + Send>;

/// What to call, and where.
pub(super) struct Callbacks {
    started: Vec<OnStarted>,
    stopped: Vec<OnStopped>,
    new_leader: Vec<OnNewLeader>,
    runtime: Option<Handle>,
    timeout: Duration,
}

impl Default for Callbacks {
    fn default() -> Self {
        Self {
            started: Vec::new(),
            stopped: Vec::new(),
            new_leader: Vec::new(),
            runtime: None,
            timeout: TIMEOUT,
        }
    }
}

impl Callbacks {
    pub(super) fn on_started<F, Fut>(&mut self, mut call: F)
    where
        F: FnMut(Term) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.started.push(Box::new(move |term| call(term).boxed()));
    }

    pub(super) fn on_stopped<F, Fut>(&mut self, mut call: F)
    where
        F: FnMut(Term, TermEnd) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.stopped.push(Box::new(move |term, reason| call(term, reason).boxed()));
    }

    pub(super) fn on_new_leader<F, Fut>(&mut self, mut call: F)
    where
        F: FnMut(Leader) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.new_leader.push(Box::new(move |leader| call(leader).boxed()));
    }

    pub(super) fn run_on(&mut self, runtime: Handle) {
        self.runtime = Some(runtime);
    }

    pub(super) fn limit(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn are_none(&self) -> bool {
        self.started.is_empty() && self.stopped.is_empty() && self.new_leader.is_empty()
    }

    /// Settles on which runtime to call, where nothing was said about it: that of the caller. `None` if it has none.
    pub(super) fn settled(mut self) -> Option<Self> {
        if self.runtime.is_none() && !self.are_none() {
            self.runtime = Some(Handle::try_current().ok()?);
        }
        Some(self)
    }

    /// Begins to call. `elector` tells this elector from others of the process.
    pub(super) fn start(self, leadership: &Leadership, elector: usize) -> Calling {
        let patience = self.patience();
        let task = self.runtime.clone().filter(|_| !self.are_none()).map(|runtime| {
            let telemetry = leadership.telemetry().clone();
            let caller = Caller { telemetry, elector, timeout: self.timeout };
            runtime.spawn(Calls { callbacks: self, caller }.follow(leadership.transitions()))
        });
        Calling { task, patience }
    }

    /// What is left to be done once the elector has stopped: to call for the end of the last term, perhaps after a new
    /// leader that was called for just before.
    fn patience(&self) -> Duration {
        let calls = self.stopped.len() + self.new_leader.len() + 1;
        self.timeout.saturating_mul(u32::try_from(calls).unwrap_or(u32::MAX))
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks")
            .field("started", &self.started.len())
            .field("stopped", &self.stopped.len())
            .field("new_leader", &self.new_leader.len())
            .finish_non_exhaustive()
    }
}

/// Callbacks that are being called, also if this is dropped.
#[derive(Debug, Default)]
pub(super) struct Calling {
    task: Option<JoinHandle<()>>,
    patience: Duration,
}

impl Calling {
    /// Waits until the last one has returned, after the elector has stopped. False if that takes too long: then no further
    /// one is called.
    pub(super) async fn finished(self) -> bool {
        let Some(task) = self.task else { return true };
        // Also if this is dropped: nobody waits any longer.
        let _stop = StopCalling(task.abort_handle());
        // The task itself does not panic; its runtime may be gone, and with it all that could run.
        within(self.patience, task).await.is_some()
    }
}

struct StopCalling(AbortHandle);

impl Drop for StopCalling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

tokio::task_local! {
    /// The elector for which a callback is running here.
    static CALLED_FOR: usize;
}

/// Whether this is called by a callback of this elector, for which nobody may wait then.
pub(super) fn is_called_for(elector: usize) -> bool {
    CALLED_FOR.try_with(|called_for| *called_for == elector).unwrap_or(false)
}

/// The names under which callbacks are reported.
const STARTED: &str = "on_started_leading";
const STOPPED: &str = "on_stopped_leading";
const NEW_LEADER: &str = "on_new_leader";

struct Calls {
    callbacks: Callbacks,
    caller: Caller,
}

impl Calls {
    async fn follow(mut self, mut transitions: Transitions) {
        let Self { callbacks, caller } = &mut self;
        let mut running = Vec::new();
        while let Some(transition) = transitions.next().await {
            match transition {
                Transition::Started(term) => {
                    let calls = callbacks.started.iter_mut();
                    running = calls.filter_map(|call| caller.spawn_for(&term, call)).collect();
                }
                Transition::Ended { term, reason } => {
                    // They were cut when the term was cancelled; a poll that was running then is waited for.
                    for call in running.drain(..) {
                        // An error is that of its runtime, which is being torn down.
                        let _ = call.await;
                    }
                    for call in &mut callbacks.stopped {
                        caller.call(STOPPED, || call(term.clone(), reason)).await;
                    }
                }
                Transition::NewLeader(leader) => {
                    for call in &mut callbacks.new_leader {
                        caller.call(NEW_LEADER, || call(leader.clone())).await;
                    }
                }
            }
        }
    }
}

/// Calls in a way that is never fatal to anybody.
#[derive(Clone)]
struct Caller {
    telemetry: Telemetry,
    elector: usize,
    timeout: Duration,
}

impl Caller {
    /// One that runs for as long as its term: all of them at once.
    fn spawn_for(&self, term: &Term, call: &mut OnStarted) -> Option<JoinHandle<()>> {
        // A term that is over already is work for nobody.
        let guard = term.guard()?;
        let work = self.begin(STARTED, || call(term.clone()));
        drop(guard);
        let (caller, term) = (self.clone(), term.clone());
        let work = work?;
        Some(tokio::spawn(async move { caller.finish(STARTED, term.leader_only(work)).await }))
    }

    /// One that must not take long.
    async fn call(&self, name: &'static str, call: impl FnOnce() -> BoxFuture<'static, ()>) {
        let Some(work) = self.begin(name, call) else { return };
        if within(self.timeout, self.finish(name, work)).await.is_none() {
            self.telemetry.callback_timed_out(name, self.timeout);
        }
    }

    fn begin<T>(&self, name: &'static str, call: impl FnOnce() -> T) -> Option<T> {
        let called = AssertUnwindSafe(|| CALLED_FOR.sync_scope(self.elector, call));
        catch_unwind(called).map_err(|panic| self.report(name, &*panic)).ok()
    }

    async fn finish<T>(&self, name: &'static str, work: impl Future<Output = T>) {
        let work = AssertUnwindSafe(CALLED_FOR.scope(self.elector, work)).catch_unwind();
        if let Err(panic) = work.await {
            self.report(name, &*panic);
        }
    }

    fn report(&self, name: &'static str, panic: &(dyn Any + Send)) {
        self.telemetry.callback_panicked(name, panic_message(panic));
    }
}

/// What the work gives, if it does so within the limit.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(time::sleep(limit)), pin!(work)).await {
        Either::Left(_) => None,
        Either::Right((done, _)) => Some(done),
    }
}
