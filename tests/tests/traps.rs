//! Traps that others have fallen into, and that need neither a database nor a second process.

// An expectation that is not met means that the compiler let something pass.
#![deny(unfulfilled_lint_expectations)]

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};

use futures::executor::block_on;
use tenure::{Elector, MemoryStore, Phase, StopError, Timing};

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

/// A channel's receiver shows the last value for ever when its sender is gone. Whoever reads it then must not find a
/// leader in it.
#[test]
fn borrow_after_actor_panic_is_standby() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("somebody else's waker panics in the elector's thread");
        }
    }
    let candidacy = Elector::builder("panic", MemoryStore::new()).build().unwrap().spawn();
    let leadership = candidacy.leadership();
    let term = block_on(leadership.leading()).unwrap();
    let mut status = leadership.watch();
    let before = status.borrow().clone();
    assert!(before.is_leader());
    {
        let mut changed = pin!(status.changed());
        let waker = Waker::from(Arc::new(Panics));
        assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(candidacy.resign());
        let stopped = block_on(candidacy.stopped());
        assert!(matches!(stopped, Err(StopError::Panicked { .. })), "{stopped:?}");
    }
    assert!(!term.may_finish());
    assert!(!before.is_leader(), "a copy that was made before is judged by the clock of now");
    assert!(!status.borrow().is_leader());
    assert_eq!(leadership.status().phase(), Phase::Stopped);
}
