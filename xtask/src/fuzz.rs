//! `cargo xtask fuzz`: has cargo-fuzz look for bytes that break a promise. Ordinary tests repeat what it has found.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command as Process, Stdio},
};

use crate::{
    Command, Failure, cargo, servers,
    steps::Steps,
    tools::{self, Tool},
};

pub(crate) const COMMAND: Command = Command {
    name: "fuzz",
    usage: "fuzz [TARGET] [--seconds N]",
    about: "each target of fuzz/, or one, for N seconds (60); needs a nightly toolchain, installs cargo-fuzz",
    run,
};

/// Of cargo-fuzz: another one may write its programs in another way.
const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.1" };
const TOOLCHAIN: &str = "+nightly";
const SECONDS: u32 = 60;
/// As much as a payload may have, and some more.
const MOST_BYTES: &str = "-max_len=70000";
/// Those of these names start a server.
const NEEDS_A_SERVER: [&str; 2] = ["quoting_mysql", "quoting_postgres"];

fn run(arguments: &[String]) -> Result<(), Failure> {
    let asked = Asked::read(arguments)?;
    let fuzz = cargo::root().join("fuzz");
    let all = targets(&fuzz)?;
    let chosen: Vec<&String> =
        all.iter().filter(|target| asked.target.is_none_or(|asked| asked == *target)).collect();
    if chosen.is_empty() {
        return Err(Failure::new(format!("there is no such target; there are {}", all.join(", "))));
    }
    has_nightly()?;

    let mut steps = Steps::default();
    if chosen.iter().any(|target| NEEDS_A_SERVER.contains(&target.as_str())) {
        steps.step("servers", servers::ensure_installed)?;
    }
    let target = cargo::target_directory()?;
    steps.step(CARGO_FUZZ.name, || CARGO_FUZZ.ensure_installed(&target))?;
    let tools = tools::root(&target);
    steps.program("build", cargo_fuzz(&tools, &fuzz, "build").args(asked.target))?;
    let outcomes = chosen.into_iter().map(|target| {
        let mut search = cargo_fuzz(&tools, &fuzz, "run");
        search.arg(target).arg("--").arg(MOST_BYTES);
        search.args([format!("-max_total_time={}", asked.seconds), "-print_final_stats=1".into()]);
        let words = fuzz.join("dictionaries").join(format!("{target}.dict"));
        if words.exists() {
            search.arg(format!("-dict={}", words.display()));
        }
        steps.program(target, &mut search)
    });
    let outcomes: Vec<_> = outcomes.collect();
    steps.print_summary();
    outcomes.into_iter().collect()
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    target: Option<&'a String>,
    seconds: u32,
}

impl<'a> Asked<'a> {
    fn read(arguments: &'a [String]) -> Result<Self, Failure> {
        let wrong = || Failure::new(format!("unknown arguments; usage: {}", COMMAND.usage));
        let mut asked = Self { target: None, seconds: SECONDS };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seconds" => {
                    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok());
                    asked.seconds = seconds.filter(|seconds| *seconds > 0).ok_or_else(wrong)?;
                }
                _ if argument.starts_with('-') || asked.target.is_some() => return Err(wrong()),
                _ => asked.target = Some(argument),
            }
        }
        Ok(asked)
    }
}

/// The names of the programs.
fn targets(fuzz: &Path) -> Result<Vec<String>, Failure> {
    let programs = fuzz.join("fuzz_targets");
    let cannot = |error| Failure::new(format!("{} cannot be read: {error}", programs.display()));
    let mut names = Vec::new();
    for program in fs::read_dir(&programs).map_err(cannot)? {
        let path = program.map_err(cannot)?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn has_nightly() -> Result<(), Failure> {
    let found = Process::new("cargo")
        .args([TOOLCHAIN, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(Failure::new(
        "there is no nightly toolchain, whose compiler a fuzzer needs to see what code its inputs reach; \
         `rustup toolchain install nightly --profile minimal` installs one. Ordinary tests repeat what was found without",
    ))
}

/// Without a sanitizer, which looks for what no safe code can do, at half the speed.
fn cargo_fuzz(tools: &Path, fuzz: &Path, subcommand: &str) -> Process {
    let mut command = Process::new("cargo");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = [tools.join("bin")].into_iter().chain(std::env::split_paths(&paths));
    if let Ok(paths) = std::env::join_paths(paths.collect::<Vec<PathBuf>>()) {
        command.env("PATH", paths);
    }
    // What the cargo that runs this has set for its own toolchain is of no use to the other one.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").current_dir(cargo::root());
    command.args([TOOLCHAIN, "fuzz", subcommand, "--sanitizer", "none", "--fuzz-dir"]).arg(fuzz);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn one_target_or_all_may_be_asked_for() {
        let all = words("");
        assert_eq!(Asked::read(&all).unwrap(), Asked { target: None, seconds: 60 });
        let one = words("http --seconds 5");
        assert_eq!(Asked::read(&one).unwrap(), Asked { target: Some(&one[0]), seconds: 5 });
        for wrong in ["http urls", "--seconds", "--seconds 0", "--seconds soon", "--minutes 1"] {
            assert!(Asked::read(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_program_is_a_target() {
        let all = targets(&cargo::root().join("fuzz")).unwrap();
        assert!(all.iter().any(|target| target == "timing"), "{all:?}");
        for target in NEEDS_A_SERVER {
            assert!(all.iter().any(|other| other == target), "{target}");
        }
    }
}
