//! What one candidate knows about its election, as a value.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    clock::Clock,
    instant::Instant,
    lease::{ElectionName, Fence, Identity, Lease, Payload, TermEnd},
    protocol::Phase,
    store::StoreError,
    term::Term,
};

/// What a candidate knows about its election: whether it leads, who else does, and how its store is doing.
///
/// It is judged when it is asked, not when it was made: it holds the [`Term`] itself, so a copy that was kept for an
/// hour still answers [`is_leader`](Self::is_leader) by the clock of now, and renewals need not be published (rule S10).
/// Reading it never waits for anything.
#[derive(Clone)]
pub struct Status {
    pub(super) term: Option<Term>,
    pub(super) known: Arc<Observation>,
    pub(super) phase: Phase,
}

/// What a candidate has seen, beside its own term.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    pub(crate) election: ElectionName,
    pub(crate) identity: Identity,
    pub(crate) clock: Clock,
    /// What this candidate publishes when it leads.
    pub(crate) payload: Payload,
    /// Who holds the lease, as of `observed_at`.
    pub(crate) leader: Option<Leader>,
    pub(crate) leader_since: Option<SystemTime>,
    pub(crate) previous_leader: Option<Leader>,
    /// When this candidate's own term began, for as long as there is one.
    pub(crate) term_since: Option<SystemTime>,
    pub(crate) last_term: Option<PastTerm>,
    /// When the store last answered, on `clock`.
    pub(crate) observed_at: Option<Instant>,
    /// When the lease that was seen then will have run out unless it is renewed; at the latest, since the answer took its
    /// time.
    pub(crate) lease_until: Option<Instant>,
    pub(crate) last_error: Option<(LastError, SystemTime)>,
    /// The highest ticket of a request to resign that has been carried out.
    pub(crate) resigns_done: u64,
}

impl Observation {
    /// Of a candidate that has not looked yet.
    pub(crate) fn none(
        election: ElectionName,
        identity: Identity,
        payload: Payload,
        clock: Clock,
    ) -> Self {
        Self {
            election,
            identity,
            clock,
            payload,
            leader: None,
            leader_since: None,
            previous_leader: None,
            term_since: None,
            last_term: None,
            observed_at: None,
            lease_until: None,
            last_error: None,
            resigns_done: 0,
        }
    }

    /// Whoever holds the lease now, or nobody. A leader that publishes something else leads on.
    pub(super) fn leads(&mut self, leader: Option<Leader>) {
        let goes_on = |old: &Leader| leader.as_ref().is_some_and(|new| new.same_term(old));
        if !self.leader.as_ref().is_some_and(goes_on) {
            self.leader_since = leader.is_some().then(|| self.clock.wall_time(self.clock.now()));
            self.previous_leader = self.leader.take().or(self.previous_leader.take());
        }
        self.leader = leader;
    }

    pub(super) fn failed(&mut self, error: LastError) {
        self.last_error = Some((error, self.clock.wall_time(self.clock.now())));
    }
}

impl Status {
    pub(super) fn new(known: Observation) -> Self {
        Self { term: None, known: Arc::new(known), phase: Phase::Following }
    }

    /// Whether this candidate leads: its term is live and ready. Costs one reading of the clock.
    #[must_use]
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.leading_term().is_some()
    }

    /// The term under which this candidate leads, if it is live and ready.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        self.leading_term().cloned()
    }

    /// The fence of that term.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.leading_term().map(Term::fence)
    }

    /// How long this candidate leads if no further renewal is confirmed; `None` if it does not lead.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.leading_term().map(Term::remaining)
    }

    /// The election.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        &self.known.election
    }

    /// This candidate.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.known.identity
    }

    /// What this candidate publishes when it leads.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.known.payload
    }

    /// Who held the lease when this candidate last looked; it may be this candidate itself. How long ago that was is
    /// [`observed_age`](Self::observed_age).
    #[must_use]
    pub fn leader(&self) -> Option<&Leader> {
        self.known.leader.as_ref()
    }

    /// Whom to ask instead: the [leader](Self::leader), unless that was this very candidate, whose term is over or about to
    /// be.
    #[must_use]
    pub fn other_leader(&self) -> Option<&Leader> {
        self.leader().filter(|leader| leader.identity() != self.identity())
    }

    /// The fence of the [leader](Self::leader)'s term.
    #[must_use]
    pub fn leader_fence(&self) -> Option<Fence> {
        self.leader().map(Leader::fence)
    }

    /// What the [leader](Self::leader) publishes, for example its address.
    #[must_use]
    pub fn leader_payload(&self) -> Option<&Payload> {
        self.leader().map(Leader::payload)
    }

    /// Since when the [leader](Self::leader) has been known to lead, under this fence. For people: it is what the clock on
    /// this machine's wall showed.
    #[must_use]
    pub fn leader_since(&self) -> Option<SystemTime> {
        self.known.leader_since
    }

    /// Who was known to lead before the [leader](Self::leader), or, while nobody is, who led last. It may be the same
    /// candidate under a lower fence, and others may have led in between.
    #[must_use]
    pub fn previous_leader(&self) -> Option<&Leader> {
        self.known.previous_leader.as_ref()
    }

    /// This candidate's own last term that is over, and why it is; `None` if there was none.
    #[must_use]
    pub fn last_term(&self) -> Option<&PastTerm> {
        self.known.last_term.as_ref()
    }

    /// How long the lease that this candidate saw last runs at most unless it is renewed; after that anybody may take it.
    /// Zero if that time is over; `None` if there was none, or it was given back.
    #[must_use]
    pub fn lease_left(&self) -> Option<Duration> {
        let until = self.known.lease_until?;
        Some(until.saturating_since(self.known.clock.now()))
    }

    /// How long ago the store last answered this candidate; `None` if it never did.
    #[must_use]
    pub fn observed_age(&self) -> Option<Duration> {
        let observed_at = self.known.observed_at?;
        Some(self.known.clock.now().saturating_since(observed_at))
    }

    /// What this candidate is doing. Of a term that is over it never says that it leads, also when its elector has not
    /// noticed yet.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.phase {
            Phase::Leading | Phase::Draining if self.elected_term().is_none() => {
                Phase::Relinquishing
            }
            phase => phase,
        }
    }

    /// What went wrong last, until the next success.
    #[must_use]
    pub fn last_error(&self) -> Option<&LastError> {
        self.known.last_error.as_ref().map(|(error, _)| error)
    }

    /// When the [last error](Self::last_error) happened, on the clock on this machine's wall, for people.
    #[must_use]
    pub fn last_error_at(&self) -> Option<SystemTime> {
        self.known.last_error.as_ref().map(|&(_, at)| at)
    }

    fn leading_term(&self) -> Option<&Term> {
        self.term.as_ref().filter(|term| term.is_ready() && term.is_live())
    }

    /// The term that this candidate was elected to, ready or not, cancelled or not, but not over.
    pub(super) fn elected_term(&self) -> Option<&Term> {
        self.term.as_ref().filter(|term| term.may_finish())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("election", self.election())
            .field("identity", self.identity())
            .field("phase", &self.phase())
            .field("term", &self.term)
            .field("leader", &self.leader())
            .field("previous_leader", &self.previous_leader())
            .field("last_term", &self.last_term())
            .field("observed_age", &self.observed_age())
            .field("last_error", &self.last_error())
            .finish()
    }
}

/// Who holds the lease, as a candidate sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    identity: Identity,
    fence: Fence,
    payload: Payload,
}

impl Leader {
    /// A leader of this name, under this fence.
    #[must_use]
    pub fn new(identity: Identity, fence: Fence, payload: Payload) -> Self {
        Self { identity, fence, payload }
    }

    /// Whoever the record says holds the lease.
    pub(super) fn of(lease: &Lease) -> Option<Self> {
        let holder = lease.holder.clone().filter(|_| !lease.released)?;
        Some(Self::new(holder, lease.fence, lease.payload.clone()))
    }

    /// The candidate.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The fence of its term.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// What it publishes beside its lease.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Whether both mean the same term, whatever they publish.
    pub(super) fn same_term(&self, other: &Self) -> bool {
        (self.fence, &self.identity) == (other.fence, &other.identity)
    }
}

/// A term of this candidate that is over.
///
/// Its times are for people: they are what the clock on this machine's wall showed, and may lie days off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastTerm {
    fence: Fence,
    reason: TermEnd,
    started_at: SystemTime,
    ended_at: SystemTime,
}

impl PastTerm {
    /// `term`, which began then, is over for this reason. A deadline ends a term whenever that is noticed.
    pub(super) fn of(term: &Term, started_at: SystemTime, reason: TermEnd, clock: &Clock) -> Self {
        let ended = clock.now().min(term.last_deadline());
        Self { fence: term.fence(), reason, started_at, ended_at: clock.wall_time(ended) }
    }

    /// Its number.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Why it is over.
    #[must_use]
    pub fn reason(&self) -> TermEnd {
        self.reason
    }

    /// When this candidate was elected to it.
    #[must_use]
    pub fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// When it was over.
    #[must_use]
    pub fn ended_at(&self) -> SystemTime {
        self.ended_at
    }
}

impl fmt::Display for Phase {
    /// In lower case: `following`, `leading`, `draining`, `relinquishing`, `stopped`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Following => "following",
            Self::Leading => "leading",
            Self::Draining => "draining",
            Self::Relinquishing => "relinquishing",
            Self::Stopped => "stopped",
        })
    }
}

/// What went wrong last with an election. None of it ends the elector, which tries again.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LastError {
    /// A call to the store failed; [`StoreError::is_fatal`] tells whether somebody must do something.
    #[error("a call to the store failed")]
    Store(#[source] Arc<StoreError>),
    /// No renewal was confirmed in time, so the term ended here before the lease could end in the store.
    #[error("no renewal was confirmed before the term's deadline")]
    LeaseExpiredLocally,
    /// The lease is over, and guards of its term are still held: another candidate may lead by now, while here code that
    /// nobody can stop goes on. See [`Overrun`](crate::Overrun).
    #[error("the lease is over, and {guards} guards of its term are still held")]
    Overrun {
        /// How many.
        guards: usize,
    },
    /// The store gave proof that the lease is not this candidate's any more.
    #[error("the lease was taken by another candidate, deposed, or its record is gone")]
    LeaseLost,
}

impl LastError {
    /// Whether it lasts until somebody does something: a missing table, a missing privilege.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_fatal())
    }
}
