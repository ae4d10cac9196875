//! What is wrong with a URL, a name or a setting, before anything is connected.

use async_nats::ServerAddr;
use percent_encoding::percent_decode_str;

/// How many copies of a stream NATS allows.
const MAX_REPLICAS: usize = 5;

/// Why a [`NatsStore`](crate::NatsStore) could not be set up. No message contains the URL, which may contain a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is not one of NATS.
    #[error("{}; write `nats://user:password@host:4222`, or `tls://..`", wrong_scheme(.found.as_deref()))]
    Scheme {
        /// What stands in front of `://`, if anything does.
        found: Option<String>,
    },
    /// The URL names no server.
    #[error("the URL names no host; write `nats://host:4222`, or several separated by commas")]
    NoHost,
    /// The URL cannot be read.
    #[error("the URL is not valid: {reason}")]
    Url {
        /// What is wrong with it, without any part of it.
        reason: &'static str,
    },
    /// A bucket cannot have this name.
    #[error(
        "{name:?} cannot name a bucket: use 1 to 128 of the characters A-Z, a-z, 0-9, `_` and `-`"
    )]
    BucketName {
        /// The name that was given.
        name: String,
    },
    /// NATS does not keep this many copies.
    #[error("{replicas} replicas are not possible: NATS keeps 1 to {MAX_REPLICAS}")]
    Replicas {
        /// How many were asked for.
        replicas: usize,
    },
    /// A bucket of no bytes can hold no lease.
    #[error("a bucket of at most 0 bytes can hold nothing")]
    NoBytes,
    /// This is no setting that can be adopted.
    #[error(
        "{name:?} is no setting of a bucket that can be adopted; these are: {}",
        crate::Setting::names()
    )]
    UnknownSetting {
        /// The name that was given.
        name: String,
    },
    /// This is neither of the two kinds of storage.
    #[error("{name:?} is no kind of storage; these are: file, memory")]
    UnknownStorage {
        /// The name that was given.
        name: String,
    },
    /// The application's client connects as the application said.
    #[error(
        "{what} cannot be set for a client that is the application's: it has connected already"
    )]
    NotOurClient {
        /// What was to be set.
        what: &'static str,
    },
}

/// A server, and how to log in there.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) addr: ServerAddr,
    pub(crate) login: Option<Login>,
}

#[derive(Clone)]
pub(crate) enum Login {
    Token(String),
    User { name: String, password: String },
}

/// Reads a list of URLs, without I/O. Who gives no login takes that of the first server that has one.
pub(crate) fn servers_from_url(url: &str) -> Result<Vec<Server>, SetupError> {
    let mut servers = url
        .split(',')
        .map(|one| server(one.trim()).map_err(|error| unless_secret(error, url)))
        .collect::<Result<Vec<_>, _>>()?;
    let login = servers.iter().find_map(|server| server.login.clone());
    for server in &mut servers {
        server.login = server.login.take().or_else(|| login.clone());
    }
    Ok(servers)
}

/// What stands behind a comma in a password looks like the next server.
fn unless_secret(error: SetupError, url: &str) -> SetupError {
    match error {
        SetupError::Scheme { .. } if url.contains(',') && url.contains('@') => {
            SetupError::Scheme { found: None }
        }
        error => error,
    }
}

pub(crate) fn check_bucket_name(name: &str) -> Result<(), SetupError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=128).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(SetupError::BucketName { name: name.to_owned() })
}

pub(crate) fn check_replicas(replicas: usize) -> Result<(), SetupError> {
    if (1..=MAX_REPLICAS).contains(&replicas) {
        return Ok(());
    }
    Err(SetupError::Replicas { replicas })
}

fn server(url: &str) -> Result<Server, SetupError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(SetupError::Scheme { found: None });
    };
    if !matches!(scheme, "nats" | "tls") {
        // Anything else in front might be part of a password.
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return Err(SetupError::Scheme { found: is_scheme.then(|| scheme.to_owned()) });
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err(SetupError::NoHost);
    }
    // The driver's error would repeat what it could not read.
    let parsed: ServerAddr =
        url.parse().map_err(|_| SetupError::Url { reason: "it is malformed" })?;
    if !matches!(&rest[authority.len()..], "" | "/") {
        return Err(SetupError::Url {
            reason: "nothing may follow the port; the bucket is chosen by `with_bucket()`",
        });
    }
    let login = login(&parsed)?;
    // From here on the address may be shown.
    let addr = format!("{scheme}://{host}").parse();
    let addr = addr.map_err(|_| SetupError::Url { reason: "it is malformed" })?;
    Ok(Server { addr, login })
}

fn login(addr: &ServerAddr) -> Result<Option<Login>, SetupError> {
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().map(String::from);
        text.map_err(|_| SetupError::Url { reason: "the login is not UTF-8" })
    };
    Ok(match (addr.username(), addr.password()) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(SetupError::Url { reason: "a password needs a user in front of it" });
        }
        (Some(token), None) => Some(Login::Token(decoded(token)?)),
        (Some(name), Some(password)) => {
            Some(Login::User { name: decoded(name)?, password: decoded(password)? })
        }
    })
}

fn wrong_scheme(found: Option<&str>) -> String {
    match found {
        Some(scheme) => format!("`{scheme}://` is not a scheme of NATS"),
        None => "the URL has no scheme".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> Vec<String> {
        let servers = servers_from_url(url).unwrap();
        let shown = servers.iter().map(|server| {
            let login = match &server.login {
                None => String::new(),
                Some(Login::Token(token)) => format!("{token}@"),
                Some(Login::User { name, password }) => format!("{name}:{password}@"),
            };
            format!("{login}{}:{}", server.addr.host(), server.addr.port())
        });
        shown.collect()
    }

    fn refused(url: &str) -> SetupError {
        match servers_from_url(url) {
            Err(error) => error,
            Ok(_) => panic!("{url} is taken"),
        }
    }

    #[test]
    fn a_url_names_one_server_or_several_and_how_to_log_in() {
        assert_eq!(shown("nats://db"), ["db:4222"]);
        assert_eq!(shown("tls://[::1]:5222/"), ["::1:5222"]);
        assert_eq!(shown("nats://t%40ken@db:1"), ["t@ken@db:1"]);
        assert_eq!(
            shown("nats://a, nats://app:p%3ass@b:5,nats://other:word@c"),
            ["app:p:ss@a:4222", "app:p:ss@b:5", "other:word@c:4222"]
        );
    }

    #[test]
    fn a_url_of_another_kind_is_refused_with_its_scheme() {
        let found = |url| match refused(url) {
            SetupError::Scheme { found } => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(found("mysql://db/app").as_deref(), Some("mysql"));
        assert_eq!(found("db:4222"), None);
        assert_eq!(found("app:secret@db://app"), None);
        assert_eq!(found("nats://a,b"), None);
    }

    #[test]
    fn a_url_without_a_host_or_with_more_than_it_takes_is_refused() {
        for url in ["nats://", "nats://app:secret@", "nats://:4222", "nats://a,nats://"] {
            assert!(matches!(refused(url), SetupError::NoHost), "{url}");
        }
        for url in ["nats://db/bucket", "nats://db?tls=true", "nats://db:port", "nats://:secret@db"]
        {
            assert!(matches!(refused(url), SetupError::Url { .. }), "{url}");
        }
    }

    #[test]
    fn no_error_repeats_a_secret() {
        for url in [
            "mysql://app:secret@db",
            "app:secret@db",
            "app:secret://db",
            "nats://app:secret@db:notaport",
            "nats://app:secret@",
            "nats://secret@db:99999999",
            "nats://app:secret@db/x",
            "nats://app:%ffsecret@db",
            "nats://12,secret://@db",
        ] {
            let error = refused(url);
            let said = format!("{error} {error:?}");
            assert!(!said.contains("secret"), "{url}: {said}");
        }
    }

    #[test]
    fn names_that_nats_has_a_meaning_for_are_refused() {
        for name in ["", "a b", "a.b", "a*", ">", "é", &"x".repeat(129)] {
            assert!(check_bucket_name(name).is_err(), "{name:?}");
        }
        assert!(check_bucket_name("leader_election-2").is_ok());
        assert!(check_replicas(0).is_err() && check_replicas(6).is_err());
        assert!(check_replicas(3).is_ok());
    }
}
