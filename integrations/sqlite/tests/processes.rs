//! Several processes on one file: the fences of all terms are different, and each process's own rise.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    env,
    process::{Command, Stdio},
    time::Duration,
};

use tenure::{
    ElectionName, Identity, Store,
    store::{AcquireRequest, Observed, Outcome, ReleaseRequest, Session, When},
};
use tenure_sqlite::SqliteStore;

const FILE: &str = "TENURE_TEST_FILE";
const NAME: &str = "TENURE_TEST_NAME";
const PROCESSES: usize = 4;
const TERMS: usize = 25;

#[test]
fn no_two_processes_are_ever_given_the_same_fence() {
    if let Ok(file) = env::var(FILE) {
        contend(&file, &env::var(NAME).unwrap());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "no_two_processes_are_ever_given_the_same_fence", "--nocapture"])
                .env(FILE, directory.path().join("leases.db"))
                .env(NAME, format!("process {number}"))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut all = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("fence "));
        let fences: Vec<i64> = lines.map(|fence| fence.parse().unwrap()).collect();
        assert_eq!(fences.len(), TERMS);
        assert!(fences.is_sorted_by(|earlier, later| earlier < later), "{fences:?}");
        all.extend(fences);
    }
    all.sort_unstable();
    assert!(all.is_sorted_by(|earlier, later| earlier < later), "one was given out twice: {all:?}");
}

/// Starts with the schema, like every replica.
#[tokio::main(flavor = "current_thread")]
async fn contend(file: &str, name: &str) {
    let store = SqliteStore::new(file).unwrap();
    store.ensure_schema().await.unwrap();
    let mut session = store.session(&ElectionName::new("an election").unwrap());
    let identity = Identity::new(name).unwrap();
    let mut terms = 0;
    println!();
    while terms < TERMS {
        let seen = session.inspect().await.unwrap();
        let claimable = seen.as_ref().is_none_or(|lease| lease.released);
        let observed = seen.as_ref().map(Observed::from);
        let mut claim = AcquireRequest::new(identity.clone(), observed, Duration::from_secs(600));
        claim.when = if claimable { When::Unchanged } else { When::Expired };
        if let Outcome::Won(term) = session.acquire(&claim).await.unwrap() {
            println!("fence {}", term.fence);
            terms += 1;
            let release = ReleaseRequest::new(identity.clone(), term.fence);
            assert!(matches!(session.release(&release).await.unwrap(), Outcome::Won(_)));
        }
    }
}
