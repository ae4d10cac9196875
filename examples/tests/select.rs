//! The `select` example, run as a program.
#![cfg(unix)]

mod support;

use support::example;

#[test]
fn work_follows_two_terms_in_three_ways() {
    let output = example("select").args(["--lease", "1500ms"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));

    for fence in [1, 2] {
        for line in [
            format!("select!      term {fence}: "),
            format!("each_term    term {fence}: prepares"),
            format!("each_term    term {fence}: prepared"),
        ] {
            assert_eq!(text.matches(&line).count(), 1, "{line:?} in\n{text}");
        }
    }
    assert!(text.contains("leader_only  done"), "{text}");
    assert!(text.contains("leader_only  not the leader"), "{text}");
}

#[test]
fn flags_that_contradict_each_other_are_refused_in_a_sentence() {
    let output = example("select").args(["--timeout", "5s"]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("select: ") && said.contains("operation_timeout "), "{said}");
}
