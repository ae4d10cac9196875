//! What happens to an election across processes, the same on every store.

// No test program has a use for all of it, and clippy takes helpers of tests for something else.
#![allow(dead_code, unused_imports, unused_macros, clippy::unwrap_used)]

pub(crate) mod administration;
pub(crate) mod crash;
pub(crate) mod grounds;
pub(crate) mod hand_over;
pub(crate) mod in_process;
pub(crate) mod leaks;
pub(crate) mod runtime;

use std::time::Duration;

use serde_json::Value;
use tenure::DynStore;
use tenure_tests::{Event, Fleet, Settings, connect};
use tokio::runtime::{Builder, Runtime};

/// By how much a machine with few processors and much to do may be late.
pub(crate) const BUSY: Duration = Duration::from_secs(1);

/// A store to hold elections on, and what lies beneath it.
pub(crate) trait Ground {
    /// Where leases are kept: a URL, or a table with the URL and options.
    fn config(&self) -> Value;

    /// Has the database hang, with connections open, until what this returns is dropped.
    fn hang(&self) -> Box<dyn Hang + '_>;

    /// Takes away what `ensure_schema` creates, with all records.
    fn drop_schema(&self);

    /// The store, with its schema in place.
    fn store(&self) -> DynStore {
        let store = connect(&self.config()).unwrap();
        runtime().block_on(store.ensure_schema()).unwrap();
        store
    }

    /// An election of this name.
    fn fleet(&self, election: &str) -> Fleet {
        self.store();
        Fleet::new(env!("CARGO_BIN_EXE_participant"), Settings::new(self.config(), election))
    }
}

/// A database hangs while this is there.
pub(crate) trait Hang {}

/// Runs scenarios as tests of the program that calls it: those that leave the database alone on what the first
/// expression gives, the rest on one of their own, which the second makes.
macro_rules! run_all {
    (shared: $shared:expr, own: $own:expr $(,)?) => {
        run_all!(@on $shared;
            crash::a_killed_leader_is_followed_when_its_lease_runs_out,
            crash::a_frozen_leader_finds_its_term_over_when_it_wakes,
            crash::candidates_with_different_leases_are_safe_beside_each_other,
            hand_over::admitted_work_finishes_before_the_successor_starts,
            hand_over::a_resigned_leader_hands_over_and_contends_again_later,
            hand_over::a_handler_that_outlives_the_drain_is_cut_before_the_successor_starts,
            hand_over::guarded_code_that_outlives_the_drain_is_not_released_over,
            runtime::blocked_app_runtime_does_not_lose_the_term,
            administration::a_deposed_leader_steps_down_and_its_lease_runs_out,
            administration::a_leader_whose_row_was_taken_learns_it_and_changes_nothing,
            in_process::two_failed_renewals_in_a_row_cost_no_term,
            in_process::ten_thousand_waiters_do_not_delay_renewal,
        );
        run_all!(@on $own;
            runtime::a_blocked_runtime_and_a_hanging_store_end_the_term_on_time,
            runtime::a_store_that_hangs_for_two_leases_costs_the_term_and_the_election_recovers,
            administration::a_leader_whose_table_was_dropped_steps_down_until_it_is_back,
        );
    };
    // What only a store with a clock can give.
    (clocked: $ground:expr $(,)?) => {
        run_all!(@on $ground;
            crash::a_lease_that_has_expired_is_taken_by_a_fresh_candidate_at_once,
        );
    };
    (@on $ground:expr; $($module:ident::$name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                scenarios::$module::$name(&$ground);
            }
        )*
    };
}
pub(crate) use run_all;

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Recognizes the end of a term.
pub(crate) fn ended(fence: i64, reason: &str) -> impl FnMut(&Event) -> bool {
    let expected = Event::Ended { fence, reason: reason.to_owned() };
    move |event| *event == expected
}
