//! The `actix` example, run as a program.
#![cfg(unix)]

mod support;

use std::thread;

use support::{Replica, wait_for};
use tempfile::TempDir;

#[test]
fn jobs_are_numbered_by_the_actor_of_the_leader() {
    let replica = Replica::start_as(&["actix"], &["--lease", "1500ms"]);
    let first = replica.leads();
    assert_eq!((&first["fence"], &first["number"]), (&1.into(), &1.into()));
    // Whichever worker serves them.
    for number in 2..10 {
        assert_eq!(replica.post("/jobs?ms=5").json()["number"], number);
    }
    assert_eq!(replica.get("/").status, 200);
    assert_eq!(replica.get("/leader").status, 200);
    assert_eq!(replica.get("/leadership").json()["is_leader"], true);
    assert_eq!(replica.get("/elsewhere").status, 404);
    replica.terminate();
    assert_eq!(replica.exited().code(), Some(0));
}

#[test]
fn the_actor_of_the_next_leader_begins_anew_after_the_jobs_of_the_last_are_done() {
    let directory = TempDir::new().unwrap();
    let store = format!("sqlite:{}", directory.path().join("example.db").display());
    // With the default lease, which also a busy machine renews in time.
    let start = || Replica::start_as(&["actix"], &["--store", &store]);

    let first = start();
    let job = first.leads();
    let second = start();
    let refusal = second.post("/jobs");
    assert_eq!(refusal.status, 503);
    assert!(refusal.head.contains("tenure-reason: refused"), "{refusal:?}");
    assert_eq!(second.get("/leader").status, 503);

    thread::scope(|scope| {
        let long = scope.spawn(|| first.post("/jobs?ms=1500"));
        // It has begun when a number is missing between two others.
        let mut last = 1;
        wait_for("the long job has begun", || {
            let before = last;
            last = first.post("/jobs").json()["number"].as_u64().unwrap();
            (last > before + 1).then_some(())
        });
        first.terminate();
        wait_for("the old leader admits nothing more", || {
            (first.post("/jobs").status == 503).then_some(())
        });
        assert_eq!(second.post("/jobs").status, 503, "the old leader has not finished yet");
        let long = long.join().unwrap();
        assert_eq!((long.status, &long.json()["fence"]), (200, &job["fence"]));
    });
    assert_eq!(first.exited().code(), Some(0));

    let next = second.leads();
    assert_eq!(next["number"], 1);
    assert!(next["fence"].as_u64() > job["fence"].as_u64(), "{next} after {job}");
    assert_ne!(next["identity"], job["identity"]);
}
