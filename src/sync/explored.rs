//! What loom explores in place of the real types.
//!
//! Mutexes and atomics are loom's own. Those of tokio remain tokio's, and loom takes each of their calls for one step: they
//! were explored from the inside by their authors; here it matters what happens between their calls.

#![allow(unnameable_types)]

use std::{
    sync::Arc,
    task::{Context, Poll},
};

pub(crate) use loom::sync::{Mutex, MutexGuard};

use crate::clock::Clock;

/// Runs `model` once for each way in which its threads may meet, and says how many there were. It panics if one of them
/// panics, or waits for ever. `preemptions` bounds how often a thread is interrupted where it need not wait.
pub(crate) fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (counted, clock) = (runs.clone(), Clock::system());
    let started = clock.now();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let took = clock.now().saturating_since(started);
    let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
    assert!(runs > 1, "its threads do not meet");
    let bound =
        preemptions.map_or_else(|| "all".to_owned(), |bound| format!("up to {bound} preemptions"));
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{name}: {runs} interleavings ({bound}) in {took:.1?}");
}

pub(crate) mod atomic {
    use std::ops::Deref;

    pub(crate) use loom::sync::atomic::Ordering;

    /// Those of loom order an access that is `SeqCst` after all earlier ones that are, but for the value that was there
    /// from the start. So that is written once more.
    macro_rules! atomic {
        ($($name:ident: $value:ty),*) => { $(
            #[derive(Debug)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    let atomic = loom::sync::atomic::$name::new(value);
                    atomic.store(value, Ordering::SeqCst);
                    Self(atomic)
                }
            }

            impl Default for $name {
                fn default() -> Self {
                    Self::new(<$value>::default())
                }
            }

            impl Deref for $name {
                type Target = loom::sync::atomic::$name;

                fn deref(&self) -> &Self::Target {
                    &self.0
                }
            }
        )* };
    }

    atomic!(AtomicBool: bool, AtomicU64: u64, AtomicUsize: usize);
}

/// Each call takes its turn.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    turn: Mutex<()>,
    inner: Arc<tokio::sync::Notify>,
}

impl Notify {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn notify_one(&self) {
        let _turn = self.turn.lock();
        self.inner.notify_one();
    }

    pub(crate) fn notify_waiters(&self) {
        let _turn = self.turn.lock();
        self.inner.notify_waiters();
    }

    pub(crate) async fn notified(&self) {
        let mut notified = std::pin::pin!(self.inner.notified());
        std::future::poll_fn(|cx| {
            let _turn = self.turn.lock();
            notified.as_mut().poll(cx)
        })
        .await;
    }

    pub(crate) fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        let turn = self.turn.lock();
        let inner = self.inner.clone().notified_owned();
        drop(turn);
        OwnedNotified { notify: self, inner }
    }
}

pin_project_lite::pin_project! {
    pub(crate) struct OwnedNotified {
        notify: Arc<Notify>,
        #[pin]
        inner: tokio::sync::futures::OwnedNotified,
    }
}

impl Future for OwnedNotified {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let _turn = this.notify.turn.lock();
        this.inner.poll(cx)
    }
}

#[derive(Clone, Debug, Default)]
pub struct CancellationToken {
    turn: Arc<Mutex<()>>,
    inner: tokio_util::sync::CancellationToken,
}

impl CancellationToken {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn child_token(&self) -> Self {
        let _turn = self.turn.lock();
        Self { turn: self.turn.clone(), inner: self.inner.child_token() }
    }

    pub(crate) fn cancel(&self) {
        let _turn = self.turn.lock();
        self.inner.cancel();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        let _turn = self.turn.lock();
        self.inner.is_cancelled()
    }
}

pub(crate) mod watch {
    use std::{future::poll_fn, ops::Deref, pin::pin, sync::Arc};

    use loom::sync::{Mutex, MutexGuard};
    use tokio::sync::watch;

    pub(crate) fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = watch::channel(value);
        let turn = Arc::new(Mutex::new(()));
        (Sender { turn: turn.clone(), inner: sender }, Receiver { turn, inner: receiver })
    }

    #[derive(Debug)]
    pub(crate) struct Sender<T> {
        turn: Arc<Mutex<()>>,
        inner: watch::Sender<T>,
    }

    impl<T> Sender<T> {
        pub(crate) fn send_modify(&self, modify: impl FnOnce(&mut T)) {
            let _turn = self.turn.lock();
            self.inner.send_modify(modify);
        }

        pub(crate) fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
            let _turn = self.turn.lock();
            self.inner.send_if_modified(modify)
        }

        pub(crate) fn borrow(&self) -> Ref<'_, T> {
            let turn = self.turn.lock().unwrap();
            Ref { inner: self.inner.borrow(), _turn: turn }
        }

        pub(crate) fn subscribe(&self) -> Receiver<T> {
            let _turn = self.turn.lock();
            Receiver { turn: self.turn.clone(), inner: self.inner.subscribe() }
        }
    }

    #[derive(Debug)]
    pub struct Receiver<T> {
        turn: Arc<Mutex<()>>,
        inner: watch::Receiver<T>,
    }

    impl<T> Receiver<T> {
        pub(crate) fn borrow(&self) -> Ref<'_, T> {
            let turn = self.turn.lock().unwrap();
            Ref { inner: self.inner.borrow(), _turn: turn }
        }

        pub(crate) fn borrow_and_update(&mut self) -> Ref<'_, T> {
            let turn = self.turn.lock().unwrap();
            Ref { inner: self.inner.borrow_and_update(), _turn: turn }
        }

        pub(crate) fn mark_unchanged(&mut self) {
            let _turn = self.turn.lock();
            self.inner.mark_unchanged();
        }

        pub(crate) async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
            let mut changed = pin!(self.inner.changed());
            poll_fn(|cx| {
                let _turn = self.turn.lock();
                changed.as_mut().poll(cx)
            })
            .await
        }
    }

    impl<T> Clone for Receiver<T> {
        fn clone(&self) -> Self {
            Self { turn: self.turn.clone(), inner: self.inner.clone() }
        }
    }

    pub(crate) struct Ref<'a, T> {
        inner: watch::Ref<'a, T>,
        _turn: MutexGuard<'a, ()>,
    }

    impl<T> Deref for Ref<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.inner
        }
    }
}
