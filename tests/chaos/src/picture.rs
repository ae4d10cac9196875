//! A play as a picture.

use std::{collections::BTreeMap, time::Duration};

use tenure_drawing::{Call, CallKind, CallOutcome, Fault, Gap, Lane, Picture, Term};
use tenure_tests::{self as tests, Event, Stamp};

use crate::{stage::Play, verdict::Verdict};

/// Draws a play and what was made of it.
pub(crate) fn draw(title: String, about: &str, play: &Play, verdict: &Verdict) -> Picture {
    let starts = play.replicas.iter().map(|&(from, _)| from);
    let start = starts.min().unwrap_or(play.ended);
    let since = |at: Stamp| at - start;
    let mut lanes: Vec<Lane> = play
        .replicas
        .iter()
        .enumerate()
        .map(|(number, &(from, to))| Lane {
            name: format!("candidate {number}"),
            terms: Vec::new(),
            calls: Vec::new(),
            alive: vec![(since(from), since(to.unwrap_or(play.ended)))],
        })
        .collect();
    let mut ends: BTreeMap<i64, String> = BTreeMap::new();
    play.fleet.timeline().see(|entries| {
        for entry in entries {
            match &entry.event {
                Event::Called { call, from, answer } => {
                    let call = Call {
                        kind: kind(*call),
                        from: since(*from),
                        to: since(entry.at),
                        outcome: outcome(*answer),
                    };
                    lanes[entry.participant].calls.push(call);
                }
                Event::Ended { fence, reason } => drop(ends.insert(*fence, reason.clone())),
                _ => {}
            }
        }
    });
    for term in &verdict.terms {
        let end = ends.get(&term.fence).cloned().unwrap_or_default();
        let (from, to) = (since(term.from), since(term.to));
        lanes[term.participant].terms.push(Term { fence: term.fence, from, to, end });
    }
    let gap = |gap: &crate::verdict::Gap| Gap {
        from: since(gap.from),
        to: since(gap.to),
        allowed: Some(verdict.allowed + crate::stage::BUSY),
    };
    let fault = |fault: &crate::stage::Fault| Fault {
        what: fault.what.clone(),
        lane: fault.on,
        from: since(fault.from),
        to: since(fault.to.unwrap_or(play.ended)),
    };
    Picture {
        title,
        about: about.to_owned(),
        length: since(play.ended).max(Duration::from_millis(1)),
        lanes,
        faults: play.faults.iter().map(fault).collect(),
        gaps: verdict.gaps.iter().map(gap).collect(),
    }
}

const fn kind(call: tests::Call) -> CallKind {
    match call {
        tests::Call::Inspect => CallKind::Inspect,
        tests::Call::Place => CallKind::Place,
        tests::Call::Acquire => CallKind::Acquire,
        tests::Call::Renew => CallKind::Renew,
        tests::Call::Release => CallKind::Release,
    }
}

const fn outcome(answer: tests::Answer) -> CallOutcome {
    match answer {
        tests::Answer::Won => CallOutcome::Won,
        tests::Answer::Lost => CallOutcome::Lost,
        tests::Answer::Seen => CallOutcome::Seen,
        tests::Answer::Failed => CallOutcome::Failed,
        tests::Answer::GivenUp => CallOutcome::Dropped,
    }
}
