//! Traps that others have fallen into, and that need neither a database nor a second process.

// An expectation that is not met means that the compiler let something pass.
#![deny(unfulfilled_lint_expectations)]

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use futures::executor::block_on;
use tenure::{Elector, MemoryStore, Phase, StopError, Timing};
use tracing::{
    Event, Metadata, Subscriber,
    field::Field,
    span::{Attributes, Id, Record},
};

/// A setter whose result is dropped sets nothing, and an elector that is dropped elects nobody.
#[test]
fn builder_results_are_must_use() {
    let builder = || Elector::builder("must-use", MemoryStore::new());
    #[expect(unused_must_use)]
    builder();
    #[expect(unused_must_use)]
    builder().observer();
    #[expect(unused_must_use)]
    builder().build();
    #[expect(unused_must_use)]
    builder().build().unwrap();
    #[expect(unused_must_use)]
    builder().build().unwrap().spawn();
    #[expect(unused_must_use)]
    Timing::builder().retry_period(std::time::Duration::from_secs(1));
    #[expect(unused_must_use)]
    builder().build().unwrap().leadership().leader_only(async {});
}

/// The one code of an application's that runs on the elector's thread: it panics when it is told to, in the election "panic".
struct Panics;

static PANICS: AtomicBool = AtomicBool::new(false);

impl Subscriber for Panics {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut is_ours = false;
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            is_ours |= field.name() == "election" && format!("{value:?}") == "panic";
        });
        let panics = is_ours && PANICS.swap(false, Ordering::SeqCst);
        assert!(!panics, "somebody else's code panics in the elector's thread");
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A channel's receiver shows the last value for ever when its sender is gone. Whoever reads it then must not find a
/// leader in it.
#[test]
fn borrow_after_actor_panic_is_standby() {
    tracing::subscriber::set_global_default(Panics).unwrap();
    let candidacy = Elector::builder("panic", MemoryStore::new()).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let term = block_on(leadership.leading()).unwrap();
    let status = leadership.watch();
    let before = status.borrow().clone();
    assert!(before.is_leader());

    PANICS.store(true, Ordering::SeqCst);
    drop(candidacy.resign());
    let stopped = block_on(candidacy.stopped());
    assert!(matches!(stopped, Err(StopError::Panicked { .. })), "{stopped:?}");
    assert!(!term.may_finish());
    assert!(!before.is_leader(), "a copy that was made before is judged by the clock of now");
    assert!(!status.borrow().is_leader());
    assert_eq!(leadership.status().phase(), Phase::Stopped);
}
