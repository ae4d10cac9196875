//! What an election counts and measures.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{collections::BTreeMap, future::pending, pin::pin, task::Poll, time::Duration};

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::runtime::Builder;

use super::*;
use crate::{
    EndWake, InFlight, MemoryStore,
    telemetry::metrics::*,
    testing::{FlakyStore, Operation},
};

/// Everything that is recorded while `work` runs on paused time: `name{labels}`, without the election.
fn recorded(work: impl AsyncFnOnce(Clock)) -> BTreeMap<String, f64> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    ::metrics::with_local_recorder(&recorder, || runtime.block_on(work(Clock::tokio())));
    let metrics = snapshotter.snapshot().into_vec().into_iter().map(|(key, _, _, value)| {
        let (name, labels) = key.key().clone().into_parts();
        assert_eq!((labels[0].key(), labels[0].value()), ("election", "billing"));
        let labels: Vec<_> =
            labels[1..].iter().map(|l| format!("{}={}", l.key(), l.value())).collect();
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.iter().map(|value| value.into_inner()).sum(),
        };
        (format!("{}{{{}}}", name.as_str(), labels.join(",")), value)
    });
    metrics.collect()
}

fn of(recorded: &BTreeMap<String, f64>, name: &str, labels: &str) -> f64 {
    let key = format!("{name}{{{labels}}}");
    *recorded.get(&key).unwrap_or_else(|| panic!("{key} in {recorded:#?}"))
}

#[test]
fn a_term_its_calls_and_its_drain_are_counted() {
    let recorded = recorded(async |clock| {
        let store = FlakyStore::new(MemoryStore::with_clock(clock.clone()));
        let builder = Elector::builder("billing", store.clone()).clock(clock);
        let candidacy = builder.build().unwrap().spawn();
        let leadership = candidacy.leadership();
        assert!(leadership.admit().is_none());
        let term = leadership.leading().await.unwrap();
        store.fail_next(Operation::Renew, 1);
        while store.succeeded(Operation::Renew) < 1 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let (in_flight, guard) = leadership.admit().unwrap();
        drop(guard);
        let stopped = candidacy.shutdown_within(Duration::from_secs(5));
        assert_eq!(poll(&in_flight).await, Some(term.end().unwrap()));
        stopped.await.unwrap();
    });
    assert_eq!(of(&recorded, IS_LEADER, ""), 0.0);
    assert_eq!(of(&recorded, TERM_REMAINING, ""), 0.0);
    assert_eq!(of(&recorded, FENCE, ""), 1.0);
    assert_eq!(of(&recorded, TRANSITIONS, "to=leading,reason=elected"), 1.0);
    assert_eq!(of(&recorded, TRANSITIONS, "to=following,reason=shutdown"), 1.0);
    assert_eq!(of(&recorded, STORE_CALLS, "operation=inspect,outcome=ok"), 1.0);
    assert_eq!(of(&recorded, STORE_CALLS, "operation=acquire,outcome=ok"), 1.0);
    assert_eq!(of(&recorded, STORE_CALLS, "operation=renew,outcome=transient"), 1.0);
    assert!(of(&recorded, STORE_CALLS, "operation=renew,outcome=ok") >= 1.0);
    assert_eq!(of(&recorded, STORE_CALLS, "operation=release,outcome=ok"), 1.0);
    assert_eq!(of(&recorded, REQUESTS, "outcome=refused"), 1.0);
    assert_eq!(of(&recorded, REQUESTS, "outcome=admitted"), 1.0);
    assert_eq!(of(&recorded, REQUESTS, "outcome=cut"), 1.0);
    let drained = of(&recorded, DRAIN_DURATION, "");
    assert!((1.9..=2.1).contains(&drained), "{drained}");
}

#[test]
fn a_follower_that_looks_has_no_failures_and_a_store_that_hangs_is_one() {
    let recorded = recorded(async |clock| {
        let memory = MemoryStore::with_clock(clock.clone());
        let other = Elector::builder("billing", memory.clone()).clock(clock.clone());
        let _leader = other.build().unwrap();
        let store = FlakyStore::new(memory);
        let builder = Elector::builder("billing", store.clone()).clock(clock).observer();
        let candidacy = builder.build().unwrap().spawn();
        while store.succeeded(Operation::Inspect) < 3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        store.hang();
        tokio::time::sleep(Duration::from_secs(60)).await;
        candidacy.shutdown().await.unwrap();
    });
    assert!(of(&recorded, STORE_CALLS, "operation=inspect,outcome=ok") >= 3.0);
    assert!(of(&recorded, STORE_CALLS, "operation=inspect,outcome=timeout") >= 1.0);
    assert!(
        !recorded.keys().any(|key| key.contains("lost") || key.contains("fatal")),
        "{recorded:#?}"
    );
}

#[test]
fn overruns_callbacks_and_a_fixed_identity_are_told() {
    let recorded = recorded(async |clock| {
        let store = FlakyStore::new(MemoryStore::with_clock(clock.clone()));
        let elector = Elector::builder("billing", store.clone())
            .clock(clock)
            .fixed_identity_risking_two_leaders("only-one")
            .on_new_leader(|_| async { panic!("on purpose") })
            .on_stopped_leading(|_, _| pending())
            .build()
            .unwrap();
        let candidacy = elector.spawn();
        let term = candidacy.leadership().leading().await.unwrap();
        let guard = term.guard().unwrap();
        store.hang();
        term.ended().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        drop(guard);
        store.recover();
        candidacy.shutdown().await.unwrap();
    });
    let identity = "identity=only-one";
    assert_eq!(of(&recorded, TRANSITIONS, &format!("{identity},to=following,reason=expired")), 1.0);
    let failures = |callback: &str| {
        of(&recorded, CALLBACK_FAILURES, &format!("{identity},callback={callback}"))
    };
    assert!(failures("on_new_leader,how=panicked") >= 1.0);
    assert!(failures("on_stopped_leading,how=timed_out") >= 1.0);
}

/// Polls work that never ends until it is cut.
async fn poll(in_flight: &InFlight) -> Option<crate::TermEnd> {
    let mut wake = pin!(EndWake::default());
    let cut =
        std::future::poll_fn(|cx| in_flight.poll_with(wake.as_mut(), cx, |_| Poll::<()>::Pending));
    cut.await.err().map(|ended| ended.reason())
}
