//! A replica of a service: the program of an example, as users run it.

use std::{io, path::Path, process::ExitStatus};

use tenure_tests::{Example, Settings, Stamp};

use super::clients::Calling;
use crate::ground::Way;

/// A process. Dropping it kills it; and so does the death of this one.
pub(crate) struct Replica {
    pub(crate) example: Example,
    /// To its database: the election and the ledger go the same way.
    pub(crate) way: Way,
    pub(crate) from: Stamp,
    /// When it was killed, or has ended.
    pub(crate) to: Option<Stamp>,
    /// Whether somebody asks it.
    pub(crate) calling: Option<Calling>,
}

impl Replica {
    /// Starts `program`, and waits until it serves.
    pub(crate) fn start(program: &Path, way: Way, settings: &Settings) -> io::Result<Self> {
        let from = Stamp::now();
        let settings = Settings { store: way.config.clone(), ..settings.clone() };
        let ledger = ["--ledger", way.config["url"].as_str().unwrap_or_default()];
        let example = Example::start(program, &settings, &ledger)?;
        Ok(Self { example, way, from, to: None, calling: None })
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.to = Some(self.example.process().kill());
    }

    /// Waits until it has ended.
    pub(crate) fn exited(&mut self) -> ExitStatus {
        let status = self.example.process().exited();
        self.to = Some(Stamp::now());
        status
    }
}
