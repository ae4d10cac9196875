//! What it costs to ask whether one leads, and to work under a term.

use std::{
    future::{Future, ready},
    hint::black_box,
    pin::pin,
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Waker},
};

use futures::executor::block_on;
use tenure::{Clock, Elector, MemoryStore};
use tenure_benches::Ratios;

fn main() -> ExitCode {
    let elector = Elector::builder("bench", MemoryStore::new()).build().expect("valid settings");
    let leadership = elector.leadership();
    let candidacy = elector.spawn();
    let term = block_on(leadership.leading()).expect("it leads");

    let clock = Clock::system();
    let read_clock = || clock.now();
    let count = AtomicUsize::new(0);
    let atomic_pair = || {
        black_box(&count).fetch_add(1, Ordering::SeqCst);
        black_box(&count).fetch_sub(1, Ordering::SeqCst)
    };
    let mut cx = Context::from_waker(Waker::noop());

    let mut ratios = Ratios::default();
    let clock_read = ("one read of the clock", read_clock);
    ratios.compare(("leadership.is_leader()", || leadership.is_leader()), 2.0, clock_read);
    ratios.compare(("term.is_live()", || term.is_live()), 2.0, clock_read);
    let mut pending = pin!(term.leader_only(std::future::pending::<()>()));
    ratios.compare(("one poll of leader_only", || pending.as_mut().poll(&mut cx)), 2.0, clock_read);
    let guard = term.guard().expect("the term is live");
    let atomics = ("an atomic pair", atomic_pair);
    ratios.compare(("guard, cloned and dropped", || drop(guard.clone())), 3.0, atomics);
    // Taking the first guard of a piece of work compares the clock with the deadline: that much is rule S4.
    let least = || (read_clock(), atomic_pair(), atomic_pair(), atomic_pair());
    let guarded = ("guard, taken and dropped", || drop(term.guard()));
    ratios.compare(guarded, 1.0, ("a clock read and three atomic pairs", least));
    let whole =
        ("leader_only of a ready future, made and run", || block_on(term.leader_only(ready(1))));
    ratios.compare(whole, 6.0, clock_read);

    drop(guard);
    block_on(candidacy.shutdown()).expect("it stops");
    ratios.verdict()
}
