//! Plays the schedules of a campaign, on all cores.

use std::{
    num::NonZero,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use tenure_world::{Coverage, Properties, Run, Script, Seeded, Violation, play};

use crate::campaigns::Campaign;

/// How many different fates the calls of one schedule have.
const ROLLS: usize = 1_024;

/// What came of a campaign.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) schedules: u64,
    pub(crate) steps: u64,
    pub(crate) events: u64,
    /// What all cores together spent.
    pub(crate) spent: Duration,
    pub(crate) coverage: Coverage,
    /// The first schedule that failed.
    pub(crate) failed: Option<(u64, Violation)>,
}

impl Tally {
    /// Schedules that one core plays in a second.
    pub(crate) fn speed(&self) -> f64 {
        self.schedules as f64 / self.spent.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(crate) fn steps_per_second(&self) -> f64 {
        self.steps as f64 / self.spent.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.steps += other.steps;
        self.events += other.events;
        self.spent += other.spent;
        self.coverage.add(&other.coverage);
        let first = |failed: &Option<(u64, Violation)>| failed.as_ref().map_or(u64::MAX, |f| f.0);
        if first(&other.failed) < first(&self.failed) {
            self.failed.clone_from(&other.failed);
        }
    }
}

/// The script of one schedule: its campaign, its number and the seed determine it.
pub(crate) fn script(campaign: &Campaign, schedule: u64, seed: u64) -> Script {
    let of_name = campaign.name.bytes().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
    let mut choices = Seeded::new(mix(of_name ^ schedule));
    Script::write(&campaign.rules, &mut choices, ROLLS)
}

/// Plays so many schedules, and goes on to the end of none after one has failed.
pub(crate) fn run(campaign: &Campaign, schedules: u64, seed: u64, watched: Properties) -> Tally {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let (next, last) = (AtomicU64::new(0), AtomicU64::new(schedules));
    let work = || {
        let began = spent();
        let mut tally = Tally::default();
        loop {
            let schedule = next.fetch_add(1, Relaxed);
            if schedule >= last.load(Relaxed) {
                break;
            }
            let run = play(&script(campaign, schedule, seed), watched, false);
            count(&mut tally, schedule, run);
            if let Some((failed, _)) = &tally.failed {
                last.fetch_min(*failed, Relaxed);
            }
        }
        tally.spent = spent() - began;
        tally
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all = Tally::default();
        for worker in workers {
            match worker.join() {
                Ok(tally) => all.add(&tally),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

fn count(tally: &mut Tally, schedule: u64, run: Run) {
    tally.schedules += 1;
    tally.steps += run.steps;
    tally.events += run.events;
    tally.coverage.add(&run.coverage);
    if let Some(violation) = run.violation {
        tally.failed.get_or_insert((schedule, violation));
    }
}

/// What this thread has had of its core: others may be busy as well.
#[expect(clippy::disallowed_methods, reason = "a measurement, not an election")]
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// Turns neighbouring numbers into numbers that have nothing in common.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
