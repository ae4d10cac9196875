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
