//! One candidate in a process of its own, for tests: see the package's documentation.

use std::{
    env,
    error::Error,
    io::{self, BufRead, Write},
    process,
};

use tenure_tests::{Message, Reporter, Settings, run_candidate};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let settings = env::args().nth(1).ok_or("usage: participant SETTINGS, as JSON")?;
    let settings: Settings = serde_json::from_str(&settings)?;
    let reporter = Reporter::start(|message| {
        if say(&message).is_err() {
            // Nobody listens: the test is gone.
            process::exit(1);
        }
    })?;
    let commands = io::stdin().lock().lines().map_while(Result::ok);
    let commands = commands.map(|line| serde_json::from_str(&line).expect("it is a command"));
    run_candidate(&settings, commands, &reporter)?;
    // Whatever still runs here goes with the process.
    process::exit(0);
}

fn say(message: &Message) -> io::Result<()> {
    let line = serde_json::to_string(message)?;
    writeln!(io::stdout(), "{line}")
}
