//! What is wrong with a URL or a name, before anything is connected.

use std::str::FromStr;

use sqlx::{ConnectOptions, postgres::PgConnectOptions};

/// PostgreSQL cuts off longer identifiers, so that two of them might mean one table.
pub(crate) const MAX_IDENTIFIER_BYTES: usize = 63;
/// What the driver understands, beside `options[..]`. It passes over everything else, so that a misspelled `sslmode` would
/// leave the connection unprotected; and it logs the value.
const PARAMETERS: &[&str] = &[
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// Why a [`PostgresStore`](crate::PostgresStore) could not be set up. No message contains the URL, which may contain a
/// password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is not one of PostgreSQL.
    #[error("{}; write `postgres://user@host/database`", wrong_scheme(.found.as_deref()))]
    Scheme {
        /// What stands in front of `://`, if anything does.
        found: Option<String>,
    },
    /// The URL names no server.
    #[error(
        "the URL names no host; write `postgres://user@host/database`, or \
             `postgres://user@/database?host=/var/run/postgresql` for a socket"
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
    /// The name of the schema or the table is empty.
    #[error("the name of the {what} is empty")]
    EmptyName {
        /// `schema` or `table`.
        what: &'static str,
    },
    /// The name of the schema or the table is one that PostgreSQL would cut off.
    #[error("the name of the {what} has {bytes} bytes, PostgreSQL allows {MAX_IDENTIFIER_BYTES}")]
    LongName {
        /// `schema` or `table`.
        what: &'static str,
        /// How long it is.
        bytes: usize,
    },
    /// PostgreSQL keeps schemas of such names to itself; one of them, `pg_temp`, is another one on every connection.
    #[error(
        "the name of the schema, {schema:?}, begins with \"pg_\", which PostgreSQL keeps to itself"
    )]
    ReservedSchema {
        /// The name.
        schema: String,
    },
    /// The name of the schema or the table contains a NUL character.
    #[error("the name of the {what} contains a NUL character at byte {at}")]
    NulInName {
        /// `schema` or `table`.
        what: &'static str,
        /// Where the first one stands.
        at: usize,
    },
}

/// Reads a URL, without I/O.
pub(crate) fn options_from_url(url: &str) -> Result<PgConnectOptions, SetupError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(SetupError::Scheme { found: None });
    };
    if !matches!(scheme, "postgres" | "postgresql") {
        // Anything else in front might be part of a password.
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return Err(SetupError::Scheme { found: is_scheme.then(|| scheme.to_owned()) });
    }
    if let Some(name) = unknown_parameter(rest) {
        return Err(SetupError::Parameter { name });
    }
    let options = PgConnectOptions::from_str(url).map_err(|error| {
        SetupError::Url(if hides_a_secret(rest) { unspecific() } else { error })
    })?;
    if !names_a_host(rest) {
        return Err(SetupError::NoHost);
    }
    // At debug level each statement would be in the log, renewals with their whole payload. tenure has its own events.
    Ok(options.disable_statement_logging())
}

/// Without a host the driver would look at sockets, variables and the machine itself: an election must not depend on
/// what it happens to find.
fn names_a_host(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let in_query = query(rest).split('&').any(|pair| {
        pair.split_once('=')
            .is_some_and(|(key, value)| matches!(key, "host" | "hostaddr") && !value.is_empty())
    });
    in_query || !(host.is_empty() || host.starts_with(':'))
}

fn unknown_parameter(rest: &str) -> Option<String> {
    let query = query(rest);
    let mut names =
        query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    let known =
        |name: &str| name.is_empty() || name.starts_with("options[") || PARAMETERS.contains(&name);
    let name = names.find(|name| !known(name))?;
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

fn query(rest: &str) -> &str {
    let before_fragment = rest.split('#').next().unwrap_or_default();
    before_fragment.split_once('?').map_or("", |(_, query)| query)
}

/// In `pg_temp` every connection would find a table of its own, and so each candidate lead.
pub(crate) fn check_schema(schema: &str) -> Result<(), SetupError> {
    check_identifier("schema", schema)?;
    if schema.starts_with("pg_") {
        return Err(SetupError::ReservedSchema { schema: schema.to_owned() });
    }
    Ok(())
}

pub(crate) fn check_identifier(what: &'static str, name: &str) -> Result<(), SetupError> {
    if name.is_empty() {
        return Err(SetupError::EmptyName { what });
    }
    if let Some(at) = name.bytes().position(|byte| byte == 0) {
        return Err(SetupError::NulInName { what, at });
    }
    if name.len() > MAX_IDENTIFIER_BYTES {
        return Err(SetupError::LongName { what, bytes: name.len() });
    }
    Ok(())
}

fn wrong_scheme(found: Option<&str>) -> String {
    match found {
        Some(scheme) => format!("`{scheme}://` is not a scheme of PostgreSQL"),
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
        assert_eq!(found("mysql://db/app").as_deref(), Some("mysql"));
        assert_eq!(found("db/app"), None);
        assert_eq!(found("app:secret@db://app"), None);
    }

    #[test]
    fn a_url_without_a_host_is_refused_unless_it_names_a_socket() {
        for url in
            ["postgres://", "postgres:///app", "postgres://app@/app", "postgres://app@:1/app"]
        {
            let error = options_from_url(url).unwrap_err();
            assert!(matches!(error, SetupError::NoHost | SetupError::Url(_)), "{url}: {error:?}");
        }
        options_from_url("postgres:///app?host=/var/run/postgresql").unwrap();
        options_from_url("postgresql://app:p%40ss@[::1]:5433/app?sslmode=require").unwrap();
    }

    #[test]
    fn a_parameter_that_would_be_passed_over_is_refused() {
        for name in ["sslmod", "sslMode", "target_session_attrs"] {
            let url = format!("postgres://db/app?sslmode=require&{name}=verify-full");
            let error = options_from_url(&url).unwrap_err();
            assert!(matches!(&error, SetupError::Parameter { name: said } if said == name));
            assert!(error.to_string().contains("sslmode"), "{error}");
        }
        let all = PARAMETERS.iter().filter(|name| !matches!(**name, "hostaddr" | "port"));
        let all = all.map(|name| match *name {
            "sslmode" | "ssl-mode" => format!("{name}=require"),
            name => format!("{name}=1"),
        });
        let all = all.collect::<Vec<_>>().join("&");
        options_from_url(&format!("postgres://db/app?{all}&options[geqo]=off#x?y")).unwrap();
    }

    #[test]
    fn no_error_repeats_the_password() {
        for url in [
            "postgres://app:12?secret@db/app",
            "postgres://app:12?:secret#@db/app",
            "postgres://app:12?secret@db/app=x&more",
            "postgres://app@db/app?passwort=:secret",
            "mysql://app:secret@db/app",
            "app:secret@db/app",
            "app:secret://db/app",
            "postgres://app:secret@db:notaport/app",
            "postgres://app:secret@db/app?sslmode=secret2",
            "postgres:///app?sslmode=app:secret@db",
            "postgres://app:secret@/app",
            "postgres://app:secret@db:99999999/app",
        ] {
            let error = options_from_url(url).unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(!said.contains("secret@") && !said.contains(":secret"), "{url}: {said}");
        }
    }

    #[test]
    fn schemas_that_are_the_servers_own_are_refused() {
        for schema in ["pg_temp", "pg_catalog", "pg_leases"] {
            let refused = check_schema(schema).unwrap_err();
            assert!(matches!(refused, SetupError::ReservedSchema { .. }), "{refused}");
        }
        assert!(matches!(check_schema(""), Err(SetupError::EmptyName { what: "schema" })));
        for schema in ["pg", "PG_temp", "my_pg_temp", "public"] {
            check_schema(schema).unwrap();
        }
    }

    #[test]
    fn names_that_postgresql_would_change_are_refused() {
        let long = "é".repeat(32);
        assert!(matches!(check_identifier("table", ""), Err(SetupError::EmptyName { .. })));
        assert!(matches!(
            check_identifier("table", &long),
            Err(SetupError::LongName { bytes: 64, .. })
        ));
        assert!(matches!(
            check_identifier("table", "a\0b"),
            Err(SetupError::NulInName { at: 1, .. })
        ));
        assert!(check_identifier("table", r#"a".b; --"#).is_ok());
    }
}
