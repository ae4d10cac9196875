//! `cargo xtask simulate`: fleets of candidates on virtual time, by the ten thousand.

mod campaigns;
mod picture;
mod report;
mod runner;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use tenure_world::{Properties, Property};

use self::{
    campaigns::{CAMPAIGNS, Campaign},
    runner::Tally,
};

/// What is promised: below that schedules take too long for CI to play many.
const LEAST_SPEED: f64 = 200.0;

/// Plays schedules of faults against fleets of candidates, and fails at the first thing that must not happen.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many schedules of each campaign
    #[arg(long, default_value_t = 10_000)]
    schedules: u64,
    /// What determines all of them
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// This campaign alone
    #[arg(long)]
    campaign: Option<String>,
    /// This schedule alone, with its timeline
    #[arg(long, requires = "campaign")]
    schedule: Option<u64>,
    /// Draws this schedule into a file, as SVG: who led, what was asked of the store, what struck, when nobody led
    #[arg(long, value_name = "FILE.svg", requires = "schedule")]
    draw: Option<PathBuf>,
    /// Watches everything but this property, to see what others find
    #[arg(long = "without")]
    without: Vec<Property>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let named =
        |campaign: &&Campaign| arguments.campaign.as_ref().is_none_or(|name| name == campaign.name);
    let chosen: Vec<&Campaign> = CAMPAIGNS.iter().filter(named).collect();
    let watched = arguments.without.iter().fold(Properties::ALL, |all, one| all.without(*one));
    let seed = arguments.seed;
    match (&chosen[..], arguments.schedule) {
        ([], _) => {
            let names: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
            eprintln!("there is no such campaign; there are: {}", names.join(", "));
            ExitCode::FAILURE
        }
        ([campaign], Some(schedule)) => {
            report::replay(campaign, schedule, seed, watched, arguments.draw.as_deref())
        }
        (campaigns, _) => simulate(campaigns, &arguments, watched),
    }
}

fn simulate(campaigns: &[&Campaign], arguments: &Arguments, watched: Properties) -> ExitCode {
    let Arguments { schedules, seed, .. } = *arguments;
    println!("seed {seed}, {schedules} schedules of each campaign");
    report::print_head();
    let mut all = Tally::default();
    for campaign in campaigns {
        let tally = runner::run(campaign, schedules, seed, watched);
        report::print_row(campaign.name, &tally);
        if let Some((schedule, violation)) = &tally.failed {
            report::print_failure(campaign, *schedule, seed, watched, violation);
            return ExitCode::FAILURE;
        }
        all.add(&tally);
    }
    report::print_row("all", &all);
    let is_fast = all.speed() >= LEAST_SPEED;
    if !is_fast {
        eprintln!("a core plays less than {LEAST_SPEED} schedules a second");
    }
    // What one campaign does not try, another one does.
    let is_complete = report::print_coverage(&all.coverage) || campaigns.len() < CAMPAIGNS.len();
    if is_fast && is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
