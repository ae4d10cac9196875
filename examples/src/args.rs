//! Flags that the examples have in common.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use humantime::parse_duration;
use tenure_config::{ElectionConfig, ElectionConfigError, StoreConfig};

/// Short, so that a fail-over can be watched.
const LEASE: Duration = Duration::from_secs(3);

/// One replica of the service.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct ReplicaArgs {
    /// Address to serve on; port 0 takes a free one, and the first line printed says which.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
    /// What is published beside the lease; the replica's own URL if not given.
    #[arg(long, value_name = "TEXT")]
    pub payload: Option<String>,
    /// Where the election takes place.
    #[command(flatten)]
    pub election: ElectionArgs,
}

/// An election: which one, where, and how fast.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct ElectionArgs {
    /// A TOML file with the election: `election`, `store`, `lease_duration` and so on. Flags win over it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the lease is kept: `memory:` for this process alone, `sqlite:PATH`, `postgres://…`, `mysql://…` or `nats://…`.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// What is contended for; replicas with another name have nothing to do with these.
    #[arg(long, value_name = "NAME")]
    pub election: Option<String>,
    /// How fast.
    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Durations of an election. All but the lease follow from the lease unless they are given.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct TimingArgs {
    /// How long a lease is valid: a crashed leader is succeeded after at most this time. Defaults to 3s.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub lease: Option<Duration>,
    /// How often the leader extends it.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub renew: Option<Duration>,
    /// How often a follower looks.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub retry: Option<Duration>,
    /// How long one call of the store may take.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// How much earlier than the lease the leader's term ends.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub margin: Option<Duration>,
    /// How long a hand-over waits for work in flight.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub drain: Option<Duration>,
}

/// Why the flags give no election.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// The file cannot be read.
    #[error("{} cannot be read (--config)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not TOML, or not that of an election.
    #[error("{} (--config)", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: Box<toml::de::Error>,
    },
    /// A value is not allowed.
    #[error(transparent)]
    Value(#[from] ElectionConfigError),
}

impl ElectionArgs {
    /// What the file and the flags say together; what neither says is as in `election` and `store`, with a lease of 3 s.
    ///
    /// # Errors
    /// [`ArgsError`] if the file cannot be read, or the store's URL is of no store.
    pub fn to_config(&self, election: &str, store: &str) -> Result<ElectionConfig, ArgsError> {
        let url = self.store.as_deref();
        let mut config = match &self.config {
            Some(path) => read_file(path)?,
            None => {
                let mut config =
                    ElectionConfig::new(election, StoreConfig::new(url.unwrap_or(store))?);
                config.lease_duration = Some(LEASE);
                config
            }
        };
        if let Some(url) = url {
            config.store = StoreConfig::new(url)?;
        }
        if let Some(election) = &self.election {
            config.election.clone_from(election);
        }
        let TimingArgs { lease, renew, retry, timeout, margin, drain } = self.timing;
        for (field, flag) in [
            (&mut config.lease_duration, lease),
            (&mut config.renew_interval, renew),
            (&mut config.retry_period, retry),
            (&mut config.operation_timeout, timeout),
            (&mut config.safety_margin, margin),
            (&mut config.drain_timeout, drain),
        ] {
            *field = flag.or(*field);
        }
        Ok(config)
    }

    /// The same as flags, for a child process.
    #[must_use]
    pub fn to_flags(&self) -> Vec<String> {
        let TimingArgs { lease, renew, retry, timeout, margin, drain } = self.timing;
        let duration =
            |value: Option<Duration>| value.map(|value| format!("{}ms", value.as_millis()));
        [
            ("--config", self.config.as_ref().map(|path| path.display().to_string())),
            ("--store", self.store.clone()),
            ("--election", self.election.clone()),
            ("--lease", duration(lease)),
            ("--renew", duration(renew)),
            ("--retry", duration(retry)),
            ("--timeout", duration(timeout)),
            ("--margin", duration(margin)),
            ("--drain", duration(drain)),
        ]
        .into_iter()
        .filter_map(|(flag, value)| Some([flag.to_owned(), value?]))
        .flatten()
        .collect()
    }
}

fn read_file(path: &Path) -> Result<ElectionConfig, ArgsError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ArgsError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text)
        .map_err(|source| ArgsError::Parse { path: path.to_owned(), source: Box::new(source) })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        election: ElectionArgs,
    }

    fn parse<'a>(flags: impl IntoIterator<Item = &'a str>) -> ElectionArgs {
        Flags::parse_from(["replica"].into_iter().chain(flags)).election
    }

    #[test]
    fn flags_of_a_child_say_what_the_parent_was_told() {
        let given =
            ["--store", "memory:", "--lease", "1500ms", "--timeout", "200ms", "--drain", "4000ms"];
        let flags = parse(given).to_flags();
        assert_eq!(flags, given);
        assert_eq!(parse(flags.iter().map(String::as_str)).to_flags(), flags);
    }

    #[test]
    fn flags_win_over_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("election.toml");
        let text = "election = \"jobs\"\nstore = \"sqlite:app.db\"\nlease_duration = \"20s\"\nretry_period = \"2s\"";
        fs::write(&file, text).unwrap();
        let args =
            parse(["--config", file.to_str().unwrap(), "--store", "memory:", "--retry", "1s"]);
        let config = args.to_config("example", "memory:").unwrap();
        assert_eq!(config.election, "jobs");
        assert_eq!(config.lease_duration, Some(Duration::from_secs(20)));
        assert_eq!(config.retry_period, Some(Duration::from_secs(1)));
        assert!(format!("{:?}", config.store).contains("memory"), "{:?}", config.store);
    }

    #[test]
    fn what_nobody_says_is_the_examples_own() {
        let config = parse([]).to_config("example", "memory:").unwrap();
        assert_eq!((config.election.as_str(), config.lease_duration), ("example", Some(LEASE)));
    }
}
