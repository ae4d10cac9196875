use tenure_world::{Properties, Whom, play};

use super::*;
use crate::{campaigns::CAMPAIGNS, runner};

/// The first schedules of each campaign, and what came of them.
fn runs() -> impl Iterator<Item = (Script, Run)> {
    CAMPAIGNS.iter().flat_map(|campaign| {
        (0..3).map(|schedule| {
            let script = runner::script(campaign, schedule, 1);
            let run = play(&script, Properties::ALL, true);
            (script, run)
        })
    })
}

fn picture(script: &Script, run: &Run) -> Picture {
    draw("a run".to_owned(), "of a test", script, run)
}

#[test]
fn every_term_that_has_begun_is_drawn_and_ends_in_time() {
    let mut terms = 0;
    for (script, run) in runs() {
        let picture = picture(&script, &run);
        let is_start = |event: &&Event| matches!(event.what, What::Started { .. });
        let drawn: Vec<&Term> = picture.lanes.iter().flat_map(|lane| &lane.terms).collect();
        assert_eq!(drawn.len(), run.history.iter().filter(is_start).count());
        assert!(drawn.iter().all(|term| term.from <= term.to && term.to <= picture.length));
        terms += drawn.len();
    }
    assert!(terms > 300, "only {terms}");
}

#[test]
fn what_is_drawn_never_shows_two_leaders_nor_a_term_outside_of_its_process() {
    for (script, run) in runs() {
        assert_eq!(run.violation, None);
        let picture = picture(&script, &run);
        let mut led = Vec::new();
        for lane in &picture.lanes {
            for term in &lane.terms {
                let runs = lane.alive.iter().any(|(from, to)| *from <= term.from && term.to <= *to);
                assert!(runs, "{term:?} {:?}", lane.alive);
                led.push((term.from, term.to));
            }
        }
        led.retain(|(from, to)| from < to);
        led.sort_unstable();
        assert!(led.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{led:?}");
    }
}

#[test]
fn terms_and_gaps_fill_the_whole_time() {
    let mut promised = 0;
    for (script, run) in runs() {
        let picture = picture(&script, &run);
        let terms = picture.lanes.iter().flat_map(|lane| &lane.terms);
        let led: Duration = terms.map(|term| term.to - term.from).sum();
        let unled: Duration = picture.gaps.iter().map(Gap::length).sum();
        assert_eq!(led + unled, picture.length);
        assert!(picture.gaps.iter().all(|gap| !gap.is_too_long()), "{:?}", picture.gaps);
        promised += picture.gaps.iter().filter(|gap| gap.allowed.is_some()).count();
    }
    assert!(promised > 20, "only {promised} gaps have a bound");
}

#[test]
fn every_call_is_drawn_once_and_takes_no_longer_than_it_is_waited_for() {
    for (script, run) in runs() {
        let picture = picture(&script, &run);
        let is_call = |event: &&Event| matches!(event.what, What::Sent { .. });
        let calls: Vec<&Call> = picture.lanes.iter().flat_map(|lane| &lane.calls).collect();
        assert_eq!(calls.len(), run.history.iter().filter(is_call).count());
        for outcome in [CallOutcome::Won, CallOutcome::Seen] {
            assert!(calls.iter().any(|call| call.outcome == outcome), "none was {outcome}");
        }
        let placed = calls.iter().filter(|call| call.kind == CallKind::Place);
        assert!(placed.clone().all(|call| call.outcome != CallOutcome::Won));
    }
}

/// A script of two candidates on which nothing acts by chance, and what is seen of it.
fn see(events: &[(u64, Option<usize>, What)]) -> Picture {
    let mut script = runner::script(&CAMPAIGNS[0], 0, 1);
    script.candidates.truncate(2);
    for candidate in &mut script.candidates {
        candidate.clock = world::Skew::default();
        candidate.machine = 7;
    }
    let mut drawing = Drawing::new(&script);
    let mut last = Moment::START;
    for (seconds, slot, what) in events {
        last = Moment::from_secs(*seconds);
        let who = slot.map(|slot| world::Who { slot, incarnation: 0 });
        drawing.see(&Event { at: last, who, what: *what });
    }
    drawing.finish(last)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn started(deadline: u64) -> What {
    let deadline = tenure::Instant::from_nanos(deadline * 1_000_000_000);
    What::Started { fence: tenure::Fence::MIN, deadline }
}

#[test]
fn a_term_is_over_at_its_deadline_however_late_that_is_said() {
    let picture = see(&[
        (0, Some(0), What::Joined),
        (1, Some(0), started(11)),
        (40, Some(0), What::Ended(tenure::TermEnd::Expired)),
        (50, Some(0), What::Stopped(0)),
    ]);
    let fence = tenure::Fence::MIN.into();
    let end = "expired".to_owned();
    assert_eq!(picture.lanes[0].terms, [Term { fence, from: secs(1), to: secs(11), end }]);
    assert_eq!(picture.lanes[0].alive, [(secs(0), secs(50))]);
    let gaps: Vec<_> = picture.gaps.iter().map(|gap| (gap.from, gap.to)).collect();
    assert_eq!(gaps, [(secs(0), secs(1)), (secs(11), secs(50))]);
}

#[test]
fn who_dies_leads_no_longer_and_waits_for_nothing() {
    let call = world::CallKind::Renew;
    let picture = see(&[
        (0, Some(1), What::Joined),
        (1, Some(1), started(11)),
        (2, Some(1), What::Sent { number: 5, call, fence: None }),
        (4, Some(1), What::Crashed),
        (5, None, What::Vacant { loss: Loss::Death, leads_by: Moment::from_secs(14) }),
        (20, Some(0), What::Joined),
    ]);
    let lane = &picture.lanes[1];
    assert_eq!((lane.terms[0].to, &*lane.terms[0].end), (secs(4), "crashed"));
    assert_eq!(lane.alive, [(secs(0), secs(4))]);
    let (kind, outcome) = (CallKind::Renew, CallOutcome::Dropped);
    assert_eq!(lane.calls, [Call { kind, from: secs(2), to: secs(4), outcome }]);
    let gap = picture.gaps[1];
    assert_eq!(gap, Gap { from: secs(4), to: secs(20), allowed: Some(secs(10)) });
    assert!(gap.is_too_long());
}

#[test]
fn faults_strike_lanes_or_all_of_them_and_cease_with_the_others() {
    let whom = Whom::Leader;
    let frozen = world::Fault::Freeze { whom, lasts: secs(5) };
    let suspended = world::Fault::Suspend { machine: 7, lasts: secs(100) };
    let picture = see(&[
        (1, Some(1), What::Struck(frozen)),
        // Of what strikes everybody the event names somebody as well.
        (2, Some(0), What::Struck(world::Fault::Outage { refuses: true, lasts: secs(3) })),
        (3, Some(0), What::Struck(suspended)),
        (4, Some(1), What::Preempted(true)),
        (6, Some(1), What::Preempted(false)),
        (10, None, What::Calm),
        (30, Some(0), What::Joined),
    ]);
    let fault = |what: &str, lane, from, to| Fault {
        what: what.to_owned(),
        lane,
        from: secs(from),
        to: secs(to),
    };
    let expected = [
        fault("frozen", Some(1), 1, 6),
        fault("store refuses", None, 2, 5),
        fault("machine suspended", Some(0), 3, 10),
        fault("machine suspended", Some(1), 3, 10),
        fault("thread not run", Some(1), 4, 6),
        fault("no faults from here on", None, 10, 10),
    ];
    assert_eq!(picture.faults, expected);
}

#[test]
fn a_violation_is_in_the_picture() {
    let script = runner::script(&CAMPAIGNS[0], 0, 1);
    let mut run = play(&script, Properties::ALL, true);
    let at = Moment::from_secs(700);
    let mut oracle = world::Oracle::new(script.store, Properties::ALL);
    oracle.spins(at, world::Who { slot: 1, incarnation: 0 });
    run.violation = oracle.violation().cloned();
    let picture = picture(&script, &run);
    assert!(picture.about.contains("over and over"), "{}", picture.about);
    let last = picture.faults.last().unwrap();
    assert_eq!((&*last.what, last.lane, last.to), ("VIOLATED: no-hot-loop", Some(1), secs(700)));
    assert_eq!(picture.length, secs(700));
}
