//! One directory for each process that uses the testbed, removed when that process is gone.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::account::Account;

/// Everything that servers of this process write lies below it.
#[derive(Debug)]
pub(crate) struct Sandbox {
    account: Account,
    root: PathBuf,
    made: AtomicU32,
    // Waits at the other end of a pipe that closes when this process ends, however it ends; then it cleans up.
    _janitor: Child,
}

/// A server that is still going down may put a file into the directory that is being removed.
const JANITOR: &str = r#"read -r _; until rm -rf -- "$1"; do sleep 0.1; done"#;

impl Sandbox {
    /// That of this process.
    pub(crate) fn of_this_process() -> io::Result<&'static Self> {
        static SANDBOX: OnceLock<Result<Sandbox, String>> = OnceLock::new();
        let made = SANDBOX.get_or_init(|| {
            Self::make().map_err(|error| format!("no directory for private servers: {error}"))
        });
        made.as_ref().map_err(|error| io::Error::other(error.as_str()))
    }

    fn make() -> io::Result<Self> {
        let account = Account::unprivileged()?;
        let directory = tempfile::Builder::new().prefix("tenure-testbed-").tempdir()?;
        account.give(directory.path())?;
        let janitor = account
            .command("/bin/sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // From here on it is the janitor's to remove.
        let root = directory.keep();
        Ok(Self { account, root, made: AtomicU32::new(0), _janitor: janitor })
    }

    pub(crate) fn account(&self) -> Account {
        self.account
    }

    /// A path below the sandbox at which there is nothing yet.
    pub(crate) fn fresh_path(&self, name: &str) -> PathBuf {
        // Only the number has to differ; nothing is ordered by it.
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        self.root.join(format!("{name}-{number}"))
    }

    /// Copies a directory, with owners and modes.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        let status = self.account.command("cp").arg("-Rp").arg(from).arg(to).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("cp: {status}"))) }
    }
}
