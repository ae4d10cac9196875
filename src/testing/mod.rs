//! For tests of what is built on an election: handlers, actors, jobs. Feature `test-util`.
//!
//! # Without an election
//! [`ManualLeadership`] is leadership that the test gives and takes. No store, no runtime of its own, no time that passes:
//!
//! ```
//! use tenure::{LeaderOnlyError, TermEnd, testing::ManualLeadership};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let manual = ManualLeadership::new("billing");
//! let leadership = manual.leadership(); // for the code under test
//! assert!(!leadership.is_leader());
//!
//! manual.promote();
//! assert_eq!(leadership.leader_only(async { 7 }).await, Ok(7));
//!
//! manual.demote(TermEnd::Lost);
//! let refused = leadership.leader_only(async { 7 }).await;
//! assert!(matches!(refused, Err(LeaderOnlyError::NotLeader { .. })));
//! # });
//! # Ok::<_, std::io::Error>(())
//! ```
//!
//! # Without waiting
//! The real elector on the in-process store, with leases that last as long as in production, on tokio's paused time: it
//! goes on by itself whenever every task waits.
//!
//! ```
//! use std::time::Duration;
//! use tenure::{Clock, Elector, MemoryStore};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! let clock = Clock::tokio(); // in a test marked `#[tokio::test(start_paused = true)]`
//! let store = MemoryStore::with_clock(clock.clone());
//! let candidate = || Elector::builder("billing", store.clone()).clock(clock.clone()).build();
//! let (first, second) = (candidate()?.spawn(), candidate()?.spawn());
//!
//! let term = first.leadership().leading().await?;
//! first.shutdown().await?;
//! assert!(second.leadership().leading().await?.fence() > term.fence());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # With a store that fails
//! [`FlakyStore`] fails, hangs or dawdles when it is told to:
//!
//! ```
//! # use std::time::Duration;
//! # use tenure::{Clock, Elector, MemoryStore};
//! use tenure::{TermEnd, testing::FlakyStore};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! # let clock = Clock::tokio();
//! let store = FlakyStore::new(MemoryStore::with_clock(clock.clone()));
//! let elector = Elector::builder("billing", store.clone()).clock(clock).build()?;
//! let candidacy = elector.spawn();
//! let term = candidacy.leadership().leading().await?;
//!
//! store.hang();
//! assert_eq!(term.ended().await, TermEnd::Expired);
//! store.recover();
//! candidacy.leadership().leading().await?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod flaky;
mod manual;

pub use self::{
    flaky::{FlakySession, FlakyStore, Operation},
    manual::ManualLeadership,
};
