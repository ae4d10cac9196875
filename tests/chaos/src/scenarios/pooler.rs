//! What befalls a pooler.

use std::time::Duration;

use super::{LONGER_THAN_A_TERM, Scenario};
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
        play: paused,
    },
    Scenario {
        name: "pooler-exhausted",
        about: "Transactions of the application hold every connection that the pooler has.",
        needs: &[Need::Pooler],
        play: exhausted,
    },
];

fn restarted(stage: &mut Stage) {
    stage.allow_outage(stage.recovery());
    stage.start(3);
    for _ in 0..2 {
        let fault = stage.begin("pooler restarts", None);
        stage.ground.restart_pooler();
        let healed = stage.end(fault);
        stage.recovers(healed);
        stage.wait(Duration::from_secs(1));
    }
}

fn paused(stage: &mut Stage) {
    stage.allow_outage(stage.recovery());
    stage.start(3);
    let fault = stage.begin("PAUSE", None);
    stage.ground.pooler().pause().expect("the pooler pauses");
    stage.wait(LONGER_THAN_A_TERM);
    stage.ground.pooler().resume().expect("the pooler resumes");
    let healed = stage.end(fault);
    stage.recovers(healed);
    stage.wait(Duration::from_secs(1));
}

fn exhausted(stage: &mut Stage) {
    stage.allow_outage(stage.recovery());
    stage.start(3);
    let fault = stage.begin("no connection free", None);
    let mut hogs = Vec::new();
    for _ in 0..3 {
        let mut hog = stage.ground.pooled_session();
        hog.execute("BEGIN");
        hog.execute("SELECT 1");
        hogs.push(hog);
    }
    stage.wait(LONGER_THAN_A_TERM);
    for mut hog in hogs {
        hog.execute("COMMIT");
    }
    let healed = stage.end(fault);
    stage.recovers(healed);
    stage.wait(Duration::from_secs(1));
}
