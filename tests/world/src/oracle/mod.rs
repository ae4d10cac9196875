//! What must hold at every event, judged by what was published and by the record's own log.

mod books;
mod debt;
mod property;
mod replay;

#[cfg(test)]
mod tests;

use std::time::Duration;

use tenure::{Fence, Identity, Timing};

pub use self::property::{Properties, Property, Violation};
use self::{
    Property::*,
    books::{Books, Finding, require},
    debt::Held,
    replay::Replay,
};
use crate::{
    event::{Event, Loss, What, Who},
    fault::Fault,
    record::{Commit, StoreKind, Write},
    time::{Moment, Skew},
};

/// Follows everything that happens, and stops at the first thing that must not.
#[derive(Clone, Debug)]
pub struct Oracle {
    watched: Properties,
    books: Vec<Books>,
    replay: Replay,
    /// The fences of all terms that have begun.
    begun: Vec<Fence>,
    /// Faults have ceased: when somebody leads at the latest.
    leads_by: Option<(Moment, Property)>,
    settled_at: Option<Moment>,
    was_led: bool,
    /// Who is in the record.
    held: Option<Held>,
    /// When they must have given that back, if nothing else happens to them.
    gives_back_by: Option<Moment>,
    violation: Option<Violation>,
}

impl Oracle {
    /// Before anything has happened to a store of this kind.
    #[must_use]
    pub fn new(kind: StoreKind, watched: Properties) -> Self {
        Self {
            watched,
            books: Vec::new(),
            replay: Replay::new(kind),
            begun: Vec::new(),
            leads_by: None,
            settled_at: None,
            was_led: false,
            held: None,
            gives_back_by: None,
            violation: None,
        }
    }

    /// The first thing that must not happen and did.
    #[must_use]
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// A process begins. Whatever was in its place before is gone.
    pub fn joined(
        &mut self,
        who: Who,
        identity: &Identity,
        timing: Timing,
        clock: Skew,
        eligible: bool,
        releases: bool,
    ) {
        let books = Books::new(who, identity.clone(), timing, clock, eligible, releases);
        match self.books.get_mut(who.slot) {
            Some(place) => *place = books,
            None => self.books.push(books),
        }
        self.gives_back_by = self.debt();
    }

    /// Something happened.
    pub fn observe(&mut self, event: &Event) {
        let Event { at, who, what } = event;
        self.leadership_is_in_time(*at);
        self.lease_was_given_back(*at);
        match what {
            What::Settled { leads_by } => {
                self.settled_at = Some(*at);
                self.expect_leader(*at, *leads_by, LeadsInTime);
            }
            What::Vacant { loss: Loss::Death, leads_by } => {
                self.expect_leader(*at, *leads_by, FailsOverInTime);
            }
            What::Vacant { loss: Loss::HandOver, leads_by } => {
                self.expect_leader(*at, *leads_by, HandsOverInTime);
            }
            // Nobody can say any more when what is held has run out.
            What::Struck(Fault::SetClock { .. }) => {
                if let Some(held) = &mut self.held {
                    held.until = held.until.min(*at);
                }
                self.gives_back_by = self.debt();
            }
            _ => {}
        }
        let Some(who) = *who else { return };
        let settled_at = self.settled_at;
        let Some(books) = self.books.get_mut(who.slot).filter(|books| books.who == who) else {
            return;
        };
        let held = self.held.filter(|held| held.who == who);
        if let (What::Stopped(0), Some(held)) = (what, held) {
            let found = require(books.may_stop_over(&held, *at), GivenBack, || {
                format!("it has stopped and did not give back {}", held.fence)
            });
            self.judge(*at, Some(who), found);
        }
        let Some(books) = self.books.get_mut(who.slot) else { return };
        let found = books.observe(*at, what, settled_at);
        self.judge(*at, Some(who), found);
        if held.is_some() {
            self.gives_back_by = self.debt();
        }
        match what {
            What::Started { fence, .. } => {
                let found = self.may_start(*at, who, *fence);
                self.judge(*at, Some(who), found);
                self.alone(*at, who);
            }
            What::Extended { .. } => self.alone(*at, who),
            _ => {}
        }
    }

    /// A line was written to the record's log, by somebody's call.
    pub fn committed(&mut self, by: Option<Who>, commit: &Commit) {
        let found = self.replay.follow(commit);
        self.judge(commit.at, by, found);
        self.held = self.holds(by, commit);
        self.gives_back_by = self.debt();
        let Some(row) = &commit.row else { return };
        let (fence, at) = (row.lease.fence, commit.at);
        match commit.write {
            Write::Acquired { .. } => {
                let found = self.may_claim(at, fence);
                self.judge(at, by, found);
                self.confirm(by, fence, at);
            }
            Write::Renewed => self.confirm(by, fence, at),
            Write::Released => {
                let found = self.may_be_released(row.lease.holder.as_ref(), fence);
                self.judge(at, by, found);
            }
            Write::Placed | Write::Deposed | Write::Deleted | Write::Restored => {}
        }
    }

    /// An elector was woken so often at one moment that it would never stop.
    pub fn spins(&mut self, at: Moment, who: Who) {
        let why = || "it wants to be woken at once, over and over".to_owned();
        let found = require(false, NoHotLoop, why);
        self.judge(at, Some(who), found);
    }

    /// Nothing happens any more.
    pub fn finish(&mut self, at: Moment) {
        self.leadership_is_in_time(at);
        self.lease_was_given_back(at);
        if let Some((_, property)) = self.leads_by {
            let found =
                require(self.live(at).is_some(), property, || "nobody leads in the end".to_owned());
            self.judge(at, None, found);
        }
    }

    fn leadership_is_in_time(&mut self, at: Moment) {
        if let Some((leads_by, property)) = self.leads_by
            && !self.was_led
            && at > leads_by
        {
            let why = || format!("nobody has led until {leads_by}, though all was well");
            let found = require(false, property, why);
            self.judge(at, None, found);
            self.was_led = true;
        }
    }

    fn expect_leader(&mut self, at: Moment, leads_by: Moment, property: Property) {
        self.leads_by = Some((leads_by, property));
        self.was_led = self.live(at).is_some();
    }

    fn lease_was_given_back(&mut self, at: Moment) {
        if let (Some(by), Some(held)) = (self.gives_back_by, self.held)
            && at > by
        {
            let why = || format!("{} is not needed, and was not given back until {by}", held.fence);
            let found = require(false, GivenBack, why);
            self.judge(at, Some(held.who), found);
            self.gives_back_by = None;
        }
    }

    /// Who is in the record after this line of its log.
    fn holds(&self, by: Option<Who>, commit: &Commit) -> Option<Held> {
        let row = commit.row.as_ref().filter(|row| !row.lease.released)?;
        let of_holder = |books: &&Books| Some(&books.identity) == row.lease.holder.as_ref();
        let books = self.books.iter().find(of_holder)?;
        let is_own = matches!(commit.write, Write::Acquired { .. } | Write::Renewed);
        let left = u64::try_from(row.expires_at.saturating_sub(commit.store_time)).unwrap_or(0);
        Some(Held {
            who: books.who,
            fence: row.lease.fence,
            since: commit.at,
            // No two clocks differ by more than a tenth.
            until: commit.at + Duration::from_nanos(left) * 9 / 10,
            is_awaited: is_own && by == Some(books.who) && books.awaits(),
        })
    }

    /// When whoever is in the record must have given that back.
    fn debt(&self) -> Option<Moment> {
        let held = self.held.as_ref()?;
        let books = self.books.get(held.who.slot).filter(|books| books.who == held.who)?;
        books.gives_back_by(held)
    }

    /// Somebody whose term is live.
    fn live(&self, at: Moment) -> Option<&Books> {
        self.books.iter().find(|books| books.is_live(at))
    }

    /// A term that is over before anybody could see it begin, since its elector's thread was not run, comes in no order.
    fn may_start(&mut self, at: Moment, who: Who, fence: Fence) -> Result<(), Finding> {
        let books = &self.books[who.slot];
        let highest = self.begun.last().copied();
        require(!self.begun.contains(&fence), FencesAreOwn, || format!("{fence} begins again"))?;
        require(self.replay.gave(fence, &books.identity), FencesAreOwn, || {
            format!("{fence} was not given to it")
        })?;
        if books.is_live(at) {
            self.begun.push(fence);
            require(Some(fence) > highest, FencesRise, || {
                format!("{fence} begins after {highest:?}")
            })?;
        }
        Ok(())
    }

    /// Its term is the only one that is live.
    fn alone(&mut self, at: Moment, who: Who) {
        if !self.books[who.slot].is_live(at) {
            return;
        }
        self.was_led = true;
        let other = self.books.iter().find(|books| books.who != who && books.is_live(at));
        let found = require(other.is_none(), OneLeader, || {
            let (other, left) = other.map_or((who, None), |o| (o.who, Some(o.remaining(at))));
            format!("{other} leads as well, for another {left:?}")
        });
        self.judge(at, Some(who), found);
    }

    fn may_claim(&self, at: Moment, fence: Fence) -> Result<(), Finding> {
        let live = self.live(at);
        require(live.is_none(), NoClaimOverLive, || {
            let (who, left) =
                live.map_or((None, None), |live| (Some(live.who), Some(live.remaining(at))));
            format!("{fence} was given out while {who:?} leads, for another {left:?}")
        })
    }

    fn may_be_released(&self, holder: Option<&Identity>, fence: Fence) -> Result<(), Finding> {
        let of_holder = |books: &&Books| Some(&books.identity) == holder;
        let Some(books) = self.books.iter().find(of_holder) else { return Ok(()) };
        let guards = books.guards_of(fence);
        let is_over = books.fence() != Some(fence);
        require(is_over && guards == 0, NoReleaseOverWork, || {
            format!("{fence} is free; its term is over: {is_over}, guards: {guards}")
        })
    }

    fn confirm(&mut self, by: Option<Who>, fence: Fence, at: Moment) {
        let Some(who) = by else { return };
        if let Some(books) = self.books.get_mut(who.slot).filter(|books| books.who == who) {
            books.confirm(fence, at);
        }
    }

    fn judge(&mut self, at: Moment, who: Option<Who>, found: Result<(), Finding>) {
        if let Err((property, why)) = found
            && self.watched.contains(property)
        {
            self.violation.get_or_insert(Violation { property, at, who, why });
        }
    }
}
