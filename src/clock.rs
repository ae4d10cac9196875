//! Local time. The only file that reads a clock.
#![allow(clippy::disallowed_methods)]

use std::time::SystemTime;
#[cfg(any(test, feature = "test-util"))]
use std::{sync::Arc, time::Duration};

#[cfg(any(test, feature = "test-util"))]
use tokio::sync::Notify;

use crate::instant::Instant;
#[cfg(any(test, feature = "test-util"))]
use crate::sync::atomic::{AtomicU64, Ordering};

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos", windows)))]
compile_error!(
    "tenure needs a clock that goes on while the machine is suspended, and knows one on Linux, Android, macOS and \
     Windows only"
);

/// The clock that an election's deadlines stand on.
///
/// The system's goes on while the machine is suspended (rule S9): `CLOCK_BOOTTIME` on Linux and Android,
/// `CLOCK_MONOTONIC` on macOS, the performance counter on Windows. With the feature `test-util` there are two that
/// tests control, `Clock::tokio()` and `Clock::manual()`; `MemoryStore::with_clock()` shows a whole test. Clones tell the same
/// time.
///
/// ```
/// use tenure::Clock;
///
/// let clock = Clock::system();
/// let earlier = clock.now();
/// assert!(clock.now() >= earlier);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    #[cfg(any(test, feature = "test-util"))]
    Tokio { origin: tokio::time::Instant },
    #[cfg(any(test, feature = "test-util"))]
    Manual(Arc<Hand>),
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::System => system::now(),
            #[cfg(any(test, feature = "test-util"))]
            Source::Tokio { origin } => {
                let since = tokio::time::Instant::now().saturating_duration_since(*origin);
                VIRTUAL_START + since
            }
            #[cfg(any(test, feature = "test-util"))]
            Source::Manual(hand) => hand.now(),
        }
    }

    /// Waits until the clock shows `deadline`. The clock decides and timers only wake: one that is early is set again,
    /// one that is late is not waited for.
    ///
    /// On the system's and on tokio's clock it has to be awaited on a tokio runtime with time enabled. Dropping it has
    /// no effect.
    pub(crate) async fn sleep_until(&self, deadline: Instant) {
        loop {
            #[cfg(any(test, feature = "test-util"))]
            let moved = self.moved();
            let left = deadline.saturating_since(self.now());
            if left.is_zero() {
                return;
            }
            #[cfg(any(test, feature = "test-util"))]
            if let Some(moved) = moved {
                moved.await;
                continue;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// What a clock on the wall showed when this one showed `at`, for people to read. Nothing is ever decided by it.
    #[allow(clippy::disallowed_methods)] // the only reading of it, and it is only shown
    pub(crate) fn wall_time(&self, at: Instant) -> SystemTime {
        let (now, wall) = (self.now(), SystemTime::now());
        let shown = wall.checked_sub(now.saturating_since(at));
        shown.and_then(|shown| shown.checked_add(at.saturating_since(now))).unwrap_or(wall)
    }

    /// Whether a test controls it. A thread can't wait for such a clock, a task can.
    pub(crate) const fn is_virtual(&self) -> bool {
        !matches!(self.0, Source::System)
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "macos"))]
mod system {
    use rustix::time::{ClockId, clock_gettime};

    use crate::instant::Instant;

    /// Both go on while the machine is suspended. Linux' `CLOCK_MONOTONIC` and macOS' uptime clock, on which
    /// `std::time::Instant` stands, do not.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(target_os = "macos")]
    pub(super) const CLOCK: ClockId = ClockId::Monotonic;

    #[inline]
    pub(super) fn now() -> Instant {
        let time = clock_gettime(CLOCK);
        // A reading that no kernel gives counts as the end of time, at which every deadline has passed.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(u64::MAX);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(u64::MAX);
        Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }
}

#[cfg(windows)]
mod system {
    use std::sync::OnceLock;

    use crate::instant::Instant;

    /// The performance counter, which includes the time spent suspended.
    pub(super) fn now() -> Instant {
        static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
        let origin = *ORIGIN.get_or_init(std::time::Instant::now);
        Instant::ORIGIN + origin.elapsed()
    }
}

/// Where virtual clocks start: late enough that tests may look back.
#[cfg(any(test, feature = "test-util"))]
const VIRTUAL_START: Instant = Instant::from_nanos(3_600_000_000_000);

#[cfg(any(test, feature = "test-util"))]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
impl Clock {
    /// The time of the tokio runtime on which this is called, which a test may have paused. Clones have to be used on
    /// that runtime: elsewhere tokio answers the real time.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use tenure::Clock;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
    /// let clock = Clock::tokio();
    /// let before = clock.now();
    /// tokio::time::advance(Duration::from_secs(15)).await;
    /// assert_eq!(clock.now(), before + Duration::from_secs(15));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn tokio() -> Self {
        Self(Source::Tokio { origin: tokio::time::Instant::now() })
    }

    /// A clock that stands still until the [`ManualClock`] moves it.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use tenure::Clock;
    ///
    /// let (clock, hand) = Clock::manual();
    /// let before = clock.now();
    /// hand.advance(Duration::from_secs(15));
    /// assert_eq!(clock.now(), before + Duration::from_secs(15));
    /// ```
    #[must_use]
    pub fn manual() -> (Self, ManualClock) {
        let hand = Arc::new(Hand {
            nanos: AtomicU64::new(VIRTUAL_START.as_nanos()),
            moved: Arc::new(Notify::new()),
        });
        (Self(Source::Manual(hand.clone())), ManualClock(hand))
    }

    /// The next move of a clock that is moved by hand. It counts from this call on.
    fn moved(&self) -> Option<tokio::sync::futures::OwnedNotified> {
        match &self.0 {
            Source::Manual(hand) => Some(hand.moved.clone().notified_owned()),
            Source::System | Source::Tokio { .. } => None,
        }
    }
}

/// Moves the clock that [`Clock::manual`] made with it. Clones move the same clock.
#[cfg(any(test, feature = "test-util"))]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Hand>);

#[cfg(any(test, feature = "test-util"))]
impl ManualClock {
    /// Lets time pass, and wakes whoever waits for it.
    pub fn advance(&self, duration: Duration) {
        self.suspend(duration);
        self.0.moved.notify_waiters();
    }

    /// Lets time pass as while the machine is suspended: the clock goes on, and nobody is woken. Timers that have
    /// become due fire with the next [`advance`](Self::advance), also with one of zero.
    pub fn suspend(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let add = |now: u64| Some(now.saturating_add(nanos));
        // SeqCst: a test that moves the clock may look at the effect from any thread.
        let _ = self.0.nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
    }
}

#[cfg(any(test, feature = "test-util"))]
#[derive(Debug)]
struct Hand {
    nanos: AtomicU64,
    moved: Arc<Notify>,
}

#[cfg(any(test, feature = "test-util"))]
impl Hand {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn the_linux_clock_counts_the_time_spent_suspended() {
        assert!(matches!(system::CLOCK, rustix::time::ClockId::Boottime));
    }

    #[tokio::test]
    async fn a_sleep_ends_when_the_clock_says_so() {
        let clock = Clock::system();
        let deadline = clock.now() + Duration::from_millis(5);
        clock.sleep_until(deadline).await;
        assert!(clock.now() >= deadline);
        assert!(!clock.is_virtual());
    }

    #[tokio::test(start_paused = true)]
    async fn paused_time_is_slept_through() {
        let clock = Clock::tokio();
        let start = clock.now();
        clock.sleep_until(start + Duration::from_secs(3600)).await;
        assert!(clock.now() >= start + Duration::from_secs(3600));
        assert!(clock.is_virtual());
    }

    #[test]
    fn a_manual_clock_wakes_sleepers_when_it_is_advanced_and_not_while_suspended() {
        let (clock, hand) = Clock::manual();
        let deadline = clock.now() + Duration::from_secs(10);
        let mut sleep = tokio_test::task::spawn(clock.sleep_until(deadline));
        assert!(sleep.poll().is_pending());
        hand.advance(Duration::from_secs(9));
        assert!(sleep.is_woken());
        assert!(sleep.poll().is_pending(), "woken, but the clock decides");
        hand.suspend(Duration::from_secs(1));
        assert!(!sleep.is_woken());
        hand.advance(Duration::ZERO);
        assert!(sleep.is_woken());
        assert!(sleep.poll().is_ready());
    }
}
