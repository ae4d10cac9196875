//! One candidate, as participants run it: in a process of its own or on threads of the test's.

mod application;
mod observer;
mod recorded;
mod reporter;

use std::error::Error;

use futures::executor::block_on;
use tenure::{Candidacy, StopError};

pub use self::reporter::Reporter;
use self::{application::Application, observer::Observer, recorded::Recorded};
use crate::{Command, Event, Settings};

/// Takes part with these settings and does what it is told, until it is told to shut down, which it does, or until nobody
/// tells it anything any more: then whatever still runs is left alone.
///
/// # Errors
/// If there is no such store, or no thread.
pub fn run(
    settings: &Settings,
    commands: impl IntoIterator<Item = Command>,
    reporter: &Reporter,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let application = Application::new(reporter.clone())?;
    let store = Recorded::new(application.store(settings)?, reporter.clone());
    let elector = settings.elector(store).build()?;
    let leadership = elector.leadership();
    application.work_for(&leadership);
    let observer = Observer::start(&leadership, reporter)?;
    reporter.say(Event::Joined { identity: elector.identity().to_string() });
    // Like an application would, on its own runtime: which must not matter.
    let candidacy = application.spawn(elector);

    for command in commands {
        match command {
            Command::Resign => drop(candidacy.resign()),
            Command::Serve { ms } => application.serve(&leadership, ms),
            Command::Guard { ms } => application.guard(&leadership, ms),
            Command::Block { ms } => application.block(ms),
            Command::HoldPool { ms } => application.hold_pool(ms),
            Command::ShutDown => {
                shut_down(&candidacy, reporter);
                // What is done may still have to be said.
                application.finish();
                observer.finish();
                reporter.flush();
                break;
            }
        }
    }
    Ok(())
}

fn shut_down(candidacy: &Candidacy, reporter: &Reporter) {
    let outcome: Result<(), StopError> = block_on(candidacy.shutdown());
    reporter.say(Event::Stopped { error: outcome.err().map(|error| error.to_string()) });
}
