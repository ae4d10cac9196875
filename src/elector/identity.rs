//! Who a candidate is.

use std::{fmt::Write, process};

use crate::{
    elector::ConfigError,
    lease::{Identity, InvalidValue, MAX_NAME_BYTES},
};

/// What the user says about a candidate's identity.
#[derive(Clone, Debug)]
pub(super) enum Naming {
    /// `hostname-pid-random`.
    Drawn,
    /// `label-hostname-pid-random`.
    Labelled(String),
    Fixed(Result<Identity, InvalidValue>),
}

impl Naming {
    /// Draws a new identity: two candidates never have the same one, unless it was fixed.
    pub(super) fn draw(self) -> Result<Identity, ConfigError> {
        match self {
            Self::Drawn => unique(""),
            Self::Labelled(label) => {
                // An empty label, or one that leaves no room, is refused rather than mended.
                Identity::new(&label)?;
                unique(&format!("{label}-"))
            }
            Self::Fixed(identity) => Ok(identity?),
        }
    }
}

/// 128 bits from the operating system: without them it would be a guess that nobody else has this name (rule S11).
fn unique(prefix: &str) -> Result<Identity, ConfigError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|source| ConfigError::NoRandomness { source })?;
    let mut suffix = format!("-{}-", process::id());
    for byte in random {
        // Writing to a string can not fail.
        let _ = write!(suffix, "{byte:02x}");
    }
    let room = MAX_NAME_BYTES.saturating_sub(prefix.len() + suffix.len());
    let mut host = hostname();
    while host.len() > room {
        host.pop();
    }
    Ok(Identity::new(format!("{prefix}{host}{suffix}"))?)
}

/// The name of this machine, or `host` if it has none that can be written.
fn hostname() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    if name.is_empty() { "host".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_candidates_of_one_process_are_the_same() {
        let first = Naming::Drawn.draw().unwrap();
        let second = Naming::Drawn.draw().unwrap();
        assert_ne!(first, second);
        assert!(first.as_str().contains(&format!("-{}-", process::id())));
    }

    #[test]
    fn a_label_is_a_prefix_and_may_be_long() {
        let labelled = |label: &str| Naming::Labelled(label.to_owned()).draw();
        assert!(labelled("eu-west").unwrap().as_str().starts_with("eu-west-"));
        let long = "l".repeat(200);
        assert!(labelled(&long).unwrap().as_str().starts_with(&long));
        assert!(matches!(labelled(&"l".repeat(250)), Err(ConfigError::Invalid(_))));
        assert!(matches!(labelled(""), Err(ConfigError::Invalid(_))));
    }
}
