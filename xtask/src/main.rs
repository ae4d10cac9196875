//! The commands of the README: `cargo xtask <command>`.

mod bench;
mod cargo;
mod chaos;
mod conformance;
mod cover;
mod fuzz;
mod interleavings;
mod model;
mod mutants;
mod servers;
mod simulate;
mod steps;
mod tally;
mod test;
mod tools;
mod verdicts;

use std::process::ExitCode;

/// One command. A new one is a module with such a constant, and a line in [`COMMANDS`].
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

/// Why a command failed, in a sentence for whoever called it.
#[derive(Debug)]
struct Failure(String);

impl Failure {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

const COMMANDS: &[Command] = &[
    test::COMMAND,
    conformance::COMMAND,
    interleavings::COMMAND,
    bench::COMMAND,
    chaos::CHAOS,
    chaos::SOAK,
    cover::COMMAND,
    fuzz::COMMAND,
    model::COMMAND,
    mutants::COMMAND,
    simulate::COMMAND,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        return usage();
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("there is no `cargo xtask {name}`");
        return usage();
    };
    match (command.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cargo xtask {name}: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage:");
    for command in COMMANDS {
        eprintln!("  cargo xtask {:<27} {}", command.usage, command.about);
    }
    ExitCode::FAILURE
}
