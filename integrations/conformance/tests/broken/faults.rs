//! Stores that are wrong in one way each: the in-process store behind a session that does something else.

use std::{sync::Mutex, time::Duration};

use tenure::{
    ElectionName, Identity, Lease, MemoryBackup, MemorySession, MemoryStore, Payload, Store,
    StoreError, Version,
    store::{
        AcquireRequest, Capabilities, Observed, Outcome, PlaceRequest, ReleaseRequest,
        RenewRequest, Session, When,
    },
};
use tenure_conformance::{Subject, Unsupported};
use tokio::task::yield_now;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    AcquireTakesWhatIsThere,
    AcquireIgnoresExpiry,
    AcquireContinuesOwnLease,
    AcquireReusesTheFence,
    AcquireIgnoresTheFloor,
    OwnEarlierClaimIsSuccess,
    LosersAreNotToldByWhom,
    LosersProlongTheLease,
    RenewGoesByTheNameAlone,
    RenewRevivesTheExpired,
    RenewAnswersFromMemory,
    RenewKeepsTheLongerDuration,
    RenewClearsThePayload,
    ReleaseGoesByTheNameAlone,
    ReleaseDeletes,
    VersionsAreTheFence,
    NamesIgnoreCase,
    IdentitiesIgnoreCase,
    PayloadsAreText,
    LeasesLastASecondLonger,
    TimeStandsStill,
    ClockIsNotShown,
    InspectProlongsTheLease,
    PlaceReplacesTheRecord,
    DeposeReleases,
    SchemaIsCreatedAnew,
    DroppedCallsPoison,
}

use Fault::*;

/// A subject whose store has this fault.
pub(crate) struct Broken {
    store: BrokenStore,
    backup: Mutex<Option<MemoryBackup>>,
}

impl Broken {
    pub(crate) fn by(fault: Fault) -> Self {
        Self { store: BrokenStore { fault, inner: MemoryStore::new() }, backup: Mutex::default() }
    }
}

impl Subject for Broken {
    type Store = BrokenStore;

    async fn store(&self) -> BrokenStore {
        self.store.clone()
    }

    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        self.store.inner.forget(election);
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        *self.backup.lock().expect("nobody panics with it") = Some(self.store.inner.backup());
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        let backup = self.backup.lock().expect("nobody panics with it");
        self.store.inner.restore(backup.as_ref().expect("backed up before"));
        Ok(())
    }
}

#[derive(Clone)]
pub(crate) struct BrokenStore {
    fault: Fault,
    inner: MemoryStore,
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
            store: self.inner.clone(),
            election,
            last: None,
            busy: false,
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
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
        self.inner.depose(election).await
    }
}

pub(crate) struct BrokenSession {
    fault: Fault,
    inner: MemorySession,
    store: MemoryStore,
    election: ElectionName,
    last: Option<Lease>,
    busy: bool,
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
            self.store.forget(&self.election);
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
            AcquireTakesWhatIsThere => asked.observed = found.as_ref().map(Observed::from),
            AcquireIgnoresExpiry => asked.when = When::Unchanged,
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
            _ => self.inner.acquire(&asked).await?,
        };
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
        if let (RenewAnswersFromMemory, Some(last)) =
            (self.fault, remembered.filter(|last| !last.released).cloned())
        {
            return self.end(Outcome::Won(last));
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
        let outcome = self.inner.release(&asked).await?;
        if self.fault == ReleaseDeletes {
            self.store.forget(&self.election);
        }
        self.end(outcome)
    }
}

impl BrokenSession {
    /// There is an await point in each call, at which it can be dropped and others can come in between.
    async fn begin(&mut self) -> Result<(), StoreError> {
        if self.fault == DroppedCallsPoison && self.busy {
            return Err(StoreError::transient("the connection is in the middle of another call"));
        }
        self.busy = true;
        yield_now().await;
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) -> Result<Outcome, StoreError> {
        self.busy = false;
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

    fn shown(&self, mut lease: Lease) -> Lease {
        match self.fault {
            VersionsAreTheFence => lease.version = Version::from(u64::from(lease.fence)),
            LeasesLastASecondLonger => lease.duration -= Duration::from_secs(1),
            TimeStandsStill => lease.ttl = Some(lease.duration),
            ClockIsNotShown => lease.ttl = None,
            _ => {}
        }
        lease
    }
}

fn as_text(payload: &Payload) -> Payload {
    String::from_utf8_lossy(payload.as_bytes()).into_owned().into()
}
