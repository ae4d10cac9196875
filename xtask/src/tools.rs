//! Programs of crates.io that commands need: each of one version, below the directory of what cargo builds.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Failure, cargo};

/// A program that cargo installs.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Of the package, and of its program.
    pub(crate) name: &'static str,
    /// Exactly this one.
    pub(crate) version: &'static str,
}

impl Tool {
    /// Installs it unless it is there.
    pub(crate) fn ensure_installed(&self, target: &Path) -> Result<(), Failure> {
        let Self { name, version } = self;
        let found = self.command(target).arg("--version").stderr(Stdio::null()).output();
        if found.is_ok_and(|output| says(&output.stdout, version)) {
            println!("{name} {version} is installed");
            return Ok(());
        }
        // In place of another version, if one is there.
        let status = cargo::cargo()
            .args(["install", name, "--force", "--locked", "--version", version, "--root"])
            .arg(root(target))
            .status()
            .map_err(|error| Failure::new(format!("cargo cannot be started: {error}")))?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::new(format!("cargo install {name}: {status}")))
        }
    }

    /// The program itself. It calls cargo, which finds this workspace.
    pub(crate) fn command(&self, target: &Path) -> Command {
        let mut command = Command::new(root(target).join("bin").join(self.name));
        command.current_dir(cargo::root());
        command
    }
}

/// Where they are.
pub(crate) fn root(target: &Path) -> PathBuf {
    target.join("tools")
}

/// Whether a program's `name version` is this version.
fn says(output: &[u8], version: &str) -> bool {
    String::from_utf8_lossy(output).split_whitespace().any(|word| word == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_version_will_do() {
        assert!(says(b"cargo-tarpaulin-tarpaulin 0.37.5\n", "0.37.5"));
        assert!(!says(b"cargo-tarpaulin-tarpaulin 0.37.50\n", "0.37.5"));
        assert!(!says(b"", "0.37.5"));
    }
}
