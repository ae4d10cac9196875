//! The copy of the workspace with all bugs in it.

use std::{
    collections::HashSet,
    fs, io,
    os::unix,
    path::{Path, PathBuf},
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
    let files = files_below(&root)?;
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

/// The files of the workspace, by their paths from its root: nothing that was built, and nothing of git's, which a checkout need
/// not have.
fn files_below(root: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let unreadable = |error| cannot("read", &directory.display().to_string(), &error);
        for entry in fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
            let is_ours = ![Some("target"), Some(".git")].contains(&entry.file_name().to_str());
            if kind.is_dir() && is_ours {
                directories.push(path);
            } else if let (true, Ok(name)) = (kind.is_file(), path.strip_prefix(root)) {
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

fn seeded(file: &str, mut text: String, seeds: &[Seed]) -> Result<String, Failure> {
    for seed in seeds.iter().filter(|seed| seed.file == file) {
        text = seed.plant(&text)?;
    }
    match file {
        "src/lib.rs" => text.push_str(SWITCH),
        "Cargo.toml" => text = versioned(&text)?,
        _ => {}
    }
    Ok(text)
}

/// Gives the copy a version of its own. Cargo tells packages of the same version in different workspaces apart by their paths from
/// the roots of these, which are the same here: it would take what it built of the copy for the workspace's, and go on
/// doing so after that has changed.
fn versioned(manifest: &str) -> Result<String, Failure> {
    let version = concat!("\nversion = \"", env!("CARGO_PKG_VERSION"));
    let seeded = manifest.replacen(version, &format!("{version}+seeded"), 1);
    if seeded == manifest {
        return Err(Failure::new("Cargo.toml does not say the version of the workspace"));
    }
    Ok(seeded)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_another_version_than_the_workspace_and_fits_its_requirements() {
        let manifest = fs::read_to_string(cargo::root().join("Cargo.toml")).unwrap();
        let versioned = versioned(&manifest).unwrap();
        let (ours, theirs) =
            (env!("CARGO_PKG_VERSION"), concat!(env!("CARGO_PKG_VERSION"), "+seeded"));
        assert_eq!(versioned.matches(theirs).count(), 1);
        assert_eq!(versioned.replace(theirs, ours), manifest);
    }

    #[test]
    fn all_that_a_build_needs_is_copied_and_nothing_that_one_leaves() {
        let files = files_below(&cargo::root()).unwrap();
        for needed in ["Cargo.lock", ".cargo/config.toml", "src/lib.rs", "xtask/mutants/term.toml"]
        {
            assert!(files.iter().any(|file| file == needed), "{needed} is missing");
        }
        let left = |file: &&String| file.starts_with("target/") || file.starts_with(".git/");
        assert_eq!(files.iter().find(left), None);
    }
}
