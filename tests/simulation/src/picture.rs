//! A run of a schedule as a picture.

use std::{mem, time::Duration};

use tenure_drawing::{Call, CallKind, CallOutcome, Fault, Gap, Lane, Picture, Term};
use tenure_world as world;
use tenure_world::{CallResult, Event, Loss, Moment, Run, Script, Way, Weather, What};

/// Draws what happened in a run, which has a history, of this script.
pub(crate) fn draw(title: String, about: &str, script: &Script, run: &Run) -> Picture {
    let mut drawing = Drawing::new(script);
    run.history.iter().for_each(|event| drawing.see(event));
    let mut about = about.to_owned();
    if let Some(violation) = &run.violation {
        about.push_str(&format!("\n{violation}"));
        drawing.faults.push(Fault {
            what: format!("VIOLATED: {}", violation.property),
            lane: violation.who.map(|who| who.slot),
            from: passed(violation.at),
            to: passed(violation.at),
        });
    }
    let last = run.history.last().map(|event| event.at);
    let violated = run.violation.as_ref().map(|violation| violation.at);
    let end = last.max(violated).unwrap_or(Moment::START);
    Picture { title, about, ..drawing.finish(end) }
}

/// What the events have told so far.
struct Drawing<'s> {
    script: &'s Script,
    places: Vec<Place>,
    faults: Vec<Fault>,
    /// When all faults were lifted.
    calm_at: Option<Duration>,
    /// Since when somebody is expected to lead, and when at the latest.
    promises: Vec<(Moment, Moment)>,
}

/// A candidate's place, and what goes on there.
#[derive(Default)]
struct Place {
    lane: Lane,
    running_since: Option<Moment>,
    term: Option<OpenTerm>,
    call: Option<(u64, CallKind, Moment)>,
    preempted_since: Option<Moment>,
}

struct OpenTerm {
    fence: i64,
    from: Moment,
    deadline: Moment,
}

impl<'s> Drawing<'s> {
    fn new(script: &'s Script) -> Self {
        let place = |slot| Place {
            lane: Lane { name: format!("c{slot}"), ..Lane::default() },
            ..Place::default()
        };
        Self {
            script,
            places: (0..script.candidates.len()).map(place).collect(),
            faults: Vec::new(),
            calm_at: None,
            promises: Vec::new(),
        }
    }

    fn see(&mut self, event: &Event) {
        let Event { at, who, what } = event;
        match what {
            What::Struck(fault) => self.strike(*at, who.map(|who| who.slot), fault),
            What::Calm => self.calm(*at),
            What::Settled { leads_by } => self.promises.push((*at, *leads_by)),
            What::Vacant { loss, leads_by } => {
                self.promises.push((*at, *leads_by));
                let what = match loss {
                    Loss::Death => "the leader has died",
                    Loss::HandOver => "the leader has handed over",
                };
                self.fault(what, None, *at, Duration::ZERO);
            }
            _ => {
                if let Some(who) = who {
                    self.go_on(who.slot, *at, what);
                }
            }
        }
    }

    /// Something that concerns one candidate.
    fn go_on(&mut self, slot: usize, at: Moment, what: &What) {
        let clock = self.script.candidates[slot].clock;
        let place = &mut self.places[slot];
        match what {
            What::Joined => place.running_since = Some(at),
            What::Crashed => {
                place.end_term(at, "crashed".to_owned());
                place.stop(at);
                self.run_again(slot, at);
            }
            What::Stopped(_) => place.stop(at),
            What::Sent { number, call, .. } => place.call = Some((*number, kind(*call), at)),
            What::Answered { number, result, .. } => place.answer(*number, at, outcome(*result)),
            What::Abandoned { number, .. } => place.answer(*number, at, CallOutcome::Dropped),
            What::Started { fence, deadline } => {
                let (fence, deadline) = (i64::from(*fence), clock.reaches(*deadline));
                place.term = Some(OpenTerm { fence, from: at, deadline });
            }
            What::Extended { deadline } => {
                if let Some(term) = &mut place.term {
                    term.deadline = clock.reaches(*deadline);
                }
            }
            What::Ended(reason) => place.end_term(at, reason.to_string()),
            What::Preempted(true) => place.preempted_since = Some(at),
            What::Preempted(false) => self.run_again(slot, at),
            _ => {}
        }
    }

    /// The elector's thread is run again, or there is none any more.
    fn run_again(&mut self, slot: usize, at: Moment) {
        if let Some(since) = self.places[slot].preempted_since.take() {
            self.fault("thread not run", Some(slot), since, at.since(since));
        }
    }

    fn strike(&mut self, at: Moment, slot: Option<usize>, fault: &world::Fault) {
        let of_all = |what: &str, lasts| (what.to_owned(), None, lasts);
        let of_one = |what: &str, lasts| (what.to_owned(), slot, lasts);
        let now = Duration::ZERO;
        let (what, lane, lasts) = match fault {
            world::Fault::Weather { weather, lasts } => match weather {
                Weather::Fair => of_all("fair network", *lasts),
                Weather::Rough => of_all("rough network", *lasts),
                Weather::Storm => of_all("stormy network", *lasts),
            },
            world::Fault::Partition { way, lasts, .. } => match way {
                Way::There => of_one("requests lost", *lasts),
                Way::Back => of_one("answers lost", *lasts),
                Way::Both => of_one("cut off", *lasts),
            },
            world::Fault::Outage { refuses: true, lasts } => of_all("store refuses", *lasts),
            world::Fault::Outage { refuses: false, lasts } => of_all("store away", *lasts),
            world::Fault::Freeze { lasts, .. } => of_one("frozen", *lasts),
            world::Fault::Suspend { machine, lasts } => {
                return self.suspend(at, *machine, *lasts);
            }
            // Drawn when the thread is not run indeed.
            world::Fault::Preempt { .. } => return,
            world::Fault::Unwatched { .. } => of_one("next term unwatched", now),
            world::Fault::Crash { .. } => of_one("crash", now),
            world::Fault::Resign { .. } => of_one("resign", now),
            world::Fault::Shutdown { .. } => of_one("shutdown", now),
            world::Fault::Ineligible { lasts, .. } => of_one("eligibility changed", *lasts),
            world::Fault::Guard { lasts: Some(lasts), .. } => of_one("guard", *lasts),
            world::Fault::Guard { lasts: None, .. } => of_one("endless guard", now),
            world::Fault::Work { lasts: Some(lasts), .. } => of_one("work", *lasts),
            world::Fault::Work { lasts: None, .. } => of_one("endless work", now),
            world::Fault::FalseHint { .. } => of_one("false hint", now),
            world::Fault::Depose => of_all("deposed", now),
            world::Fault::Delete => of_all("record deleted", now),
            world::Fault::Restore { writes, lasts } => {
                let lasts = self.script.longest_lease() * 5 / 4 + *lasts;
                (format!("store away, then {writes} writes older"), None, lasts)
            }
            world::Fault::SetClock { ahead_ms } => {
                let seconds = *ahead_ms as f64 / 1e3;
                (format!("store's clock set by {seconds:+} s"), None, now)
            }
        };
        self.fault(&what, lane, at, lasts);
    }

    /// Everybody on one machine stands still.
    fn suspend(&mut self, at: Moment, machine: usize, lasts: Duration) {
        for (slot, candidate) in self.script.candidates.iter().enumerate() {
            if candidate.machine == machine {
                self.fault("machine suspended", Some(slot), at, lasts);
            }
        }
    }

    fn fault(&mut self, what: &str, lane: Option<usize>, at: Moment, lasts: Duration) {
        let (from, to) = (passed(at), passed(at + lasts));
        self.faults.push(Fault { what: what.to_owned(), lane, from, to });
    }

    /// Whatever can be lifted is.
    fn calm(&mut self, at: Moment) {
        self.calm_at = Some(passed(at));
        self.fault("no faults from here on", None, at, Duration::ZERO);
    }

    fn finish(mut self, end: Moment) -> Picture {
        for slot in 0..self.places.len() {
            self.run_again(slot, end);
            let place = &mut self.places[slot];
            place.end_term(end, String::new());
            place.stop(end);
        }
        let ceased = self.calm_at.unwrap_or(Duration::MAX).min(passed(end));
        for fault in &mut self.faults {
            fault.to = fault.to.min(ceased).max(fault.from);
        }
        let gaps = self.gaps(passed(end));
        let lanes = self.places.into_iter().map(|place| place.lane).collect();
        Picture { length: passed(end), lanes, faults: self.faults, gaps, ..Picture::default() }
    }

    /// When nobody led. Where somebody was expected to lead by a certain moment, a gap may last until then.
    fn gaps(&self, end: Duration) -> Vec<Gap> {
        let terms = self.places.iter().flat_map(|place| &place.lane.terms);
        let mut led: Vec<(Duration, Duration)> = terms.map(|term| (term.from, term.to)).collect();
        led.push((end, end));
        led.sort_unstable();
        let mut gaps = Vec::new();
        let mut from = Duration::ZERO;
        for (begun, over) in led {
            if begun > from {
                let mut promises = self.promises.iter();
                let promise = promises.find(|(since, _)| (from..=begun).contains(&passed(*since)));
                let allowed = promise.map(|(_, by)| passed(*by).saturating_sub(from));
                gaps.push(Gap { from, to: begun, allowed });
            }
            from = from.max(over);
        }
        gaps
    }
}

impl Place {
    /// No process runs here any more.
    fn stop(&mut self, at: Moment) {
        if let Some((number, ..)) = self.call {
            self.answer(number, at, CallOutcome::Dropped);
        }
        if let Some(since) = self.running_since.take() {
            self.lane.alive.push((passed(since), passed(at)));
        }
    }

    fn answer(&mut self, number: u64, at: Moment, outcome: CallOutcome) {
        if let Some((_, kind, sent)) = self.call.take_if(|(sent, ..)| *sent == number) {
            self.lane.calls.push(Call { kind, from: passed(sent), to: passed(at), outcome });
        }
    }

    /// Whoever is late to say so: a term is over at its deadline.
    fn end_term(&mut self, at: Moment, end: String) {
        if let Some(OpenTerm { fence, from, deadline }) = mem::take(&mut self.term) {
            let (from, to) = (passed(from), passed(at.min(deadline).max(from)));
            self.lane.terms.push(Term { fence, from, to, end });
        }
    }
}

fn passed(at: Moment) -> Duration {
    at.since(Moment::START)
}

const fn kind(call: world::CallKind) -> CallKind {
    match call {
        world::CallKind::Inspect => CallKind::Inspect,
        world::CallKind::Place => CallKind::Place,
        world::CallKind::Acquire => CallKind::Acquire,
        world::CallKind::Renew => CallKind::Renew,
        world::CallKind::Release => CallKind::Release,
    }
}

const fn outcome(result: CallResult) -> CallOutcome {
    match result {
        CallResult::Done => CallOutcome::Seen,
        CallResult::Won => CallOutcome::Won,
        CallResult::Lost => CallOutcome::Lost,
        CallResult::Failed => CallOutcome::Failed,
    }
}

#[cfg(test)]
mod tests;
