//! What other sessions and administrators do to a database.

use std::time::Duration;

use tenure_tests::{Command, Event, Stamp};

use super::{LONGER_THAN_A_TERM, Scenario, outage};
use crate::{ground::ELECTION, kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "table-locked",
        about: "Another session locks the whole table for longer than a term.",
        needs: &[Need::Tables],
        play: |stage| outage(stage, table_locked),
    },
    Scenario {
        name: "row-locked",
        about: "Another session locks the election's row for longer than a term.",
        needs: &[Need::Users],
        play: row_locked,
    },
    Scenario {
        name: "two-elections",
        about: "One election's row is locked; another one in the same table does not notice.",
        needs: &[Need::Users],
        play: two_elections,
    },
    Scenario {
        name: "backends-terminated",
        about: "All candidates' sessions are ended by the server, once each second.",
        needs: &[Need::Users],
        play: backends_terminated,
    },
    Scenario {
        name: "read-only",
        about: "The database takes no writes for longer than a term.",
        needs: &[Need::Users],
        play: |stage| outage(stage, read_only),
    },
    Scenario {
        name: "connection-limit",
        about: "All sessions are ended while others have taken every connection that there is.",
        needs: &[Need::Users],
        play: |stage| outage(stage, connection_limit),
    },
    Scenario {
        name: "more-candidates-than-connections",
        about: "Most candidates find no connection free; the leader, which has one, shuts down.",
        needs: &[Need::Users, Need::Participants],
        play: crowded,
    },
    Scenario {
        name: "privileges-revoked",
        about: "Candidates may not use the table any more, and then again.",
        needs: &[Need::Users, Need::Participants],
        play: |stage| outage(stage, privileges_revoked),
    },
    Scenario {
        name: "application-pool-exhausted",
        about: "The leader's application holds every connection of the pool that it has in common with its store.",
        needs: &[Need::ApplicationPool, Need::Participants],
        play: application_pool_exhausted,
    },
];

fn table_locked(stage: &mut Stage) -> Stamp {
    let fault = stage.begin("table locked", None);
    let locker = stage.ground.lock_table();
    stage.wait(LONGER_THAN_A_TERM);
    drop(locker);
    stage.end(fault)
}

fn row_locked(stage: &mut Stage) {
    outage(stage, |stage| stage.lock_row(ELECTION, LONGER_THAN_A_TERM));
}

fn two_elections(stage: &mut Stage) {
    stage.start_bystanders();
    row_locked(stage);
}

fn backends_terminated(stage: &mut Stage) {
    stage.start(3);
    for _ in 0..6 {
        let healed = stage.end_sessions();
        stage.recovers(healed);
        stage.wait(Duration::from_millis(500));
    }
    stage.expect_terms(1);
}

fn read_only(stage: &mut Stage) -> Stamp {
    let place = stage.fleet.now();
    let fault = stage.begin("read-only", None);
    stage.ground.set_read_only(true);
    let somebody = stage.leader().participant;
    let told = |event: &Event| matches!(event, Event::Failed { .. });
    stage.says_after(place, somebody, "it says what is the matter", told);
    stage.wait(LONGER_THAN_A_TERM);
    stage.ground.set_read_only(false);
    stage.end(fault)
}

fn connection_limit(stage: &mut Stage) -> Stamp {
    let fault = stage.begin("no connections left", None);
    let taken = stage.ground.take_all_connections();
    stage.wait(LONGER_THAN_A_TERM);
    stage.ground.unlimit_connections();
    drop(taken);
    stage.end(fault)
}

/// A pooler has three connections for all of them. A server counts: whoever is there before there is a limit stays.
fn crowded(stage: &mut Stage) {
    stage.allow(stage.recovery());
    stage.start(2);
    let fault = stage.begin("no more connections", None);
    if !stage.ground.kind.has(Need::Pooler) {
        stage.ground.allow_no_more_connections();
    }
    for _ in 0..6 {
        stage.join();
    }
    stage.wait(LONGER_THAN_A_TERM);
    stage.expect_terms(1);
    for terms in 2..4 {
        let leader = stage.leader();
        stage.shut_down(leader.participant);
        stage.next_after(leader);
        stage.wait(Duration::from_secs(1));
        stage.expect_terms(terms);
    }
    stage.end(fault);
}

fn privileges_revoked(stage: &mut Stage) -> Stamp {
    let (leader, place) = (stage.leader(), stage.fleet.now());
    let fault = stage.begin("no privileges", None);
    stage.ground.revoke();
    let is_told = |event: &Event| matches!(event, Event::Failed { fatal: true, .. });
    stage.says_after(place, leader.participant, "somebody must do something", is_told);
    stage.wait(LONGER_THAN_A_TERM);
    stage.ground.grant();
    stage.end(fault)
}

fn application_pool_exhausted(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().fail_over);
    *stage.settings() = stage.settings().pool(2);
    let first = stage.start(3);
    let place = stage.fleet.now();
    let ms = u64::try_from(LONGER_THAN_A_TERM.as_millis()).unwrap_or(u64::MAX);
    stage.tell(first.participant, Command::HoldPool { ms });
    let held = |event: &Event| *event == Event::PoolHeld;
    stage.says_after(place, first.participant, "the pool is empty", held);
    let fault = stage.begin("pool exhausted", Some(first.participant));
    stage.next_after(first);
    let free = |event: &Event| *event == Event::PoolFree;
    stage.says_after(place, first.participant, "the pool is free", free);
    let healed = stage.end(fault);
    stage.recovers(healed);
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(2);
}
