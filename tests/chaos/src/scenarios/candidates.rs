//! What befalls candidates.

use std::time::Duration;

use tenure_tests::{Command, Event, Refusal};

use super::{LONGER_THAN_A_TERM, Scenario};
use crate::{kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "steady",
        about: "Nothing happens: one leader, one term.",
        needs: &[],
        play: steady,
    },
    Scenario {
        name: "crash",
        about: "The leader's process is killed, three times in a row, and started anew.",
        needs: &[Need::Processes],
        play: crash,
    },
    Scenario {
        name: "hand-over",
        about: "Leaders resign and shut down.",
        needs: &[Need::Participants],
        play: hand_over,
    },
    Scenario {
        name: "guarded-hand-over",
        about: "The leader shuts down while blocking code holds a guard of its term, which the successor waits for.",
        needs: &[Need::Participants],
        play: guarded_hand_over,
    },
    Scenario {
        name: "rolling-restart",
        about: "Each candidate is replaced by a new one, the leader last.",
        needs: &[],
        play: rolling_restart,
    },
    Scenario {
        name: "runtime-blocked",
        about: "All threads of the leader's own runtime are blocked, which costs it nothing.",
        needs: &[Need::Participants],
        play: runtime_blocked,
    },
    Scenario {
        name: "frozen",
        about: "The leader's process is stopped, and woken when it has a successor.",
        needs: &[Need::Processes],
        play: frozen,
    },
];

fn steady(stage: &mut Stage) {
    stage.start(3);
    stage.wait(Duration::from_secs(6));
    stage.expect_terms(1);
}

fn crash(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().fail_over);
    stage.start(3);
    for _ in 0..3 {
        let leader = stage.leader();
        stage.crash(leader.participant);
        stage.join();
        stage.next_after(leader);
        stage.wait(Duration::from_secs(1));
    }
}

fn hand_over(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().hand_over);
    let first = stage.start(3);
    stage.tell(first.participant, Command::Resign);
    let second = stage.next_after(first);
    stage.wait(Duration::from_secs(1));
    stage.shut_down(second.participant);
    let third = stage.next_after(second);
    stage.wait(Duration::from_secs(1));
    stage.shut_down(third.participant);
    stage.next_after(third);
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(4);
}

fn guarded_hand_over(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().hand_over);
    let first = stage.start(3);
    let (leader, place) = (first.participant, stage.fleet.now());
    stage.tell(leader, Command::Guard { ms: 700 });
    let guarding = |event: &Event| matches!(event, Event::Guarding { .. });
    stage.says_after(place, leader, "it holds a guard", guarding);
    stage.shut_down(leader);
    let unguarded = |event: &Event| matches!(event, Event::Unguarded { .. });
    let unguarded = stage.says_after(place, leader, "it gave the guard back", unguarded);
    let second = stage.next_after(first);
    if second.from < unguarded.at {
        let early = unguarded.at - second.from;
        stage.problem(format!("the successor led for {early:.1?} while the guard was held"));
    }
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(2);
}

fn rolling_restart(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().hand_over);
    let first = stage.start(4);
    let old = (0..4).filter(|&replica| replica != first.participant);
    for replica in old.collect::<Vec<_>>() {
        stage.join();
        stage.shut_down(replica);
        stage.wait(Duration::from_millis(300));
    }
    stage.join();
    stage.shut_down(first.participant);
    stage.next_after(first);
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(2);
}

fn runtime_blocked(stage: &mut Stage) {
    let leader = stage.start(3);
    let fault = stage.begin("its runtime is blocked", Some(leader.participant));
    let place = stage.fleet.now();
    let ms = u64::try_from(LONGER_THAN_A_TERM.as_millis()).unwrap_or(u64::MAX);
    stage.tell(leader.participant, Command::Block { ms });
    stage.says_after(place, leader.participant, "it works again", |event| {
        *event == Event::Unblocked
    });
    stage.end(fault);
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(1);
}

fn frozen(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().fail_over);
    let first = stage.start(3);
    let frozen = first.participant;
    // Only of a term that it was told of is it told the end.
    let elected = |event: &Event| *event == Event::Elected { fence: first.fence };
    stage.says_after(0, frozen, "it was elected", elected);
    let fault = stage.begin("stopped", Some(frozen));
    stage.replicas[frozen].participant.freeze();
    stage.next_after(first);
    stage.wait(Duration::from_secs(1));
    let place = stage.fleet.now();
    stage.replicas[frozen].participant.thaw();
    stage.end(fault);
    if stage.mode().has(Need::Participants) {
        let woke = |event: &Event| matches!(event, Event::Woke { .. });
        let woke = stage.says_after(place, frozen, "it wakes", woke);
        if !matches!(woke.event, Event::Woke { refusal: Some(Refusal::COMPLETE), .. }) {
            stage.problem(format!("woken, it was not told that its term is over: {woke:?}"));
        }
    }
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(2);
}
