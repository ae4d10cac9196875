//! What things show of themselves: enough for a log line, and nothing of what hangs on them.

use std::{future::pending, pin::pin};

use futures::{FutureExt, StreamExt};

use crate::{
    ElectionName, Elector, Identity, InFlight, Leader, LeaderOnlyError, MemoryStore, Overrun,
    Payload, Phase, TermEnd, Transition,
    store::{PlaceRequest, Session, Store},
    testing::ManualLeadership,
};

fn leader() -> Leader {
    let fence = crate::Fence::try_from(7_i64).unwrap();
    Leader::new(Identity::new("web-2").unwrap(), fence, Payload::default())
}

/// Whether all of these are shown.
#[track_caller]
fn shows(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn a_term_and_whatever_was_made_under_it_show_whose_it_is() {
    let manual = ManualLeadership::new("billing");
    let term = manual.promote();
    let whose = ["\"billing\"", "\"manual\"", "fence: Fence(1)", "end: None"];
    shows(&format!("{term:?}"), &whose);
    let (in_flight, guard) = InFlight::begin(&term).unwrap();
    assert_eq!(in_flight.term(), &term);
    shows(&format!("{guard:?}"), &["TermGuard(Term", "\"billing\""]);
    shows(&format!("{in_flight:?}"), &["InFlight(Term", "\"billing\""]);
    let work = term.until_ended(pending::<()>());
    shows(&format!("{work:?}"), &["LeaderOnly", "\"billing\"", "Ended"]);
    let metadata = term.span().metadata();
    assert!(metadata.is_none_or(|metadata| metadata.fields().field("fence").is_some()));

    manual.demote(TermEnd::Lost);
    shows(&format!("{term:?}"), &["end: Some(Lost)", "remaining: 0ns"]);
}

#[test]
fn leadership_shows_where_the_candidate_stands_and_who_leads() {
    let manual = ManualLeadership::new("billing");
    let leadership = manual.leadership();
    assert_eq!(
        (leadership.election().as_str(), leadership.status().election().as_str()),
        ("billing", "billing")
    );
    manual.follow(leader());
    let status = ["\"billing\"", "\"manual\"", "phase: Following", "term: None", "\"web-2\""];
    shows(&format!("{:?}", leadership.status()), &status);
    shows(&format!("{leadership:?}"), &["Leadership", "Status"]);
    shows(&format!("{manual:?}"), &["ManualLeadership", "Leadership"]);
    shows(&format!("{:?}", leadership.leader_only(pending::<()>())), &["IfLeader"]);
    assert_eq!(format!("{:?}", leadership.transitions()), "Transitions");
}

#[test]
fn who_is_refused_learns_who_leads_if_that_is_known() {
    let manual = ManualLeadership::new("billing");
    let refused = || manual.leadership().leader_only(async {}).now_or_never().unwrap().unwrap_err();
    assert_eq!(refused().to_string(), "this candidate does not lead");
    manual.follow(leader());
    assert_eq!(refused().to_string(), "this candidate does not lead; web-2 does, with fence 7");
    assert!(matches!(refused(), LeaderOnlyError::NotLeader { leader: Some(_) }));
}

#[test]
fn phases_and_last_acts_are_named_by_a_word() {
    use Phase::{Draining, Following, Leading, Relinquishing, Stopped};

    let phases =
        [Following, Leading, Draining, Relinquishing, Stopped].map(|phase| phase.to_string());
    assert_eq!(phases, ["following", "leading", "draining", "relinquishing", "stopped"]);
    let acts =
        [Overrun::Report, Overrun::Abort, Overrun::call(|_| {})].map(|act| format!("{act:?}"));
    assert_eq!(acts, ["Report", "Abort", "Call"]);
}

#[tokio::test]
async fn a_store_in_memory_shows_how_many_elections_it_has_and_not_their_payloads() {
    let store = MemoryStore::new();
    let place = PlaceRequest::new(std::time::Duration::from_secs(1));
    store.session(&ElectionName::new("billing").unwrap()).place(&place).await.unwrap();
    assert_eq!(format!("{store:?}"), "MemoryStore { elections: 1 }");
    assert_eq!(format!("{:?}", store.backup()), "MemoryBackup { elections: 1 }");
}

#[tokio::test]
async fn an_elector_shows_who_takes_part_in_what_and_its_timings() {
    let builder = Elector::builder("billing", MemoryStore::new()).label("web-1");
    let builder = builder.on_started_leading(|_| async {});
    shows(&format!("{builder:?}"), &["billing", "started: 1"]);
    let elector = builder.build().unwrap();
    assert_eq!(elector.election().as_str(), "billing");
    assert!(elector.identity().as_str().starts_with("web-1"), "{}", elector.identity());
    shows(&format!("{elector:?}"), &["\"billing\"", "web-1", "Timing"]);
}

#[test]
fn what_happens_in_an_election_is_a_stream_and_its_status_a_channel() {
    let manual = ManualLeadership::new("billing");
    let leadership = manual.leadership();
    let mut transitions = pin!(StreamExt::map(leadership.transitions(), |transition| transition));
    let mut watch = leadership.watch();
    let mut receiver = leadership.watch().into_receiver();
    let term = manual.promote();
    assert_eq!(transitions.next().now_or_never(), Some(Some(Transition::Started(term.clone()))));
    assert_eq!(watch.borrow_and_update().term(), Some(term.clone()));
    assert!(watch.changed().now_or_never().is_none(), "it was seen");
    assert!(receiver.has_changed().unwrap());
    assert_eq!(receiver.borrow_and_update().term(), Some(term.clone()));
}
