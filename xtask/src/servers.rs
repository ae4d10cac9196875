//! The servers that tests start for themselves: found, or installed as Debian packages.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::Failure;

/// A server whose programs must be on this machine. No server has to run: tests start private ones.
struct Server {
    name: &'static str,
    programs: &'static [&'static str],
    /// Looked for here, beside `PATH`: Debian keeps the programs of each version in a directory of its own.
    versions: &'static str,
    bin: &'static str,
    package: &'static str,
}

const SERVERS: &[Server] = &[Server {
    name: "PostgreSQL",
    programs: &["initdb", "postgres"],
    versions: "/usr/lib/postgresql",
    bin: "bin",
    package: "postgresql",
}];

/// Sees to it that every server is installed.
pub(crate) fn ensure_installed() -> Result<(), Failure> {
    let missing: Vec<&Server> = SERVERS.iter().filter(|server| !server.is_installed()).collect();
    if missing.is_empty() {
        println!("{} is installed", names(SERVERS));
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|server| server.package).collect();
    let by_hand = |why: &str, command: &str| {
        Failure::new(format!(
            "{} is missing and cannot be installed from here: {why}.\n  Run `{command}`, or leave out what needs it with \
             `cargo xtask test --no-servers`.",
            names(missing.iter().copied()),
        ))
    };
    if in_path("apt-get").is_none() {
        let programs: Vec<&str> =
            missing.iter().flat_map(|server| server.programs).copied().collect();
        let why =
            format!("there is no apt-get; `{}` must be in the PATH", programs.join("` and `"));
        return Err(by_hand(&why, &format!("your system's installer for {}", packages.join(" "))));
    }
    let command = format!("apt-get update && apt-get install {}", packages.join(" "));
    if !is_root() {
        return Err(by_hand("that takes root", &format!("sudo sh -c '{command}'")));
    }
    install(&packages).map_err(|why| by_hand(&why, &command))?;
    match missing.iter().find(|server| !server.is_installed()) {
        None => Ok(()),
        Some(server) => Err(by_hand(
            &format!(
                "after the installation there is still no `{}`",
                server.programs.join("` and `")
            ),
            &command,
        )),
    }
}

impl Server {
    fn is_installed(&self) -> bool {
        let together = |directory: &Path| {
            self.programs.iter().all(|program| directory.join(program).is_file())
        };
        let versions = fs::read_dir(self.versions).into_iter().flatten().flatten();
        versions.map(|version| version.path().join(self.bin)).any(|bin| together(&bin))
            || self.programs.iter().all(|program| in_path(program).is_some())
    }
}

/// Installs Debian packages, without the service that a server's package would otherwise set up and start.
fn install(packages: &[&str]) -> Result<(), String> {
    apt_get(&["update"])?;
    let _no_cluster = NoMainCluster::set().map_err(|error| format!("{NO_CLUSTER}: {error}"))?;
    apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    println!("apt-get {}", arguments.join(" "));
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("apt-get cannot be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("apt-get {} failed", arguments[0])) }
}

/// While this exists, Debian's PostgreSQL packages create no cluster "main", which would be started on port 5432.
struct NoMainCluster;

const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/tenure-xtask.conf";

impl NoMainCluster {
    fn set() -> io::Result<Self> {
        let file = Path::new(NO_CLUSTER);
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(file, "create_main_cluster = false\n")?;
        Ok(Self)
    }
}

impl Drop for NoMainCluster {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(NO_CLUSTER) {
            eprintln!("{NO_CLUSTER} could not be removed: {error}");
        }
    }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn names<'a>(servers: impl IntoIterator<Item = &'a Server>) -> String {
    let names: Vec<&str> = servers.into_iter().map(|server| server.name).collect();
    names.join(" and ")
}
