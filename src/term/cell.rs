//! The state of one term: one word that says until when it lasts, and two counts that say who is still working.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Clock,
    instant::Instant,
    lease::TermEnd,
    sync::{
        CancellationToken, Notify,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
};

/// The two things that happen to every term, in this order or at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It admits no new work from here on.
    Cancelled,
    /// It is over.
    Ended,
}

impl Moment {
    const fn flag(self) -> u64 {
        match self {
            Self::Cancelled => Word::CANCELLED,
            Self::Ended => Word::ENDED,
        }
    }
}

/// Deadline and state in one word, so that nobody ever sees one without the other.
///
/// The upper 58 bits are those of the deadline in nanoseconds. Leaving out the lower six makes a term at most 64 ns
/// shorter, never longer; they hold the flags and, once cancelled, the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u64);

impl Word {
    const CANCELLED: u64 = 1;
    const ENDED: u64 = 1 << 1;
    const READY: u64 = 1 << 2;
    const REASON_SHIFT: u32 = 3;
    const REASON: u64 = 0b11 << Self::REASON_SHIFT;
    const FLAGS: u64 = (1 << 6) - 1;

    const fn new(deadline: Instant, ready: bool) -> Self {
        Self((deadline.as_nanos() & !Self::FLAGS) | if ready { Self::READY } else { 0 })
    }

    const fn deadline(self) -> Instant {
        Instant::from_nanos(self.0 & !Self::FLAGS)
    }

    const fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    const fn reason(self) -> TermEnd {
        match (self.0 & Self::REASON) >> Self::REASON_SHIFT {
            0 => TermEnd::Expired,
            1 => TermEnd::Lost,
            2 => TermEnd::Resigned,
            _ => TermEnd::Shutdown,
        }
    }

    const fn extended(self, deadline: Instant) -> Self {
        Self((self.0 & Self::FLAGS) | (deadline.as_nanos() & !Self::FLAGS))
    }

    const fn cancelled(self, reason: TermEnd) -> Self {
        let reason = match reason {
            TermEnd::Expired => 0,
            TermEnd::Lost => 1,
            TermEnd::Resigned => 2,
            TermEnd::Shutdown => 3,
        };
        Self((self.0 & !Self::REASON) | Self::CANCELLED | (reason << Self::REASON_SHIFT))
    }

    /// What is over is cancelled as well, and has no deadline any more.
    const fn ended(self, reason: TermEnd) -> Self {
        let word = self.cancelled(reason);
        Self((word.0 & Self::FLAGS) | Self::ENDED)
    }
}

/// What every clone of a term shares.
///
/// All accesses to `word` and `counts` are `SeqCst`, for two exchanges between this candidate's elector and those who
/// work. In each, both sides write first and look second, so that in the one order of all these accesses at least one
/// of them sees the other:
///
/// - Who begins to work counts itself and then looks at the word; who ends (cancels) the term sets the flag and then
///   reads the counts. Either the worker sees the flag and goes back, or its count is seen and waited for.
/// - Who stops working takes its count back and then looks at the flag; the elector sets the flag, reads a count above
///   zero, and waits. Either it reads the count as zero, or the worker sees the flag and wakes it.
#[derive(Debug)]
pub(crate) struct Cell {
    word: AtomicU64,
    /// The deadline as it was last, also once the term is over.
    last_deadline: AtomicU64,
    clock: Clock,
    changed: Arc<Notify>,
    cancelled: Arc<Notify>,
    ended: Arc<Notify>,
    token: CancellationToken,
    counts: Counts,
}

/// On a cache line of their own: every poll writes here, and need not slow those down who only read the word.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counts {
    guards: AtomicUsize,
    in_flight: AtomicUsize,
}

impl Cell {
    pub(super) fn new(deadline: Instant, ready: bool, clock: Clock, changed: Arc<Notify>) -> Self {
        Self {
            word: AtomicU64::new(Word::new(deadline, ready).0),
            last_deadline: AtomicU64::new(deadline.as_nanos()),
            clock,
            changed,
            cancelled: Arc::default(),
            ended: Arc::default(),
            token: CancellationToken::new(),
            counts: Counts::default(),
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn load(&self) -> Word {
        Word(self.word.load(SeqCst))
    }

    /// Replaces the word by what `change` makes of it, and returns what it was; `Err` if `change` wants nothing.
    fn update(&self, change: impl Fn(Word) -> Option<Word>) -> Result<Word, Word> {
        let change = |word| change(Word(word)).map(|word| word.0);
        self.word.fetch_update(SeqCst, SeqCst, change).map(Word).map_err(Word)
    }

    /// Why the term has come to `moment`, if it has: the clock is compared with the deadline here, and nowhere else.
    ///
    /// An end is sticky: whoever sees the deadline pass writes it down, so that no later renewal can revive what
    /// somebody was told is over.
    #[inline]
    pub(super) fn reached(&self, moment: Moment) -> Option<TermEnd> {
        let word = self.load();
        // The flag first: who is refused anyway need not read the clock.
        if word.has(moment.flag()) {
            return Some(word.reason());
        }
        if self.clock.now() < word.deadline() {
            return None;
        }
        self.expire(moment)
    }

    /// The clock was seen past the deadline. A renewal may have come between the two readings, or another end.
    #[cold]
    fn expire(&self, moment: Moment) -> Option<TermEnd> {
        let is_due = |word: Word| !word.has(moment.flag()) && self.clock.now() >= word.deadline();
        let expired = |word: Word| word.ended(TermEnd::Expired);
        let before = self.update(|word| is_due(word).then(|| expired(word)));
        let word = before.map_or_else(|standing| standing, expired);
        word.has(moment.flag()).then(|| word.reason())
    }

    /// Why the term has come to `moment`, if that was already written down. Reads no clock.
    pub(super) fn marked(&self, moment: Moment) -> Option<TermEnd> {
        let word = self.load();
        word.has(moment.flag()).then(|| word.reason())
    }

    pub(super) fn deadline(&self) -> Instant {
        self.load().deadline()
    }

    /// The deadline that the term has, or had when it ended.
    pub(super) fn last_deadline(&self) -> Instant {
        Instant::from_nanos(self.last_deadline.load(SeqCst))
    }

    /// How long the term lasts if nobody extends it. The deadline of one that is over lies at the clock's origin.
    pub(super) fn remaining(&self) -> Duration {
        self.deadline().saturating_since(self.clock.now())
    }

    pub(super) fn is_ready(&self) -> bool {
        self.load().has(Word::READY)
    }

    pub(super) fn set_ready(&self) {
        if !Word(self.word.fetch_or(Word::READY, SeqCst)).has(Word::READY) {
            self.changed.notify_one();
        }
    }

    /// Replaces the deadline, by an earlier one too (rule S2). False if the term is over, also if nobody had seen it yet.
    pub(super) fn extend(&self, deadline: Instant) -> bool {
        // Also of a term that is over: the lease was extended in any case.
        self.last_deadline.store(deadline.as_nanos(), SeqCst);
        let extend = |word: Word| (!word.has(Word::ENDED)).then(|| word.extended(deadline));
        self.reached(Moment::Ended).is_none() && self.update(extend).is_ok()
    }

    /// From here on no work is admitted; what is in flight goes on. A later reason replaces an earlier one.
    pub(super) fn cancel(&self, reason: TermEnd) {
        let _ = self.update(|word| (!word.has(Word::ENDED)).then(|| word.cancelled(reason)));
    }

    /// Ends the term, unless it is over already, and returns why it ended.
    pub(super) fn finish(&self, reason: TermEnd) -> TermEnd {
        let ended = |word: Word| (!word.has(Word::ENDED)).then(|| word.ended(reason));
        match self.update(ended) {
            Ok(_) => reason,
            Err(ended_before) => ended_before.reason(),
        }
    }

    /// Wakes those who wait for what the word says has happened. May be repeated.
    ///
    /// Who waits registers first and then looks at the word; the word was written before this is called. So either the
    /// waiter sees it, or it is registered and is woken.
    pub(super) fn announce(&self) {
        let word = self.load();
        if word.has(Word::CANCELLED) {
            self.token.cancel();
            self.cancelled.notify_waiters();
        }
        if word.has(Word::ENDED) {
            self.ended.notify_waiters();
        }
    }

    /// What [`announce`](Self::announce) notifies of `moment`.
    pub(super) fn announcement(&self, moment: Moment) -> &Arc<Notify> {
        match moment {
            Moment::Cancelled => &self.cancelled,
            Moment::Ended => &self.ended,
        }
    }

    pub(super) fn token(&self) -> CancellationToken {
        let token = self.token.child_token();
        if self.reached(Moment::Cancelled).is_some() {
            token.cancel();
        }
        token
    }

    pub(super) fn wake_elector(&self) {
        self.changed.notify_one();
    }

    pub(super) fn guards(&self) -> usize {
        self.counts.guards.load(SeqCst)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.counts.in_flight.load(SeqCst)
    }

    /// Counts a guard, unless the term has come to `until`. Whoever gets `Ok` calls [`drop_guard`](Self::drop_guard).
    #[inline]
    pub(super) fn take_guard(&self, until: Moment) -> Result<(), TermEnd> {
        // Not needed for safety: a term that is over is left in peace.
        if let Some(reason) = self.marked(until) {
            return Err(reason);
        }
        self.counts.guards.fetch_add(1, SeqCst);
        let Some(reason) = self.reached(until) else { return Ok(()) };
        self.drop_guard();
        Err(reason)
    }

    /// Counts one more guard beside one that is held.
    pub(super) fn clone_guard(&self) {
        self.counts.guards.fetch_add(1, SeqCst);
    }

    #[inline]
    pub(super) fn drop_guard(&self) {
        self.discount(&self.counts.guards);
    }

    /// Counts work in flight. Whoever calls this looks afterwards whether the term admits work, and takes the count back
    /// with [`leave`](Self::leave).
    #[inline]
    pub(super) fn enter(&self) {
        self.counts.in_flight.fetch_add(1, SeqCst);
    }

    #[inline]
    pub(super) fn leave(&self) {
        self.discount(&self.counts.in_flight);
    }

    #[inline]
    fn discount(&self, count: &AtomicUsize) {
        // While the term admits work nobody waits for the counts, and the elector is left alone.
        if count.fetch_sub(1, SeqCst) == 1 && self.load().has(Word::CANCELLED) {
            self.changed.notify_one();
        }
    }
}
