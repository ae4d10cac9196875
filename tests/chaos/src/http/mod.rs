//! The same faults through HTTP: replicas of the axum and actix-web examples, as processes, under load.
//!
//! Eight clients ask every replica all the time, 300 times a second in all, to do a job that has a name of its own
//! (`POST /jobs?id=`). Whoever leads writes a record of it to the *ledger*, a table in the database that keeps the leases,
//! in a transaction that holds the term (`PostgresStore::hold_term`), and answers 200 when that is committed. Each replica
//! comes to its database by a path of its own, which the election and the ledger have in common.
//!
//! What clients were told and what the ledger has is then [judged](judge), end to end:
//! - no job was done in an older term that was asked for when a job of a newer term was known to be done;
//! - every job that was acknowledged is in the ledger, under the fence that its client was told, and none that was refused;
//! - fences never fall in the order of the ledger, neither in that of the numbers, which are drawn under the hold, nor in
//!   that of the commits, as the server knows it: so nothing was written in an older term after something had been in a newer
//!   one;
//! - no two replicas have used one fence;
//! - for no longer than the scenario says was nobody told that a job is done, and after healing somebody is, within the
//!   worst case.
//!
//! What a client can't know, because the connection broke or the term ended meanwhile, may be in the ledger or not.

mod clients;
mod deployment;
mod faults;
mod judge;
mod ledger;
mod replica;

use self::deployment::{Deployment, Framework};
use crate::{kind::Need, perform, scenarios::Scenario, stage::Stage};

/// Each scenario of one and of the other framework.
macro_rules! in_both_frameworks {
    ($($name:literal, $about:literal, $needs:expr, $play:expr;)*) => {
        &[$(
            Scenario {
                name: concat!("http-axum-", $name),
                about: $about,
                needs: $needs,
                play: |stage| play(stage, Framework::Axum, $play),
            },
            Scenario {
                name: concat!("http-actix-", $name),
                about: $about,
                needs: $needs,
                play: |stage| play(stage, Framework::ActixWeb, $play),
            },
        )*]
    };
}

const LEDGER: &[Need] = &[Need::Processes, Need::Ledger];
const POOLED: &[Need] = &[Need::Processes, Need::Ledger, Need::Pooler];

pub(crate) const ALL: &[Scenario] = in_both_frameworks![
    "leader-killed", "The leading replica is killed, twice, and started anew.",
        LEDGER, faults::leader_killed;
    "frozen", "The leading replica is stopped, and woken with requests waiting for it when it has a successor.",
        LEDGER, faults::frozen;
    "partitioned", "The leading replica's connections to its database break, and new ones are refused.",
        LEDGER, faults::partitioned;
    "black-holed", "Between the leading replica and its database nothing arrives any more, either way.",
        LEDGER, faults::black_holed;
    "replies-lost", "What the leading replica writes is written; it never hears of that.",
        LEDGER, faults::replies_lost;
    "late-commits", "Twice what the leading replica writes is held up on its way, and arrives when it has a successor.",
        LEDGER, faults::late_commits;
    "terminated", "The leading replica is told to stop, twice: it hands over under load.",
        LEDGER, faults::terminated;
    "rolling-restart", "Each replica is replaced by a new one, the leading one last.",
        LEDGER, faults::rolling_restart;
    "database-paused", "The server is stopped with all connections open, for longer than a term, and goes on.",
        LEDGER, faults::database_paused;
    "database-crash", "The server is killed, is away for a while, and recovers.",
        LEDGER, faults::database_crash;
    "backends-terminated", "All sessions of all replicas are ended by the server, six times.",
        LEDGER, faults::backends_terminated;
    "row-locked", "Another session locks the election's row for longer than a term.",
        LEDGER, faults::row_locked;
    "pooler-restarted", "The pooler is killed and started again, twice.",
        POOLED, faults::pooler_restarted;
    "random", "Half a minute of random faults; the seed is printed.",
        LEDGER, faults::random;
];

fn play(stage: &mut Stage, framework: Framework, play: fn(&mut Deployment<'_>)) {
    let mut service = Deployment::new(stage, framework);
    let played = perform::caught(|| play(&mut service));
    service.close();
    if let Err(panic) = played {
        stage.problem(panic);
    }
}
