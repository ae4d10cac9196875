//! What everybody who works for a term looks at: its deadline, and whether it was cancelled or is over.

use tenure::{Fence, Instant, TermEnd};

/// A term as those who work for it see it. The clock decides, and an end is sticky: whoever sees the deadline pass writes
/// it down.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) fence: Fence,
    deadline: Instant,
    cancelled: bool,
    ended: Option<TermEnd>,
    pub(crate) guards: u32,
    pub(crate) in_flight: u32,
    /// Guards that are never dropped.
    pub(crate) forever: u32,
    /// Nobody has ever seen it.
    pub(crate) is_secret: bool,
}

impl Term {
    pub(crate) fn new(fence: Fence, deadline: Instant) -> Self {
        Self {
            fence,
            deadline,
            cancelled: false,
            ended: None,
            guards: 0,
            in_flight: 0,
            forever: 0,
            is_secret: false,
        }
    }

    /// Whether work may be polled.
    pub(crate) fn is_live(&mut self, now: Instant) -> bool {
        if self.ended.is_none() && now >= self.deadline {
            self.ended = Some(TermEnd::Expired);
        }
        self.ended.is_none()
    }

    /// The same, without anybody looking.
    pub(crate) fn lasts(&self, now: Instant) -> bool {
        self.ended.is_none() && now < self.deadline
    }

    /// Whether new work is admitted.
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        self.is_live(now) && !self.cancelled
    }

    /// False if it is over, also if nobody had seen it yet.
    pub(crate) fn extend(&mut self, now: Instant, deadline: Instant) -> bool {
        let is_live = self.is_live(now);
        if is_live {
            self.deadline = deadline;
        }
        is_live
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub(crate) fn end(&mut self, reason: TermEnd) {
        self.ended.get_or_insert(reason);
    }

    /// Whether the elector is told when the last guard or the last piece of work is gone.
    pub(crate) fn is_awaited(&self) -> bool {
        self.cancelled || self.ended.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_somebody_has_seen_is_final() {
        let at = Instant::from_nanos;
        let mut term = Term::new(Fence::MIN, at(10));
        assert!(term.extend(at(9), at(20)) && term.admits(at(19)));
        term.cancel();
        assert!(term.is_live(at(19)) && !term.admits(at(19)));
        assert!(!term.is_live(at(20)));
        assert!(!term.extend(at(20), at(30)) && !term.is_live(at(20)));
    }
}
