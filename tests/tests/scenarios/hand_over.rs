//! Leaders that go by themselves.

use std::time::Duration;

use tenure_tests::{Command, Event};

use super::{BUSY, Ground, ended};

const MINUTE: u64 = 60_000;

pub(crate) fn admitted_work_finishes_before_the_successor_starts(ground: &impl Ground) {
    let fleet = ground.fleet("in-flight");
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    let leader = &replicas[first.participant];
    leader.tell(Command::Serve { ms: 1_500 });
    let serving = leader.says("it serves", |event| matches!(event, Event::Serving { .. }));
    leader.tell(Command::ShutDown);
    let end = leader.says("it hands over", ended(first.fence, "shutdown"));
    assert!(end.at - serving.at >= Duration::from_millis(1_500), "before the work was done");
    leader.says("the work is done", |event| *event == Event::Served { fence: first.fence });
    leader.says("it stops in order", |event| *event == Event::Stopped { error: None });
    assert!(leader.exited().success());

    let second = fleet.leader_after(first.fence);
    let took = second.from - end.at;
    let limit = fleet.settings.timing().worst_case().hand_over + BUSY;
    assert!(took <= limit, "{took:?}, of at most {limit:?}");
    // All that the work did is claimed for its term: the oracle sees whether any came after the successor's start.
    fleet.judge(2);
}

pub(crate) fn a_resigned_leader_hands_over_and_contends_again_later(ground: &impl Ground) {
    let mut fleet = ground.fleet("resign");
    fleet.settings = fleet.settings.lease(Duration::from_secs(3));
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    replicas[first.participant].tell(Command::Resign);
    replicas[first.participant].says("it hands over", ended(first.fence, "resigned"));
    let second = fleet.leader_after(first.fence);
    assert_ne!(second.participant, first.participant);

    replicas[second.participant].tell(Command::Resign);
    replicas[second.participant].says("it hands over", ended(second.fence, "resigned"));
    fleet.leads_after(first.participant, second.fence);
    fleet.judge(3);
}

pub(crate) fn a_handler_that_outlives_the_drain_is_cut_before_the_successor_starts(
    ground: &impl Ground,
) {
    let mut fleet = ground.fleet("cut");
    fleet.settings = fleet.settings.drain(Duration::from_millis(500));
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    let leader = &replicas[first.participant];
    leader.tell(Command::Serve { ms: MINUTE });
    leader.says("it serves", |event| matches!(event, Event::Serving { .. }));
    leader.tell(Command::ShutDown);
    let cut = Event::Cut { fence: first.fence, reason: "shutdown".into() };
    leader.says("the work is cut", |event| *event == cut);
    leader.says("it stops in order", |event| *event == Event::Stopped { error: None });
    fleet.leader_after(first.fence);
    fleet.judge(2);
}

/// Nobody can stop the code that holds the guard, so its lease is left to run out.
pub(crate) fn guarded_code_that_outlives_the_drain_is_not_released_over(ground: &impl Ground) {
    let mut fleet = ground.fleet("guarded");
    fleet.settings = fleet.settings.drain(Duration::from_millis(500));
    let replicas = [fleet.join(), fleet.join()];
    let first = fleet.leader();
    let leader = &replicas[first.participant];
    leader.tell(Command::Guard { ms: MINUTE });
    leader.says("it holds a guard", |event| matches!(event, Event::Guarding { .. }));
    leader.tell(Command::ShutDown);
    leader.says("it says that it could not stop", |event| {
        matches!(event, Event::Stopped { error: Some(error) } if error.contains("1 guards"))
    });
    let second = fleet.leader_after(first.fence);
    let until = fleet.term(first.fence).until;
    assert!(second.from >= until, "{} is before {until}", second.from);
    fleet.judge(2);
}
