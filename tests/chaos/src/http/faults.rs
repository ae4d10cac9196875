//! What befalls a service.

use std::time::Duration;

use tenure_testbed::{Conditions, Direction, Proxy};
use tenure_tests::{Stamp, wait_until};

use super::{deployment::Deployment, ledger};
use crate::{ground::ELECTION, kind::Need, scenarios::LONGER_THAN_A_TERM, stage::Stage};

pub(super) fn leader_killed(service: &mut Deployment<'_>) {
    service.stage.allow(service.stage.timing().worst_case().fail_over);
    service.start(3);
    for _ in 0..2 {
        let leader = service.leader();
        service.kill(leader.replica);
        service.join();
        service.next_after(leader);
        service.stage.wait(Duration::from_secs(1));
    }
    service.expect_terms(3);
}

/// Requests that it was sent while it was frozen are waiting for it when it wakes.
pub(super) fn frozen(service: &mut Deployment<'_>) {
    service.stage.allow(service.stage.timing().worst_case().fail_over);
    let first = service.start(3);
    let fault = service.stage.begin("stopped", Some(first.replica));
    service.freeze(first.replica);
    let next = service.next_after(first);
    // Until clients have given up some requests, and sent others.
    service.stage.wait(Duration::from_secs(2));
    service.thaw(first.replica);
    service.stage.end(fault);
    service.refuses_after(first.replica, next.since);
    service.stage.wait(Duration::from_secs(1));
    service.expect_terms(2);
}

pub(super) fn partitioned(service: &mut Deployment<'_>) {
    service.stage.allow(service.stage.timing().worst_case().fail_over);
    loses_its_leader(service, "cut off", Proxy::cut);
}

pub(super) fn black_holed(service: &mut Deployment<'_>) {
    service.stage.allow(service.stage.timing().worst_case().fail_over);
    loses_its_leader(service, "black hole", Proxy::black_hole);
}

/// Clients hear nothing from the first moment on, and yet one more renewal is executed: the next one needs a connection,
/// which cannot be made without replies.
pub(super) fn replies_lost(service: &mut Deployment<'_>) {
    let timing = service.stage.timing();
    service.stage.allow(timing.renew_interval() + timing.worst_case().fail_over);
    loses_its_leader(service, "no replies", Proxy::hold_back_replies);
}

/// The leader reaches its database no more for longer than its term, or hears nothing from there; its clients reach it
/// all the time.
fn loses_its_leader(service: &mut Deployment<'_>, what: &str, breaks: fn(&Proxy)) {
    let first = service.start(3);
    let fault = service.stage.begin(what, Some(first.replica));
    service.paths(first.replica).iter().for_each(breaks);
    let next = service.next_after(first);
    service.refuses_after(first.replica, next.since);
    service.stage.wait(Duration::from_secs(1));
    service.paths(first.replica).iter().for_each(Proxy::heal);
    let healed = service.stage.end(fault);
    service.recovers(healed);
    // What was held back arrives now, and changes nothing.
    service.stage.wait(Duration::from_secs(1));
    service.expect_terms(2);
}

/// The leader has written, and its commit is under way when the path breaks. When it arrives, somebody else has written
/// already, if that is possible: the server still has the transaction, which nobody has ended.
pub(super) fn late_commits(service: &mut Deployment<'_>) {
    /// As sqlx tells it to the server.
    const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
    // A term is over before the server gives up the transaction of a ledger.
    let lease = ledger::PATIENCE / 2;
    service.stage.settings().lease = lease;
    // And the transaction that holds the term is over after as much, which its successor waits for.
    service.stage.allow(lease + service.stage.timing().worst_case().fail_over);
    let mut leader = service.start(3);
    for _ in 0..2 {
        // It listens on another one, if there is a pooler.
        let path = &service.paths(leader.replica)[0];
        path.set(Direction::ToServer, Conditions::default().held_back_from(COMMIT));
        wait_until("a commit is under way", || path.holds_back(Direction::ToServer));
        let fault = service.stage.begin("commit held back", Some(leader.replica));
        let next = service.next_after(leader);
        service.paths(leader.replica)[0].heal();
        let healed = service.stage.end(fault);
        service.recovers(healed);
        service.stage.wait(Duration::from_secs(1));
        leader = next;
    }
}

pub(super) fn terminated(service: &mut Deployment<'_>) {
    service.stage.allow(service.stage.timing().worst_case().hand_over);
    let mut leader = service.start(3);
    for _ in 0..2 {
        service.join();
        service.terminate(leader.replica);
        leader = service.next_after(leader);
        service.stage.wait(Duration::from_secs(1));
    }
    service.expect_terms(3);
}

/// The leader last.
pub(super) fn rolling_restart(service: &mut Deployment<'_>) {
    service.stage.allow(service.stage.timing().worst_case().hand_over);
    let first = service.start(3);
    for replica in service.present() {
        if replica != first.replica {
            service.join();
            service.terminate(replica);
            service.stage.wait(Duration::from_millis(300));
        }
    }
    service.join();
    service.terminate(first.replica);
    service.next_after(first);
    service.stage.wait(Duration::from_secs(1));
    service.expect_terms(2);
}

/// What befalls everybody, says when it was over, and may cost the term: then jobs are done again.
fn outage(service: &mut Deployment<'_>, befalls: impl FnOnce(&mut Stage) -> Stamp) {
    service.stage.allow_outage(service.stage.recovery());
    service.start(3);
    let healed = befalls(service.stage);
    service.recovers(healed);
    service.stage.wait(Duration::from_secs(1));
}

pub(super) fn database_paused(service: &mut Deployment<'_>) {
    outage(service, |stage| stage.stop_server(LONGER_THAN_A_TERM));
}

pub(super) fn database_crash(service: &mut Deployment<'_>) {
    outage(service, |stage| stage.kill_server(LONGER_THAN_A_TERM));
}

/// No term ends; what was under way does, and there is a connection to open.
pub(super) fn backends_terminated(service: &mut Deployment<'_>) {
    service.stage.allow(service.stage.timing().operation_timeout());
    service.start(3);
    for _ in 0..6 {
        let healed = service.stage.end_sessions();
        service.recovers(healed);
        service.stage.wait(Duration::from_millis(500));
    }
    service.expect_terms(1);
}

pub(super) fn row_locked(service: &mut Deployment<'_>) {
    outage(service, |stage| stage.lock_row(ELECTION, LONGER_THAN_A_TERM));
}

pub(super) fn pooler_restarted(service: &mut Deployment<'_>) {
    service.stage.allow_outage(service.stage.recovery());
    service.start(3);
    for _ in 0..2 {
        let healed = service.stage.restart_pooler();
        service.recovers(healed);
        service.stage.wait(Duration::from_secs(1));
    }
}

/// One after the other for half a minute, and time to recover after each.
pub(super) fn random(service: &mut Deployment<'_>) {
    service.stage.allow_outage(service.stage.recovery() * 2);
    service.start(4);
    let started = Stamp::now();
    while started.age() < Duration::from_secs(30) {
        let healed = befall(service);
        service.recovers(healed);
        let pause = Duration::from_millis(service.stage.random.u64(0..1_000));
        service.stage.wait(pause);
    }
}

/// Something happens, and is over when this returns.
fn befall(service: &mut Deployment<'_>) -> Stamp {
    type Fault = fn(&mut Deployment<'_>, usize, Duration) -> Stamp;
    const FAULTS: &[Fault] = &[
        |service, replica, _| {
            service.kill(replica);
            service.join();
            Stamp::now()
        },
        |service, replica, _| {
            service.join();
            service.terminate(replica);
            Stamp::now()
        },
        |service, replica, lasts| {
            let fault = service.stage.begin("stopped", Some(replica));
            service.freeze(replica);
            service.stage.wait(lasts);
            service.thaw(replica);
            service.stage.end(fault)
        },
        |service, replica, lasts| break_paths(service, replica, "cut off", lasts, Proxy::cut),
        |service, replica, lasts| {
            break_paths(service, replica, "black hole", lasts, Proxy::black_hole)
        },
        |service, replica, lasts| {
            break_paths(service, replica, "no replies", lasts, Proxy::hold_back_replies)
        },
        |service, _, lasts| service.stage.stop_server(lasts),
        |service, _, lasts| service.stage.kill_server(lasts / 2),
        |service, _, _| service.stage.end_sessions(),
        |service, _, lasts| service.stage.lock_row(ELECTION, lasts),
        // The last one, which needs a pooler.
        |service, _, _| service.stage.restart_pooler(),
    ];
    let possible = FAULTS.len() - usize::from(!service.stage.ground.kind.has(Need::Pooler));
    let fault = FAULTS[service.stage.random.usize(..possible)];
    let leader = service.leader().replica;
    let present = service.present();
    // Half of what befalls a replica befalls the leader.
    let somebody = match service.stage.random.bool() {
        true => leader,
        false => present[service.stage.random.usize(..present.len())],
    };
    let lasts = Duration::from_millis(service.stage.random.u64(100..4_000));
    fault(service, somebody, lasts)
}

fn break_paths(
    service: &mut Deployment<'_>,
    replica: usize,
    what: &str,
    lasts: Duration,
    breaks: fn(&Proxy),
) -> Stamp {
    let fault = service.stage.begin(what, Some(replica));
    service.paths(replica).iter().for_each(breaks);
    service.stage.wait(lasts);
    service.paths(replica).iter().for_each(Proxy::heal);
    service.stage.end(fault)
}
