//! The `fencing` example, run as a program.
#![cfg(unix)]

mod support;

use support::example;

#[test]
fn the_late_write_of_a_frozen_leader_is_refused() {
    let output = example("fencing").args(["--lease", "2s"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("its write is accepted").count(), 2, "{text}");

    let fence = |before: &str| -> i64 {
        let line = text.lines().find_map(|line| line.split_once(before)).expect(before).1;
        line.split(' ').next().unwrap().trim_end_matches(':').parse().unwrap()
    };
    let first = fence("the first candidate leads under fence ");
    let second = fence("the second candidate leads under fence ");
    assert!(first < second, "{text}");
    assert_eq!(fence("the ledger refuses: "), first);
    assert!(text.contains(&format!("{first}: 412 Precondition Failed, outdated")), "{text}");
}
