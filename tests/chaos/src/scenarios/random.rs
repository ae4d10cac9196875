//! Whatever may happen.

use std::time::Duration;

use tenure_testbed::{Conditions, Proxy};
use tenure_tests::{Command, Stamp};

use super::Scenario;
use crate::{ground::ELECTION, kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[Scenario {
    name: "random",
    about: "A minute of random faults; the seed is printed.",
    needs: &[],
    play: |stage| {
        stage.allow_outage(stage.recovery() * 2);
        stage.start(4);
        for_a_while(stage, Duration::from_secs(60));
    },
}];

/// One fault after the other, and time to recover after each.
pub(crate) fn for_a_while(stage: &mut Stage, duration: Duration) {
    let started = Stamp::now();
    while started.age() < duration {
        let healed = befall(stage);
        stage.recovers(healed);
        let pause = Duration::from_millis(stage.random.u64(0..1_000));
        stage.wait(pause);
    }
}

/// What can happen by chance.
#[derive(Clone, Copy, Debug)]
enum Chance {
    Resign,
    Replaced,
    Crash,
    Frozen,
    Blocked,
    Cut,
    BlackHole,
    NoReplies,
    Slow,
    ServerStopped,
    ServerKilled,
    SessionsEnded,
    RowLocked,
    PoolerRestarts,
}

impl Chance {
    const ALL: [Self; 14] = [
        Self::Resign,
        Self::Replaced,
        Self::Crash,
        Self::Frozen,
        Self::Blocked,
        Self::Cut,
        Self::BlackHole,
        Self::NoReplies,
        Self::Slow,
        Self::ServerStopped,
        Self::ServerKilled,
        Self::SessionsEnded,
        Self::RowLocked,
        Self::PoolerRestarts,
    ];

    fn fits(self, stage: &Stage) -> bool {
        let has = |need| stage.ground.kind.has(need);
        match self {
            Self::Replaced => true,
            Self::Resign | Self::Blocked => stage.mode().has(Need::Participants),
            Self::Crash | Self::Frozen => stage.mode().has(Need::Processes),
            Self::Cut | Self::BlackHole | Self::NoReplies | Self::Slow => has(Need::Path),
            Self::ServerStopped | Self::ServerKilled => has(Need::Server),
            Self::SessionsEnded | Self::RowLocked => has(Need::Users),
            Self::PoolerRestarts => has(Need::Pooler),
        }
    }
}

/// Something happens, and is over when this returns.
fn befall(stage: &mut Stage) -> Stamp {
    let possible: Vec<Chance> =
        Chance::ALL.into_iter().filter(|chance| chance.fits(stage)).collect();
    let chance = possible[stage.random.usize(..possible.len())];
    let leader = stage.leader().participant;
    let present: Vec<usize> = stage.present().collect();
    // Half of what befalls a candidate befalls the leader.
    let somebody = match stage.random.bool() {
        true => leader,
        false => present[stage.random.usize(..present.len())],
    };
    let lasts = Duration::from_millis(stage.random.u64(100..4_000));
    let ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
    match chance {
        Chance::Resign => {
            stage.tell(leader, Command::Resign);
            Stamp::now()
        }
        Chance::Replaced | Chance::Crash if stage.is_kept(somebody) => Stamp::now(),
        Chance::Replaced => {
            stage.join();
            stage.shut_down(somebody);
            Stamp::now()
        }
        Chance::Crash => {
            stage.crash(somebody);
            stage.join();
            Stamp::now()
        }
        Chance::Frozen => {
            let fault = stage.begin("stopped", Some(somebody));
            stage.replicas[somebody].participant.freeze();
            stage.wait(lasts);
            stage.replicas[somebody].participant.thaw();
            stage.end(fault)
        }
        Chance::Blocked => {
            let fault = stage.begin("its runtime is blocked", Some(somebody));
            stage.tell(somebody, Command::Block { ms });
            stage.wait(lasts);
            stage.end(fault)
        }
        Chance::Cut => stage.break_paths(somebody, "cut off", lasts, Proxy::cut),
        Chance::BlackHole => stage.break_paths(somebody, "black hole", lasts, Proxy::black_hole),
        Chance::NoReplies => {
            stage.break_paths(somebody, "no replies", lasts, Proxy::hold_back_replies)
        }
        Chance::Slow => stage.break_paths(somebody, "slow", lasts, |path| {
            let slow = Duration::from_millis(60);
            path.set_both(Conditions::default().delay(slow).jitter(slow));
        }),
        Chance::ServerStopped => stage.stop_server(lasts),
        Chance::ServerKilled => stage.kill_server(lasts / 2),
        Chance::SessionsEnded => stage.end_sessions(),
        Chance::RowLocked => stage.lock_row(ELECTION, lasts),
        Chance::PoolerRestarts => stage.restart_pooler(),
    }
}
