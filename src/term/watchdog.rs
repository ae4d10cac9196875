//! Ends terms at their deadline, whatever the network, the renewal or the async runtime is doing (rule S3).
//!
//! One thread serves the whole process. It does no I/O, and calls nobody while it holds its lock. With a clock that a
//! test controls, for which no thread can wait, it is a task per term.

use std::{
    collections::HashMap,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, task::AbortHandle};

use super::{Inner, Overran, Overrun, Term, alarm::Alarm};
use crate::{clock::Clock, instant::Instant, lease::TermEnd};

/// Starts the watchdog, if it is not running yet. Who can't have one must not contend.
pub(crate) fn ensure_started(clock: &Clock) -> io::Result<()> {
    if !clock.is_virtual() {
        Watchdog::of_this_process()?;
    }
    Ok(())
}

/// What to do about a term that is watched.
pub(crate) struct Orders {
    /// Called when the term was found to be over, before those who wait for that are woken.
    pub(crate) publish: Box<dyn Fn() + Send + Sync>,
    /// How much longer than the term its lease lasts.
    pub(crate) margin: Duration,
    /// What to do if guards are held beyond the lease,
    pub(crate) overrun: Overrun,
    /// after this was called with their number.
    pub(crate) overran: Box<dyn Fn(usize) + Send + Sync>,
}

/// Has `term` ended at its deadline: marks it as expired, publishes that, wakes those who wait for the end, and then the
/// elector. Afterwards it looks once more when the lease is over, whether guards are held then.
///
/// The [`Watch`] may be dropped: of a term that is not over that ends it all, except for a publication that has begun; of
/// one that is over it changes nothing, since guards may outlive their elector.
///
/// With a virtual clock it has to be called on a tokio runtime.
pub(crate) fn watch(term: &Term, orders: Orders) -> io::Result<Watch> {
    let entry = Arc::new(Entry {
        term: Arc::downgrade(&term.0),
        orders,
        is_announced: AtomicBool::new(false),
    });
    let clock = term.cell().clock();
    let watcher = if clock.is_virtual() {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let moved = Arc::new(Notify::new());
        let task = runtime.spawn(watch_in_task(entry.clone(), clock.clone(), moved.clone()));
        Watcher::Task { task: task.abort_handle(), moved }
    } else {
        let watchdog = Watchdog::of_this_process()?;
        let id = watchdog.add(entry.clone());
        Watcher::Thread { watchdog, id }
    };
    Ok(Watch { watcher, entry })
}

/// A term that is watched. Dropping it ends the watch.
#[derive(Debug)]
#[must_use = "the term is watched only while this is held"]
pub(crate) struct Watch {
    watcher: Watcher,
    entry: Arc<Entry>,
}

#[derive(Debug)]
enum Watcher {
    Thread { watchdog: Arc<Watchdog>, id: u64 },
    Task { task: AbortHandle, moved: Arc<Notify> },
}

impl Watch {
    /// To be called when the deadline was replaced by an *earlier* one. A later one needs no call: the watchdog wakes at
    /// the old deadline, and looks.
    pub(crate) fn earlier(&self) {
        self.look_again();
    }

    /// To be called when the elector has ended the term, and made that public.
    pub(crate) fn ended(&self) {
        self.entry.is_announced.store(true, Ordering::SeqCst);
        self.look_again();
    }

    fn look_again(&self) {
        match &self.watcher {
            Watcher::Thread { watchdog, id } => watchdog.look_again(*id),
            Watcher::Task { moved, .. } => moved.notify_one(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.entry.term.upgrade().map(Term).is_some_and(|term| term.end().is_some()) {
            return;
        }
        match &self.watcher {
            Watcher::Thread { watchdog, id } => watchdog.remove(*id),
            Watcher::Task { task, .. } => task.abort(),
        }
    }
}

/// One term, and what is done about it.
struct Entry {
    term: Weak<Inner>,
    orders: Orders,
    /// Its end was published, and those who wait for it were told.
    is_announced: AtomicBool,
}

/// What the watchdog finds when it looks at a term.
enum Finding {
    /// Nothing has to be done before this instant.
    Wait(Instant),
    /// It is over, which is news.
    Over,
    /// Its lease is over as well, and this many guards are held.
    Overran(usize),
    /// It needs no watching any more.
    Done,
}

impl Entry {
    fn look(&self, now: impl FnOnce() -> Instant) -> Finding {
        let Some(term) = self.term.upgrade().map(Term) else { return Finding::Done };
        let Some(reason) = term.end() else { return Finding::Wait(term.deadline()) };
        if !self.is_announced.swap(true, Ordering::SeqCst) {
            return Finding::Over;
        }
        let guards = term.guards();
        // What is lost is somebody else's at once.
        let lease_until = match reason {
            TermEnd::Lost => Instant::ORIGIN,
            _ => term.cell().last_deadline() + self.orders.margin,
        };
        match guards {
            0 => Finding::Done,
            guards if lease_until <= now() => Finding::Overran(guards),
            _ => Finding::Wait(lease_until),
        }
    }

    fn publish(&self) {
        contain(|| (self.orders.publish)());
    }

    fn announce(&self) {
        if let Some(term) = self.term.upgrade().map(Term) {
            contain(|| term.announce());
            contain(|| term.cell().wake_elector());
        }
    }

    fn overran(&self, guards: usize) {
        if let Some(term) = self.term.upgrade().map(Term) {
            contain(|| (self.orders.overran)(guards));
            contain(|| self.orders.overrun.happen(&term, &Overran::of(&term, guards)));
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

#[derive(Default)]
struct Findings {
    over: Vec<Arc<Entry>>,
    overran: Vec<(Arc<Entry>, usize)>,
    next: Option<Instant>,
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
            let Findings { over, overran, next } = self.look();
            // A publication is quick, while thousands may wait for an announcement: first all of the one kind.
            over.iter().for_each(|entry| entry.publish());
            over.iter().for_each(|entry| entry.announce());
            overran.iter().for_each(|(entry, guards)| entry.overran(*guards));
            // Whoever was told of an end may have dropped guards meanwhile.
            let next = if over.is_empty() { next } else { Some(Instant::ORIGIN) };
            drop((over, overran));
            if self.alarm.wait(next).is_err() {
                // No known way leads here. The clock decides anyway, so waking far too often does no harm.
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Looks at all terms: what is to be done about them, and when to look again. Renewals have moved deadlines since the
    /// last look without saying so; looking at all of them is rare for that very reason.
    fn look(&self) -> Findings {
        let mut found = Findings::default();
        let mut watched = self.lock();
        watched.entries.retain(|_, entry| match entry.look(|| Clock::system().now()) {
            Finding::Wait(until) => {
                found.next = Some(found.next.map_or(until, |next| next.min(until)));
                true
            }
            Finding::Over => {
                found.over.push(entry.clone());
                true
            }
            Finding::Overran(guards) => {
                found.overran.push((entry.clone(), guards));
                false
            }
            Finding::Done => false,
        });
        watched.armed = found.next;
        found
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

    /// Wakes the thread if this term's deadline lies before what the thread waits for; that of one that is over lies before
    /// everything.
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
    loop {
        let until = match entry.look(|| clock.now()) {
            Finding::Wait(until) => until,
            Finding::Over => {
                entry.publish();
                entry.announce();
                continue;
            }
            Finding::Overran(guards) => return entry.overran(guards),
            Finding::Done => return,
        };
        tokio::select! {
            () = clock.sleep_until(until) => {}
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
    const MARGIN: Duration = Duration::from_millis(20);

    fn real_term(lasts: Duration) -> (Term, Instant) {
        let clock = Clock::system();
        let term = term_on(&clock, 1, true, &Arc::default());
        let deadline = clock.now() + lasts;
        assert!(term.extend(deadline));
        (term, deadline)
    }

    fn orders(publish: impl Fn() + Send + Sync + 'static) -> Orders {
        Orders {
            publish: Box::new(publish),
            margin: MARGIN,
            overrun: Overrun::Report,
            overran: Box::new(|_| {}),
        }
    }

    /// Says how many guards are held beyond the lease, and on which thread the last act happens.
    fn overrun(term: &Term) -> (Watch, Receiver<(usize, String)>) {
        let (act, acted) = channel();
        let said = Arc::new(AtomicUsize::new(0));
        let says = said.clone();
        let last_act = move |overran: &Overran| {
            assert_eq!(said.load(Ordering::SeqCst), overran.guards, "it is said first");
            let thread = thread::current().name().unwrap_or_default().to_owned();
            act.send((overran.guards, thread)).unwrap();
        };
        let orders = Orders {
            overran: Box::new(move |guards| says.store(guards, Ordering::SeqCst)),
            overrun: Overrun::call(last_act),
            ..orders(|| {})
        };
        (watch(term, orders).unwrap(), acted)
    }

    fn watched(term: &Term) -> (Watch, Receiver<Instant>) {
        let (publish, published) = channel();
        let watch =
            watch(term, orders(move || publish.send(Clock::system().now()).unwrap())).unwrap();
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
        let watch = watch(&term, orders(move || publish.send(see()).unwrap())).unwrap();
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
        let _first = watch(&first, orders(|| panic!("of a publication, on purpose"))).unwrap();
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
        let _watch =
            watch(&term, orders(move || _ = counter.fetch_add(1, Ordering::SeqCst))).unwrap();
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
        let _watch = watch(&term, orders(|| {})).unwrap();
        assert_eq!(term.ended().await, TermEnd::Expired);
        changed.notified().await;
    }

    #[test]
    fn a_virtual_clock_without_a_runtime_is_an_error() {
        let (term, _, _) = term();
        assert!(watch(&term, orders(|| {})).is_err());
        ensure_started(&Clock::system()).unwrap();
    }

    #[test]
    fn guards_that_are_held_beyond_the_lease_are_acted_upon_by_the_watchdog() {
        let (term, deadline) = real_term(SOON);
        let guards = [term.guard().unwrap(), term.guard().unwrap()];
        let (watch, acted) = overrun(&term);
        assert_eq!(acted.recv_timeout(LIMIT).unwrap(), (2, "tenure-watchdog".to_owned()));
        assert!(Clock::system().now() + Duration::from_micros(1) >= deadline + MARGIN);
        drop((watch, guards));
        assert!(acted.recv().is_err(), "it happens once");
    }

    #[test]
    fn guards_outlive_whoever_had_their_term_watched() {
        let (term, _) = real_term(Duration::from_secs(3600));
        let guard = term.guard().unwrap();
        let (watch, acted) = overrun(&term);
        assert!(term.extend(Clock::system().now() + SOON));
        term.finish(TermEnd::Shutdown);
        watch.ended();
        drop(watch);
        assert_eq!(acted.recv_timeout(LIMIT).unwrap().0, 1);
        drop(guard);
    }

    #[test]
    fn what_is_lost_is_overrun_at_once() {
        let (term, _) = real_term(Duration::from_secs(3600));
        let _guard = term.guard().unwrap();
        let (watch, acted) = overrun(&term);
        assert_eq!(term.finish(TermEnd::Lost), TermEnd::Lost);
        watch.ended();
        assert_eq!(acted.recv_timeout(LIMIT).unwrap().0, 1);
    }

    #[test]
    fn guards_that_are_gone_before_the_lease_is_are_nobodys_business() {
        let (term, _) = real_term(SOON);
        let guard = term.guard().unwrap();
        let (watch, acted) = overrun(&term);
        term.finish(TermEnd::Resigned);
        drop((guard, watch));
        // Its closure goes when there is nothing left to watch.
        assert!(acted.recv_timeout(LIMIT).is_err());
        assert_eq!(term.guards(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn with_paused_time_a_task_acts_upon_guards() {
        let term = term_on(&Clock::tokio(), 1, true, &Arc::default());
        let _guard = term.guard().unwrap();
        let (_watch, acted) = overrun(&term);
        tokio::time::sleep(term.remaining() + MARGIN + Duration::from_millis(2)).await;
        assert_eq!(acted.try_recv().unwrap().0, 1);
    }
}
