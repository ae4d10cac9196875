//! Calls of cargo, and what cargo knows about the workspace.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Failure;

/// The cargo that runs this program, at the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The names of all integration tests in the workspace, sorted.
pub(crate) fn integration_tests() -> Result<Vec<String>, Failure> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|error| Failure::new(format!("cargo cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("cargo metadata failed: {said}")));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::new(format!("cargo metadata printed no JSON: {error}")))?;
    Ok(test_targets(&metadata))
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

/// As told by the cargo that runs this: checkouts that share a target directory share this program as well.
fn root() -> PathBuf {
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
    fn this_workspace_has_the_tests_of_its_examples() {
        let tests = integration_tests().unwrap();
        assert!(tests.iter().any(|test| test == "failover"), "{tests:?}");
    }
}
