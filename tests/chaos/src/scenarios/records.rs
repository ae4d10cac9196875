//! What befalls the records themselves.

use std::time::Duration;

use tenure_tests::{Command, Event};

use super::{LONGER_THAN_A_TERM, Scenario};
use crate::{kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "table-dropped",
        about: "The table or bucket is dropped under the leader, and created anew.",
        needs: &[],
        play: dropped,
    },
    Scenario {
        name: "restored-from-backup",
        about: "After several terms the database is put back to what it was in the first one.",
        needs: &[Need::Server, Need::Participants],
        play: restored,
    },
];

/// Whoever led knows at its next renewal that it is over; the others have seen a lease and wait until it must have run
/// out.
fn dropped(stage: &mut Stage) {
    let timing = stage.timing();
    let first = stage.start(3);
    stage.allow_outage(stage.recovery() + timing.lease_duration());
    let place = stage.fleet.now();
    let fault = stage.begin("table dropped", None);
    stage.ground.drop_schema();
    let over = |event: &Event| matches!(event, Event::Ended { reason, .. } if reason == "lost");
    stage.says_after(place, first.participant, "its term is lost", over);
    stage.wait(Duration::from_secs(1));
    stage.ground.ensure_schema();
    stage.ground.grant();
    let healed = stage.end(fault);
    stage.recovers_within(healed, stage.recovery() + timing.lease_duration());
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(2);
}

/// Candidates that were there before remember the highest fence that they saw, so fences rise over the restored record,
/// too.
fn restored(stage: &mut Stage) {
    let timing = stage.timing();
    stage.allow_outage(stage.recovery() + timing.lease_duration());
    stage.start(3);
    let fault = stage.begin("down for a backup", None);
    let backup = stage.ground.back_up();
    let healed = stage.end(fault);
    // It may have taken its time, and cost the term.
    let first = stage.recovers(healed);
    stage.shut_down(first.participant);
    stage.join();
    let mut last = stage.next_after(first);
    stage.wait(Duration::from_secs(1));
    for _ in 0..2 {
        stage.tell(last.participant, Command::Resign);
        last = stage.next_after(last);
        stage.wait(Duration::from_millis(500));
    }
    let fault = stage.begin("restored from a backup", None);
    // What stands in the backup is over, and may be claimed at once. The term that it does not know of must be over as well.
    stage.ground.kill();
    stage.wait(LONGER_THAN_A_TERM);
    stage.ground.restore(&backup);
    let healed = stage.end(fault);
    stage.recovers_within(healed, stage.recovery() + timing.lease_duration());
    stage.wait(Duration::from_secs(1));
}
