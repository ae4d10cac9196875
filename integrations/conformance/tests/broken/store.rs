//! Stores that are wrong in one way each: the in-process store behind a session that does something else.

use std::time::Duration;

use futures::stream;
use tenure::{
    ElectionName, Identity, Lease, MemorySession, MemoryStore, Store, StoreError,
    store::{
        AcquireRequest, Capabilities, Hints, Hold, Observed, Outcome, PlaceRequest, ReleaseRequest,
        RenewRequest, Session, When,
    },
};
use tokio::task::yield_now;

use crate::{
    beneath::{Added, Holds, Noise, now},
    faults::{Fault, as_text, shown, swapped},
};

use Fault::*;

#[derive(Clone)]
pub(crate) struct BrokenStore {
    pub(crate) fault: Fault,
    pub(crate) inner: MemoryStore,
    pub(crate) holds: Holds,
    pub(crate) added: Added,
    noise: Noise,
}

impl BrokenStore {
    pub(crate) fn by(fault: Fault) -> Self {
        Self {
            fault,
            inner: MemoryStore::new(),
            holds: Holds::default(),
            added: Added::default(),
            noise: Noise::default(),
        }
    }
}

impl Store for BrokenStore {
    type Session = BrokenSession;

    fn session(&self, election: &ElectionName) -> BrokenSession {
        let election = match self.fault {
            NamesIgnoreCase => ElectionName::new(election.as_str().to_lowercase()),
            _ => Ok(election.clone()),
        }
        .expect("no longer than before");
        BrokenSession {
            fault: self.fault,
            inner: self.inner.session(&election),
            store: self.clone(),
            election,
            limit: Duration::from_secs(3),
            last: None,
            busy: false,
            asked: None,
            late: None,
            is_listening: false,
            since: None,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.clock = self.fault != ExpiryIsGuessed;
        capabilities.hints = self.fault != HintsAreNotDeclared;
        capabilities.hold = if self.fault == HoldIsNotDeclared { Hold::None } else { Hold::Shared };
        capabilities
    }

    async fn ensure_schema(&self) -> Result<(), StoreError> {
        if self.fault == SchemaIsCreatedAnew {
            self.inner.restore(&MemoryStore::new().backup());
        }
        Ok(())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }

    async fn leaders(&self) -> Result<Vec<(ElectionName, Lease)>, StoreError> {
        self.inner.leaders().await
    }

    async fn depose(&self, election: &ElectionName) -> Result<Option<Lease>, StoreError> {
        let mut session = self.inner.session(election);
        if let (DeposeReleases, Some(Lease { holder: Some(holder), fence, .. })) =
            (self.fault, session.inspect().await?)
        {
            session.release(&ReleaseRequest::new(holder, fence)).await?;
        }
        if self.fault == DeposeBreaksHolds {
            self.holds.break_all();
        }
        let depose = || now(self.inner.depose(election));
        let deposed = self.holds.wait_to(election, Duration::from_secs(3), depose).await?;
        Ok(deposed.map(|lease| shown(self.fault, lease)))
    }
}

pub(crate) struct BrokenSession {
    fault: Fault,
    inner: MemorySession,
    store: BrokenStore,
    election: ElectionName,
    limit: Duration,
    last: Option<Lease>,
    busy: bool,
    /// The record when the last call was made, and what is taken for the reply to the next one.
    asked: Option<Lease>,
    late: Option<Lease>,
    is_listening: bool,
    /// How many columns there were when it first looked at one.
    since: Option<usize>,
}

impl Session for BrokenSession {
    async fn inspect(&mut self) -> Result<Option<Lease>, StoreError> {
        self.begin().await?;
        let mut found = self.inner.inspect().await?;
        if let (
            InspectProlongsTheLease,
            Some(Lease { holder: Some(holder), fence, duration, .. }),
        ) = (self.fault, &found)
        {
            let request = RenewRequest::new(holder.clone(), *fence, *duration);
            self.inner.renew(&request).await?;
            found = self.inner.inspect().await?;
        }
        self.busy = false;
        Ok(found.map(|lease| self.shown(lease)))
    }

    async fn place(&mut self, request: &PlaceRequest) -> Result<Lease, StoreError> {
        self.begin().await?;
        if self.fault == PlaceReplacesTheRecord {
            self.store.inner.forget(&self.election);
        }
        let placed = self.inner.place(request).await?;
        self.busy = false;
        Ok(self.shown(placed))
    }

    async fn acquire(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        self.begin().await?;
        let found = self.inner.inspect().await?;
        let mut asked = request.clone();
        self.distort(&mut asked.holder, &mut asked.duration);
        match self.fault {
            FencesAreSwapped => {
                asked.observed.iter_mut().for_each(|seen| seen.fence = swapped(seen.fence));
            }
            _ if self.is(AcquireTakesWhatIsThere) => {
                asked.observed = found.as_ref().map(Observed::from);
            }
            AcquireIgnoresExpiry | ExpiryIsGuessed => asked.when = When::Unchanged,
            AcquireIgnoresTheFloor => asked.floor = None,
            PayloadsAreText => asked.payload = as_text(&asked.payload),
            VersionsAreTheFence => {
                let same = |seen: &Observed| found.iter().any(|lease| lease.fence == seen.fence);
                if request.observed.as_ref().is_some_and(same) {
                    asked.observed = found.as_ref().map(Observed::from);
                }
            }
            _ => {}
        }
        let mut outcome = match (self.fault, &found) {
            (AcquireContinuesOwnLease, Some(own)) if own.is_held_by(&asked.holder) => {
                let request = RenewRequest::new(asked.holder.clone(), own.fence, asked.duration);
                self.inner.renew(&request).await?
            }
            _ => self.claim(&asked).await?,
        };
        if self.fault == WritesClearAddedColumns && matches!(outcome, Outcome::Won(_)) {
            self.store.added.clear(&self.election);
        }
        match (self.fault, &mut outcome) {
            (AcquireReusesTheFence, Outcome::Won(lease)) => {
                lease.fence = request.observed.as_ref().map_or(lease.fence, |seen| seen.fence);
            }
            (OwnEarlierClaimIsSuccess, Outcome::Lost(Some(own)))
                if own.is_held_by(&asked.holder) =>
            {
                outcome = Outcome::Won(own.clone());
            }
            (LosersProlongTheLease, Outcome::Lost(Some(lease))) => {
                if let Some(holder) = &lease.holder {
                    let request = RenewRequest::new(holder.clone(), lease.fence, lease.duration);
                    self.inner.renew(&request).await?;
                }
            }
            (LosersAreNotToldByWhom, Outcome::Lost(by)) => *by = None,
            _ => {}
        }
        self.end(outcome)
    }

    async fn renew(&mut self, request: &RenewRequest) -> Result<Outcome, StoreError> {
        self.begin().await?;
        let found = self.inner.inspect().await?;
        let mut asked = request.clone();
        self.distort(&mut asked.holder, &mut asked.duration);
        match (self.fault, &found) {
            (FencesAreSwapped, _) => asked.fence = swapped(asked.fence),
            (RenewGoesByTheNameAlone, Some(lease)) => {
                asked.holder = lease.holder.clone().unwrap_or(asked.holder);
                asked.fence = lease.fence;
            }
            (RenewKeepsTheLongerDuration, Some(lease)) => {
                asked.duration = asked.duration.max(lease.duration);
            }
            (RenewClearsThePayload, _) => asked.payload = Some(asked.payload.unwrap_or_default()),
            (PayloadsAreText, _) => asked.payload = asked.payload.as_ref().map(as_text),
            _ => {}
        }
        let remembered = self.last.as_ref().filter(|last| last.fence == request.fence);
        if let (true, Some(last)) =
            (self.is(RenewAnswersFromMemory), remembered.filter(|last| !last.released).cloned())
        {
            return self.end(Outcome::Won(last));
        }
        if self.fault == HoldKeepsRenewalsAway {
            self.store.holds.wait_to(&self.election, self.limit, || Ok(())).await?;
        }
        if self.fault == RenewalsHint {
            self.store.noise.make();
        }
        let outcome = match (self.fault, self.inner.renew(&asked).await?) {
            (RenewRevivesTheExpired, Outcome::Lost(Some(own)))
                if own.is_held_by(&asked.holder) && own.fence == asked.fence =>
            {
                let seen = Some(Observed::from(&own));
                let request = AcquireRequest::new(asked.holder, seen, asked.duration);
                self.inner.acquire(&request).await?
            }
            (_, outcome) => outcome,
        };
        self.end(outcome)
    }

    async fn release(&mut self, request: &ReleaseRequest) -> Result<Outcome, StoreError> {
        self.begin().await?;
        let mut asked = request.clone();
        self.distort(&mut asked.holder, &mut Duration::default());
        if let (ReleaseGoesByTheNameAlone, Some(lease)) = (self.fault, self.inner.inspect().await?)
        {
            asked.holder = lease.holder.unwrap_or(asked.holder);
            asked.fence = lease.fence;
        }
        if self.fault == FencesAreSwapped {
            asked.fence = swapped(asked.fence);
        }
        let outcome = self.inner.release(&asked).await?;
        if self.fault == AllElectionsHint {
            self.store.noise.make();
        }
        if self.fault == ReleaseDeletes {
            self.store.inner.forget(&self.election);
        }
        self.end(outcome)
    }

    fn limit_calls(&mut self, limit: Duration) {
        self.limit = limit;
    }

    fn hints(&mut self) -> Hints {
        let asked_before = std::mem::replace(&mut self.is_listening, true);
        let is_first = self.store.noise.is_first_listener();
        match self.fault {
            ReleasesDoNotHint => Hints::none(),
            HintsComeOnlyOnce if asked_before => Hints::none(),
            OnlyTheFirstIsHinted if !is_first => Hints::none(),
            _ => Hints::new(stream::select(self.inner.hints(), self.store.noise.listen())),
        }
    }
}

impl BrokenSession {
    /// Whether the store has this fault, for this session.
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault || self.is_listening && self.fault == ListenersAreServedWorse
    }

    /// Waits while a transaction holds the term.
    async fn claim(&mut self, request: &AcquireRequest) -> Result<Outcome, StoreError> {
        let (inner, holds) = (&mut self.inner, &self.store.holds);
        let found = now(inner.inspect())?;
        let has_expired = found.iter().any(|lease| lease.ttl == Some(Duration::ZERO));
        match self.fault {
            HoldKeepsNobodyAway => return inner.acquire(request).await,
            HoldEndsWithTheLease if has_expired => return inner.acquire(request).await,
            _ => {}
        }
        let claimed = holds.wait_to(&self.election, self.limit, || now(inner.acquire(request)));
        match (self.fault, claimed.await) {
            (HoldIsNotNamed, Err(_)) => Err(StoreError::transient("it did not work")),
            (HoldMakesOthersLose, Err(_)) => Ok(Outcome::Lost(found)),
            (_, claimed) => claimed,
        }
    }

    /// There is an await point in each call, at which it can be dropped and others can come in between.
    async fn begin(&mut self) -> Result<(), StoreError> {
        let columns = self.store.added.columns();
        if self.fault == AddedColumnsBreakOldSessions
            && *self.since.get_or_insert(columns) != columns
        {
            return Err(StoreError::transient("the result has other columns than before"));
        }
        if self.is(DroppedCallsPoison) && self.busy {
            return Err(StoreError::transient("the connection is in the middle of another call"));
        }
        if self.fault == RepliesOutliveTheirCalls {
            self.late = self.asked.take().filter(|_| self.busy);
            self.asked = self.inner.inspect().await?;
        }
        if self.fault == DroppedCallsGoOn {
            // More than end meanwhile in other tests.
            (0..100).for_each(|_| drop(tokio::spawn(std::future::pending::<()>())));
        }
        self.busy = true;
        yield_now().await;
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) -> Result<Outcome, StoreError> {
        self.busy = false;
        if let Some(late) = self.late.take() {
            return Ok(Outcome::Won(late));
        }
        Ok(match outcome {
            Outcome::Won(lease) => {
                self.last = Some(lease.clone());
                Outcome::Won(self.shown(lease))
            }
            Outcome::Lost(by) => Outcome::Lost(by.map(|lease| self.shown(lease))),
        })
    }

    fn distort(&self, holder: &mut Identity, duration: &mut Duration) {
        match self.fault {
            IdentitiesIgnoreCase => {
                *holder = Identity::new(holder.as_str().to_lowercase()).expect("as long as before");
            }
            LeasesLastASecondLonger => *duration += Duration::from_secs(1),
            _ => {}
        }
    }

    fn shown(&self, lease: Lease) -> Lease {
        shown(self.fault, lease)
    }
}
