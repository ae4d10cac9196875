//! Ends terms at their deadline, whatever the network, the renewal or the async runtime is doing (rule S3).
//!
//! One thread serves the whole process. It does no I/O, and calls nobody while it holds its lock. With a clock that a
//! test controls, for which no thread can wait, it is a task per term.

use std::{
    collections::HashMap,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, task::AbortHandle};

use super::{Inner, Term, alarm::Alarm};
use crate::{clock::Clock, instant::Instant};

/// Starts the watchdog, if it is not running yet. Who can't have one must not contend.
pub(crate) fn ensure_started(clock: &Clock) -> io::Result<()> {
    if !clock.is_virtual() {
        Watchdog::of_this_process()?;
    }
    Ok(())
}

/// Has `term` ended at its deadline: marks it as expired, calls `publish`, wakes those who wait for the end, and then the
/// elector. Until the [`Watch`] is dropped, which comes too late for a call of `publish` that has begun.
///
/// With a virtual clock it has to be called on a tokio runtime.
pub(crate) fn watch(term: &Term, publish: impl Fn() + Send + Sync + 'static) -> io::Result<Watch> {
    let entry = Arc::new(Entry { term: Arc::downgrade(&term.0), publish: Box::new(publish) });
    let clock = term.cell().clock();
    let watcher = if clock.is_virtual() {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let moved = Arc::new(Notify::new());
        let task = runtime.spawn(watch_in_task(entry, clock.clone(), moved.clone()));
        Watcher::Task { task: task.abort_handle(), moved }
    } else {
        let watchdog = Watchdog::of_this_process()?;
        let id = watchdog.add(entry);
        Watcher::Thread { watchdog, id }
    };
    Ok(Watch(watcher))
}

/// A term that is watched. Dropping it ends the watch.
#[derive(Debug)]
#[must_use = "the term is watched only while this is held"]
pub(crate) struct Watch(Watcher);

#[derive(Debug)]
enum Watcher {
    Thread { watchdog: Arc<Watchdog>, id: u64 },
    Task { task: AbortHandle, moved: Arc<Notify> },
}

impl Watch {
    /// To be called when the deadline was replaced by an *earlier* one. A later one needs no call: the watchdog wakes at
    /// the old deadline, and looks.
    pub(crate) fn earlier(&self) {
        match &self.0 {
            Watcher::Thread { watchdog, id } => watchdog.look_again(*id),
            Watcher::Task { moved, .. } => moved.notify_one(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        match &self.0 {
            Watcher::Thread { watchdog, id } => watchdog.remove(*id),
            Watcher::Task { task, .. } => task.abort(),
        }
    }
}

/// What is done at the end of one term.
struct Entry {
    term: Weak<Inner>,
    publish: Box<dyn Fn() + Send + Sync>,
}

impl Entry {
    fn publish(&self) {
        contain(|| (self.publish)());
    }

    fn announce(&self) {
        if let Some(term) = self.term.upgrade().map(Term) {
            contain(|| term.announce());
            contain(|| term.cell().wake_elector());
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("term", &self.term.upgrade().map(Term))
            .finish_non_exhaustive()
    }
}

/// Somebody else's waker may panic, and must not take the watchdog with it. The panic hook has reported it.
fn contain(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

#[derive(Debug)]
struct Watchdog {
    alarm: Alarm,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    entries: HashMap<u64, Arc<Entry>>,
    last_id: u64,
    /// What the thread waits for, or is about to.
    armed: Option<Instant>,
}

impl Watchdog {
    fn of_this_process() -> io::Result<Arc<Self>> {
        static WATCHDOG: Mutex<Option<Arc<Watchdog>>> = Mutex::new(None);

        let mut running = WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watchdog) = &*running {
            return Ok(watchdog.clone());
        }
        let watchdog = Arc::new(Self { alarm: Alarm::new()?, watched: Mutex::default() });
        let on_thread = watchdog.clone();
        thread::Builder::new().name("tenure-watchdog".into()).spawn(move || on_thread.run())?;
        Ok(running.insert(watchdog).clone())
    }

    fn run(&self) {
        loop {
            let (over, next) = self.look();
            // A publication is quick, while thousands may wait for an announcement: first all of the one kind.
            over.iter().for_each(|entry| entry.publish());
            over.iter().for_each(|entry| entry.announce());
            drop(over);
            if self.alarm.wait(next).is_err() {
                // No known way leads here. The clock decides anyway, so waking far too often does no harm.
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Takes out the terms that are over, and says when the next one will be. Renewals have moved deadlines since the
    /// last look without saying so; looking at all of them is rare for that very reason.
    fn look(&self) -> (Vec<Arc<Entry>>, Option<Instant>) {
        let mut over = Vec::new();
        let mut next: Option<Instant> = None;
        let mut watched = self.lock();
        watched.entries.retain(|_, entry| {
            let Some(term) = entry.term.upgrade().map(Term) else { return false };
            if term.end().is_some() {
                over.push(entry.clone());
                return false;
            }
            let deadline = term.deadline();
            next = Some(next.map_or(deadline, |next| next.min(deadline)));
            true
        });
        watched.armed = next;
        (over, next)
    }

    fn add(&self, entry: Arc<Entry>) -> u64 {
        let mut watched = self.lock();
        watched.last_id += 1;
        let id = watched.last_id;
        watched.entries.insert(id, entry);
        drop(watched);
        self.look_again(id);
        id
    }

    /// Wakes the thread if this term's deadline lies before what the thread waits for.
    fn look_again(&self, id: u64) {
        let mut watched = self.lock();
        let term = watched.entries.get(&id).and_then(|entry| entry.term.upgrade()).map(Term);
        let Some(deadline) = term.map(|term| term.deadline()) else { return };
        if watched.armed.is_none_or(|armed| deadline < armed) {
            watched.armed = Some(deadline);
            drop(watched);
            self.alarm.poke();
        }
    }

    fn remove(&self, id: u64) {
        let entry = self.lock().entries.remove(&id);
        drop(entry);
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn watch_in_task(entry: Arc<Entry>, clock: Clock, moved: Arc<Notify>) {
    while let Some(term) = entry.term.upgrade().map(Term) {
        if term.end().is_some() {
            entry.publish();
            entry.announce();
            return;
        }
        let deadline = term.deadline();
        drop(term);
        tokio::select! {
            () = clock.sleep_until(deadline) => {}
            () = moved.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        sync::{
            atomic::{AtomicUsize, Ordering},
            mpsc::{Receiver, channel},
        },
        task::{Context, Wake, Waker},
    };

    use futures::FutureExt;

    use super::*;
    use crate::{
        lease::TermEnd,
        term::{
            Moment,
            tests::{term, term_on},
        },
    };

    const SOON: Duration = Duration::from_millis(30);
    const LIMIT: Duration = Duration::from_secs(20);

    fn real_term(lasts: Duration) -> (Term, Instant) {
        let clock = Clock::system();
        let term = term_on(&clock, 1, true, &Arc::default());
        let deadline = clock.now() + lasts;
        assert!(term.extend(deadline));
        (term, deadline)
    }

    fn watched(term: &Term) -> (Watch, Receiver<Instant>) {
        let (publish, published) = channel();
        let watch = watch(term, move || publish.send(Clock::system().now()).unwrap()).unwrap();
        (watch, published)
    }

    #[tokio::test]
    async fn a_term_ends_on_time_while_the_runtime_is_blocked() {
        let (term, deadline) = real_term(SOON);
        let waiting = term.spawn(std::future::pending::<()>());
        let (_watch, published) = watched(&term);
        // Blocks the only thread that this runtime has.
        let at = published.recv_timeout(LIMIT).unwrap();
        assert!(at + Duration::from_micros(1) >= deadline);
        assert_eq!(term.finish(TermEnd::Lost), TermEnd::Expired);
        assert_eq!(waiting.await.unwrap().unwrap_err().reason(), TermEnd::Expired);
    }

    #[test]
    fn a_renewal_needs_no_call_unless_the_deadline_becomes_earlier() {
        let (later, deadline) = real_term(SOON);
        let (_watch, published) = watched(&later);
        assert!(later.extend(deadline + SOON));
        assert!(
            published.recv_timeout(LIMIT).unwrap() + Duration::from_micros(1) >= deadline + SOON
        );

        let (earlier, _) = real_term(Duration::from_secs(3600));
        let (watch, published) = watched(&earlier);
        assert!(earlier.extend(Clock::system().now() + SOON));
        watch.earlier();
        published.recv_timeout(LIMIT).unwrap();
        assert_eq!(earlier.end(), Some(TermEnd::Expired));
    }

    #[test]
    fn a_watch_that_was_dropped_publishes_nothing() {
        let (first, _) = real_term(Duration::from_secs(3600));
        let (first_watch, first_published) = watched(&first);
        drop(first_watch);
        assert!(first.extend(Clock::system().now()));
        let (second, _) = real_term(SOON);
        let (_watch, published) = watched(&second);
        published.recv_timeout(LIMIT).unwrap();
        assert!(first_published.recv().is_err(), "its closure is gone");
    }

    #[tokio::test]
    async fn the_end_is_marked_then_published_then_announced_and_then_the_elector_is_woken() {
        let changed = Arc::new(Notify::new());
        let term = term_on(&Clock::system(), 1, true, &changed);
        let token = term.cancellation_token();
        let (publish, published) = channel();
        let (seen, announced) = (term.clone(), token.clone());
        let see = move || (seen.cell().marked(Moment::Ended), announced.is_cancelled());
        let watch = watch(&term, move || publish.send(see()).unwrap()).unwrap();
        assert!(term.extend(Clock::system().now() + SOON));
        watch.earlier();
        assert_eq!(published.recv_timeout(LIMIT), Ok((Some(TermEnd::Expired), false)));
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(LIMIT) => panic!("the elector was not woken"),
        }
        assert!(token.is_cancelled());
    }

    #[test]
    fn panics_of_others_do_not_end_the_watchdog() {
        struct Panics;

        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic!("of a waker, on purpose");
            }
        }

        let (first, _) = real_term(SOON);
        let mut ended = pin!(first.ended());
        let waker = Waker::from(Arc::new(Panics));
        assert!(ended.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let _first = watch(&first, || panic!("of a publication, on purpose")).unwrap();
        let (second, _) = real_term(2 * SOON);
        let (_watch, published) = watched(&second);
        published.recv_timeout(LIMIT).unwrap();
        assert_eq!(first.finish(TermEnd::Lost), TermEnd::Expired);
    }

    #[test]
    fn a_hundred_terms_leave_nothing_behind() {
        let (first, _) = real_term(Duration::from_secs(3600));
        for _ in 0..100 {
            let (watch, _published) = watched(&first);
            drop(watch);
        }
        assert_eq!(Arc::weak_count(&first.0), 0);
    }

    #[tokio::test]
    async fn with_a_virtual_clock_a_task_ends_the_term() {
        let (term, hand, changed) = term();
        let published = Arc::new(AtomicUsize::new(0));
        let counter = published.clone();
        let _watch = watch(&term, move || _ = counter.fetch_add(1, Ordering::SeqCst)).unwrap();
        tokio::task::yield_now().await;
        hand.advance(Duration::from_secs(10));
        changed.notified().await;
        assert_eq!(published.load(Ordering::SeqCst), 1);
        assert!(term.cancelled().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn with_paused_time_a_task_ends_the_term() {
        let changed = Arc::new(Notify::new());
        let term = term_on(&Clock::tokio(), 1, true, &changed);
        let _watch = watch(&term, || {}).unwrap();
        assert_eq!(term.ended().await, TermEnd::Expired);
        changed.notified().await;
    }

    #[test]
    fn a_virtual_clock_without_a_runtime_is_an_error() {
        let (term, _, _) = term();
        assert!(watch(&term, || {}).is_err());
        ensure_started(&Clock::system()).unwrap();
    }
}
