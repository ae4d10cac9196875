//! One candidate in a process of its own, for tests: see the package's documentation.

mod application;
mod observer;
mod reporter;

use std::{
    env,
    error::Error,
    io::{self, BufRead},
    process,
};

use futures::executor::block_on;
use tenure::{Candidacy, StopError};
use tenure_tests::{Command, Event, Settings};

use crate::{application::Application, reporter::Reporter};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let settings = env::args().nth(1).ok_or("usage: participant SETTINGS, as JSON")?;
    let settings: Settings = serde_json::from_str(&settings)?;
    let reporter = Reporter::start()?;
    let elector = settings.elector()?.build()?;
    let leadership = elector.leadership();
    let application = Application::start(leadership.clone(), reporter.clone())?;
    let observer = observer::start(&leadership, &reporter)?;
    reporter.say(Event::Joined { identity: elector.identity().to_string() });
    // Like an application would, on its own runtime: which must not matter.
    let candidacy = application.spawn(elector);

    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Command::Resign => drop(candidacy.resign()),
            Command::Serve { ms } => application.serve(ms),
            Command::Guard { ms } => application.guard(ms),
            Command::Block { ms } => application.block(ms),
            Command::ShutDown => {
                shut_down(&candidacy, &reporter);
                // What is done may still have to be said.
                application.finish();
                observer.finish();
                reporter.flush();
                break;
            }
        }
    }
    // Nobody tells us anything any more: the test is gone. Whatever still runs here goes with the process.
    process::exit(0);
}

fn shut_down(candidacy: &Candidacy, reporter: &Reporter) {
    let outcome: Result<(), StopError> = block_on(candidacy.shutdown());
    reporter.say(Event::Stopped { error: outcome.err().map(|error| error.to_string()) });
}
