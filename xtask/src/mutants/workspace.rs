//! The copy of the workspace with all bugs in it.

use std::{
    collections::HashSet,
    fs, io,
    os::unix,
    path::{Path, PathBuf},
    process::Command,
};

use super::seed::Seed;
use crate::{Failure, cargo};

/// What the copy of the crate `tenure` has at its end: asks once which bug is awake.
const SWITCH: &str = r#"
/// Whether the seeded bug of this name is awake.
#[doc(hidden)]
#[must_use]
pub fn seeded(name: &str) -> bool {
    static AWAKE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    AWAKE.get_or_init(|| std::env::var("TENURE_MUTANT").ok()).as_deref() == Some(name)
}
"#;

/// Where tests look for servers that no distribution has, from the root of the workspace that they are built in.
const SERVERS: &str = "target/servers";

/// Brings the copy up to date and returns where it is. What has not changed is left alone, so that cargo need not build it
/// again.
pub(super) fn prepare(seeds: &[Seed]) -> Result<PathBuf, Failure> {
    let (root, copy) = (cargo::root(), cargo::target_directory()?.join("mutants/workspace"));
    let files = tracked(&root)?;
    for file in &files {
        let Ok(bytes) = fs::read(root.join(file)) else { continue };
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => seeded(file, text, seeds)?.into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        write_if_new(&copy.join(file), &bytes).map_err(|error| cannot("written", file, &error))?;
    }
    let mut kept: HashSet<PathBuf> = files.iter().map(PathBuf::from).collect();
    kept.insert(SERVERS.into());
    remove_others(&copy, &copy, &kept).map_err(|error| cannot("tidied", "the copy", &error))?;
    lend_servers(&root.join(SERVERS), &copy.join(SERVERS))
        .map_err(|error| cannot("lent", SERVERS, &error))?;
    Ok(copy)
}

/// What git would commit: nothing that was built, and nothing that lies around.
fn tracked(root: &Path) -> Result<Vec<String>, Failure> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| cannot("asked", "git", &error))?;
    if !output.status.success() {
        return Err(Failure::new(format!("git ls-files failed: {}", output.status)));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn seeded(file: &str, mut text: String, seeds: &[Seed]) -> Result<String, Failure> {
    for seed in seeds.iter().filter(|seed| seed.file == file) {
        text = seed.plant(&text)?;
    }
    if file == "src/lib.rs" {
        text.push_str(SWITCH);
    }
    Ok(text)
}

fn write_if_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

/// Files that are gone in the workspace would still be built in the copy. What a link leads to is not the copy's.
fn remove_others(copy: &Path, folder: &Path, files: &HashSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_others(copy, &path, files)?;
        } else if path.strip_prefix(copy).is_ok_and(|file| !files.contains(file)) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The copy's tests start the servers of the workspace.
fn lend_servers(servers: &Path, link: &Path) -> io::Result<()> {
    if fs::read_link(link).is_ok_and(|before| before == servers) {
        return Ok(());
    }
    if let Some(folder) = link.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => unix::fs::symlink(servers, link),
    }
}

fn cannot(what: &str, file: &str, error: &io::Error) -> Failure {
    Failure::new(format!("{file} cannot be {what}: {error}"))
}
