//! Calls of cargo, and what cargo knows about the workspace.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::Failure;

/// The cargo that runs this program, at the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A program that runs the tests of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    /// Where cargo would run it.
    pub(crate) directory: PathBuf,
    pub(crate) executable: PathBuf,
}

/// Builds the integration tests of these names, in all packages that have one.
pub(crate) fn test_programs(names: &[&str]) -> Result<Vec<TestProgram>, Failure> {
    let output = cargo()
        .args(["test", "--workspace", "--all-features", "--no-run", "--message-format"])
        .arg("json-render-diagnostics")
        .args(names.iter().flat_map(|name| ["--test", name]))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("cargo cannot be started: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("the tests cannot be built: {}", output.status)));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut programs: Vec<_> = messages.lines().filter_map(test_program).collect();
    programs.sort_by(|one, other| one.package.cmp(&other.package));
    Ok(programs)
}

/// Reads one of cargo's messages.
fn test_program(message: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(message).ok()?;
    let executable = message["executable"].as_str()?.into();
    if !items(&message["target"]["kind"]).any(|kind| kind == "test") {
        return None;
    }
    // `path+file:///integrations/sqlite#tenure-sqlite@0.1.0`
    let (_, package) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = package.split('@').next().unwrap_or(package).to_owned();
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?.into();
    Some(TestProgram { package, directory, executable })
}

/// The names of all integration tests in the workspace, sorted.
pub(crate) fn integration_tests() -> Result<Vec<String>, Failure> {
    Ok(test_targets(&metadata()?))
}

/// What cargo knows about the workspace.
fn metadata() -> Result<Value, Failure> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|error| Failure::new(format!("cargo cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("cargo metadata failed: {said}")));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::new(format!("cargo metadata printed no JSON: {error}")))
}

fn test_targets(metadata: &Value) -> Vec<String> {
    let targets = items(&metadata["packages"]).flat_map(|package| items(&package["targets"]));
    let mut names: Vec<String> = targets
        .filter(|target| items(&target["kind"]).any(|kind| kind == "test"))
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf, Failure> {
    let metadata = metadata()?;
    let directory = metadata["target_directory"].as_str();
    directory.map(PathBuf::from).ok_or_else(|| Failure::new("cargo metadata names no target"))
}

/// As told by the cargo that runs this: checkouts that share a target directory share this program as well.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integration_tests_are_found_and_other_targets_are_not() {
        let metadata = serde_json::json!({"packages": [
            {"targets": [
                {"kind": ["lib"], "name": "library"},
                {"kind": ["test"], "name": "server_kill"},
            ]},
            {"targets": [{"kind": ["test"], "name": "select"}, {"kind": ["example"], "name": "axum"}]},
        ]});
        assert_eq!(test_targets(&metadata), ["select", "server_kill"]);
    }

    #[test]
    fn test_programs_are_told_from_other_artifacts() {
        let message = |kind, executable| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": "path+file:///here/integrations/sqlite#tenure-sqlite@0.1.0",
                "manifest_path": "/here/integrations/sqlite/Cargo.toml",
                "target": {"kind": [kind], "name": "conformance"},
                "executable": executable,
            })
            .to_string()
        };
        let program = test_program(&message("test", Some("/target/conformance-1"))).unwrap();
        assert_eq!(program.package, "tenure-sqlite");
        assert_eq!(program.directory, Path::new("/here/integrations/sqlite"));
        assert_eq!(program.executable, Path::new("/target/conformance-1"));
        assert_eq!(test_program(&message("bin", Some("/target/failover"))), None);
        assert_eq!(test_program(&message("lib", None)), None);
        assert_eq!(test_program("not JSON"), None);
    }

    #[test]
    fn this_workspace_has_the_tests_of_its_examples() {
        let tests = integration_tests().unwrap();
        assert!(tests.iter().any(|test| test == "failover"), "{tests:?}");
    }
}
