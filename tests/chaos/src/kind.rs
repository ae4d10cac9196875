//! What elections are held on, and what a scenario can do to it.

use std::{fmt, str::FromStr};

/// A store, and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Postgres,
    /// Behind PgBouncer, which pools transactions over three connections.
    Pooled,
    Postgres18,
    Mariadb,
    Sqlite,
    /// As Debian has it: 2.9.
    Nats,
    NatsCurrent,
}

/// What a scenario takes for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A network path from each candidate to the store.
    Path,
    /// A server that can be stopped.
    Server,
    /// Tables that can be locked.
    Tables,
    /// A server that judges by its own clock, of which users may be shown another one.
    Clock,
    /// Rows that can be locked one by one, users whose rights can change, sessions that can be ended.
    Users,
    /// A server that can be followed by another one.
    Standby,
    /// A pool that the application and its store can share.
    ApplicationPool,
    /// A pooler.
    Pooler,
    /// Candidates in processes of their own, which can be killed and frozen.
    Processes,
    /// The tests' own candidates: they do more than shut down when they are told to, say more of themselves than is seen from
    /// outside, and take part whether there is a database or not.
    Participants,
    /// A database in which the examples keep their ledger.
    Ledger,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Postgres,
        Self::Pooled,
        Self::Postgres18,
        Self::Mariadb,
        Self::Sqlite,
        Self::Nats,
        Self::NatsCurrent,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Pooled => "pgbouncer",
            Self::Postgres18 => "postgres18",
            Self::Mariadb => "mariadb",
            Self::Sqlite => "sqlite",
            Self::Nats => "nats",
            Self::NatsCurrent => "nats-current",
        }
    }

    /// Whether elections on it can be broken so.
    pub(crate) const fn has(self, need: Need) -> bool {
        let is_postgres = matches!(self, Self::Postgres | Self::Pooled | Self::Postgres18);
        match need {
            Need::Path | Need::Server => !matches!(self, Self::Sqlite),
            Need::Tables => !matches!(self, Self::Nats | Self::NatsCurrent),
            Need::Users => is_postgres || matches!(self, Self::Mariadb),
            Need::Clock | Need::Standby => is_postgres,
            Need::ApplicationPool => matches!(self, Self::Postgres | Self::Postgres18),
            Need::Pooler => matches!(self, Self::Pooled),
            Need::Ledger => matches!(self, Self::Postgres | Self::Pooled),
            Need::Processes | Need::Participants => true,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            format!("there is no store {name}; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
