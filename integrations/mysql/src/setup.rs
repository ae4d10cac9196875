//! What is wrong with a URL or a name, before anything is connected.

use std::str::FromStr;

use sqlx::{ConnectOptions, mysql::MySqlConnectOptions};

/// How long a table's or a database's name may be, in characters.
const MAX_IDENTIFIER_CHARACTERS: usize = 64;
/// What the driver understands. It passes over everything else without a word, so that a misspelled `ssl-mode` would
/// leave the connection unprotected.
const PARAMETERS: &[&str] = &[
    "charset",
    "collation",
    "socket",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "sslca",
    "sslcert",
    "sslkey",
    "sslmode",
    "statement-cache-capacity",
    "time-zone",
    "timezone",
];

/// Why a [`MysqlStore`](crate::MysqlStore) could not be set up. No message contains the URL, which may contain a
/// password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is not one of MySQL or MariaDB.
    #[error("{}; write `mysql://user@host/database`", wrong_scheme(.found.as_deref()))]
    Scheme {
        /// What stands in front of `://`, if anything does.
        found: Option<String>,
    },
    /// The URL names no server.
    #[error(
        "the URL names no host; write `mysql://user@host/database`, or \
             `mysql://user@localhost/database?socket=/run/mysqld/mysqld.sock` for a socket"
    )]
    NoHost,
    /// The URL has a parameter that the driver does not know.
    #[error("the URL has a parameter {name:?}, which is none of {}", PARAMETERS.join(", "))]
    Parameter {
        /// Its name, as it stands in the URL; nothing where that may be part of a password.
        name: String,
    },
    /// The URL cannot be read.
    #[error("the URL is not valid")]
    Url(#[source] sqlx::Error),
    /// The name of the database or the table is empty.
    #[error("the name of the {what} is empty")]
    EmptyName {
        /// `database` or `table`.
        what: &'static str,
    },
    /// The name of the database or the table is too long.
    #[error("the name of the {what} has {characters} characters, {most} are possible")]
    LongName {
        /// `database` or `table`.
        what: &'static str,
        /// How long it is.
        characters: usize,
        /// How long it may be: for the table five less than MySQL allows, since another table is named after it.
        most: usize,
    },
    /// The name of the database or the table has a character that MySQL does not allow there: NUL, one beyond the basic
    /// multilingual plane, or a space, a tab or a line break at its end.
    #[error("the name of the {what} has a character at byte {at} that MySQL does not allow there")]
    Character {
        /// `database` or `table`.
        what: &'static str,
        /// Where it stands.
        at: usize,
    },
}

/// Reads a URL, without I/O.
pub(crate) fn options_from_url(url: &str) -> Result<MySqlConnectOptions, SetupError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(SetupError::Scheme { found: None });
    };
    if !matches!(scheme, "mysql" | "mariadb") {
        // Anything else in front might be part of a password.
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return Err(SetupError::Scheme { found: is_scheme.then(|| scheme.to_owned()) });
    }
    let options = MySqlConnectOptions::from_str(url).map_err(|error| {
        SetupError::Url(if hides_a_secret(rest) { unspecific() } else { error })
    })?;
    if !names_a_host(rest) {
        return Err(SetupError::NoHost);
    }
    if let Some(name) = unknown_parameter(rest) {
        return Err(SetupError::Parameter { name });
    }
    // At debug level each statement would be in the log, renewals with their whole payload. tenure has its own events.
    Ok(options.disable_statement_logging())
}

/// Without a host the driver would try the machine itself: an election must not depend on what it happens to find.
fn names_a_host(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    !(host.is_empty() || host.starts_with(':'))
}

fn unknown_parameter(rest: &str) -> Option<String> {
    let before_fragment = rest.split('#').next().unwrap_or_default();
    let query = before_fragment.split_once('?').map_or("", |(_, query)| query);
    let mut names =
        query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    let name = names.find(|name| !name.is_empty() && !PARAMETERS.contains(name))?;
    Some(if hides_a_secret(rest) { String::new() } else { name.to_owned() })
}

/// Whether what looks like a query may be the rest of a password with a question mark in it, which may contain anything.
fn hides_a_secret(rest: &str) -> bool {
    rest.split_once('?').is_some_and(|(_, behind)| behind.contains('@'))
}

/// In place of the driver's error, which repeats what it does not understand.
fn unspecific() -> sqlx::Error {
    let why =
        "what stands behind `?` is not understood; in a password write %3F for `?` and %40 for `@`";
    sqlx::Error::Configuration(why.into())
}

/// `reserved` characters are kept free behind the name.
pub(crate) fn check_identifier(
    what: &'static str,
    name: &str,
    reserved: usize,
) -> Result<(), SetupError> {
    let (characters, most) = (name.chars().count(), MAX_IDENTIFIER_CHARACTERS - reserved);
    if name.is_empty() {
        return Err(SetupError::EmptyName { what });
    }
    if characters > most {
        return Err(SetupError::LongName { what, characters, most });
    }
    let refused = |character| character == '\0' || character > '\u{ffff}';
    // The server's idea of a space, which has one byte.
    let is_space = |character| matches!(character, ' ' | '\t'..='\r');
    let trailing = name.ends_with(is_space).then(|| name.len() - 1);
    match name.find(refused).or(trailing) {
        Some(at) => Err(SetupError::Character { what, at }),
        None => Ok(()),
    }
}

fn wrong_scheme(found: Option<&str>) -> String {
    match found {
        Some(scheme) => format!("`{scheme}://` is not a scheme of MySQL"),
        None => "the URL has no scheme".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_another_kind_is_refused_with_its_scheme() {
        let found = |url| match options_from_url(url) {
            Err(SetupError::Scheme { found }) => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(found("postgres://db/app").as_deref(), Some("postgres"));
        assert_eq!(found("db/app"), None);
        assert_eq!(found("app:secret@db://app"), None);
    }

    #[test]
    fn a_url_without_a_host_is_refused() {
        for url in ["mysql://", "mysql:///app", "mysql://app@/app", "mysql://app@:1/app"] {
            let error = options_from_url(url).unwrap_err();
            assert!(matches!(error, SetupError::NoHost | SetupError::Url(_)), "{url}: {error:?}");
        }
        options_from_url("mysql://app@localhost/app?socket=/run/mysqld/mysqld.sock").unwrap();
        options_from_url("mariadb://app:p%40ss@[::1]:3307/app?ssl-mode=REQUIRED").unwrap();
    }

    #[test]
    fn a_parameter_that_would_be_passed_over_is_refused() {
        let error = options_from_url("mysql://db/app?ssl-mode=REQUIRED&sslMode=x").unwrap_err();
        assert!(matches!(&error, SetupError::Parameter { name } if name == "sslMode"), "{error:?}");
        assert!(error.to_string().contains("ssl-mode"), "{error}");
    }

    #[test]
    fn no_error_repeats_the_password() {
        for url in [
            "postgres://app:secret@db/app",
            "app:secret@db/app",
            "app:secret://db/app",
            "mysql://app:secret@db:notaport/app",
            "mysql://app:12?secret@db/app",
            "mysql://app:12?:secret#@db/app",
            "mysql://app:secret@db/app?ssl-mode=secret2",
            "mysql:///app?ssl-mode=app:secret@db",
            "mysql://app:secret@db/app?unknown=secret2",
            "mysql://app:secret@/app",
            "mysql://app:secret@db:99999999/app",
        ] {
            let error = options_from_url(url).unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(!said.contains("secret@") && !said.contains(":secret"), "{url}: {said}");
        }
    }

    #[test]
    fn names_that_mysql_would_refuse_are_refused() {
        let check = |name: &str| check_identifier("table", name, 5);
        assert!(matches!(check(""), Err(SetupError::EmptyName { .. })));
        assert!(check(&"é".repeat(59)).is_ok());
        let long = check(&"é".repeat(60));
        assert!(matches!(long, Err(SetupError::LongName { characters: 60, most: 59, .. })));
        assert!(matches!(check("a\0b"), Err(SetupError::Character { at: 1, .. })));
        assert!(matches!(check("a🦀"), Err(SetupError::Character { at: 1, .. })));
        for end in [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'] {
            let refused = check(&format!("a{end}"));
            assert!(matches!(refused, Err(SetupError::Character { at: 1, .. })), "{end:?}");
        }
        assert!(check("a`.b; -- c").is_ok());
    }
}
