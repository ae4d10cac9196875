//! The suite is able to fail: stores that are wrong in one way each are caught, and by the obligations that are about it.

mod beneath;
mod faults;
mod store;
mod subject;

use std::future::ready;

use faults::Fault;
use futures::{StreamExt, stream};
use subject::Broken;
use tenure_conformance::{Verdict, judge, obligations, run};

/// Which obligation says what is wrong with which store.
#[rustfmt::skip]
const CAUGHT_BY: &[(Fault, &str)] = &[
    (Fault::AcquireTakesWhatIsThere, "take_over::one_candidate_wins_an_election_that_nobody_held"),
    (Fault::AcquireTakesWhatIsThere, "take_over::one_candidate_wins_a_released_lease"),
    (Fault::AcquireTakesWhatIsThere, "take_over::one_candidate_wins_a_lease_that_was_watched"),
    (Fault::AcquireTakesWhatIsThere, "take_over::a_claim_needs_the_record_that_it_saw"),
    (Fault::AcquireTakesWhatIsThere, "take_over::a_claim_that_saw_no_record_needs_none"),
    (Fault::AcquireTakesWhatIsThere, "take_over::a_claim_that_saw_a_record_creates_none"),
    (Fault::AcquireTakesWhatIsThere, "fences::a_late_duplicate_of_a_claim_changes_nothing"),
    (Fault::AcquireIgnoresExpiry, "take_over::a_valid_lease_is_not_taken"),
    (Fault::AcquireIgnoresExpiry, "administration::a_placed_record_is_claimed_after_it_has_expired"),
    (Fault::AcquireIgnoresExpiry, "administration::a_deposed_record_is_claimed_after_it_has_expired"),
    (Fault::ExpiryIsGuessed, "take_over::only_a_store_with_a_clock_gives_a_lease_as_expired"),
    (Fault::AcquireContinuesOwnLease, "fences::a_fence_rises_when_a_candidate_claims_its_own_lease"),
    (Fault::AcquireContinuesOwnLease, "fences::a_fence_rises_over_a_lost_reply"),
    (Fault::AcquireReusesTheFence, "fences::a_fence_rises_over_a_release"),
    (Fault::AcquireReusesTheFence, "fences::a_fence_rises_over_an_expiry"),
    (Fault::AcquireIgnoresTheFloor, "fences::a_fence_is_above_the_floor"),
    (Fault::AcquireIgnoresTheFloor, "fences::a_fence_rises_over_a_lost_record"),
    (Fault::AcquireIgnoresTheFloor, "fences::a_fence_rises_over_a_restored_record"),
    (Fault::OwnEarlierClaimIsSuccess, "freshness::a_claim_that_finds_its_own_earlier_write_is_no_success"),
    (Fault::OwnEarlierClaimIsSuccess, "fences::a_late_duplicate_of_a_claim_changes_nothing"),
    (Fault::LosersAreNotToldByWhom, "take_over::one_candidate_wins_a_released_lease"),
    (Fault::LosersAreNotToldByWhom, "take_over::a_valid_lease_is_not_taken"),
    (Fault::LosersProlongTheLease, "take_over::a_valid_lease_is_not_taken"),
    (Fault::LosersProlongTheLease, "freshness::a_claim_that_finds_its_own_earlier_write_is_no_success"),
    (Fault::RenewGoesByTheNameAlone, "guards::somebody_elses_lease_is_neither_renewed_nor_released"),
    (Fault::RenewGoesByTheNameAlone, "guards::another_fence_neither_renews_nor_releases"),
    (Fault::RenewGoesByTheNameAlone, "guards::a_lease_that_was_taken_over_is_neither_renewed_nor_released"),
    (Fault::RenewGoesByTheNameAlone, "take_over::a_claim_or_the_renewal_beside_it_succeeds_never_both"),
    (Fault::RenewRevivesTheExpired, "guards::an_expired_lease_is_not_renewed"),
    (Fault::RenewAnswersFromMemory, "freshness::every_write_changes_the_version_and_none_comes_twice"),
    (Fault::RenewAnswersFromMemory, "freshness::a_renewal_after_a_late_one_writes_again"),
    (Fault::RenewAnswersFromMemory, "freshness::a_renewal_after_one_that_was_never_answered_writes_again"),
    (Fault::RenewKeepsTheLongerDuration, "time::a_shorter_renewal_shortens_the_lease"),
    (Fault::RenewClearsThePayload, "limits::a_renewal_without_a_payload_leaves_what_is_there"),
    (Fault::ReleaseGoesByTheNameAlone, "guards::somebody_elses_lease_is_neither_renewed_nor_released"),
    (Fault::ReleaseDeletes, "guards::a_release_changes_nothing_but_that_it_is_released"),
    (Fault::VersionsAreTheFence, "freshness::every_write_changes_the_version_and_none_comes_twice"),
    (Fault::VersionsAreTheFence, "guards::a_release_changes_nothing_but_that_it_is_released"),
    (Fault::NamesIgnoreCase, "limits::names_that_differ_are_different_elections"),
    (Fault::IdentitiesIgnoreCase, "limits::identities_that_differ_are_different_candidates"),
    (Fault::PayloadsAreText, "limits::a_payload_may_hold_every_byte"),
    (Fault::LeasesLastASecondLonger, "time::a_lease_is_never_valid_for_longer_than_asked"),
    (Fault::LeasesLastASecondLonger, "time::a_shorter_renewal_shortens_the_lease"),
    (Fault::TimeStandsStill, "time::what_is_left_of_a_lease_runs_down"),
    (Fault::ClockIsNotShown, "time::only_a_store_with_a_clock_shows_what_is_left"),
    (Fault::InspectProlongsTheLease, "time::looking_writes_nothing"),
    (Fault::PlaceReplacesTheRecord, "administration::a_record_that_is_there_is_not_replaced_by_a_placed_one"),
    (Fault::PlaceReplacesTheRecord, "administration::one_record_is_placed_by_all_together"),
    (Fault::DeposeReleases, "administration::a_deposed_leader_is_told_at_its_next_renewal"),
    (Fault::SchemaIsCreatedAnew, "schema::to_create_the_schema_again_leaves_the_records"),
    (Fault::DroppedCallsPoison, "cancellation::a_look_may_be_dropped_at_any_point"),
    (Fault::DroppedCallsPoison, "cancellation::a_claim_may_be_dropped_at_any_point"),
    (Fault::DroppedCallsPoison, "cancellation::a_renewal_may_be_dropped_at_any_point"),
    (Fault::DroppedCallsPoison, "cancellation::a_release_may_be_dropped_at_any_point"),
    (Fault::DroppedCallsPoison, "cancellation::a_placing_may_be_dropped_at_any_point"),
    (Fault::DroppedCallsPoison, "cancellation::the_next_call_gets_its_own_answer"),
    (Fault::RepliesOutliveTheirCalls, "cancellation::the_next_call_gets_its_own_answer"),
    (Fault::DroppedCallsGoOn, "cancellation::dropped_calls_leave_no_task_behind"),
    (Fault::FencesAreSwapped, "fences::fences_rise_over_every_change_of_hands"),
    (Fault::AcquireIgnoresTheFloor, "fences::fences_rise_over_every_loss"),
    (Fault::AddedColumnsBreakOldSessions, "versions::a_column_that_was_added_is_in_nobodys_way"),
    (Fault::WritesClearAddedColumns, "versions::what_was_written_to_an_added_column_stays"),
    (Fault::AcquireTakesWhatIsThere, "versions::sessions_from_before_and_after_an_upgrade_elect_one_leader"),
    (Fault::SchemaIsCreatedAnew, "versions::the_first_schema_is_served_as_it_is"),
    (Fault::HintsAreNotDeclared, "hints::a_release_wakes_who_listens_if_it_is_declared"),
    (Fault::ReleasesDoNotHint, "hints::a_release_wakes_who_listens_if_it_is_declared"),
    (Fault::ReleasesDoNotHint, "hints::a_hand_over_waits_for_no_polling_period"),
    (Fault::RenewalsHint, "hints::renewals_wake_nobody"),
    (Fault::AllElectionsHint, "hints::releases_of_other_elections_are_no_storm"),
    (Fault::HintsComeOnlyOnce, "hints::a_stream_that_was_dropped_can_be_asked_for_again"),
    (Fault::HintsComeOnlyOnce, "hints::a_stream_may_be_dropped_at_any_point"),
    (Fault::OnlyTheFirstIsHinted, "hints::all_who_listen_are_woken"),
    (Fault::ListenersAreServedWorse, "hints::who_listens_wins_and_loses_as_others_do"),
    (Fault::ListenersAreServedWorse, "hints::calls_may_be_dropped_while_somebody_listens"),
    (Fault::ListenersAreServedWorse, "hints::writes_are_fresh_while_somebody_listens"),
    (Fault::HoldIsNotDeclared, "hold::it_is_offered_if_it_is_declared"),
    (Fault::HoldIsNotOffered, "hold::it_is_offered_if_it_is_declared"),
    (Fault::HoldKeepsNobodyAway, "hold::nobody_takes_over_before_the_commit"),
    (Fault::HoldKeepsNobodyAway, "hold::nothing_is_added_after_a_take_over"),
    (Fault::HoldKeepsNobodyAway, "hold::several_transactions_hold_one_term"),
    (Fault::HoldKeepsRenewalsAway, "hold::renewals_pass_or_wait_as_declared"),
    (Fault::HoldIsNotNamed, "hold::nobody_takes_over_before_the_commit"),
    (Fault::HoldMakesOthersLose, "hold::nobody_takes_over_before_the_commit"),
    (Fault::HoldsExcludeEachOther, "hold::several_transactions_hold_one_term"),
    (Fault::HoldOutlivesItsTransaction, "hold::a_transaction_that_is_dropped_holds_nothing"),
    (Fault::HoldOutlivesItsTransaction, "hold::a_hold_may_be_dropped_at_any_point"),
    (Fault::HoldEndsWithTheLease, "hold::a_hold_outlasts_the_lease_or_its_transaction_fails"),
    (Fault::HoldAsksNobody, "hold::no_late_write_under_read_committed"),
    (Fault::HoldAsksNobody, "hold::no_late_write_under_repeatable_read"),
    (Fault::HoldAsksNobody, "hold::no_late_write_under_serializable"),
    (Fault::HoldAsksNobody, "hold::to_depose_the_leader_breaks_no_hold"),
    (Fault::HoldAsksTheSnapshot, "hold::no_late_write_under_repeatable_read"),
    (Fault::HoldAsksTheSnapshot, "hold::no_late_write_under_serializable"),
    (Fault::HoldRefusesToDrain, "hold::a_term_is_held_while_it_drains_and_not_after_its_end"),
    (Fault::HoldGoesOnAfterTheEnd, "hold::a_term_is_held_while_it_drains_and_not_after_its_end"),
    (Fault::DroppedTransactionsCommit, "hold::a_transaction_that_is_dropped_holds_nothing"),
    (Fault::DeposeBreaksHolds, "hold::to_depose_the_leader_breaks_no_hold"),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_breaks_the_obligations_that_are_about_it() {
    let tried = CAUGHT_BY.iter().map(async |&(fault, obligation)| {
        (fault, obligation, judge(Broken::by(fault), obligation).await)
    });
    let missed = stream::iter(tried)
        .buffer_unordered(16)
        .filter(|(.., verdict)| ready(!matches!(verdict, Verdict::Broken(_))))
        .collect::<Vec<_>>()
        .await;
    assert!(missed.is_empty(), "not caught: {missed:#?}");
}

/// What the faults are made of is itself without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_a_fault_keeps_everything() {
    run(async || Broken::by(Fault::Nothing)).await.assert_kept(&[
        "fences::a_fence_rises_over_a_lost_record_for_who_has_seen_nothing",
        "fences::a_fence_rises_over_a_restored_record_for_who_has_seen_nothing",
        "schema::a_record_can_be_compared_byte_by_byte",
        "schema::all_replicas_may_create_the_schema_at_once",
        "schema::without_a_schema_a_term_is_lost_and_every_other_call_fails",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_tells_what_is_broken_from_what_was_not_tried() {
    let report = run(async || Broken::by(Fault::LosersAreNotToldByWhom)).await;
    assert_eq!(report.verdicts().count(), obligations().len());
    assert!(report.broken().contains(&"take_over::a_valid_lease_is_not_taken"));
    assert!(!report.broken().contains(&"limits::a_payload_may_have_64_kib"));
    assert!(report.unsupported().contains(&"schema::all_replicas_may_create_the_schema_at_once"));

    let printed = report.to_string();
    assert!(printed.contains("kept        limits::a_payload_may_have_64_kib"), "{printed}");
    assert!(printed.contains("BROKEN"), "{printed}");
    assert!(printed.contains("(the store has no schema that could be dropped)"), "{printed}");
}
