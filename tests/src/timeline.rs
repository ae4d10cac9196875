//! What all participants of a fleet have said, in one place.

use std::{
    fmt::Write,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::{Event, Message, Stamp, oracle::Claim};

/// How long a test waits for something that must happen: far longer than it takes, also on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Something that a participant said.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs)]
pub struct Entry {
    /// Who said it.
    pub participant: usize,
    /// When it was said.
    pub at: Stamp,
    /// What.
    pub event: Event,
}

/// Everything that was said, in the order in which it was heard.
#[derive(Debug, Default)]
pub struct Timeline {
    entries: Mutex<Vec<Entry>>,
    heard: Condvar,
}

impl Timeline {
    pub(crate) fn hear(&self, participant: usize, message: Message) {
        let Message { at, event } = message;
        self.lock().push(Entry { participant, at, event });
        self.heard.notify_all();
    }

    /// Waits until `find` finds something in all that was said so far.
    ///
    /// # Panics
    /// If it finds nothing within [`LIMIT`]: with what it was looking for, and with what was said instead.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&[Entry]) -> Option<T>) -> T {
        let deadline = Stamp::now() + LIMIT;
        let mut entries = self.lock();
        loop {
            if let Some(found) = find(&entries) {
                return found;
            }
            let left = deadline - Stamp::now();
            if left.is_zero() {
                let said = account(&entries);
                // Whoever looks at the timeline while the panic unwinds needs the lock.
                drop(entries);
                panic!("{what}: not within {LIMIT:?}; what was said:\n{said}");
            }
            let waited = self.heard.wait_timeout(entries, left);
            entries = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether `holds` for all that was said so far.
    pub fn see<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        look(&self.lock())
    }

    /// Takes away all that was said so far. Places on the timeline count from here then.
    #[must_use]
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.lock())
    }

    /// Everything that was claimed so far.
    #[must_use]
    pub fn claims(&self) -> Vec<Claim> {
        self.lock().iter().filter_map(Entry::claim).collect()
    }

    /// All that was said so far, for people; of the claims that follow each other only the last one.
    #[must_use]
    pub fn account(&self) -> String {
        account(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// What it claims, if it claims something.
    #[must_use]
    pub fn claim(&self) -> Option<Claim> {
        let participant = self.participant;
        match self.event {
            Event::Live { fence, from, to, .. } => Some(Claim { participant, fence, from, to }),
            Event::Worked { fence, at } => Some(Claim { participant, fence, from: at, to: at }),
            _ => None,
        }
    }
}

fn account(entries: &[Entry]) -> String {
    let mut text = String::new();
    for (place, entry) in entries.iter().enumerate() {
        let Entry { participant, at, event } = entry;
        let mut rest = entries[place + 1..].iter();
        let is_repeated = entry.claim().is_some_and(|claim| {
            let same =
                |next: Claim| (next.participant, next.fence) == (claim.participant, claim.fence);
            rest.find(|next| next.participant == *participant)
                .is_some_and(|next| next.claim().is_some_and(same))
        });
        if !is_repeated {
            // Writing to a string can not fail.
            let _ = writeln!(text, "  {at} participant {participant}: {event:?}");
        }
    }
    text
}

/// Waits until `holds` holds, for what nobody announces.
///
/// # Panics
/// If it does not within [`LIMIT`].
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Stamp::now() + LIMIT;
    while !holds() {
        assert!(Stamp::now() < deadline, "{what}: not within {LIMIT:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
