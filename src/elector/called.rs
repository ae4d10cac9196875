//! Callbacks: when they are called, in which order, and that nobody has to fear them.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use futures::executor::block_on;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::{lease::TermEnd, memory::MemoryStore};

const LIMIT: Duration = Duration::from_secs(20);

/// What was called, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Says that it is gone.
struct Gone(Log, &'static str);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

fn builder() -> ElectorBuilder {
    Elector::builder("billing", MemoryStore::new()).clock(Clock::tokio())
}

fn workers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn callbacks_are_called_in_the_order_of_what_happens() {
    let log = Log::default();
    let [started, again, stopped, leads] = [(); 4].map(|()| log.clone());
    let elector = builder()
        .on_started_leading(move |term| {
            let log = started.clone();
            async move {
                log.add(format!("started {}", term.fence()));
                let _gone = Gone(log, "started is dropped");
                pending::<()>().await;
            }
        })
        .on_started_leading(move |_| {
            let log = again.clone();
            async move { log.add("started, too") }
        })
        .on_stopped_leading(move |term, reason| {
            let log = stopped.clone();
            async move { log.add(format!("stopped {}: {reason}", term.fence())) }
        })
        .on_new_leader(move |leader| {
            let log = leads.clone();
            async move { log.add(format!("{} leads", leader.fence())) }
        })
        .build()
        .unwrap();
    let candidacy = elector.spawn();
    candidacy.leadership().leading().await.unwrap();
    candidacy.resign().await;
    candidacy.leadership().leading().await.unwrap();
    candidacy.shutdown().await.unwrap();

    let lines = log.lines();
    let of_term = |fence: i64, reason: TermEnd| {
        [
            format!("started {fence}"),
            "started, too".to_owned(),
            format!("{fence} leads"),
            "started is dropped".to_owned(),
            format!("stopped {fence}: {reason}"),
        ]
    };
    let (first, second) = (of_term(1, TermEnd::Resigned), of_term(2, TermEnd::Shutdown));
    assert_eq!(lines.len(), first.len() + second.len(), "{lines:?}");
    for (at, term) in [first, second].iter().enumerate() {
        let lines = &lines[at * term.len()..][..term.len()];
        let mut sorted = lines.to_vec();
        sorted.sort();
        let mut expected = term.to_vec();
        expected.sort();
        assert_eq!(sorted, expected);
        assert_eq!(lines[3..], term[3..], "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_or_hangs_is_no_matter_to_anybody_else() {
    let log = Log::default();
    let [stopped, leads] = [(); 2].map(|()| log.clone());
    let elector = builder()
        .on_started_leading(|_| -> std::future::Ready<()> { panic!("when called, on purpose") })
        .on_started_leading(|_| async { panic!("when polled, on purpose") })
        .on_stopped_leading(|_, _| async { panic!("at the end, on purpose") })
        .on_stopped_leading(|_, _| pending())
        .on_stopped_leading(move |_, _| {
            let log = stopped.clone();
            async move { log.add("stopped") }
        })
        .on_new_leader(|_| pending())
        .on_new_leader(move |_| {
            let log = leads.clone();
            async move { log.add("leads") }
        })
        .build()
        .unwrap();
    let candidacy = elector.spawn();
    candidacy.leadership().leading().await.unwrap();
    candidacy.shutdown().await.unwrap();
    assert_eq!(log.lines(), ["leads", "stopped"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_none_runs_and_none_is_called() {
    let running = Arc::new(AtomicBool::new(false));
    let log = Log::default();
    let (flag, late) = (running.clone(), log.clone());
    let elector = builder()
        .on_stopped_leading(move |_, _| {
            let flag = flag.clone();
            async move {
                flag.store(true, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                flag.store(false, Ordering::SeqCst);
            }
        })
        .on_stopped_leading(move |_, _| {
            let late = late.clone();
            async move { late.add("stopped") }
        })
        .build()
        .unwrap();
    let candidacy = elector.spawn();
    candidacy.leadership().leading().await.unwrap();
    candidacy.shutdown().await.unwrap();
    assert!(!running.load(Ordering::SeqCst));
    assert_eq!(log.lines(), ["stopped"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.lines(), ["stopped"]);
}

/// Waited for with everything that is there: asynchronously, and blocking a thread of the runtime.
#[test]
fn a_callback_may_shut_down_its_own_elector() {
    type End = fn(&Candidacy) -> Result<(), StopError>;
    let ends: [End; 2] = [
        |candidacy| block_on(candidacy.shutdown()),
        |candidacy| {
            let wait = candidacy.shutdown();
            tokio::task::block_in_place(|| block_on(wait))
        },
    ];
    for end in ends {
        let runtime = workers();
        let _entered = runtime.enter();
        let slot: Arc<Mutex<Option<Candidacy>>> = Arc::default();
        let (done, finished) = mpsc::channel();
        let inner = slot.clone();
        let elector = Elector::builder("billing", MemoryStore::new())
            .on_new_leader(move |_| {
                let (slot, done) = (inner.clone(), done.clone());
                async move {
                    // It is stored right after the elector was spawned.
                    let candidacy = loop {
                        match slot.lock().unwrap().take() {
                            Some(candidacy) => break candidacy,
                            None => thread::yield_now(),
                        }
                    };
                    done.send(end(&candidacy)).unwrap();
                }
            })
            .build()
            .unwrap();
        *slot.lock().unwrap() = Some(elector.spawn());
        finished.recv_timeout(LIMIT).unwrap().unwrap();
    }
}

#[test]
fn a_callback_that_blocks_its_thread_is_reported_and_not_waited_for() {
    let runtime = workers();
    let (unblock, blocked) = mpsc::channel::<()>();
    let (entered, called) = mpsc::channel();
    let blocked = Mutex::new(Some(blocked));
    let elector = Elector::builder("billing", MemoryStore::new())
        .callback_runtime(runtime.handle().clone())
        .callback_timeout(Duration::from_millis(20))
        .on_new_leader(move |_| {
            let (blocked, entered) = (blocked.lock().unwrap().take(), entered.clone());
            async move {
                entered.send(()).unwrap();
                // Until the test is over.
                let _ = blocked.map(|blocked| blocked.recv());
            }
        })
        .build()
        .unwrap();
    let candidacy = elector.spawn();
    called.recv_timeout(LIMIT).unwrap();
    let outcome = block_on(candidacy.shutdown());
    assert!(matches!(outcome, Err(StopError::CallbackStuck)), "{outcome:?}");
    assert!(!candidacy.leadership().is_leader());
    drop(unblock);
}

#[test]
fn callbacks_without_a_runtime_are_refused_when_the_elector_is_built() {
    let builder = || Elector::builder("billing", MemoryStore::new());
    drop(builder().build().unwrap());
    let error = builder().on_new_leader(|_| async {}).build().unwrap_err();
    assert!(matches!(error, ConfigError::NoCallbackRuntime), "{error:?}");
    let runtime = workers();
    let elsewhere = builder().callback_runtime(runtime.handle().clone());
    drop(elsewhere.on_new_leader(|_| async {}).build().unwrap());
}

#[test]
fn a_runtime_that_is_gone_takes_its_callbacks_with_it_and_nothing_else() {
    let runtime = workers();
    let elector = Elector::builder("billing", MemoryStore::new())
        .callback_runtime(runtime.handle().clone())
        .on_started_leading(|_| pending())
        .build()
        .unwrap();
    let candidacy = elector.spawn();
    block_on(candidacy.leadership().leading()).unwrap();
    drop(runtime);
    assert!(candidacy.leadership().is_leader());
    block_on(candidacy.shutdown()).unwrap();
}
