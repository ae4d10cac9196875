//! The host's clock, and which boot of which host it counts from.
#![allow(clippy::disallowed_methods)] // this clock is the store's, not a candidate's: all processes must read the same

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::OnceLock,
};

/// One look at the clock. It is taken when a statement is sent; should that wait for a lock, the reading is only older,
/// and what it decides more cautious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Microseconds since the boot.
    pub(crate) micros: i64,
    /// Two readings can be compared if they name the same boot.
    pub(crate) boot: &'static str,
}

impl Reading {
    pub(crate) fn now() -> Self {
        Self { micros: i64::try_from(host::micros()).unwrap_or(i64::MAX), boot: boot() }
    }
}

fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| host::boot().unwrap_or_else(of_this_process))
}

/// In place of a boot that has no name: no reading of another process counts then.
fn of_this_process() -> String {
    tracing::warn!(
        target: "tenure::sqlite",
        "this host does not tell its boots apart: leases of other processes are judged by watching alone"
    );
    format!("process {:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod host {
    use std::fs;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn micros() -> u64 {
        super::in_micros(clock_gettime(ClockId::Boottime))
    }

    /// The boot, and the time namespace: each namespace may shift this clock.
    pub(super) fn boot() -> Option<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
        Some(format!("{} {}", boot.trim(), namespace.display()).trim_end().to_owned())
    }
}

#[cfg(target_os = "macos")]
mod host {
    use std::process::Command;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn micros() -> u64 {
        super::in_micros(clock_gettime(ClockId::Monotonic))
    }

    pub(super) fn boot() -> Option<String> {
        let sysctl =
            Command::new("/usr/sbin/sysctl").args(["-n", "kern.bootsessionuuid"]).output().ok()?;
        let boot = String::from_utf8(sysctl.stdout).ok()?;
        (!boot.trim().is_empty()).then(|| boot.trim().to_owned())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "macos")))]
mod host {
    pub(super) fn micros() -> u64 {
        tenure::Clock::system().now().as_nanos() / 1_000
    }

    pub(super) fn boot() -> Option<String> {
        None
    }
}

#[cfg(unix)]
fn in_micros(time: rustix::time::Timespec) -> u64 {
    // A reading that no kernel gives counts as the end of time, by which every lease has expired and none is renewed.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(u64::MAX);
    let micros = u64::try_from(time.tv_nsec / 1_000).unwrap_or(u64::MAX);
    seconds.saturating_mul(1_000_000).saturating_add(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_one_process_can_be_compared_and_do_not_go_back() {
        let (earlier, later) = (Reading::now(), Reading::now());
        assert_eq!(earlier.boot, later.boot);
        assert!(earlier.micros > 0 && earlier.micros <= later.micros);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_boot_is_the_kernels() {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert!(boot().starts_with(kernel.trim()), "{}", boot());
    }

    #[test]
    fn without_names_of_boots_each_process_has_one_of_its_own() {
        assert_ne!(of_this_process(), of_this_process());
    }
}
