//! Ends terms at their deadline, whatever the network, the renewal or the async runtime is doing (rule S3).
//!
//! One thread serves the whole process. It does no I/O, and calls nobody while it holds its lock. With a clock that a
//! test controls, for which no thread can wait, it is a task per term.

use std::{
    collections::HashMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::{Arc, PoisonError, Weak},
    thread,
    time::Duration,
};

use tokio::{runtime::Handle, task::AbortHandle};

use super::{Inner, Overran, Overrun, Term, alarm::Alarm};
use crate::{
    clock::Clock,
    instant::Instant,
    lease::TermEnd,
    sync::{
        Mutex, MutexGuard, Notify,
        atomic::{AtomicBool, Ordering},
    },
};

/// How long to rest when the alarm does not tell.
const WITHOUT_ALARM: Duration = Duration::from_millis(1);

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
    /// Has those who wait woken, on whichever thread: a waker may take its time, and other terms end too.
    pub(crate) announce: Box<dyn Fn(&Term) + Send + Sync>,
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
#[must_use = "the term is watched only while this is held"]
pub(crate) struct Watch {
    watcher: Watcher,
    entry: Arc<Entry>,
}

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
            // Whoever drops the watch has said so.
            self.entry.is_announced.store(true, Ordering::SeqCst);
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
    fn look(&self) -> Finding {
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
            guards if lease_until <= term.cell().clock().now() => Finding::Overran(guards),
            _ => Finding::Wait(lease_until),
        }
    }

    fn publish(&self) {
        contain(|| (self.orders.publish)());
    }

    fn announce(&self) {
        if let Some(term) = self.term.upgrade().map(Term) {
            contain(|| (self.orders.announce)(&term));
            contain(|| term.cell().wake_elector());
        }
    }

    fn overran(&self, guards: usize) {
        if let Some(term) = self.term.upgrade().map(Term) {
            contain(|| (self.orders.overran)(guards));
            let overran = Overran::of(&term, guards);
            contain(|| self.orders.overrun.happen(&term, &overran, || process::abort()));
        }
    }
}

/// Somebody else's waker may panic, and must neither take the thread that wakes with it nor keep others from being woken. The
/// panic hook has reported it.
pub(crate) fn contain(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

/// No known way leads to an alarm that fails. The clock decides anyway, so waking far too often does no harm, as long as it
/// leaves the processor to others.
fn rest(_: io::Error) {
    thread::sleep(WITHOUT_ALARM);
}

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

#[derive(Default)]
struct Watched {
    entries: HashMap<u64, Arc<Entry>>,
    last_id: u64,
    /// What the thread waits for, or is about to.
    armed: Option<Instant>,
}

impl Watchdog {
    #[allow(unused_qualifications)] // not the one that loom explores: it outlives every exploration
    fn of_this_process() -> io::Result<Arc<Self>> {
        static WATCHDOG: std::sync::Mutex<Option<Arc<Watchdog>>> = std::sync::Mutex::new(None);

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
            let next = self.attend();
            self.alarm.wait(next).unwrap_or_else(rest);
        }
    }

    /// Does what is to be done now, and returns when to look again.
    fn attend(&self) -> Option<Instant> {
        let Findings { over, overran, next } = self.look();
        // A publication is quick, while thousands may wait for an announcement: first all of the one kind.
        over.iter().for_each(|entry| entry.publish());
        over.iter().for_each(|entry| entry.announce());
        overran.iter().for_each(|(entry, guards)| entry.overran(*guards));
        // Whoever was told of an end may have dropped guards meanwhile.
        if over.is_empty() { next } else { Some(Instant::ORIGIN) }
    }

    /// Looks at all terms: what is to be done about them, and when to look again. Renewals have moved deadlines since the
    /// last look without saying so; looking at all of them is rare for that very reason.
    fn look(&self) -> Findings {
        let mut found = Findings::default();
        let mut watched = self.lock();
        watched.entries.retain(|_, entry| match entry.look() {
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
        let until = match entry.look() {
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

#[cfg(all(test, tenure_loom))]
mod interleavings;
#[cfg(test)]
mod tests;
