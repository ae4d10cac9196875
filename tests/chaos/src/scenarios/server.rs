//! What befalls the server.

use std::time::Duration;

use super::{LONGER_THAN_A_TERM, Scenario, outage};
use crate::{kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "database-paused",
        about: "The server is stopped with all connections open, for longer than a term, and goes on.",
        needs: &[Need::Server],
        play: |stage| outage(stage, |stage| stage.stop_server(LONGER_THAN_A_TERM)),
    },
    Scenario {
        name: "database-restarted",
        about: "The server is shut down and started again.",
        needs: &[Need::Server],
        play: restarted,
    },
    Scenario {
        name: "database-crash",
        about: "The server is killed, is away for a while, and recovers.",
        needs: &[Need::Server],
        play: crash,
    },
    Scenario {
        name: "standby-promoted",
        about: "The server is lost for good; its synchronous standby is promoted, and all paths lead there.",
        needs: &[Need::Standby],
        play: standby_promoted,
    },
];

fn restarted(stage: &mut Stage) {
    stage.allow_outage(stage.recovery());
    stage.start(3);
    for _ in 0..2 {
        let healed = stage.restart_server();
        stage.recovers(healed);
        stage.wait(Duration::from_secs(1));
    }
}

fn crash(stage: &mut Stage) {
    stage.allow_outage(stage.recovery());
    let first = stage.start(3);
    let healed = stage.kill_server(LONGER_THAN_A_TERM);
    let next = stage.recovers(healed);
    if next.fence <= first.fence {
        stage.problem(format!("a term of fence {} after one of {}", next.fence, first.fence));
    }
    stage.wait(Duration::from_secs(1));
}

fn standby_promoted(stage: &mut Stage) {
    stage.allow_outage(stage.recovery());
    stage.ground.start_standby();
    let first = stage.start(3);
    stage.wait(Duration::from_secs(1));
    let fault = stage.begin("server lost, standby promoted", None);
    stage.ground.kill();
    stage.ground.promote();
    let new = stage.ground.addr();
    stage.on_server_paths(|path| path.retarget(new));
    let healed = stage.end(fault);
    stage.recovers(healed);
    let leader = stage.leader();
    if leader.fence < first.fence {
        stage.problem(format!("a term of fence {} after one of {}", leader.fence, first.fence));
    }
    stage.wait(Duration::from_secs(1));
}
