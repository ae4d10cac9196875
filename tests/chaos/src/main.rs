//! Elections on real servers that are broken underneath: what befalls them stands in `scenarios`, each on a `Stage`, which
//! is a fleet on its `Ground`; what is made of it in `verdict`, and what it looks like in `picture`. In `http` services of the
//! examples take the place of fleets, and what their clients were answered that of what candidates say.

mod about;
mod footprint;
mod ground;
mod http;
mod kind;
mod perform;
mod picture;
mod plan;
mod record;
mod scenarios;
mod soak;
mod stage;
mod verdict;

use std::{env, fs, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use crate::{kind::Kind, plan::Item, scenarios::Scenario, stage::Mode};

#[derive(Debug, Parser)]
#[command(about = "Elections on real servers that are broken underneath")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays scenarios. Without arguments, each once on one of the stores that it fits.
    Play(PlayArguments),
    /// Plays random faults for long, with candidates replaced in flight, and watches what must stay flat.
    Soak(soak::SoakArguments),
}

#[derive(Debug, Args)]
struct PlayArguments {
    /// These; on all stores that they fit, unless stores are named.
    #[arg(value_parser = scenario)]
    scenarios: Vec<&'static Scenario>,
    /// On these stores alone: postgres, pgbouncer, postgres18, mariadb, sqlite, nats, nats-current.
    #[arg(long = "store")]
    stores: Vec<Kind>,
    /// Every scenario on every store that it fits, with candidates of every kind that it fits.
    #[arg(long)]
    all: bool,
    /// Candidates on threads of one process; without this and `--all`, each has a process of its own.
    #[arg(long)]
    threads: bool,
    /// Candidates that are processes of the axum example.
    #[arg(long, conflicts_with = "threads")]
    examples: bool,
    /// How many at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// What is left to chance is determined by this.
    #[arg(long)]
    seed: Option<u64>,
    /// Writes a page with a picture of each to this file.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Tells which scenarios there are, and plays none.
    #[arg(long)]
    list: bool,
    /// Keeps the closing table in this document.
    #[arg(long)]
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Play(arguments) => play(&arguments),
        Command::Soak(arguments) => soak::run(&arguments, processes()),
    }
}

fn play(arguments: &PlayArguments) -> ExitCode {
    if arguments.list {
        list();
        return ExitCode::SUCCESS;
    }
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let items = items(arguments);
    println!("{} to play, seed {seed}", items.len());
    let performances = perform::all(items, arguments.jobs, seed);
    let report = perform::report(&performances, about::this(seed));
    println!("\n{}", report.to_table());
    let reported = arguments.report.as_ref().map(|file| (file, fs::write(file, report.to_html())));
    let kept = arguments
        .record
        .as_ref()
        .map(|document| (document, record::keep(document, "chaos", &report.to_markdown())));
    for (file, written) in reported.into_iter().chain(kept) {
        if let Err(error) = written {
            eprintln!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
        println!("{}", file.display());
    }
    if performances.is_empty() || !performances.iter().all(perform::Performance::passed) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn list() {
    for scenario in scenarios::all() {
        let fits = |kind: &Kind| scenario.fits(*kind);
        let kinds: Vec<_> = Kind::ALL.into_iter().filter(fits).map(Kind::name).collect();
        let modes = modes().into_iter().filter(|mode| scenario.fits_mode(mode));
        let modes: Vec<_> = modes.map(|mode| mode.to_string()).collect();
        let Scenario { name, about, .. } = scenario;
        println!("{name}: {about}\n    {}\n    {}", kinds.join(" "), modes.join(" "));
    }
}

fn items(arguments: &PlayArguments) -> Vec<Item> {
    let all: Vec<&'static Scenario> = scenarios::all().collect();
    let is_named = !arguments.scenarios.is_empty();
    let is_one_mode = arguments.threads || arguments.examples;
    if !arguments.all && !is_named && arguments.stores.is_empty() && !is_one_mode {
        return plan::once(&modes());
    }
    let scenarios = if is_named { &arguments.scenarios } else { &all };
    let kinds = if arguments.stores.is_empty() { &Kind::ALL[..] } else { &arguments.stores };
    let chosen = match (arguments.threads, arguments.examples) {
        (true, _) => &[Mode::Threads][..],
        (_, true) => &[examples()],
        _ if arguments.all => &modes(),
        _ => &[processes()],
    };
    plan::matrix(scenarios, kinds, chosen)
}

fn modes() -> [Mode; 3] {
    [processes(), examples(), Mode::Threads]
}

/// The program that runs a candidate lies beside this one.
fn processes() -> Mode {
    Mode::Processes(beside("participant"))
}

fn examples() -> Mode {
    Mode::Examples(beside("examples").join("axum"))
}

fn beside(name: &str) -> PathBuf {
    env::current_exe().unwrap_or_default().with_file_name(name)
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    let found = scenarios::all().find(|scenario| scenario.name == name);
    found.ok_or_else(|| format!("there is no scenario {name}; `list` lists them"))
}
