//! When, where and with what something was played.

use std::process::Command;

use tenure_testbed::programs;

/// In lines for the head of a report.
pub(crate) fn this(seed: u64) -> Vec<(String, String)> {
    let line = |name: &str, value: String| (name.to_owned(), value);
    let mut about = vec![
        line("date", output("date", &["-u", "+%Y-%m-%d"])),
        line("tenure", env!("CARGO_PKG_VERSION").to_owned()),
        line("seed", seed.to_string()),
    ];
    let servers = [
        (&programs::POSTGRES, "postgres"),
        (&programs::POSTGRES_18, "postgres"),
        (&programs::PGBOUNCER, "pgbouncer"),
        (&programs::MARIADB, "mariadbd"),
        (&programs::NATS, "nats-server"),
        (&programs::NATS_CURRENT, "nats-server"),
    ];
    for (server, program) in servers {
        if let Ok(directory) = server.find() {
            let program = directory.join(program);
            about.push(line(server.name, output(&program.to_string_lossy(), &["--version"])));
        }
    }
    about
}

/// The first line of what a program says.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let said = said.unwrap_or_else(|error| error.to_string());
    let line = said.lines().next().unwrap_or_default();
    // Some say first where they lie, which is nobody's concern.
    match line.split_once(' ') {
        Some((first, rest)) if first.contains('/') => rest.trim().to_owned(),
        _ => line.to_owned(),
    }
}
