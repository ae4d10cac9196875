//! How an elector comes to its end, and why it may never begin.

use std::{
    any::Any,
    future::pending,
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::executor::block_on;
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::{
    tests::{Fleet, LEASE},
    *,
};
use crate::{MemoryStore, Phase, TermEnd};

#[tokio::test(start_paused = true)]
async fn an_elector_runs_on_the_callers_runtime_until_it_is_told_to_stop() {
    let fleet = Fleet::new();
    let elector = fleet.builder().build().unwrap();
    let leadership = elector.leadership();
    let led = async {
        leadership.leading().await.unwrap();
    };
    elector.run(led).await.unwrap();
    assert_eq!(leadership.status().phase(), Phase::Stopped);
    let record = fleet.store.leaders().await.unwrap();
    assert!(record[0].1.released, "{record:?}");
}

#[tokio::test(start_paused = true)]
async fn a_detached_candidate_goes_on() {
    let fleet = Fleet::new();
    let candidacy = fleet.candidate();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    candidacy.detach();
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!(leadership.term(), Some(term));
}

/// Of the application's log: the only code of others that the elector itself calls.
struct PanicsOnce(Mutex<Option<Box<dyn Any + Send>>>);

impl Subscriber for PanicsOnce {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::DEBUG
    }

    fn event(&self, _: &Event<'_>) {
        let panic = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_panic_inside_the_elector_ends_it_and_is_told_with_what_it_said() {
    let panics: [(Box<dyn Any + Send>, &str); 3] = [
        (Box::new("a text"), "a text"),
        (Box::new(String::from("a longer text")), "a longer text"),
        (Box::new(7), "a panic without a message"),
    ];
    for (panic, says) in panics {
        let fleet = Fleet::new();
        let elector = fleet.builder().build().unwrap();
        let leadership = elector.leadership();
        let log = tracing::subscriber::set_default(PanicsOnce(Mutex::new(Some(panic))));
        let stopped = elector.run(pending()).await;
        drop(log);
        match stopped {
            Err(StopError::Panicked { message }) => assert_eq!(&*message, says),
            other => panic!("{other:?}"),
        }
        assert_eq!(leadership.status().phase(), Phase::Stopped);
    }
}

/// Virtual time is a runtime's.
#[test]
fn without_a_runtime_a_candidate_on_virtual_time_says_that_it_never_took_part() {
    let (clock, _hand) = Clock::manual();
    let store = MemoryStore::with_clock(clock.clone());
    let elector = Elector::builder("billing", store.clone()).clock(clock).build().unwrap();
    let candidacy = elector.spawn();
    let stopped = block_on(candidacy.stopped());
    assert!(matches!(stopped, Err(StopError::NotStarted { .. })), "{stopped:?}");
    assert_eq!(candidacy.leadership().status().phase(), Phase::Stopped);
    assert_eq!(block_on(store.leaders()).unwrap(), []);
}

/// On a runtime there would be a task that ends it.
#[test]
fn a_term_that_nobody_would_end_does_not_begin() {
    let (clock, hand) = Clock::manual();
    let store = MemoryStore::with_clock(clock.clone());
    let elector = Elector::builder("billing", store.clone()).lease_duration(LEASE).clock(clock);
    let elector = elector.build().unwrap();
    let leadership = elector.leadership();
    let mut running = tokio_test::task::spawn(elector.run(pending()));
    for _ in 0..20 {
        assert!(running.poll().is_pending());
        assert!(!leadership.is_leader());
        assert_eq!(leadership.status().term(), None);
        hand.advance(LEASE / 3);
    }
    assert_eq!(block_on(store.leaders()).unwrap().len(), 1, "it won the lease, and did not lead");
}

/// In a process of its own, whose files are all in use.
#[cfg(target_os = "linux")]
#[test]
fn an_elector_that_can_have_no_watchdog_does_not_take_part() {
    const HAS_FEW_FILES: &str = "TENURE_TEST_HAS_FEW_FILES";
    if std::env::var_os(HAS_FEW_FILES).is_some() {
        let store = MemoryStore::new();
        let elector = Elector::builder("billing", store.clone()).build().unwrap();
        let mut open = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            open.push(file);
        }
        let stopped = block_on(elector.run(pending()));
        drop(open);
        assert!(matches!(stopped, Err(StopError::NotStarted { .. })), "{stopped:?}");
        assert_eq!(block_on(store.leaders()).unwrap(), []);
        return;
    }
    let output = std::process::Command::new("sh")
        .args(["-c", r#"ulimit -n 64; exec "$0" --exact "$1""#])
        .arg(std::env::current_exe().unwrap())
        .arg("elector::endings::an_elector_that_can_have_no_watchdog_does_not_take_part")
        .env(HAS_FEW_FILES, "")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_is_in_a_hurry_cuts_work_in_time_to_release_the_lease() {
    let fleet = Fleet::new();
    let candidacy = fleet.candidate();
    let term = candidacy.leadership().leading().await.unwrap();
    let work = tokio::spawn(term.until_ended(pending::<()>()));
    let asked = fleet.clock.now();
    let limit = Duration::from_secs(2);
    candidacy.shutdown_within(limit).await.unwrap();
    let took = fleet.clock.now().saturating_since(asked);
    assert!(took <= limit && took >= Duration::from_secs(1), "{took:?}");
    assert!(work.await.unwrap().is_err());
    assert!(fleet.store.leaders().await.unwrap()[0].1.released);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_is_in_a_hurry_leaves_a_lease_that_it_cannot_release() {
    let fleet = Fleet::new();
    let candidacy = fleet.candidate();
    let term = candidacy.leadership().leading().await.unwrap();
    let guard = term.guard().unwrap();
    let asked = fleet.clock.now();
    let slow = candidacy.shutdown();
    let outcome = candidacy.shutdown_within(Duration::from_secs(1)).await;
    assert!(matches!(outcome, Err(StopError::OutOfTime | StopError::StillRunning { .. })));
    assert!(slow.await.is_err());
    let took = fleet.clock.now().saturating_since(asked);
    assert!(took <= Duration::from_millis(1_010), "{took:?}");
    assert_eq!(term.end(), Some(TermEnd::Shutdown));
    assert_eq!(candidacy.leadership().status().phase(), Phase::Stopped);
    assert!(!fleet.store.leaders().await.unwrap()[0].1.released);
    drop(guard);
}
