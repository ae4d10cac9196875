//! What a status tells people after an incident.

use std::time::Duration;

use super::{
    tests::{candidate, held, leader},
    *,
};
use crate::{
    lease::{Lease, TermEnd},
    term::tests::term_on,
};

/// Who led before, since when, why and when our own term ended.
#[test]
fn a_status_tells_what_happened_with_times_for_people() {
    let candidate = candidate();
    let status = || candidate.leadership.status();
    let now = || candidate.clock.wall_time(candidate.clock.now());
    let began = now();
    assert_eq!((status().leader_since(), status().previous_leader()), (None, None));
    assert_eq!((status().last_term(), status().last_error_at()), (None, None));

    candidate.observe(&held("web-1", 6));
    let since = status().leader_since().unwrap();
    assert!(since >= began && since <= now());
    candidate.observe(&held("web-1", 6));
    assert_eq!(status().leader_since(), Some(since), "the same term");
    assert_eq!(status().previous_leader(), None);

    let term = term_on(&candidate.clock, 7, true, &candidate.changed);
    candidate.publisher.started(term.clone(), leader("web-2", 7));
    assert_eq!(status().previous_leader(), Some(&leader("web-1", 6)));
    assert_eq!(status().last_term(), None, "it is not over");
    // Nobody looks for an hour: its term was over after ten seconds all the same.
    candidate.hand.suspend(Duration::from_secs(3_600));
    candidate.publisher.end(&term, TermEnd::Expired);
    let ended = status();
    let last = ended.last_term().unwrap();
    assert_eq!((last.fence(), last.reason()), (term.fence(), TermEnd::Expired));
    let ago = now().duration_since(last.ended_at()).unwrap();
    assert!((3_590..3_600).contains(&ago.as_secs()), "{ago:?}");
    assert!(last.started_at() >= began);
    assert!(ended.last_error_at().is_some(), "it was not renewed in time");

    let released = Lease { released: true, ..held("web-2", 7) };
    candidate.observe(&released);
    assert_eq!((status().leader(), status().leader_since()), (None, None));
    assert_eq!(status().previous_leader(), Some(&leader("web-2", 7)));
    candidate.observe(&held("web-2", 8));
    assert_eq!(status().previous_leader(), Some(&leader("web-2", 7)), "under a lower fence");

    let last_words = candidate.elect(9, true);
    let leadership = candidate.leadership.clone();
    drop(candidate.publisher);
    let last = leadership.status().last_term().cloned().unwrap();
    assert_eq!((last.fence(), last.reason()), (last_words.fence(), TermEnd::Shutdown));
}

#[test]
fn a_status_tells_what_its_own_candidate_would_publish() {
    let candidate = candidate();
    assert_eq!(*candidate.leadership.status().payload(), Payload::default());
    let payload = Payload::from("http://10.0.0.1:8080");
    candidate.publisher.publishes(payload.clone());
    assert_eq!(*candidate.leadership.status().payload(), payload);
}
