//! The process of an example.

use std::{
    fmt::Write,
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::Path,
    process::{ChildStdout, Command, ExitStatus, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Process, Settings};

/// A process of one of the examples that serve HTTP. Dropping it kills it; and so does the end of the thread that has
/// started it.
#[derive(Debug)]
pub struct Example {
    process: Process,
    url: String,
    identity: String,
    /// A process that prints into a closed pipe would die of it.
    _stdout: BufReader<ChildStdout>,
    /// Its configuration, and what it logs.
    files: TempDir,
}

impl Example {
    /// Starts `program` with these settings and flags, and waits until it serves.
    ///
    /// # Errors
    /// With what it has logged, if it does not serve.
    pub fn start(program: &Path, settings: &Settings, flags: &[&str]) -> io::Result<Self> {
        let files = TempDir::new()?;
        let configuration = files.path().join("election.toml");
        fs::write(&configuration, to_toml(settings)?)?;
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(&settings.within)
            .arg(program)
            .args(["--listen", "127.0.0.1:0", "--config"])
            .arg(&configuration)
            .args(flags)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(files.path().join(LOG))?)
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        let mut stdout = BufReader::new(stdout);
        let process = Process::new(child);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let said = line.trim_end().strip_prefix("listening on ");
        let Some((url, identity)) = said.and_then(|said| said.split_once(" as ")) else {
            // It has ended, or soon will.
            process.end();
            let (status, log) = (process.status(), fs::read_to_string(files.path().join(LOG))?);
            let what = format!("{}: {status:?}: {log}", program.display());
            return Err(io::Error::other(what));
        };
        let (url, identity) = (url.to_owned(), identity.to_owned());
        Ok(Self { process, url, identity, _stdout: stdout, files })
    }

    /// Where it serves.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its candidate.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What runs it.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What is to be said of a process that has ended like this, if it was not in order.
    pub(crate) fn complaint(&self, status: ExitStatus) -> Option<String> {
        let log = || fs::read_to_string(self.files.path().join(LOG)).unwrap_or_default();
        (!status.success()).then(|| format!("{status}: {}", log().trim_end()))
    }
}

const LOG: &str = "log";

/// As `tenure_config` reads them.
fn to_toml(settings: &Settings) -> io::Result<String> {
    let Settings { store, election, lease, drain, observed, pool, within: _ } = settings;
    if pool.is_some() {
        return Err(io::Error::other("no example shares a pool with its store"));
    }
    let mut text = format!(
        "election = {}\nstore = {}\nlease_duration = \"{}ms\"\n",
        value(&election.as_str().into())?,
        value(store)?,
        lease.as_millis()
    );
    if let Some(drain) = drain {
        // Writing to a string can not fail.
        let _ = writeln!(text, "drain_timeout = \"{}ms\"", drain.as_millis());
    }
    if *observed {
        text.push_str("expiry = \"observed\"\n");
    }
    Ok(text)
}

/// A value of JSON as one of TOML, in one line. Strings, numbers and truths are written alike in both.
fn value(json: &Value) -> io::Result<String> {
    match json {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => Ok(json.to_string()),
        Value::Object(members) => {
            let member = |(key, json)| Ok(format!("{key} = {}", value(json)?));
            let members: io::Result<Vec<String>> = members.iter().map(member).collect();
            Ok(format!("{{ {} }}", members?.join(", ")))
        }
        Value::Null | Value::Array(_) => Err(io::Error::other(format!("{json} in a store"))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn settings_stand_in_the_file_as_a_configuration_has_them() {
        let store = json!({"url": "postgres://app@\"x\"", "hints": true, "size": 3});
        let settings = Settings::new(store, "chaos").drain(Duration::from_millis(1_500));
        assert_eq!(
            to_toml(&settings.observed()).unwrap(),
            "election = \"chaos\"\n\
             store = { hints = true, size = 3, url = \"postgres://app@\\\"x\\\"\" }\n\
             lease_duration = \"2000ms\"\n\
             drain_timeout = \"1500ms\"\n\
             expiry = \"observed\"\n"
        );
        let settings = Settings::new("sqlite:a.db", "chaos");
        let text = "election = \"chaos\"\nstore = \"sqlite:a.db\"\nlease_duration = \"2000ms\"\n";
        assert_eq!(to_toml(&settings).unwrap(), text);
    }

    #[test]
    fn what_an_example_cannot_be_told_is_refused() {
        assert!(to_toml(&Settings::new("postgres://", "chaos").pool(2)).is_err());
        assert!(to_toml(&Settings::new(Value::Null, "chaos")).is_err());
    }
}
