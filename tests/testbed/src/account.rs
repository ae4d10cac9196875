//! As whom servers run: they refuse to run as root.

use std::{fs, io, os::unix::process::CommandExt, path::Path, process::Command};

/// An unprivileged account, where one is needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account(Option<Ids>);

#[derive(Clone, Copy, Debug)]
struct Ids {
    user: u32,
    group: u32,
}

impl Account {
    /// Our own, or, if we are root, that of the Debian package, or else `nobody`.
    pub(crate) fn unprivileged() -> io::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let accounts = fs::read_to_string("/etc/passwd")?;
        let found = ["postgres", "nobody"].iter().find_map(|name| ids_of(&accounts, name));
        let missing = || io::Error::other("there is neither a user `postgres` nor `nobody`");
        found.map(|ids| Self(Some(ids))).ok_or_else(missing)
    }

    /// A command that will run under this account, in a process group of its own, so that an interrupt from the
    /// terminal, meant for the test, does not reach it as well.
    pub(crate) fn command(self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.process_group(0).current_dir("/");
        if let Some(ids) = self.0 {
            command.uid(ids.user).gid(ids.group);
        }
        command
    }

    /// Hands a file or directory over to this account.
    pub(crate) fn give(self, path: &Path) -> io::Result<()> {
        match self.0 {
            Some(ids) => std::os::unix::fs::chown(path, Some(ids.user), Some(ids.group)),
            None => Ok(()),
        }
    }
}

fn ids_of(accounts: &str, name: &str) -> Option<Ids> {
    let line = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut ids = line.split(':').skip(2).map(str::parse);
    Some(Ids { user: ids.next()?.ok()?, group: ids.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts = "root:x:0:0::/:/bin/sh\npostgres2:x:7:8::/:\npostgres:x:101:104::/:\n";
        let ids = ids_of(accounts, "postgres").unwrap();
        assert_eq!((ids.user, ids.group), (101, 104));
        assert!(ids_of(accounts, "post").is_none());
    }
}
