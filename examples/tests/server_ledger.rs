//! The ledger of the `axum` and `actix` examples, on a PostgreSQL server.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use std::thread;

use support::{Replica, Response, wait_for};
use tenure::ElectionName;
use tenure_postgres::{
    PostgresStore,
    sqlx::{AssertSqlSafe, Connection, PgConnection, query_as, query_scalar, raw_sql},
};
use tenure_testbed::{PgBouncer, Postgres};
use tokio::runtime::{Builder, Runtime};

const PROGRAMS: [&str; 2] = ["axum", "actix"];

/// A server, and somebody with all rights there.
struct Database {
    server: Postgres,
    runtime: Runtime,
}

impl Database {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { server: Postgres::start().unwrap(), runtime }
    }

    /// A replica of a lease so long that nothing happens by itself, which leads.
    fn leader(&self, program: &str, url: &str) -> Replica {
        let flags = ["--store", url, "--ledger", url, "--election", program, "--lease", "60s"];
        let replica = Replica::start_as(&[program], &flags);
        replica.is_leader();
        replica
    }

    fn say(&self, sql: &str) {
        self.runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.server.url()).await.unwrap();
            raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        });
    }

    /// Ends the session of a replica as soon as one runs this.
    fn end_what_runs(&self, statement: &str) {
        let end = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE state = 'active' AND query LIKE '{statement}%' AND pid <> pg_backend_pid()"
        );
        wait_for(&format!("a replica runs {statement}"), || {
            let ended = self.runtime.block_on(async {
                let mut connection = PgConnection::connect(&self.server.url()).await.unwrap();
                query_scalar::<_, i64>(AssertSqlSafe(end.as_str())).fetch_one(&mut connection).await
            });
            (ended.unwrap() > 0).then_some(())
        });
    }

    /// Names and fences, in the order of their numbers.
    fn jobs(&self) -> Vec<(String, i64)> {
        self.runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.server.url()).await.unwrap();
            let jobs = query_as("SELECT id, fence FROM jobs ORDER BY number");
            jobs.fetch_all(&mut connection).await.unwrap()
        })
    }
}

/// Answered by the service itself, not by the gate in front of it.
fn is_its_own(answer: &Response, status: u16) -> bool {
    answer.status == status && !answer.head.contains("tenure-reason")
}

#[test]
fn a_job_is_answered_when_it_is_written_under_the_fence_of_the_term() {
    for pooled in [false, true] {
        let database = Database::start();
        let pooler = pooled.then(|| PgBouncer::start(&database.server).unwrap());
        let url = pooler.map_or_else(|| (database.server.url(), None), |it| (it.url(), Some(it)));
        let mut written = Vec::new();
        for program in PROGRAMS {
            let replica = database.leader(program, &url.0);
            for number in 0..3 {
                let id = format!("{program}-{number}");
                let answer = replica.post(&format!("/jobs?id={id}"));
                assert_eq!(answer.status, 200, "{answer:?}");
                written.push((id, answer.json()["fence"].as_i64().unwrap()));
                assert_eq!(database.jobs(), written);
            }
            let again = replica.post(&format!("/jobs?id={program}-1"));
            assert!(is_its_own(&again, 409), "{again:?}");
            let nameless = replica.post("/jobs");
            assert!(is_its_own(&nameless, 400), "{nameless:?}");
        }
        assert_eq!(database.jobs(), written);
    }
}

#[test]
fn a_leader_that_was_deposed_and_has_not_noticed_writes_nothing() {
    let database = Database::start();
    for program in PROGRAMS {
        let replica = database.leader(program, &database.server.url());
        let store = PostgresStore::new(&database.server.url()).unwrap();
        database.runtime.block_on(store.depose(&ElectionName::new(program).unwrap())).unwrap();
        let answer = replica.post("/jobs?id=late");
        assert!(is_its_own(&answer, 409), "{answer:?}");
    }
    assert_eq!(database.jobs(), []);
}

#[test]
fn a_job_that_was_broken_off_before_the_commit_is_not_written_and_the_answer_says_so() {
    let database = Database::start();
    for program in PROGRAMS {
        let replica = database.leader(program, &database.server.url());
        // Whoever inserts a job is held up, with the term in its hands.
        database.say(
            "CREATE OR REPLACE FUNCTION linger() RETURNS trigger AS
             'BEGIN PERFORM pg_sleep(60); RETURN NEW; END' LANGUAGE plpgsql;
             CREATE TRIGGER linger BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION linger()",
        );
        thread::scope(|scope| {
            let job = scope.spawn(|| replica.post("/jobs?id=broken"));
            database.end_what_runs("INSERT INTO jobs");
            let answer = job.join().unwrap();
            assert!(is_its_own(&answer, 503), "{answer:?}");
        });
        assert_eq!(database.jobs(), []);
        database.say("DROP TRIGGER linger ON jobs");
    }
}

#[test]
fn a_job_whose_commit_was_broken_off_may_be_written_and_the_answer_says_so() {
    let database = Database::start();
    for program in PROGRAMS {
        let replica = database.leader(program, &database.server.url());
        // Whoever commits a job is held up.
        database.say(
            "CREATE OR REPLACE FUNCTION linger() RETURNS trigger AS
             'BEGIN PERFORM pg_sleep(60); RETURN NEW; END' LANGUAGE plpgsql;
             CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON jobs
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()",
        );
        thread::scope(|scope| {
            let job = scope.spawn(|| replica.post("/jobs?id=broken"));
            database.end_what_runs("COMMIT");
            let answer = job.join().unwrap();
            assert!(is_its_own(&answer, 500), "{answer:?}");
        });
        database.say("DROP TRIGGER linger ON jobs");
    }
}

#[test]
fn a_ledger_that_cannot_be_used_is_told_at_the_start() {
    let database = Database::start();
    database.say("CREATE ROLE guest LOGIN");
    let url = database.server.url_of("guest", "postgres");
    for (program, ledger, part) in PROGRAMS.iter().flat_map(|program| {
        [
            (program, url.as_str(), "the ledger's table cannot be created"),
            (program, "postgres://127.0.0.1:bad/app", "--ledger"),
        ]
    }) {
        let flags = ["--listen", "127.0.0.1:0", "--ledger", ledger];
        let output = support::example(program).args(flags).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(said.contains(part), "{said}");
    }
}
