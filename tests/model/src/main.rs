//! `tenure-model [--large] [NAME..]`: explores the small scopes, all of them, or those that are named.

use std::process::ExitCode;

use tenure_model::{Scope, explore};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_large = arguments.iter().any(|argument| argument == "--large");
    let names: Vec<_> = arguments.iter().filter(|argument| *argument != "--large").collect();
    if let Some(unknown) = names.iter().find(|name| Scope::named(name).is_none()) {
        let known: Vec<_> = Scope::ALL.iter().map(|scope| scope.name).collect();
        eprintln!("there is no scope {unknown}; there are: {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    let is_wanted = |scope: &&Scope| match names.as_slice() {
        [] => is_large || !scope.is_large,
        names => names.iter().any(|name| *name == scope.name),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut good, mut bad) = (0, 0);
    for scope in Scope::ALL.iter().filter(is_wanted) {
        let report = explore(*scope, threads);
        println!("{report}");
        *(if report.is_good() { &mut good } else { &mut bad }) += 1;
    }
    println!("{good} passed, {bad} failed");
    if good > 0 && bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
