//! The table of obligations, and the ways to try them.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use futures::future::{FutureExt, LocalBoxFuture};

use crate::{
    administration,
    bench::Bench,
    cancellation, fences, freshness, guards, hints, hold, limits,
    report::{Report, Verdict, covers},
    schema,
    subject::{Subject, Unsupported},
    take_over, time, versions,
};

/// Bounds what an obligation takes: a store that never answers breaks it.
const LIMIT: Duration = Duration::from_secs(120);

/// The one table. `$then!` gets `$with`, and all names by theme.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_obligations {
    ([$($then:tt)*] $with:tt) => {
        $($then)*! { $with
            take_over {
                one_candidate_wins_an_election_that_nobody_held
                one_candidate_wins_a_released_lease
                one_candidate_wins_an_expired_lease
                one_candidate_wins_a_lease_that_was_watched
                only_a_store_with_a_clock_gives_a_lease_as_expired
                a_claim_or_the_renewal_beside_it_succeeds_never_both
                a_valid_lease_is_not_taken
                a_claim_needs_the_record_that_it_saw
                a_claim_that_saw_no_record_needs_none
                a_claim_that_saw_a_record_creates_none
                the_winner_is_shown_to_everybody
            }
            fences {
                a_fence_rises_over_a_release
                a_fence_rises_over_an_expiry
                a_fence_rises_when_a_candidate_claims_its_own_lease
                a_fence_rises_over_a_lost_reply
                a_fence_stays_while_the_lease_is_renewed
                a_late_duplicate_of_a_claim_changes_nothing
                a_fence_is_above_the_floor
                the_last_fence_is_followed_by_an_error
                a_fence_rises_over_a_lost_record
                a_fence_rises_over_a_restored_record
                a_fence_rises_over_a_lost_record_for_who_has_seen_nothing
                a_fence_rises_over_a_restored_record_for_who_has_seen_nothing
                fences_of_one_election_are_not_raised_by_another
                fences_rise_over_every_change_of_hands
                fences_rise_over_every_loss
            }
            guards {
                somebody_elses_lease_is_neither_renewed_nor_released
                another_fence_neither_renews_nor_releases
                a_released_lease_is_neither_renewed_nor_released_again
                a_lease_that_was_taken_over_is_neither_renewed_nor_released
                a_record_that_is_gone_is_neither_renewed_nor_released
                a_record_that_never_was_is_neither_renewed_nor_released
                an_expired_lease_is_not_renewed
                an_expired_lease_can_still_be_released
                a_release_changes_nothing_but_that_it_is_released
            }
            freshness {
                every_write_changes_the_version_and_none_comes_twice
                a_version_does_not_come_back_with_a_lost_record
                a_version_does_not_come_back_with_a_restored_record
                a_claim_that_finds_its_own_earlier_write_is_no_success
                a_renewal_after_one_that_was_never_answered_writes_again
                a_renewal_after_a_late_one_writes_again
                a_release_after_a_renewal_that_was_never_answered_succeeds
                a_success_reports_the_record_as_it_stands
            }
            limits {
                names_that_differ_are_different_elections
                identities_that_differ_are_different_candidates
                a_payload_may_hold_every_byte
                a_payload_may_have_64_kib
                a_renewal_without_a_payload_leaves_what_is_there
                many_elections_do_not_touch_each_other
            }
            time {
                the_duration_asked_is_written
                a_lease_is_never_valid_for_longer_than_asked
                what_is_left_of_a_lease_runs_down
                a_shorter_renewal_shortens_the_lease
                a_lease_of_300_ms_expires_and_is_taken
                a_renewed_lease_of_300_ms_is_not_taken
                an_expired_lease_shows_that_nothing_is_left
                looking_writes_nothing
                only_a_store_with_a_clock_shows_what_is_left
            }
            administration {
                a_placed_record_is_nobodys
                a_record_that_is_there_is_not_replaced_by_a_placed_one
                one_record_is_placed_by_all_together
                a_placed_record_is_claimed_after_it_has_expired
                a_deposed_leader_is_told_at_its_next_renewal
                a_deposed_record_is_claimed_after_it_has_expired
                to_depose_nobody_creates_nothing
                a_released_record_stays_released_when_it_is_deposed
                all_records_are_listed_by_name
                a_store_that_can_be_reached_answers_a_ping
            }
            schema {
                a_record_can_be_compared_byte_by_byte
                all_replicas_may_create_the_schema_at_once
                to_create_the_schema_again_leaves_the_records
                without_a_schema_a_term_is_lost_and_every_other_call_fails
            }
            cancellation {
                a_look_may_be_dropped_at_any_point
                a_claim_may_be_dropped_at_any_point
                a_renewal_may_be_dropped_at_any_point
                a_release_may_be_dropped_at_any_point
                a_placing_may_be_dropped_at_any_point
                administration_may_be_dropped_at_any_point
                the_next_call_gets_its_own_answer
                dropped_calls_leave_no_task_behind
            }
            versions {
                a_column_that_was_added_is_in_nobodys_way
                what_was_written_to_an_added_column_stays
                sessions_from_before_and_after_an_upgrade_elect_one_leader
                the_first_schema_is_served_as_it_is
            }
            hints {
                a_release_wakes_who_listens_if_it_is_declared
                renewals_wake_nobody
                releases_of_other_elections_are_no_storm
                a_stream_that_was_dropped_can_be_asked_for_again
                a_stream_may_be_dropped_at_any_point
                all_who_listen_are_woken
                a_hand_over_waits_for_no_polling_period
                who_listens_wins_and_loses_as_others_do
                calls_may_be_dropped_while_somebody_listens
                writes_are_fresh_while_somebody_listens
            }
            hold {
                it_is_offered_if_it_is_declared
                nobody_takes_over_before_the_commit
                nothing_is_added_after_a_take_over
                renewals_pass_or_wait_as_declared
                several_transactions_hold_one_term
                a_transaction_that_is_dropped_holds_nothing
                a_hold_may_be_dropped_at_any_point
                to_depose_the_leader_breaks_no_hold
                no_late_write_under_read_committed
                no_late_write_under_repeatable_read
                no_late_write_under_serializable
                a_term_is_held_while_it_drains_and_not_after_its_end
                a_hold_outlasts_the_lease_or_its_transaction_fails
            }
        }
    };
}

/// Makes a `#[test]` of each obligation, in a module for each theme.
///
/// The first argument is an async function or closure that makes a [`Subject`], an empty one at each call. What the
/// subject can not do must be declared, by names of obligations or, as `"hold::*"`, of whole themes: an obligation that is
/// listed and can be tried fails like one that is not listed and can't.
///
/// ```
/// # use tenure::MemoryStore;
/// # use tenure_conformance::{Subject, suite};
/// struct InMemory(MemoryStore);
///
/// impl Subject for InMemory {
///     type Store = MemoryStore;
///
///     async fn store(&self) -> MemoryStore {
///         self.0.clone()
///     }
/// }
///
/// suite!(async || InMemory(MemoryStore::new()), unsupported: [
///     "fences::a_fence_rises_over_a_lost_record",
///     // ...
/// ]);
/// ```
#[macro_export]
macro_rules! suite {
    ($make_subject:expr $(, unsupported: [$($name:literal),* $(,)?])? $(,)?) => {
        $crate::__with_obligations! { [$crate::__tests] [$make_subject, [$($($name),*)?]] }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$make_subject:expr, $unsupported:tt] $($theme:ident $names:tt)*) => {
        $(
            mod $theme {
                #[allow(unused_imports)] // where the subject is made by what is in scope here
                use super::*;

                $crate::__tests! { @theme $theme $names [$make_subject] $unsupported }
            }
        )*
    };
    (@theme $theme:ident { $($name:ident)* } $make_subject:tt $unsupported:tt) => {
        $( $crate::__tests! { @test $theme $name $make_subject $unsupported } )*
    };
    (@test $theme:ident $name:ident [$make_subject:expr] [$($unsupported:literal),*]) => {
        #[test]
        fn $name() {
            let name = concat!(stringify!($theme), "::", stringify!($name));
            $crate::check($make_subject, name, &[$($unsupported),*]);
        }
    };
}

macro_rules! table {
    ([] $($theme:ident { $($name:ident)* })*) => {
        vec![$($(
            Obligation {
                name: concat!(stringify!($theme), "::", stringify!($name)),
                keep: |bench| $theme::$name(bench).boxed_local(),
            }
        ),*),*]
    };
}

struct Obligation<S: Subject> {
    name: &'static str,
    keep: fn(Bench<S>) -> LocalBoxFuture<'static, Result<(), Unsupported>>,
}

impl<S: Subject> Obligation<S> {
    fn all() -> Vec<Self> {
        crate::__with_obligations! { [table] [] }
    }

    async fn judge(&self, subject: S) -> Verdict {
        let kept = AssertUnwindSafe(async { (self.keep)(Bench::new(subject).await).await });
        tokio::select! {
            result = kept.catch_unwind() => match result {
                Ok(result) => result.into(),
                Err(payload) => Verdict::Broken(message(&*payload)),
            },
            () = tokio::time::sleep(LIMIT) => Verdict::Broken(format!("not done within {LIMIT:?}")),
        }
    }
}

/// The names of all obligations, in the order in which [`run`] tries them.
#[must_use]
pub fn obligations() -> Vec<&'static str> {
    macro_rules! names {
        ([] $($theme:ident { $($name:ident)* })*) => {
            vec![$($(concat!(stringify!($theme), "::", stringify!($name))),*),*]
        };
    }
    crate::__with_obligations! { [names] [] }
}

/// Tries all obligations one after the other, each on a subject of its own.
///
/// Needs a tokio runtime with time and I/O, and more than one worker if claims are to be truly concurrent.
pub async fn run<S, F>(make_subject: F) -> Report
where
    S: Subject,
    F: AsyncFn() -> S,
{
    let mut verdicts = Vec::new();
    for obligation in Obligation::all() {
        verdicts.push((obligation.name, obligation.judge(make_subject().await).await));
    }
    Report::new(verdicts)
}

/// Tries one obligation.
///
/// # Panics
/// If there is none of this name.
pub async fn judge<S: Subject>(subject: S, name: &str) -> Verdict {
    let named = Obligation::all().into_iter().find(|obligation| obligation.name == name);
    match named {
        Some(obligation) => obligation.judge(subject).await,
        None => panic!("there is no obligation {name:?}; `obligations()` lists them"),
    }
}

/// Tries one obligation on a runtime of its own: the body of each test that [`suite!`](crate::suite) makes.
///
/// # Panics
/// If it is broken, and if it can not be tried although it is not listed in `unsupported`, or the other way round.
pub fn check<S, F>(make_subject: F, name: &str, unsupported: &[&str])
where
    S: Subject,
    F: AsyncFn() -> S,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    let verdict = runtime.block_on(async { judge(make_subject().await, name).await });
    let listed = unsupported.iter().any(|listed| covers(listed, name));
    match verdict {
        Verdict::Kept if !listed => {}
        Verdict::Kept => panic!("{name} is listed as unsupported, but it is kept"),
        Verdict::Unsupported(why) if listed => println!("{name} was not tried: {why}"),
        Verdict::Unsupported(why) => panic!("{name} can not be tried, and is not listed: {why}"),
        Verdict::Broken(how) => panic!("{how}"),
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic that says nothing").to_owned()
}
