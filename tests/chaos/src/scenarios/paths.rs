//! What befalls the network between candidates and their store.

use std::time::Duration;

use tenure_testbed::{Conditions, Proxy};
use tenure_tests::Stamp;

use super::{LONGER_THAN_A_TERM, Scenario, outage};
use crate::{kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "leader-partitioned",
        about: "The leader's connections break, and new ones are refused.",
        needs: &[Need::Path],
        play: |stage| loses_its_leader(stage, "cut off", Proxy::cut),
    },
    Scenario {
        name: "leader-black-holed",
        about: "The leader's connections stay open, and nothing arrives either way.",
        needs: &[Need::Path],
        play: |stage| loses_its_leader(stage, "black hole", Proxy::black_hole),
    },
    Scenario {
        name: "replies-lost",
        about: "The leader's requests arrive and are executed; it never hears of that.",
        needs: &[Need::Path],
        play: |stage| loses_its_leader(stage, "no replies", Proxy::hold_back_replies),
    },
    Scenario {
        name: "bandwidth-collapse",
        about: "The leader's path lets 100 bytes a second through.",
        needs: &[Need::Path],
        play: |stage| {
            loses_its_leader(stage, "100 bytes/s", |path| {
                path.set_both(Conditions::default().bandwidth(100));
            });
        },
    },
    Scenario {
        name: "half-open",
        about: "Again and again something on every path forgets its connections, without a word to those who have them.",
        needs: &[Need::Path],
        play: half_open,
    },
    Scenario {
        name: "everyone-partitioned",
        about: "All connections of all candidates break.",
        needs: &[Need::Path],
        play: |stage| outage(stage, everyone_partitioned),
    },
    Scenario {
        name: "wan",
        about: "40 to 60 ms each way on every path, with a leader that is killed in between.",
        needs: &[Need::Path, Need::Processes],
        play: wan,
    },
    Scenario {
        name: "flapping",
        about: "The leader's path breaks for 300 ms each second.",
        needs: &[Need::Path],
        play: flapping,
    },
    Scenario {
        name: "resets",
        about: "The leader's connection is reset in the middle of an answer, or all of them are, and new ones on first use, until after the next renewal.",
        needs: &[Need::Path],
        play: resets,
    },
];

/// The leader's path is no use any more for longer than its term, then it heals.
fn loses_its_leader(stage: &mut Stage, what: &str, breaks: fn(&Proxy)) {
    stage.allow(stage.timing().worst_case().fail_over);
    let first = stage.start(3);
    let fault = stage.begin(what, Some(first.participant));
    stage.paths(first.participant).iter().for_each(breaks);
    let second = stage.next_after(first);
    if second.participant == first.participant {
        stage.problem("it was elected again although it reaches nobody".to_owned());
    }
    stage.wait(Duration::from_secs(1));
    stage.paths(first.participant).iter().for_each(Proxy::heal);
    let healed = stage.end(fault);
    stage.recovers(healed);
    // What was held back arrives now, and changes nothing.
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(2);
}

fn half_open(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().fail_over);
    stage.start(3);
    for _ in 0..4 {
        let fault = stage.begin("forgotten", None);
        stage.on_all_paths(Proxy::half_open);
        stage.wait(Duration::from_millis(1_200));
        let healed = stage.end(fault);
        stage.recovers(healed);
    }
}

fn everyone_partitioned(stage: &mut Stage) -> Stamp {
    let fault = stage.begin("all cut off", None);
    stage.on_all_paths(Proxy::cut);
    stage.wait(LONGER_THAN_A_TERM);
    stage.on_all_paths(Proxy::heal);
    stage.end(fault)
}

/// A connection takes several round trips to open, so the lease is one that leaves time for that.
fn wan(stage: &mut Stage) {
    const LEASE: Duration = Duration::from_secs(6);
    const DELAY: Duration = Duration::from_millis(40);
    const JITTER: Duration = Duration::from_millis(20);
    stage.settings().lease = LEASE;
    let round_trip = (DELAY + JITTER) * 2;
    stage.allow(stage.timing().worst_case_with(round_trip).fail_over);
    let everywhere = |stage: &Stage| {
        let slow = Conditions::default().delay(DELAY).jitter(JITTER);
        stage.on_all_paths(|path| path.set_both(slow));
    };
    for _ in 0..3 {
        stage.join();
        everywhere(stage);
    }
    let fault = stage.begin("40 to 60 ms each way", None);
    let first = stage.leader();
    stage.wait(LEASE);
    stage.expect_terms(1);
    stage.crash(first.participant);
    stage.next_after(first);
    stage.wait(Duration::from_secs(2));
    stage.expect_terms(2);
    stage.end(fault);
}

fn flapping(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().fail_over);
    stage.start(3);
    for _ in 0..10 {
        let leader = stage.leader();
        let lasts = Duration::from_millis(300);
        stage.break_paths(leader.participant, "cut off", lasts, Proxy::cut);
        stage.wait(Duration::from_millis(700));
    }
    stage.expect_terms(1);
}

fn resets(stage: &mut Stage) {
    let leader = stage.start(3);
    // So that a renewal falls into each of them.
    let interval = stage.timing().renew_interval() + Duration::from_millis(100);
    for round in 0..8 {
        let healed = stage.break_paths(leader.participant, "reset", interval, |path| {
            if round % 2 == 0 {
                path.reset_mid_reply(20);
            } else {
                path.reset_on_first_use(true);
                path.reset();
            }
        });
        stage.recovers(healed);
    }
    stage.expect_terms(1);
}
