//! Flags that the examples have in common.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use tenure::ElectorBuilder;

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
    /// Where the lease is kept: `memory:` for this process alone, `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`.
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub store: String,
    /// What is contended for; replicas with another name have nothing to do with these.
    #[arg(long, value_name = "NAME", default_value = "example")]
    pub election: String,
    /// How fast.
    #[command(flatten)]
    pub timing: TimingArgs,
}

/// Durations of an election. All but the lease follow from the lease unless they are given.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct TimingArgs {
    /// How long a lease is valid: a crashed leader is succeeded after at most this time.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration)]
    pub lease: Duration,
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

impl TimingArgs {
    /// Hands what was given to the builder, which checks it.
    pub fn apply(&self, builder: ElectorBuilder) -> ElectorBuilder {
        let mut builder = builder.lease_duration(self.lease);
        if let Some(renew) = self.renew {
            builder = builder.renew_interval(renew);
        }
        if let Some(retry) = self.retry {
            builder = builder.retry_period(retry);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.operation_timeout(timeout);
        }
        if let Some(margin) = self.margin {
            builder = builder.safety_margin(margin);
        }
        if let Some(drain) = self.drain {
            builder = builder.drain_timeout(drain);
        }
        builder
    }

    /// The same as flags, for a child process.
    #[must_use]
    pub fn to_flags(&self) -> Vec<String> {
        [
            ("--lease", Some(self.lease)),
            ("--renew", self.renew),
            ("--retry", self.retry),
            ("--timeout", self.timeout),
            ("--margin", self.margin),
            ("--drain", self.drain),
        ]
        .into_iter()
        .filter_map(|(flag, value)| Some([flag.to_owned(), format!("{}ms", value?.as_millis())]))
        .flatten()
        .collect()
    }
}

/// Reads `3s`, `400ms` or `2m`: a whole number and its unit.
///
/// ```
/// use std::time::Duration;
/// use tenure_examples::args::parse_duration;
///
/// assert_eq!(parse_duration("400ms"), Ok(Duration::from_millis(400)));
/// assert!(parse_duration("3").is_err());
/// ```
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("{text:?} is not a duration such as 3s, 400ms or 2m");
    let digits = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        _ => return Err(expected()),
    };
    number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        timing: TimingArgs,
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "3", "3 s", "1.5s", "-1s", "3h", "99999999999999999999s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert!(parse_duration(&format!("{}m", u64::MAX)).is_err());
    }

    #[test]
    fn flags_of_a_child_say_what_the_parent_was_told() {
        let given = ["replica", "--lease", "1500ms", "--timeout", "200ms", "--drain", "4s"];
        let timing = Flags::parse_from(given).timing;
        let flags = timing.to_flags();
        assert_eq!(flags, ["--lease", "1500ms", "--timeout", "200ms", "--drain", "4000ms"]);
        let again = Flags::parse_from([vec!["replica".to_owned()], flags.clone()].concat()).timing;
        assert_eq!(again.to_flags(), flags);
    }
}
