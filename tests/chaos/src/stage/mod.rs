//! A fleet on its ground, what is done to both, and how that went.

mod faults;

use std::{ffi::OsString, path::PathBuf, thread, time::Duration};

use serde_json::Value;
use tenure::protocol::Timing;
use tenure_testbed::Proxy;
use tenure_tests::{Command, Entry, Event, Fleet, Participant, Seen, Settings, Stamp, oracle};

pub(crate) use self::faults::{Allowed, Fault};
use crate::{
    ground::{ELECTION, Ground, SERVER_LOGIN_RETRY, USER, Way},
    kind::{Kind, Need},
    verdict::Gap,
};

/// By how much a machine with few processors and much to do may be late.
pub(crate) const BUSY: Duration = Duration::from_secs(1);

/// The election that nothing is done to.
pub(crate) const BYSTANDERS: &str = "bystanders";

/// How candidates run.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// Each in a process of its own, which runs this program.
    Processes(PathBuf),
    /// On threads of this process.
    Threads,
    /// Each in a process of the axum example, which is this program, as users run it.
    Examples(PathBuf),
}

impl Mode {
    /// Whether candidates that run like this are such.
    pub(crate) const fn has(&self, need: Need) -> bool {
        match need {
            Need::Processes => !matches!(self, Self::Threads),
            Need::Participants => !matches!(self, Self::Examples(_)),
            // The replicas that have one are processes in place of the stage's candidates.
            Need::Ledger => matches!(self, Self::Processes(_)),
            _ => true,
        }
    }

    fn fleet(&self, settings: Settings) -> Fleet {
        match self {
            Self::Processes(program) => Fleet::new(program, settings),
            Self::Threads => Fleet::in_process(settings),
            Self::Examples(program) => Fleet::of_examples(program, settings),
        }
    }
}

/// What a scenario plays on.
pub(crate) struct Stage {
    pub(crate) ground: Ground,
    pub(crate) fleet: Fleet,
    pub(crate) replicas: Vec<Replica>,
    mode: Mode,
    /// For whatever is left to chance.
    pub(crate) random: fastrand::Rng,
    faults: Vec<Fault>,
    allowed: Allowed,
    problems: Vec<String>,
    /// Which is neither killed nor replaced by chance.
    kept: Option<usize>,
    bystanders: Option<Bystanders>,
    /// If there are no candidates that tell of themselves.
    pub(crate) view: Option<View>,
}

/// An election as it was seen from outside.
pub(crate) struct View {
    /// From when to when each was there.
    pub(crate) replicas: Vec<(Stamp, Option<Stamp>)>,
    pub(crate) terms: Vec<oracle::Claim>,
    pub(crate) gaps: Vec<Gap>,
}

/// A candidate, and its way to the store.
pub(crate) struct Replica {
    pub(crate) participant: Participant,
    pub(crate) way: Way,
    /// As whom it comes to the database.
    user: String,
    /// The program that runs it, with its arguments, if it is run by one.
    within: Vec<OsString>,
    pub(crate) from: Stamp,
    /// When it was killed, or has ended.
    pub(crate) to: Option<Stamp>,
}

/// Another election, which nothing is done to.
struct Bystanders {
    fleet: Fleet,
    _participants: Vec<(Participant, Way)>,
}

/// What is known in the end.
pub(crate) struct Play {
    pub(crate) fleet: Fleet,
    pub(crate) view: Option<View>,
    pub(crate) replicas: Vec<(Stamp, Option<Stamp>)>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) allowed: Allowed,
    pub(crate) problems: Vec<String>,
    pub(crate) ended: Stamp,
}

impl Stage {
    pub(crate) fn new(kind: Kind, mode: Mode, seed: u64) -> Self {
        let ground = Ground::new(kind);
        let fleet = mode.fleet(Settings::new(Value::Null, ELECTION));
        Self {
            ground,
            fleet,
            replicas: Vec::new(),
            mode,
            random: fastrand::Rng::with_seed(seed),
            faults: Vec::new(),
            allowed: Allowed::default(),
            problems: Vec::new(),
            kept: None,
            bystanders: None,
            view: None,
        }
    }

    /// How its candidates run.
    pub(crate) fn mode(&self) -> &Mode {
        &self.mode
    }

    /// What candidates are started with from now on, but for their way to the store.
    pub(crate) fn settings(&mut self) -> &mut Settings {
        &mut self.fleet.settings
    }

    /// The timings of this scenario.
    pub(crate) fn timing(&self) -> Timing {
        Settings { store: self.ground.config(), ..self.fleet.settings.clone() }.timing()
    }

    /// One more candidate. Returns its number.
    pub(crate) fn join(&mut self) -> usize {
        self.join_so(USER, Vec::new())
    }

    /// The same as this user of the database.
    pub(crate) fn join_as(&mut self, user: &str) -> usize {
        self.join_so(user, Vec::new())
    }

    /// The same, run by another program.
    pub(crate) fn join_within(&mut self, program: &[&str]) -> usize {
        self.join_so(USER, program.iter().map(OsString::from).collect())
    }

    /// The same as another one that joined before.
    pub(crate) fn join_like(&mut self, replica: usize) -> usize {
        let Replica { user, within, .. } = &self.replicas[replica];
        self.join_so(&user.clone(), within.clone())
    }

    fn join_so(&mut self, user: &str, within: Vec<OsString>) -> usize {
        let way = self.ground.way(user);
        let mut settings =
            Settings { within, store: way.config.clone(), ..self.fleet.settings.clone() };
        if settings.pool.is_some() {
            // A pool is made of a URL alone.
            settings.store = way.config["url"].clone();
        }
        let from = Stamp::now();
        let participant = self.fleet.join_with(&settings);
        let number = participant.number();
        let (user, within) = (user.to_owned(), settings.within);
        self.replicas.push(Replica { participant, way, user, within, from, to: None });
        number
    }

    /// Those that are there.
    pub(crate) fn present(&self) -> impl Iterator<Item = usize> {
        let numbered = self.replicas.iter().enumerate();
        numbered.filter(|(_, replica)| replica.to.is_none()).map(|(number, _)| number)
    }

    /// That many candidates, of which one leads.
    pub(crate) fn start(&mut self, candidates: usize) -> Seen {
        for _ in 0..candidates {
            self.join();
        }
        self.leader()
    }

    /// Waits until somebody leads, and says who.
    pub(crate) fn leader(&self) -> Seen {
        let fence = self.fleet.timeline().wait_for("somebody leads", |entries| {
            let is_fresh = |to: Stamp| to.age() < Duration::from_millis(200);
            entries.iter().rev().take(1_000).find_map(|entry| match entry.event {
                Event::Live { fence, to, .. } if is_fresh(to) => Some(fence),
                _ => None,
            })
        });
        self.fleet.term(fence)
    }

    /// Waits until a term after this one is there.
    pub(crate) fn next_after(&self, term: Seen) -> Seen {
        self.fleet.leader_after(term.fence)
    }

    /// Waits until this one is told, after this place of the timeline.
    pub(crate) fn says_after(
        &self,
        place: usize,
        replica: usize,
        what: &str,
        is_it: impl FnMut(&Event) -> bool,
    ) -> Entry {
        self.replicas[replica].participant.says_after(place, what, is_it)
    }

    pub(crate) fn tell(&self, replica: usize, command: Command) {
        self.replicas[replica].participant.tell(command);
    }

    /// The network paths of this candidate.
    pub(crate) fn paths(&self, replica: usize) -> &[Proxy] {
        &self.replicas[replica].way.paths
    }

    /// Does something to every path that ends at the server.
    pub(crate) fn on_server_paths(&self, mut act: impl FnMut(&Proxy)) {
        match &self.ground.pooler {
            // The candidates' first paths end at the pooler.
            Some((_, path)) => {
                act(path);
                let listening = self.replicas.iter().flat_map(|replica| &replica.way.paths[1..]);
                listening.for_each(act);
            }
            None => self.on_all_paths(act),
        }
    }

    /// Does something to all paths of all candidates.
    pub(crate) fn on_all_paths(&self, mut act: impl FnMut(&Proxy)) {
        self.replicas.iter().flat_map(|replica| &replica.way.paths).for_each(&mut act);
    }

    /// The candidate is gone from one instant to the next.
    pub(crate) fn crash(&mut self, replica: usize) {
        let fault = self.begin("killed", Some(replica));
        self.replicas[replica].to = Some(self.replicas[replica].participant.kill());
        self.end(fault);
    }

    /// The candidate hands over, if it leads, and ends.
    pub(crate) fn shut_down(&mut self, replica: usize) {
        let place = self.fleet.now();
        self.tell(replica, Command::ShutDown);
        let stopped = |event: &Event| matches!(event, Event::Stopped { .. });
        let stopped = self.says_after(place, replica, "it stops", stopped);
        if let Event::Stopped { error: Some(error) } = stopped.event {
            self.problem(format!("candidate {replica} stopped with an error: {error}"));
        }
        self.replicas[replica].to = Some(stopped.at);
    }

    /// This one is neither killed nor replaced by chance.
    pub(crate) fn keep(&mut self, replica: usize) {
        self.kept = Some(replica);
    }

    pub(crate) fn is_kept(&self, replica: usize) -> bool {
        self.kept == Some(replica)
    }

    /// Lets go of what candidates that are gone have left: their processes, their paths, and faults that are over.
    pub(crate) fn forget_the_gone(&mut self) {
        for replica in self.replicas.iter_mut().filter(|replica| replica.to.is_some()) {
            replica.way.paths.clear();
        }
        self.faults.clear();
    }

    /// What was found until now not to be as it should be.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// Something is not as it should be.
    pub(crate) fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Time passes.
    #[allow(clippy::unused_self)] // it passes on a stage
    pub(crate) fn wait(&self, duration: Duration) {
        thread::sleep(duration);
    }

    /// From the moment in which faults stop to a leader, in the worst case.
    pub(crate) fn recovery(&self) -> Duration {
        let pooler = self.ground.pooler.as_ref().map(|_| SERVER_LOGIN_RETRY);
        self.timing().worst_case().recovery + pooler.unwrap_or_default()
    }

    /// All faults were over at `healed`: waits until somebody leads whose lease was confirmed afterwards, and holds that
    /// to the worst case.
    pub(crate) fn recovers(&mut self, healed: Stamp) -> Seen {
        let limit = self.recovery();
        self.recovers_within(healed, limit)
    }

    /// The same, held to this limit.
    pub(crate) fn recovers_within(&mut self, healed: Stamp, limit: Duration) -> Seen {
        let timing = self.timing();
        let confirmed = healed + (timing.lease_duration() - timing.safety_margin());
        let (fence, at) = self.fleet.timeline().wait_for("somebody leads again", |entries| {
            entries.iter().find_map(|entry| match entry.event {
                Event::Live { fence, to, until, .. } if until > confirmed => Some((fence, to)),
                _ => None,
            })
        });
        let took = at - healed;
        if took > limit + BUSY {
            self.problem(format!("led again after {took:.1?}, of at most {limit:.1?}"));
        }
        self.fleet.term(fence)
    }

    /// The election has had this many terms so far, no more and no fewer.
    pub(crate) fn expect_terms(&mut self, expected: usize) {
        let terms = self.fleet.timeline().see(|entries| {
            let elected = |entry: &&Entry| matches!(entry.event, Event::Elected { .. });
            entries.iter().filter(elected).count()
        });
        if terms != expected {
            self.problem(format!("{terms} terms instead of {expected}"));
        }
    }

    /// Another election in the same table or bucket, of two candidates, of which one leads.
    pub(crate) fn start_bystanders(&mut self) {
        let fleet = self.mode.fleet(Settings::new(Value::Null, BYSTANDERS));
        let join = |_| {
            let way = self.ground.way(USER);
            let settings = Settings { store: way.config.clone(), ..fleet.settings.clone() };
            (fleet.join_with(&settings), way)
        };
        let participants = (0..2).map(join).collect();
        fleet.leader();
        self.bystanders = Some(Bystanders { fleet, _participants: participants });
    }

    /// The play is over: everybody goes home, and what is known is what happened until now.
    pub(crate) fn close(mut self) -> Play {
        let ended = Stamp::now();
        if let Some(Bystanders { fleet, .. }) = self.bystanders.take() {
            let ends = fleet.timeline().see(|entries| {
                let has_ended = |entry: &&Entry| matches!(entry.event, Event::Ended { .. });
                entries.iter().filter(has_ended).count()
            });
            if ends > 0 {
                self.problems.push(format!("the other election lost {ends} terms"));
            }
        }
        let from_and_to = |replica: &Replica| (replica.from, replica.to);
        let replicas = match &self.view {
            Some(view) => view.replicas.clone(),
            None => self.replicas.iter().map(from_and_to).collect(),
        };
        let Self { fleet, faults, allowed, problems, view, .. } = self;
        Play { fleet, view, replicas, faults, allowed, problems, ended }
    }
}
