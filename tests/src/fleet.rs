//! All participants of one election.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{Entry, Event, Participant, Settings, Stamp, Timeline, oracle, participant::Runner};

/// Participants in one election, and what they have said.
#[derive(Debug)]
pub struct Fleet {
    runner: Runner,
    /// What participants are started with, unless they join with something else.
    pub settings: Settings,
    timeline: Arc<Timeline>,
    started: AtomicUsize,
}

/// A term, as somebody found it on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)]
pub struct Seen {
    /// Whose.
    pub participant: usize,
    /// Its fence.
    pub fence: i64,
    /// When its participant first found it not over.
    pub from: Stamp,
    /// When its participant last found it not over, so far.
    pub to: Stamp,
    /// When it will be over, or was to be, unless a later renewal is confirmed. Not too late, and too early only by what
    /// lies between two readings of the clock.
    pub until: Stamp,
}

impl Fleet {
    /// An election without participants. `program` is the binary `participant` of this package: only a test knows where
    /// cargo has put it.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, settings: Settings) -> Self {
        Self::of(Runner::Program(program.into()), settings)
    }

    /// The same, of participants on threads of this process.
    #[must_use]
    pub fn in_process(settings: Settings) -> Self {
        Self::of(Runner::Threads, settings)
    }

    /// The same, of processes of this example, which serves HTTP. They can be told to shut down and nothing else, and say
    /// of themselves what can be seen from outside: that they take part, [`Elected`](Event::Elected),
    /// [`Live`](Event::Live) by what they have answered, [`Ended`](Event::Ended), [`Failed`](Event::Failed) but not whether
    /// somebody must do something about it, [`Recovered`](Event::Recovered), and that they have stopped.
    #[must_use]
    pub fn of_examples(program: impl Into<PathBuf>, settings: Settings) -> Self {
        Self::of(Runner::Example(program.into()), settings)
    }

    fn of(runner: Runner, settings: Settings) -> Self {
        Self { runner, settings, timeline: Arc::default(), started: AtomicUsize::new(0) }
    }

    /// Starts a participant, and waits until it takes part.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn join(&self) -> Participant {
        self.join_with(&self.settings)
    }

    /// Starts a participant with settings of its own.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn join_with(&self, settings: &Settings) -> Participant {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let timeline = self.timeline.clone();
        let participant = Participant::start(&self.runner, settings, number, timeline)
            .expect("a participant can be started");
        participant.says("it takes part", |event| matches!(event, Event::Joined { .. }));
        participant
    }

    /// What was said.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// How much has been said so far: a place on the timeline, for what must happen after it.
    #[must_use]
    pub fn now(&self) -> usize {
        self.timeline.see(<[Entry]>::len)
    }

    /// Waits for a term with a higher fence than `fence`.
    ///
    /// # Panics
    /// If nobody leads.
    #[track_caller]
    pub fn leader_after(&self, fence: i64) -> Seen {
        let what = format!("somebody leads under a fence higher than {fence}");
        self.timeline.wait_for(&what, |entries| {
            let live = |entry: &Entry| matches!(entry.event, Event::Live { fence: theirs, .. } if theirs > fence);
            let found = entries.iter().find(|entry| live(entry))?;
            seen(entries, found.event.fence()?)
        })
    }

    /// Waits for a term of this participant with a higher fence than `fence`.
    ///
    /// # Panics
    /// If it does not lead.
    #[track_caller]
    pub fn leads_after(&self, participant: usize, fence: i64) -> Seen {
        let what = format!("participant {participant} leads under a fence higher than {fence}");
        self.timeline.wait_for(&what, |entries| {
            let live = |entry: &Entry| matches!(entry.event, Event::Live { fence: theirs, .. } if theirs > fence);
            let theirs = |entry: &&Entry| entry.participant == participant && live(entry);
            seen(entries, entries.iter().find(theirs)?.event.fence()?)
        })
    }

    /// Waits for the first term.
    ///
    /// # Panics
    /// If nobody leads.
    #[track_caller]
    pub fn leader(&self) -> Seen {
        self.leader_after(0)
    }

    /// The term of this fence, as far as it has been seen.
    ///
    /// # Panics
    /// If it was not seen at all.
    #[must_use]
    #[track_caller]
    pub fn term(&self, fence: i64) -> Seen {
        self.timeline.see(|entries| seen(entries, fence)).expect("the term was seen")
    }

    /// Has the oracle judge what has been said so far.
    ///
    /// # Panics
    /// If a rule was broken, or fewer than this many terms were seen.
    #[track_caller]
    pub fn judge(&self, at_least: usize) {
        let claims = self.timeline.claims();
        let mut fences: Vec<i64> = claims.iter().map(|claim| claim.fence).collect();
        fences.sort_unstable();
        fences.dedup();
        let account = || self.timeline.account();
        assert!(
            fences.len() >= at_least,
            "only these terms: {fences:?}; what was said:\n{}",
            account()
        );
        let violations = oracle::judge(claims);
        let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "{}\nwhat was said:\n{}", list.join("\n"), account());
    }
}

impl Event {
    fn fence(&self) -> Option<i64> {
        match *self {
            Self::Live { fence, .. } => Some(fence),
            _ => None,
        }
    }
}

fn seen(entries: &[Entry], fence: i64) -> Option<Seen> {
    let mut found: Option<Seen> = None;
    for entry in entries {
        if let Event::Live { fence: theirs, from, to, until } = entry.event
            && theirs == fence
        {
            // The process may have been held up between the two readings that make this instant.
            let until = found.map_or(until, |earlier| earlier.until.max(until));
            found = Some(Seen { participant: entry.participant, fence, from, to, until });
        }
    }
    found
}
