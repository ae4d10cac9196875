//! What is left when terms are over. In a test program of its own: it counts what the whole process has.

use std::{fs, future::pending, time::Duration};

use futures::future::join;
use tenure::{DynStore, Elector, StopError, Term};
use tenure_tests::wait_until;
use tokio::{runtime::Runtime, sync::oneshot};

use super::{Ground, runtime};

pub(crate) fn a_hundred_terms_leave_nothing_behind(ground: &impl Ground) {
    /// What an allocator may keep for itself.
    const MEMORY_KIB: usize = 8 * 1024;
    let (store, runtime) = (ground.store(), runtime());
    // What is started once for each process, and what has reached its size.
    (0..20).for_each(|number| one_term(&store, &runtime, number));
    let before = Usage::of_this_process(&runtime);
    (0..100).for_each(|number| one_term(&store, &runtime, number));

    let mut after = Usage::of_this_process(&runtime);
    wait_until("all threads, files and tasks are gone", || {
        after = Usage::of_this_process(&runtime);
        after.threads <= before.threads
            && after.files <= before.files
            && after.tasks <= before.tasks
    });
    let grown = after.memory_kib.saturating_sub(before.memory_kib);
    assert!(grown <= MEMORY_KIB, "{grown} KiB more than before: {before:?}, {after:?}");
}

/// Half of them on the elector's thread and half on the runtime; all of them with work in them.
fn one_term(store: &DynStore, runtime: &Runtime, number: usize) {
    let elector = Elector::builder("hundred", store.clone()).lease_duration(Duration::from_secs(2));
    let elector = elector.payload(vec![7; 1024]).build().unwrap();
    let leadership = elector.leadership();
    // Ends with the term, by no means of its own.
    let endless = async |term: &Term| term.leader_only(pending::<()>()).await.unwrap_err();
    let work = async {
        let term = leadership.leading().await.unwrap();
        let blocking = term.spawn_blocking(|guard| guard.term().is_live());
        assert!(blocking.await.unwrap().unwrap());
        assert_eq!(term.leader_only(async { 1 }).await, Ok(1));
        drop(term.spawn(pending::<()>()));
        term
    };
    let stopped: Result<(), StopError> = runtime.block_on(async {
        if number.is_multiple_of(2) {
            let candidacy = elector.spawn();
            let term = work.await;
            return join(candidacy.shutdown(), endless(&term)).await.0;
        }
        let (shut_down, shutdown) = oneshot::channel();
        let running = tokio::spawn(elector.run(async { drop(shutdown.await) }));
        let term = work.await;
        shut_down.send(()).unwrap();
        join(running, endless(&term)).await.0.unwrap()
    });
    stopped.unwrap();
}

#[derive(Debug)]
struct Usage {
    threads: usize,
    files: usize,
    tasks: usize,
    memory_kib: usize,
}

impl Usage {
    fn of_this_process(runtime: &Runtime) -> Self {
        let count = |directory| fs::read_dir(directory).unwrap().count();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            threads: count("/proc/self/task"),
            files: count("/proc/self/fd"),
            tasks: runtime.metrics().num_alive_tasks(),
            memory_kib: memory.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}
