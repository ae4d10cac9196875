//! What befalls a pooler.

use std::time::Duration;

use tenure_tests::Stamp;

use super::{LONGER_THAN_A_TERM, Scenario, outage};
use crate::{kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "pooler-restarted",
        about: "The pooler is killed and started again, twice.",
        needs: &[Need::Pooler],
        play: restarted,
    },
    Scenario {
        name: "pooler-paused",
        about: "The pooler hands out no connection for longer than a term (PAUSE, RESUME).",
        needs: &[Need::Pooler],
        play: |stage| outage(stage, paused),
    },
    Scenario {
        name: "pooler-exhausted",
        about: "Transactions of the application hold every connection that the pooler has.",
        needs: &[Need::Pooler],
        play: |stage| outage(stage, exhausted),
    },
];

fn restarted(stage: &mut Stage) {
    stage.allow_outage(stage.recovery());
    stage.start(3);
    for _ in 0..2 {
        let healed = stage.restart_pooler();
        stage.recovers(healed);
        stage.wait(Duration::from_secs(1));
    }
}

fn paused(stage: &mut Stage) -> Stamp {
    let fault = stage.begin("PAUSE", None);
    stage.ground.pooler().pause().expect("the pooler pauses");
    stage.wait(LONGER_THAN_A_TERM);
    stage.ground.pooler().resume().expect("the pooler resumes");
    stage.end(fault)
}

fn exhausted(stage: &mut Stage) -> Stamp {
    let fault = stage.begin("no connection free", None);
    let hog = |_| {
        let mut hog = stage.ground.pooled_session();
        hog.execute("BEGIN");
        hog.execute("SELECT 1");
        hog
    };
    let hogs: Vec<_> = (0..3).map(hog).collect();
    stage.wait(LONGER_THAN_A_TERM);
    hogs.into_iter().for_each(|mut hog| hog.execute("COMMIT"));
    stage.end(fault)
}
