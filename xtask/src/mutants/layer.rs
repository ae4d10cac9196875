//! What is to notice a bug, and how it is run.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;
use serde_json::Value;

use super::seed::Seed;
use crate::{Failure, cargo};

/// A kind of test.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Layer {
    /// The tests inside the crate `tenure`.
    Unit,
    /// The model checker.
    Model,
    /// Fleets on virtual time.
    Simulation,
    /// The acceptance suite, on the store that the bug is in.
    Conformance,
    /// The tests of the adapters, within their crates and on real connections.
    Adapters,
}

/// No test programs, but they run like them: each fails when something is wrong.
const MODEL: &str = "tenure-model";
const SIMULATION: &str = "tenure-simulation";

/// So many schedules of a campaign are played: without a bug that takes seconds, and the bugs show among the first.
const SCHEDULES: &[&str] = &["--schedules", "300", "--seed", "1", "--campaign"];

/// Programs that bugs are tried on: package, and target.
const PROGRAMS: &[(&str, &str)] = &[
    ("tenure", "tenure"),
    ("tenure-model", MODEL),
    ("tenure-simulation", SIMULATION),
    ("tenure-conformance", "conformance"),
    ("tenure-sqlite", "conformance"),
    ("tenure-http", "tenure_http"),
    ("tenure-tower", "tenure_tower"),
    ("tenure-actix", "actors"),
    ("tenure-actix-web", "gate"),
];
/// Those that start a server.
const WITH_SERVERS: &[(&str, &str)] = &[
    ("tenure-postgres", "server_conformance"),
    ("tenure-mysql", "server_conformance"),
    ("tenure-nats", "server_conformance"),
];

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unit => "unit",
            Self::Model => "model",
            Self::Simulation => "simulation",
            Self::Conformance => "conformance",
            Self::Adapters => "adapters",
        })
    }
}

impl Layer {
    /// How to try this bug on this layer; nothing if that takes a server and there is to be none.
    pub(super) fn trials(
        self,
        seed: &Seed,
        tests: &[String],
        programs: &Programs,
    ) -> Result<Vec<Trial>, Failure> {
        let package = match self {
            Self::Unit => "tenure",
            Self::Model => MODEL,
            Self::Simulation => SIMULATION,
            Self::Conformance if seed.file.starts_with("src/") => "tenure-conformance",
            Self::Conformance | Self::Adapters => &package_of(&seed.file)?,
        };
        let (built, skipped): (Vec<_>, Vec<_>) = PROGRAMS
            .iter()
            .chain(WITH_SERVERS)
            .filter(|(it, _)| *it == package)
            .partition(|named| programs.0.iter().any(|program| program.is(named)));
        if built.is_empty() && skipped.iter().all(|named| !WITH_SERVERS.contains(named)) {
            return Err(Failure::new(format!("{} has no tests for {}", package, seed.name)));
        }
        let trial = |program: &&Program| Trial {
            executable: program.executable.clone(),
            directory: program.directory.clone(),
            arguments: self.arguments(tests),
            name: format!("{}/{}", program.package, program.target),
        };
        Ok(programs
            .0
            .iter()
            .filter(|program| built.iter().any(|named| program.is(named)))
            .map(|program| trial(&program))
            .collect())
    }

    fn arguments(self, tests: &[String]) -> Vec<String> {
        let always = if self == Self::Simulation { SCHEDULES } else { &[] };
        always.iter().map(ToString::to_string).chain(tests.iter().cloned()).collect()
    }
}

/// `integrations/actix-web/src/gate.rs` belongs to `tenure-actix-web`.
fn package_of(file: &str) -> Result<String, Failure> {
    let folder = file.strip_prefix("integrations/").and_then(|rest| rest.split('/').next());
    folder
        .map(|folder| format!("tenure-{folder}"))
        .ok_or_else(|| Failure::new(format!("{file} belongs to no integration")))
}

/// A test program, and what is run of it.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) executable: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) arguments: Vec<String>,
    name: String,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// All test programs of the seeded workspace.
#[derive(Debug, Default)]
pub(super) struct Programs(Vec<Program>);

#[derive(Debug, PartialEq, Eq)]
struct Program {
    package: String,
    target: String,
    directory: PathBuf,
    executable: PathBuf,
}

impl Programs {
    /// Builds them with the features that everything else is built with, so that no dependency is compiled again.
    pub(super) fn build(root: &Path, with_servers: bool) -> Result<Self, Failure> {
        let mut command = in_copy(root, "test")?;
        command.args(["--workspace", "--all-features", "--no-run", "--lib"]);
        let wanted = PROGRAMS.iter().chain(if with_servers { WITH_SERVERS } else { &[] });
        let mut targets: Vec<_> = wanted.map(|(_, target)| *target).collect();
        // A library's tests are called like the library, and what is no test is built below.
        targets.retain(|target| !target.starts_with("tenure"));
        targets.sort_unstable();
        targets.dedup();
        command.args(targets.iter().flat_map(|target| ["--test", target]));
        let mut programs = built(command)?;
        // One by one, as the commands that run them build them.
        for fast in [MODEL, SIMULATION] {
            let mut command = in_copy(root, "build")?;
            command.args(["--release", "--package", fast]);
            programs.extend(built(command)?);
        }
        Ok(Self(programs))
    }
}

fn in_copy(root: &Path, subcommand: &str) -> Result<Command, Failure> {
    let mut command = cargo::cargo();
    command
        .current_dir(root)
        .env("CARGO_TARGET_DIR", cargo::target_directory()?)
        .args([subcommand, "--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit());
    Ok(command)
}

fn built(mut command: Command) -> Result<Vec<Program>, Failure> {
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("cargo cannot be started: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("the copy cannot be built: {}", output.status)));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(Program::of_message).collect())
}

impl Program {
    fn of_message(message: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        let executable = message["executable"].as_str()?.into();
        let target = message["target"]["name"].as_str()?;
        if message["profile"]["test"] != true && ![MODEL, SIMULATION].contains(&target) {
            return None;
        }
        let manifest = Path::new(message["manifest_path"].as_str()?);
        let (_, package) = message["package_id"].as_str()?.rsplit_once('#')?;
        Some(Self {
            package: package.split('@').next()?.to_owned(),
            target: target.to_owned(),
            directory: manifest.parent()?.into(),
            executable,
        })
    }

    fn is(&self, (package, target): &(&str, &str)) -> bool {
        self.package == *package && self.target == *target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_belongs_to_the_package_of_its_file() {
        assert_eq!(package_of("integrations/actix-web/src/body.rs").unwrap(), "tenure-actix-web");
        assert!(package_of("src/term/cell.rs").is_err());
    }

    #[test]
    fn only_what_runs_tests_is_a_test_program() {
        let message = |test| {
            serde_json::json!({
                "package_id": "path+file:///here/integrations/http#tenure-http@0.1.0",
                "manifest_path": "/here/integrations/http/Cargo.toml",
                "target": {"kind": ["lib"], "name": "tenure_http"},
                "profile": {"test": test},
                "executable": "/target/tenure_http-1",
            })
            .to_string()
        };
        let program = Program::of_message(&message(true)).unwrap();
        assert!(program.is(&("tenure-http", "tenure_http")));
        assert_eq!(program.directory, Path::new("/here/integrations/http"));
        assert_eq!(Program::of_message(&message(false)), None);
    }
}
