//! What clocks show.

use std::{process::Command, time::Duration};

use tenure_testbed::programs;

use super::Scenario;
use crate::{ground::TABLE, kind::Need, stage::Stage};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "wall-clocks-apart",
        about: "The wall clocks of the candidates are days apart.",
        needs: &[Need::Processes],
        play: wall_clocks,
    },
    Scenario {
        name: "database-clocks-apart",
        about: "Candidates are shown clocks of the database that are days apart; they judge by watching alone.",
        needs: &[Need::Clock, Need::Processes],
        play: database_clocks,
    },
];

fn wall_clocks(stage: &mut Stage) {
    stage.allow(stage.timing().worst_case().fail_over);
    let preload = format!("LD_PRELOAD={}", faketime_library());
    let fault = stage.begin("wall clocks 3 days ahead, 2 days behind", None);
    for offset in ["+3d", "-2d", "+0d"] {
        let faketime = format!("FAKETIME={offset}");
        // The clock behind deadlines is left alone.
        let others = "FAKETIME_DONT_FAKE_MONOTONIC=1";
        stage.join_within(&["/usr/bin/env", &preload, &faketime, others]);
    }
    each_in_turn(stage);
    stage.end(fault);
}

/// What shows a program another time. Its own starter would stand between the candidate and whoever kills it.
fn faketime_library() -> String {
    let faketime = programs::FAKETIME.find().expect("faketime is installed").join("faketime");
    let output = Command::new(faketime).args(["-f", "+0d", "printenv", "LD_PRELOAD"]).output();
    let library = output.expect("faketime runs a program").stdout;
    String::from_utf8_lossy(&library).trim().to_owned()
}

/// A function of the same name that comes first in the path of one user: what a database shows whose clock is wrong.
fn database_clocks(stage: &mut Stage) {
    *stage.settings() = stage.settings().observed();
    stage.allow(stage.timing().worst_case().fail_over);
    let fault = stage.begin("database clocks 3 days ahead, 2 days behind", None);
    for (user, offset) in [("ahead", "3 days"), ("behind", "-2 days"), ("right", "0 days")] {
        stage.ground.execute(&format!(
            "CREATE SCHEMA clock_of_{user};
             CREATE FUNCTION clock_of_{user}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
                 RETURN pg_catalog.clock_timestamp() + interval '{offset}';
             CREATE ROLE {user} LOGIN;
             GRANT USAGE ON SCHEMA clock_of_{user} TO {user};
             GRANT SELECT, INSERT, UPDATE ON {TABLE} TO {user};
             ALTER ROLE {user} SET search_path = clock_of_{user}, pg_catalog, public"
        ));
        stage.join_as(user);
    }
    each_in_turn(stage);
    stage.end(fault);
}

/// The leader is killed and started anew, until each candidate has followed another one.
fn each_in_turn(stage: &mut Stage) {
    let mut leader = stage.leader();
    for _ in 0..3 {
        stage.wait(Duration::from_secs(1));
        let gone = leader.participant;
        stage.crash(gone);
        stage.join_like(gone);
        leader = stage.next_after(leader);
    }
    stage.wait(Duration::from_secs(1));
    stage.expect_terms(4);
}
