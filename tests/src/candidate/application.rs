//! What the candidate is elected for: an application on a runtime of its own.

use std::{
    error::Error,
    future::poll_fn,
    io,
    pin::pin,
    sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use futures::{executor::block_on, future::join_all};
use tenure::{Candidacy, DynStore, Elector, Leadership, Store, Term};
use tenure_postgres::{
    PostgresStore,
    sqlx::{PgPool, postgres::PgPoolOptions},
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

use super::Reporter;
use crate::{Event, Settings, Stamp, connect};

/// All of them can be blocked.
const THREADS: usize = 2;
/// How often work is done.
const STEP: Duration = Duration::from_millis(10);
/// How long a connection of the pool is waited for: less than a call to the store may take.
const PATIENCE: Duration = Duration::from_millis(100);

pub(super) struct Application {
    runtime: Runtime,
    /// Which its store uses, too.
    pool: OnceLock<PgPool>,
    reporter: Reporter,
    requests: Mutex<Vec<JoinHandle<()>>>,
}

impl Application {
    pub(super) fn new(reporter: Reporter) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
        Ok(Self { runtime, pool: OnceLock::new(), reporter, requests: Mutex::default() })
    }

    /// The store that is set, on the application's own pool if that is set.
    pub(super) fn store(
        &self,
        settings: &Settings,
    ) -> Result<DynStore, Box<dyn Error + Send + Sync>> {
        let Some(connections) = settings.pool else { return connect(&settings.store) };
        let url = settings.store.as_str().ok_or("a pool needs a URL")?;
        let _entered = self.runtime.enter();
        let options = PgPoolOptions::new().max_connections(connections).acquire_timeout(PATIENCE);
        let pool = options.connect_lazy_with(url.parse()?);
        let pool = self.pool.get_or_init(|| pool);
        Ok(PostgresStore::from_pool(pool.clone()).into_dyn())
    }

    /// Does a little work all the time, in each term that comes.
    pub(super) fn work_for(&self, leadership: &Leadership) {
        let (mut terms, reporting) = (leadership.terms(), self.reporter.clone());
        self.runtime.spawn(async move {
            while let Some(term) = terms.next().await {
                let began = Began::now();
                let work = term.leader_only(work(&term, &reporting, &began, Duration::MAX));
                // That the term is over is no failure.
                let _ = began.before(work).await;
            }
        });
    }

    /// Has the candidate take part.
    pub(super) fn spawn(&self, elector: Elector) -> Candidacy {
        let _entered = self.runtime.enter();
        elector.spawn()
    }

    /// Does work that was admitted like a request.
    pub(super) fn serve(&self, leadership: &Leadership, ms: u64) {
        let reporter = self.reporter.clone();
        let Some(term) = leadership.term() else {
            return reporter.say(Event::NotAdmitted);
        };
        let request = self.runtime.spawn(async move {
            let (fence, began) = (term.fence().into(), Began::now());
            let request = async {
                reporter.say(Event::Serving { fence });
                work(&term, &reporter, &began, Duration::from_millis(ms)).await;
            };
            reporter.say(match began.before(term.until_ended(request)).await {
                Ok(()) => Event::Served { fence },
                Err(ended) => Event::Cut { fence, reason: ended.reason().to_string() },
            });
        });
        self.requests().push(request);
    }

    /// Waits for what was served to say how it ended. All of it ends with its term.
    pub(super) fn finish(&self) {
        // That one panicked, if it did, was printed.
        let _ = block_on(join_all(self.requests().drain(..)));
    }

    fn requests(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocking code under a guard, as code that does not look around.
    pub(super) fn guard(&self, leadership: &Leadership, ms: u64) {
        let reporter = self.reporter.clone();
        let guard = leadership.term().and_then(|term| term.guard());
        thread::spawn(move || {
            let Some(guard) = guard else { return reporter.say(Event::NotAdmitted) };
            let fence = guard.term().fence().into();
            reporter.say(Event::Guarding { fence });
            thread::sleep(Duration::from_millis(ms));
            reporter.say(Event::Unguarded { fence });
        });
    }

    /// Takes every connection that the application and its store share.
    pub(super) fn hold_pool(&self, ms: u64) {
        let (pool, reporter) = (self.pool.get().cloned(), self.reporter.clone());
        self.runtime.spawn(async move {
            let Some(pool) = pool else { return };
            let mut held = Vec::new();
            while held.len() < pool.options().get_max_connections() as usize {
                // The store may be in the way, or the database.
                held.extend(pool.acquire().await.ok());
            }
            reporter.say(Event::PoolHeld);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            reporter.say(Event::PoolFree);
        });
    }

    /// Blocks every thread that polls the application's tasks.
    pub(super) fn block(&self, ms: u64) {
        // One task for each thread, and none of them gets off its thread before all have one.
        let everywhere = Arc::new(Barrier::new(THREADS));
        for _ in 0..THREADS {
            let (everywhere, reporter) = (everywhere.clone(), self.reporter.clone());
            self.runtime.spawn(async move {
                let speaks = everywhere.wait().is_leader();
                if speaks {
                    reporter.say(Event::Blocked);
                }
                thread::sleep(Duration::from_millis(ms));
                if speaks {
                    // While the others still wait: none of them works before this is said.
                    reporter.say(Event::Unblocked);
                }
                everywhere.wait();
            });
        }
    }
}

/// When the poll began in which work is done: before it was looked whether the term is over, so that the claim also holds
/// for a process that was frozen in between.
struct Began(Mutex<Stamp>);

impl Began {
    fn now() -> Self {
        Self(Mutex::new(Stamp::now()))
    }

    async fn before<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            *self.lock() = Stamp::now();
            future.as_mut().poll(cx)
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Stamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bit of work at a time, for this long.
async fn work(term: &Term, reporter: &Reporter, began: &Began, duration: Duration) {
    let fence = term.fence().into();
    let started = Stamp::now();
    loop {
        let at = *began.lock();
        reporter.say(Event::Worked { fence, at });
        if at - started >= duration {
            return;
        }
        tokio::time::sleep(STEP).await;
    }
}
