//! What is wrong with a path or a name, before anything is opened.

use std::{
    io,
    path::{Path, PathBuf, absolute},
    str::FromStr,
};

use sqlx::sqlite::SqliteConnectOptions;

/// Why a [`SqliteStore`](crate::SqliteStore) could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is not one of SQLite.
    #[error("{scheme}: is not a scheme of SQLite; write `sqlite:/path/to/file`, or the path alone")]
    Scheme {
        /// What stands in front of the colon.
        scheme: String,
    },
    /// No file is named.
    #[error("the URL names no file; write `sqlite:/path/to/file`, or the path alone")]
    NoPath,
    /// Every connection to a database in memory has one of its own, so that no candidate would ever see another.
    #[error(
        "a database in memory is seen by one connection only; name a file, or use `tenure::MemoryStore`"
    )]
    InMemory,
    /// A parameter of the URL has no meaning here.
    #[error("the URL's parameter {parameter:?} is not supported; `mode=rwc` and `mode=rw` are")]
    Parameter {
        /// The parameter as it was given.
        parameter: String,
    },
    /// The URL cannot be read.
    #[error(
        "the URL is not valid: after `%` two hexadecimal digits are expected, and UTF-8 in the end"
    )]
    Url(#[source] sqlx::Error),
    /// A relative path cannot be completed, because the current directory is gone.
    #[error("the path {path:?} is relative, and there is no current directory")]
    Relative {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The path or the table's name contains a NUL character.
    #[error("the {what} contains a NUL character")]
    Nul {
        /// `path` or `table's name`.
        what: &'static str,
    },
    /// The table's name is empty.
    #[error("the table's name is empty")]
    EmptyTable,
    /// SQLite keeps names that begin like this to itself.
    #[error("the table's name {table:?} begins with \"sqlite_\", which SQLite keeps to itself")]
    ReservedTable {
        /// The name.
        table: String,
    },
}

/// A database file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Absolute, so that a process that changes its directory stays with its election.
    pub(crate) path: PathBuf,
    /// Whether `ensure_schema` creates it.
    pub(crate) create: bool,
}

impl File {
    /// Reads a URL, or a path. No I/O.
    pub(crate) fn from_url(url: &str) -> Result<Self, SetupError> {
        let (path, create) = match url.split_once(':') {
            Some(("sqlite", rest)) => from_rest(rest)?,
            _ if url == ":memory:" => return Err(SetupError::InMemory),
            // One letter in front of the colon is a drive.
            Some((scheme, _)) if is_scheme(scheme) && scheme.len() > 1 => {
                return Err(SetupError::Scheme { scheme: scheme.to_owned() });
            }
            _ => (PathBuf::from(url), true),
        };
        if path.as_os_str().is_empty() {
            return Err(SetupError::NoPath);
        }
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(SetupError::Nul { what: "path" });
        }
        match absolute(&path) {
            Ok(path) => Ok(Self { path, create }),
            Err(source) => Err(SetupError::Relative { path, source }),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// What stands behind `sqlite:`.
fn from_rest(rest: &str) -> Result<(PathBuf, bool), SetupError> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = path.strip_prefix("//").unwrap_or(path);
    if path == ":memory:" {
        return Err(SetupError::InMemory);
    }
    let mut create = true;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        create = match parameter {
            "mode=rwc" => true,
            "mode=rw" => false,
            "mode=memory" => return Err(SetupError::InMemory),
            _ => return Err(SetupError::Parameter { parameter: parameter.to_owned() }),
        };
    }
    if path.is_empty() {
        return Err(SetupError::NoPath);
    }
    // The driver decodes what is written as `%20`.
    let options =
        SqliteConnectOptions::from_str(&format!("sqlite:{path}")).map_err(SetupError::Url)?;
    Ok((options.get_filename().to_owned(), create))
}

fn is_scheme(text: &str) -> bool {
    let further = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(further)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str) -> PathBuf {
        File::from_url(url).unwrap().path
    }

    fn refusal(url: &str) -> String {
        File::from_url(url).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_named_by_a_url_or_by_its_path() {
        let expected = Path::new("/var/lib/app.db");
        for url in ["sqlite:/var/lib/app.db", "sqlite:///var/lib/app.db", "/var/lib/app.db"] {
            assert_eq!(path(url), expected, "{url}");
        }
        assert_eq!(path("sqlite:/a%20b%3f.db"), Path::new("/a b?.db"));
        assert_eq!(path("/a%20b?mode=ro"), Path::new("/a%20b?mode=ro"), "a path is no URL");
        assert!(path("app.db").is_absolute() && path("sqlite:app.db").is_absolute());
        assert_eq!(path("sqlite://app.db"), path("app.db"));
    }

    #[test]
    fn the_file_is_created_unless_the_url_says_no() {
        assert!(File::from_url("sqlite:/app.db").unwrap().create);
        assert!(File::from_url("sqlite:/app.db?mode=rwc").unwrap().create);
        assert!(!File::from_url("sqlite:/app.db?mode=rw").unwrap().create);
    }

    #[test]
    fn what_is_wrong_is_named_and_what_to_write_instead() {
        assert!(refusal("postgres://host/db").contains("postgres: is not a scheme"));
        assert!(refusal("sqlite3:/app.db").contains("sqlite:/path/to/file"));
        for memory in [":memory:", "sqlite::memory:", "sqlite://:memory:", "sqlite:a?mode=memory"] {
            assert!(refusal(memory).contains("MemoryStore"), "{memory}");
        }
        for nothing in ["", "sqlite:", "sqlite://", "sqlite:?mode=rw"] {
            assert!(refusal(nothing).contains("names no file"), "{nothing:?}");
        }
        assert!(refusal("sqlite:/app.db?mode=ro").contains("\"mode=ro\""));
        assert!(refusal("sqlite:/app.db?cache=shared").contains("\"cache=shared\""));
        assert!(refusal("sqlite:/%ff.db").contains("UTF-8"));
        assert!(refusal("sqlite:/a%00b").contains("NUL"));
        assert!(refusal("/a\0b").contains("NUL"));
    }
}
