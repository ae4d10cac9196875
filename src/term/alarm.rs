//! How the watchdog's thread waits for an instant, and is woken from elsewhere.

#[cfg(all(test, tenure_loom))]
pub(super) use self::modelled::Alarm;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(all(test, tenure_loom))))]
pub(super) use self::timerfd::Alarm;

#[cfg(not(any(target_os = "linux", target_os = "android", all(test, tenure_loom))))]
pub(super) use self::condvar::Alarm;

/// A timer on the clock that the deadlines stand on. It is accurate to a tenth of a millisecond, and it fires when the
/// machine resumes, which no timeout of a wait does.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod timerfd {
    use std::{io, os::fd::OwnedFd};

    use rustix::{
        event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
        io::{Errno, read, write},
        time::{
            Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
            timerfd_settime,
        },
    };

    use crate::instant::Instant;

    #[derive(Debug)]
    pub(crate) struct Alarm {
        timer: OwnedFd,
        poke: OwnedFd,
    }

    impl Alarm {
        pub(crate) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
            let poke = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Self { timer, poke })
        }

        /// Waits until `until`, or for ever; returns early when it is poked, and may do so for no reason.
        pub(crate) fn wait(&self, until: Option<Instant>) -> io::Result<()> {
            // Setting the timer takes back what it fired before. A zero would disarm it.
            let value =
                until.map_or(Timespec::default(), |until| timespec(until.as_nanos().max(1)));
            let timer = Itimerspec { it_interval: Timespec::default(), it_value: value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &timer)?;
            let mut fds =
                [PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.poke, PollFlags::IN)];
            unless(&[Errno::INTR], poll(&mut fds, None))?;
            unless(&[Errno::AGAIN, Errno::INTR], read(&self.poke, &mut [0; 8]))
        }

        /// Ends the current wait, or the next one.
        pub(crate) fn poke(&self) {
            // It can only fail because 2^64 - 1 pokes are pending: then the wait ends anyway.
            let _ = write(&self.poke, &1_u64.to_ne_bytes());
        }
    }

    /// An error, unless it is one of those that are only reasons to look again.
    fn unless<T>(passing: &[Errno], outcome: Result<T, Errno>) -> io::Result<()> {
        match outcome.map(drop) {
            Err(error) if !passing.contains(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn timespec(nanos: u64) -> Timespec {
        const NANOS_PER_SECOND: u64 = 1_000_000_000;
        Timespec {
            tv_sec: (nanos / NANOS_PER_SECOND).try_into().unwrap_or(i64::MAX),
            tv_nsec: (nanos % NANOS_PER_SECOND).try_into().unwrap_or(0),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_a_failure_that_passes_is_passed_over() {
            let outcome = |errno| unless(&[Errno::AGAIN, Errno::INTR], Err::<(), _>(errno));
            assert!(outcome(Errno::INTR).is_ok() && outcome(Errno::AGAIN).is_ok());
            assert_eq!(
                outcome(Errno::BADF).unwrap_err().raw_os_error(),
                Some(Errno::BADF.raw_os_error())
            );
        }

        #[test]
        fn a_point_in_time_is_seconds_and_what_is_left_in_nanoseconds() {
            assert_eq!(timespec(3_000_000_007), Timespec { tv_sec: 3, tv_nsec: 7 });
            assert_eq!(timespec(999_999_999), Timespec { tv_sec: 0, tv_nsec: 999_999_999 });
            let last = Timespec { tv_sec: 18_446_744_073, tv_nsec: 709_551_615 };
            assert_eq!(timespec(u64::MAX), last);
        }
    }
}

/// Where there is no such timer. Compiled for tests everywhere.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod condvar {
    use std::{
        io,
        sync::{Condvar, Mutex, PoisonError},
        time::Duration,
    };

    use crate::{clock::Clock, instant::Instant};

    /// The timeout of a wait may stand still while the machine is suspended, so the clock is looked at this often.
    const LOOK_EVERY: Duration = Duration::from_secs(1);

    #[derive(Debug, Default)]
    pub(crate) struct Alarm {
        poked: Mutex<bool>,
        changed: Condvar,
    }

    impl Alarm {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self::default())
        }

        /// Waits until `until`, or for ever; returns early when it is poked, and may do so for no reason.
        pub(crate) fn wait(&self, until: Option<Instant>) -> io::Result<()> {
            let poked = self.poked.lock().unwrap_or_else(PoisonError::into_inner);
            let left = until.map(|until| until.saturating_since(Clock::system().now()));
            let left = left.unwrap_or(Duration::MAX).min(LOOK_EVERY);
            let wait = self.changed.wait_timeout_while(poked, left, |poked| !*poked);
            *wait.unwrap_or_else(PoisonError::into_inner).0 = false;
            Ok(())
        }

        /// Ends the current wait, or the next one.
        pub(crate) fn poke(&self) {
            *self.poked.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.changed.notify_one();
        }
    }
}

/// A timer that loom knows, on a time that a test lets pass.
#[cfg(all(test, tenure_loom))]
mod modelled {
    use std::io;

    use loom::sync::{Condvar, Mutex};

    use crate::instant::Instant;

    #[derive(Debug, Default)]
    pub(crate) struct Alarm {
        state: Mutex<State>,
        changed: Condvar,
    }

    #[derive(Debug)]
    struct State {
        now: Instant,
        poked: bool,
    }

    impl Default for State {
        fn default() -> Self {
            Self { now: Instant::ORIGIN, poked: false }
        }
    }

    impl Alarm {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self::default())
        }

        pub(crate) fn wait(&self, until: Option<Instant>) -> io::Result<()> {
            let mut state = self.state.lock().unwrap();
            while !state.poked && until.is_none_or(|until| state.now < until) {
                state = self.changed.wait(state).unwrap();
            }
            state.poked = false;
            Ok(())
        }

        pub(crate) fn poke(&self) {
            self.state.lock().unwrap().poked = true;
            self.changed.notify_one();
        }

        /// It is `now`, which is when the timer fires if that was waited for.
        pub(crate) fn pass(&self, now: Instant) {
            self.state.lock().unwrap().now = now;
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Duration};

    use crate::clock::Clock;

    /// Both alarms are to behave alike.
    macro_rules! alarm_tests {
        ($alarm:ident) => {
            mod $alarm {
                use super::*;
                use crate::term::alarm::$alarm::Alarm;

                #[test]
                fn fires_at_the_instant_and_not_before() {
                    let (alarm, clock) = (Alarm::new().unwrap(), Clock::system());
                    let until = clock.now() + Duration::from_millis(30);
                    let mut waits = 0;
                    while clock.now() < until {
                        alarm.wait(Some(until)).unwrap();
                        waits += 1;
                    }
                    // It may return early for no reason, but one that does not wait gets here after thousands.
                    assert!(waits <= 10, "{waits} waits");
                    alarm.wait(Some(until)).unwrap();
                    alarm.wait(Some(crate::Instant::ORIGIN)).unwrap();
                }

                #[test]
                fn a_poke_ends_a_wait_also_one_that_begins_later() {
                    let alarm = Arc::new(Alarm::new().unwrap());
                    alarm.poke();
                    alarm.wait(None).unwrap();
                    let waiting = alarm.clone();
                    let thread = thread::spawn(move || waiting.wait(None).unwrap());
                    alarm.poke();
                    thread.join().unwrap();
                }
            }
        };
    }

    alarm_tests!(condvar);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    alarm_tests!(timerfd);
}
