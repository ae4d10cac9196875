//! A lease that its candidate needs no more is given back, as soon as nothing keeps it from that.

use std::time::Duration;

use tenure::{Fence, Timing};

use crate::{
    event::{CallKind, CallResult, What, Who},
    network::FAIR_ROUND_TRIP,
    time::Moment,
};

/// A renewal that is awaited first, and the release itself.
const PROMPT: Duration = FAIR_ROUND_TRIP.saturating_mul(3);

/// The lease as it stands in the record, held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) who: Who,
    pub(super) fence: Fence,
    /// The last write.
    pub(super) since: Moment,
    /// Before it has run out by anybody's clock.
    pub(super) until: Moment,
    /// Its holder wrote it last, by a call whose answer it waited for.
    pub(super) is_awaited: bool,
}

#[derive(Clone, Copy, Debug)]
struct Underway {
    number: u64,
    kind: CallKind,
    is_astray: bool,
}

/// What keeps one candidate from the store, and what it can know.
#[derive(Clone, Debug, Default)]
pub(super) struct Means {
    call: Option<Underway>,
    is_frozen: bool,
    is_preempted: bool,
    /// Since when nothing has kept it from the store, if nothing does.
    free_since: Moment,
    /// When a call that went astray was over last.
    astray_until: Option<Moment>,
    /// When it could last neither look nor give anything back.
    hindered_at: Option<Moment>,
    /// When it was last told that its term is lost.
    told_lost_at: Option<Moment>,
    /// When its last term, or the last guard of it, was gone.
    done_at: Moment,
    /// Its last write was executed while it waited for the answer.
    is_awaited: bool,
    /// It has stopped although the answer to this acquire was on its way.
    left: Option<u64>,
}

impl Means {
    pub(super) fn observe(&mut self, at: Moment, what: &What) {
        match *what {
            What::Sent { number, call, .. } => {
                self.call = Some(Underway { number, kind: call, is_astray: false });
            }
            What::Astray { number, call } => {
                let call_is = |underway: &&mut Underway| underway.number == number;
                if let Some(underway) = self.call.as_mut().filter(call_is) {
                    underway.is_astray = true;
                    if matches!(call, CallKind::Inspect | CallKind::Release) {
                        self.hindered_at = Some(at);
                    }
                }
            }
            What::Answered { call, result, .. } => {
                if (call, result) == (CallKind::Renew, CallResult::Lost) {
                    self.told_lost_at = Some(at);
                }
                self.settled(at);
            }
            What::Abandoned { .. } => self.settled(at),
            What::Executed { late, .. } => self.is_awaited = late.is_none(),
            What::Frozen(is) => {
                self.is_frozen = is;
                self.stood_still(at);
            }
            What::Preempted(is) => {
                self.is_preempted = is;
                self.stood_still(at);
            }
            What::Ended(_) | What::GuardDropped => self.done_at = at,
            What::Stopped(_) => {
                let fair = |call: &Underway| call.kind == CallKind::Acquire && !call.is_astray;
                self.left = self.call.filter(fair).map(|call| call.number);
            }
            _ => {}
        }
    }

    fn settled(&mut self, at: Moment) {
        if self.call.take().is_some_and(|call| call.is_astray) {
            self.free_since = at;
            self.astray_until = Some(at);
        }
    }

    fn stood_still(&mut self, at: Moment) {
        self.free_since = at;
        self.hindered_at = Some(at);
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Whether this is an acquire that it should have waited for.
    pub(super) fn has_left(&self, number: u64) -> bool {
        self.left == Some(number)
    }

    /// When it must have given back what it holds without need; `None` if nobody can say.
    pub(super) fn due(&self, held: &Held, timing: &Timing) -> Option<Moment> {
        if !self.is_free() {
            return None;
        }
        let began = self.began(held);
        let was_astray = self.astray_until.is_some_and(|until| until >= began);
        if self.knows(held) && self.free_since <= began && !was_astray {
            return Some(began + PROMPT);
        }
        // It finds it at its next look, unless it runs out before.
        let look = (timing.retry_period() * 6 / 5).max(timing.retry_delay()) + PROMPT;
        let due = began.max(self.free_since) + look * 11 / 10;
        (due < held.until).then_some(due)
    }

    /// Whether it may stop at this moment while it holds that.
    pub(super) fn may_stop_over(&self, held: &Held, at: Moment) -> bool {
        let was_hindered = self.hindered_at.is_some_and(|hindered| hindered >= self.began(held));
        was_hindered || !self.is_free() || !self.knows(held) || at >= held.until
    }

    fn is_free(&self) -> bool {
        let is_astray = self.call.is_some_and(|call| call.is_astray);
        !(is_astray || self.is_frozen || self.is_preempted)
    }

    fn began(&self, held: &Held) -> Moment {
        held.since.max(self.done_at)
    }

    fn knows(&self, held: &Held) -> bool {
        held.is_awaited && self.told_lost_at.is_none_or(|told| told < held.since)
    }
}
