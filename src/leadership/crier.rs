//! Telling those who wait, where it keeps no elector from its work.

use std::{
    io, mem,
    sync::{Arc, PoisonError, mpsc},
    thread,
};

use super::Status;
use crate::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        watch,
    },
    term::{Term, watchdog::contain},
};

/// Who wakes those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// A thread of the process for that alone. Thousands of them take milliseconds, a waker may be anybody's code, and no
    /// elector can reach its store meanwhile from the thread that wakes.
    Aside,
    /// Whoever has something to tell, before it goes on: where a test controls the time, none must pass in between.
    Here,
}

/// One elector's way to all who watch its status, or wait for what becomes of its term.
///
/// What they are told is true and can be read before it is rung for; only being woken takes time.
#[derive(Debug)]
pub(super) struct Bell {
    status: watch::Sender<Status>,
    /// The terms whose cancellation or end is to be announced.
    terms: Mutex<Vec<Term>>,
    /// Whether the crier has still to come by, so that its queue holds each elector once.
    is_rung: AtomicBool,
    crier: Option<mpsc::Sender<Arc<Self>>>,
}

impl Bell {
    pub(super) fn new(status: watch::Sender<Status>, telling: Telling) -> Arc<Self> {
        let crier = match telling {
            Telling::Here => None,
            // Better slowly than not at all.
            Telling::Aside => crier().ok(),
        };
        Arc::new(Self { status, terms: Mutex::default(), is_rung: AtomicBool::new(false), crier })
    }

    /// What can be read.
    pub(super) fn status(&self) -> &watch::Sender<Status> {
        &self.status
    }

    /// Changes what can be read, and tells nobody. Returns what `change` does: whether it is news.
    pub(super) fn write(&self, change: impl FnOnce(&mut Status) -> bool) -> bool {
        let mut is_news = false;
        self.status.send_if_modified(|status| {
            is_news = change(status);
            false
        });
        is_news
    }

    /// Has everybody told that the status reads differently now, and what became of `term`.
    pub(super) fn ring(self: &Arc<Self>, term: Option<&Term>) {
        if let Some(term) = term {
            let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
            if !terms.contains(term) {
                terms.push(term.clone());
            }
        }
        let Some(crier) = &self.crier else { return self.tell() };
        if !self.is_rung.swap(true, SeqCst) {
            // No known way leads to an error: the thread ends with the process.
            crier.send(Arc::clone(self)).unwrap_or_else(|unsent| unsent.0.tell());
        }
    }

    fn tell(&self) {
        // First: whoever rings from here on rings anew.
        self.is_rung.store(false, SeqCst);
        let terms = mem::take(&mut *self.terms.lock().unwrap_or_else(PoisonError::into_inner));
        contain(|| self.status.send_modify(|_| {}));
        for term in terms {
            contain(|| term.announce());
        }
    }
}

/// The way to the thread of this process that tells. It is started when it is first needed.
#[allow(unused_qualifications)] // not the one that loom explores: it outlives every exploration
fn crier() -> io::Result<mpsc::Sender<Arc<Bell>>> {
    static CRIER: std::sync::Mutex<Option<mpsc::Sender<Arc<Bell>>>> = std::sync::Mutex::new(None);

    let mut started = CRIER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(crier) = &*started {
        return Ok(crier.clone());
    }
    let (crier, bells) = mpsc::channel::<Arc<Bell>>();
    thread::Builder::new().name("tenure-crier".into()).spawn(move || {
        for bell in bells {
            bell.tell();
            // The last one closes the channel, which wakes whoever watches as well.
            contain(|| drop(bell));
        }
    })?;
    Ok(started.insert(crier).clone())
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        sync::{
            Arc, Mutex,
            mpsc::{Receiver, Sender, channel},
        },
        task::{Context, Poll, Wake, Waker},
        time::Duration,
    };

    use super::{
        super::{Leader, Leadership, Publisher, Requests},
        *,
    };
    use crate::{
        clock::Clock,
        lease::{Payload, TermEnd},
        protocol::Phase,
        term::tests::{telemetry, term_on},
    };

    fn told_aside() -> (Publisher, Leadership, Clock) {
        let (clock, _) = Clock::manual();
        let requests = Arc::<Requests>::default();
        let (publisher, leadership) = Publisher::new(
            telemetry(),
            clock.clone(),
            Payload::default(),
            Telling::Aside,
            &requests,
        );
        (publisher, leadership, clock)
    }

    /// Says that it was woken, and holds up whoever woke it until it is let go.
    struct Holds {
        woken: Sender<()>,
        let_go: Mutex<Receiver<()>>,
    }

    impl Wake for Holds {
        fn wake(self: Arc<Self>) {
            self.woken.send(()).unwrap();
            let _ = self.let_go.lock().unwrap().recv();
        }
    }

    fn holding() -> (Waker, Receiver<()>, Sender<()>) {
        let ((woken, is_woken), (lets_go, let_go)) = (channel(), channel());
        (Arc::new(Holds { woken, let_go: Mutex::new(let_go) }).into(), is_woken, lets_go)
    }

    fn pends(future: std::pin::Pin<&mut impl Future>, waker: &Waker) {
        assert!(matches!(future.poll(&mut Context::from_waker(waker)), Poll::Pending));
    }

    /// And nothing that happens meanwhile is forgotten.
    #[test]
    fn a_waker_that_does_not_return_holds_up_no_publisher() {
        let (publisher, leadership, clock) = told_aside();
        let changed = Arc::default();
        let terms = [1, 2, 3].map(|fence| term_on(&clock, fence, true, &changed));
        let (stubborn, is_held, lets_go) = holding();
        let mut first = pin!(terms[0].ended());
        pends(first.as_mut(), &stubborn);
        publisher.end(&terms[0], TermEnd::Lost);
        is_held.recv().unwrap();

        // The thread that tells is held up now.
        let mut others = terms[1..].iter().map(|term| Box::pin(term.ended())).collect::<Vec<_>>();
        let wakers = [holding(), holding()];
        for (ended, (waker, ..)) in others.iter_mut().zip(&wakers) {
            pends(ended.as_mut(), waker);
        }
        for term in &terms[1..] {
            publisher.end(term, TermEnd::Lost);
        }
        publisher.stands(Phase::Following, None);
        assert_eq!(leadership.status().phase(), Phase::Following, "it can be read already");
        assert!(terms.iter().all(|term| !term.may_finish()));

        drop(lets_go);
        for (_, is_woken, lets_go) in wakers {
            is_woken.recv().unwrap();
            drop(lets_go);
        }
    }

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker of somebody else's");
        }
    }

    /// Also of what is told in one go, once the thread is free.
    #[test]
    fn a_waker_that_panics_keeps_nobody_else_from_being_told() {
        let (publisher, _, clock) = told_aside();
        let changed = Arc::default();
        let terms = [1, 2, 3].map(|fence| term_on(&clock, fence, true, &changed));
        let (stubborn, is_held, lets_go) = holding();
        let mut held = pin!(terms[0].ended());
        pends(held.as_mut(), &stubborn);
        publisher.end(&terms[0], TermEnd::Lost);
        is_held.recv().unwrap();

        let mut panics = pin!(terms[1].ended());
        pends(panics.as_mut(), &Arc::new(Panics).into());
        publisher.end(&terms[1], TermEnd::Lost);
        let (waker, is_woken, goes_on) = holding();
        drop(goes_on);
        let mut told = pin!(terms[2].ended());
        pends(told.as_mut(), &waker);
        publisher.end(&terms[2], TermEnd::Lost);
        drop(lets_go);
        is_woken.recv().unwrap();
    }

    const LONG: Duration = Duration::from_secs(60);

    /// Says on which thread it was woken.
    struct SaysWhere(Sender<Option<String>>);

    impl Wake for SaysWhere {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(thread::current().name().map(str::to_owned));
        }
    }

    /// The thread that tells may be the last to hold a channel.
    #[test]
    fn a_waker_that_panics_when_a_channel_is_closed_leaves_the_thread_that_tells_alive() {
        let (publisher, leadership, clock) = told_aside();
        let term = term_on(&clock, 1, true, &Arc::default());
        let leader = Leader::new("web-1".parse().unwrap(), term.fence(), Payload::default());
        publisher.started(term.clone(), leader);
        let (stubborn, is_held, lets_go) = holding();
        let mut held = pin!(term.ended());
        pends(held.as_mut(), &stubborn);
        drop(publisher);
        is_held.recv_timeout(LONG).unwrap();

        // All who watched were told; the channel is still open.
        let mut watch = leadership.watch();
        let mut panics = pin!(watch.changed());
        pends(panics.as_mut(), &Arc::new(Panics).into());
        drop(lets_go);

        let (publisher, _, clock) = told_aside();
        let term = term_on(&clock, 1, true, &Arc::default());
        let (says, told_on) = channel();
        let mut told = pin!(term.ended());
        pends(told.as_mut(), &Arc::new(SaysWhere(says)).into());
        publisher.end(&term, TermEnd::Lost);
        assert_eq!(told_on.recv_timeout(LONG).unwrap().as_deref(), Some("tenure-crier"));
    }
}
