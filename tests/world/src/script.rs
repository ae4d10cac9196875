//! A script: all that determines a run, as data. Chance writes it, shrinking shortens it, a world plays it.

use std::time::Duration;

use tenure::{Expiry, Timing};

use crate::{
    choices::{Bytes, Choices},
    fault::{Fault, FaultKind, Incident, Way, Whom},
    network::Weather,
    record::StoreKind,
    time::{Moment, Skew},
};

/// From this moment on no fault strikes any more, if the script does not end them before.
pub const CALM_FROM: Moment = Moment::from_secs(480);
/// A world lasts at least until then.
pub const END: Moment = Moment::from_secs(600);

/// How far the rates of clocks may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // both kinds of promises
pub enum Rates {
    /// By what the printed worst cases include: 500 ppm each way.
    Printed,
    /// By what the safety margin covers.
    Covered,
    /// By half of that, so that the store's clock may also jump a little.
    Halved,
}

/// How far the store's clock may be set ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // what the rules allow
pub enum Ahead {
    /// By what is left of the safety margin, once within a lease.
    ALittle,
    /// By hours.
    AnyFar,
}

/// What scripts of one kind may contain.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs)] // a campaign writes it down
pub struct Rules {
    /// The least and the greatest number of candidates.
    pub candidates: (u32, u32),
    /// The rules of expiry to choose from.
    pub expiry: &'static [Expiry],
    /// Each candidate chooses for itself.
    pub mixed_expiry: bool,
    /// Candidates have leases of different length, and change them when they are started anew.
    pub mixed_leases: bool,
    /// Each candidate may begin as an observer, or never release.
    pub mixed_manners: bool,
    /// What keeps the record.
    pub store: StoreKind,
    /// No wall clock makes fences rise, only what candidates have seen: nothing is lost that they have not all seen, and none
    /// starts afresh meanwhile.
    pub only_floors: bool,
    /// How far clocks may differ.
    pub rates: Rates,
    /// How far the store's clock may jump forward.
    pub ahead: Ahead,
    /// What may happen, and how often in comparison.
    pub faults: &'static [(FaultKind, u32)],
    /// The most that happens.
    pub incidents: u32,
}

/// How one candidate is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // a script is data
pub struct Candidate {
    /// Its timings; those of its successors in the same place take turns.
    pub timings: Vec<Timing>,
    /// Its clock.
    pub clock: Skew,
    /// The machine on which it runs.
    pub machine: usize,
    /// Whether it contends from the beginning.
    pub eligible: bool,
    /// Whether it gives leases back.
    pub releases: bool,
}

/// All that determines a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // a script is data
pub struct Script {
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// What keeps the record.
    pub store: StoreKind,
    /// No wall clock makes fences rise, only what candidates have seen.
    pub only_floors: bool,
    /// The store's clock.
    pub store_clock: Skew,
    /// How far the store's clock may jump forward.
    pub ahead: Ahead,
    /// By how many parts per million clocks may differ from true time.
    pub max_ppm: i32,
    /// What happens, in the order of time.
    pub incidents: Vec<Incident>,
    /// When all faults cease.
    pub calm_from: Moment,
    /// What is on its way then is lost, instead of being waited for.
    pub clears: bool,
    /// What becomes of calls: each takes the next one of its candidate's.
    pub rolls: Vec<u64>,
    /// Where jitter comes from.
    pub jitter: u64,
}

impl Script {
    /// Writes one by these rules, with so many different fates of calls.
    pub fn write(rules: &Rules, choices: &mut impl Choices, rolls: usize) -> Self {
        let count = rules.candidates.0 + choices.below(rules.candidates.1 - rules.candidates.0 + 1);
        let count = count as usize;
        let shared = Self::timing(choices, rules.expiry, rules);
        let own_expiry = [shared.expiry()];
        let expiry = if rules.mixed_expiry { rules.expiry } else { &own_expiry };
        let differ = rules.mixed_leases || rules.mixed_expiry;
        let mut own = |_| match differ {
            true => (0..2).map(|_| Self::timing(choices, expiry, rules)).collect(),
            false => vec![shared],
        };
        let timings: Vec<Vec<Timing>> = (0..count).map(&mut own).collect();
        let all = || timings.iter().flatten();
        let max_ppm = match rules.rates {
            Rates::Printed => 500,
            Rates::Covered => all().map(covered_ppm).min().unwrap_or(0),
            Rates::Halved => all().map(covered_ppm).min().unwrap_or(0) / 2,
        };
        let longest = all().map(Timing::lease_duration).max().unwrap_or_default();
        let candidates = timings
            .into_iter()
            .map(|timings| Candidate {
                timings,
                clock: clock(choices, max_ppm),
                machine: choices.below(3) as usize,
                eligible: !(rules.mixed_manners && choices.chance(10)),
                releases: !(rules.mixed_manners && choices.chance(10)),
            })
            .collect();
        let store_clock = clock(choices, max_ppm);
        let mut script = Self {
            candidates,
            store: rules.store,
            only_floors: rules.only_floors,
            store_clock,
            ahead: rules.ahead,
            max_ppm,
            incidents: Vec::new(),
            calm_from: CALM_FROM,
            clears: choices.chance(50),
            rolls: Vec::new(),
            jitter: choices.roll(),
        };
        script.incidents = Self::incidents(rules, choices, count, longest);
        // Soon after the last one, so that it is the last one from which everybody has to recover.
        let last = script.incidents.last().map_or(Moment::START, |incident| incident.at);
        let after = choices.duration(Duration::ZERO, longest);
        script.calm_from = CALM_FROM.min(last + after);
        script.rolls = (0..rolls.max(1)).map(|_| choices.roll()).collect();
        script
    }

    /// Writes one by what a fuzzer has found, whatever it is.
    #[must_use]
    pub fn from_bytes(rules: &Rules, bytes: &[u8]) -> Self {
        Self::write(rules, &mut Bytes::new(bytes), 64)
    }

    /// The longest lease that anybody ever asks for.
    #[must_use]
    pub fn longest_lease(&self) -> Duration {
        let timings = self.candidates.iter().flat_map(|candidate| &candidate.timings);
        timings.map(Timing::lease_duration).max().unwrap_or_default()
    }

    fn timing(choices: &mut impl Choices, expiry: &[Expiry], rules: &Rules) -> Timing {
        let expiry = choices.one_of(expiry);
        let ms = Duration::from_millis;
        let builder = Timing::builder().expiry(expiry);
        let variant = if rules.mixed_leases { choices.below(6) } else { choices.below(3) };
        let builder = match variant {
            0 => builder,
            // Calls that take longer than the renew interval.
            1 => builder
                .lease_duration(ms(12_000))
                .renew_interval(ms(2_000))
                .operation_timeout(ms(3_000))
                .drain_timeout(ms(4_000)),
            // Looks seldom, pauses for long, drains for longer than a lease.
            2 => builder
                .lease_duration(ms(15_000))
                .retry_period(ms(8_000))
                .resign_pause(ms(30_000))
                .drain_timeout(ms(20_000)),
            3 => builder.lease_duration(ms(6_000)),
            4 => builder.lease_duration(ms(30_000)),
            _ => builder.lease_duration(ms(9_000)).safety_margin(ms(1_500)),
        };
        builder.build().expect("these timings have room for a lost renewal")
    }

    fn incidents(
        rules: &Rules,
        choices: &mut impl Choices,
        slots: usize,
        longest: Duration,
    ) -> Vec<Incident> {
        let mut incidents = Vec::new();
        let mut at = Moment::START;
        for _ in 0..choices.below(rules.incidents + 1) {
            // Faults that come together find more than those that come alone.
            let most = choices.weighted(&[(20_u64, 3), (4, 3), (0, 2)]);
            at = at + choices.duration(Duration::ZERO, Duration::from_secs(most) + LEAST_GAP);
            if at >= CALM_FROM {
                break;
            }
            let kind = choices.weighted(rules.faults);
            let fault = fault(kind, choices, slots, longest, rules.ahead);
            incidents.push(Incident { at, fault });
        }
        incidents
    }
}

/// What comes at once comes within this time.
const LEAST_GAP: Duration = Duration::from_millis(50);

/// By how much a clock may differ from true time, so that two of them differ by less than the margin covers.
fn covered_ppm(timing: &Timing) -> i32 {
    let share = timing.safety_margin().as_secs_f64() / timing.lease_duration().as_secs_f64();
    (share / 2.0 * 1_000_000.0) as i32
}

/// The extremes find most.
fn clock(choices: &mut impl Choices, max_ppm: i32) -> Skew {
    let ppm = match choices.below(4) {
        0 => 0,
        1 => max_ppm,
        2 => -max_ppm,
        _ => choices.below(2 * max_ppm.unsigned_abs() + 1) as i32 - max_ppm,
    };
    let hour = Duration::from_secs(3_600);
    Skew::new(choices.duration(hour, hour * 24 * 30), ppm)
}

/// Short ones, ones as long as a call may take, ones as long as a lease, give or take a moment, and long ones.
fn lasting(choices: &mut impl Choices, longest: Duration) -> Duration {
    let (least, spread) = match choices.below(5) {
        0 => (Duration::from_millis(1), Duration::from_millis(500)),
        1 => (Duration::ZERO, longest / 4),
        2 => (longest * 8 / 10, longest * 4 / 10),
        3 => (Duration::ZERO, longest * 2),
        _ => (Duration::ZERO, longest * 4),
    };
    choices.duration(least, spread)
}

fn fault(
    kind: FaultKind,
    choices: &mut impl Choices,
    slots: usize,
    longest: Duration,
    ahead: Ahead,
) -> Fault {
    let whom = match choices.below(2) {
        0 => Whom::Leader,
        _ => Whom::Slot(choices.below(slots as u32) as usize),
    };
    let lasts = lasting(choices, longest);
    match kind {
        FaultKind::Rough => Fault::Weather { weather: Weather::Rough, lasts: lasts * 2 },
        FaultKind::Storm => Fault::Weather { weather: Weather::Storm, lasts },
        FaultKind::PartitionThere => Fault::Partition { whom, way: Way::There, lasts },
        FaultKind::PartitionBack => Fault::Partition { whom, way: Way::Back, lasts },
        FaultKind::PartitionBoth => Fault::Partition { whom, way: Way::Both, lasts },
        FaultKind::Outage => Fault::Outage { refuses: false, lasts },
        FaultKind::Refusal => Fault::Outage { refuses: true, lasts },
        FaultKind::Freeze => Fault::Freeze { whom, lasts },
        FaultKind::Suspend => Fault::Suspend { machine: choices.below(3) as usize, lasts },
        FaultKind::Preempt => Fault::Preempt { whom, lasts },
        FaultKind::Unwatched => Fault::Unwatched { whom },
        FaultKind::Crash => {
            let back_after = choices.chance(90).then_some(lasts);
            Fault::Crash { whom, back_after }
        }
        FaultKind::Resign => Fault::Resign { whom },
        FaultKind::Shutdown => Fault::Shutdown { whom, within: None, back_after: lasts },
        FaultKind::ShutdownWithin => {
            let within = Some(choices.duration(Duration::ZERO, Duration::from_secs(5)));
            Fault::Shutdown { whom, within, back_after: lasts }
        }
        FaultKind::Ineligible => Fault::Ineligible { whom, lasts },
        FaultKind::Guard => Fault::Guard { whom, lasts: Some(lasts) },
        FaultKind::EndlessGuard => Fault::Guard { whom, lasts: None },
        FaultKind::Work => Fault::Work { whom, lasts: Some(lasts) },
        FaultKind::EndlessWork => Fault::Work { whom, lasts: None },
        FaultKind::FalseHint => Fault::FalseHint { whom },
        FaultKind::Depose => Fault::Depose,
        FaultKind::Delete => Fault::Delete,
        FaultKind::Restore => {
            Fault::Restore { writes: 1 + choices.below(12) as usize, lasts: lasts / 8 }
        }
        FaultKind::ClockAhead => {
            let most_ms = match ahead {
                // What the other half of the margin leaves, as it is shared with the rates.
                Ahead::ALittle => 400,
                Ahead::AnyFar => 7_200_000,
            };
            Fault::SetClock { ahead_ms: 1 + i64::from(choices.below(most_ms)) }
        }
        FaultKind::ClockBack => {
            Fault::SetClock { ahead_ms: -1 - i64::from(choices.below(7_200_000)) }
        }
    }
}
