//! What a run prints.

use std::{fs, io, path::Path, process::ExitCode};

use tenure_world::{Coverage, Properties, Run, Script, Violation, play, shrink};

use crate::{
    campaigns::Campaign,
    picture,
    runner::{self, Tally},
};

/// How much of a timeline is shown before what must not happen.
const LAST_EVENTS: usize = 120;

pub(crate) fn print_head() {
    println!(
        "{:<16} {:>10} {:>14} {:>14} {:>12} {:>14}",
        "campaign", "schedules", "steps", "events", "schedules/s", "steps/s"
    );
}

pub(crate) fn print_row(name: &str, tally: &Tally) {
    println!(
        "{name:<16} {:>10} {:>14} {:>14} {:>12.0} {:>14.0}",
        tally.schedules,
        tally.steps,
        tally.events,
        tally.speed(),
        tally.steps_per_second()
    );
}

/// Prints what was exercised; false if something never was.
pub(crate) fn print_coverage(coverage: &Coverage) -> bool {
    let table = coverage.table();
    println!();
    for pair in table.chunks(2) {
        for row in pair {
            print!("{:<36} {:>12}    ", row.what, row.times);
        }
        println!();
    }
    let never: Vec<&str> =
        table.iter().filter(|row| row.times == 0).map(|row| row.what.as_str()).collect();
    if !never.is_empty() {
        println!("never exercised: {}", never.join(", "));
    }
    never.is_empty()
}

pub(crate) fn print_failure(
    campaign: &Campaign,
    schedule: u64,
    seed: u64,
    watched: Properties,
    violation: &Violation,
) {
    println!("\ncampaign {}: {}", campaign.name, campaign.about);
    println!("schedule {schedule}: {violation}");
    let shrunk = shrink(&runner::script(campaign, schedule, seed), watched, violation);
    println!("\nthe shortest schedule that was found to do the same:");
    print_script(&shrunk);
    print_timeline(&play(&shrunk, watched, true));
    println!("\nVIOLATED: {}", violation.property);
    let replay = command(campaign, schedule, seed, watched);
    let file = format!("{}-{schedule}.svg", campaign.name);
    println!("replay with: {replay}\ndraw with: {replay} --draw {file}");
}

/// What plays this schedule again, and watches the same.
fn command(campaign: &Campaign, schedule: u64, seed: u64, watched: Properties) -> String {
    let name = campaign.name;
    let mut command =
        format!("cargo xtask simulate --campaign {name} --schedule {schedule} --seed {seed}");
    for property in watched.left_out() {
        command.push_str(" --without ");
        command.push_str(property.name());
    }
    command
}

/// Plays one schedule as it is, and shows everything; draws it into this file.
pub(crate) fn replay(
    campaign: &Campaign,
    schedule: u64,
    seed: u64,
    watched: Properties,
    file: Option<&Path>,
) -> ExitCode {
    let script = runner::script(campaign, schedule, seed);
    print_script(&script);
    let run = play(&script, watched, true);
    if let Some(file) = file {
        let title = format!("{}, schedule {schedule}, seed {seed}", campaign.name);
        if let Err(error) = draw(title, campaign.about, &script, &run, file) {
            eprintln!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
        println!("drawn into {}\n", file.display());
    }
    match &run.violation {
        Some(violation) => {
            print_failure(campaign, schedule, seed, watched, violation);
            ExitCode::FAILURE
        }
        None => {
            run.history.iter().for_each(|event| println!("{event}"));
            println!("nothing is violated");
            ExitCode::SUCCESS
        }
    }
}

fn draw(title: String, about: &str, script: &Script, run: &Run, file: &Path) -> io::Result<()> {
    fs::write(file, picture::draw(title, about, script, run).to_svg())
}

fn print_script(script: &Script) {
    println!(
        "store {:?}, clock {:+} ppm, {} unlucky calls",
        script.store,
        script.store_clock.ppm,
        script.rolls.iter().filter(|roll| **roll != 0).count()
    );
    for (slot, candidate) in script.candidates.iter().enumerate() {
        let timing = &candidate.timings[0];
        println!(
            "c{slot}: clock {:+} ppm, machine {}, lease {:?}, margin {:?}, {:?}, eligible: {}, releases: {}",
            candidate.clock.ppm,
            candidate.machine,
            timing.lease_duration(),
            timing.safety_margin(),
            timing.expiry(),
            candidate.eligible,
            candidate.releases,
        );
    }
    for incident in &script.incidents {
        println!("{}  {:?}", incident.at, incident.fault);
    }
    println!();
}

fn print_timeline(run: &Run) {
    let from = run.history.len().saturating_sub(LAST_EVENTS);
    for event in &run.history[from..] {
        println!("{event}");
    }
    if let Some(violation) = &run.violation {
        println!("{violation}");
    }
}

#[cfg(test)]
mod tests {
    use tenure_world::Property;

    use super::*;
    use crate::campaigns::CAMPAIGNS;

    #[test]
    fn a_schedule_is_played_again_as_it_was_watched() {
        let of = |watched| command(&CAMPAIGNS[0], 7, 3, watched);
        let all = of(Properties::ALL);
        let name = CAMPAIGNS[0].name;
        assert_eq!(all, format!("cargo xtask simulate --campaign {name} --schedule 7 --seed 3"));
        let some = Properties::ALL.without(Property::OneLeader).without(Property::GivenBack);
        assert_eq!(of(some), format!("{all} --without one-leader --without given-back"));
    }
}
