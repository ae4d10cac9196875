//! The worst of moments: work begins when the elector has made up its mind to end the term and nobody can see that yet, or
//! somebody sees the term end when the elector has made up its mind to go on.

use std::{sync::Mutex, time::Duration};

use tracing::field::{Field, Visit};

use super::{
    tests::{Fleet, LEASE},
    *,
};
use crate::{TermEnd, TermGuard, term::InFlight};

/// Calls back while the elector says that it cancels a term: the last moment at which the term is live.
struct AtCancel<F>(F);

impl<F: Fn() + Send + Sync + 'static> tracing::Subscriber for AtCancel<F> {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        struct Says(bool);
        impl Visit for Says {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                self.0 |= field.name() == "message" && format!("{value:?}").contains("cancelled");
            }
        }
        let mut says = Says(false);
        event.record(&mut says);
        if says.0 {
            (self.0)();
        }
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

async fn is_released(fleet: &Fleet) -> bool {
    fleet.store.leaders().await.unwrap().remove(0).1.released
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_not_released_over_a_guard_that_was_taken_while_its_end_began() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder().build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    let guard = Arc::new(Mutex::new(None::<TermGuard>));
    let (taken, of) = (guard.clone(), term.clone());
    let take = move || *taken.lock().unwrap() = of.guard();
    let _subscriber = tracing::subscriber::set_default(AtCancel(take));

    let resigned = candidacy.resign();
    term.cancelled().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(guard.lock().unwrap().is_some(), "the term was over already");
    assert_eq!(term.end(), None, "it was not waited for");
    assert!(!is_released(&fleet).await);
    *guard.lock().unwrap() = None;
    resigned.await;
    assert!(is_released(&fleet).await);
}

#[tokio::test(start_paused = true)]
async fn work_that_was_admitted_while_an_end_began_is_waited_for() {
    let fleet = Fleet::new();
    let candidacy = fleet.builder().build().unwrap().spawn();
    let term = candidacy.leadership().leading().await.unwrap();
    let work = Arc::new(Mutex::new(None::<InFlight>));
    let (admitted, to) = (work.clone(), term.clone());
    let admit = move || *admitted.lock().unwrap() = to.admit();
    let _subscriber = tracing::subscriber::set_default(AtCancel(admit));

    let shutdown = candidacy.shutdown();
    term.cancelled().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(work.lock().unwrap().is_some(), "the term admitted nothing any more");
    assert_eq!(term.end(), None, "it was cut instead of being waited for");
    *work.lock().unwrap() = None;
    shutdown.await.unwrap();
    assert_eq!(term.end(), Some(TermEnd::Shutdown));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_confirmed_after_somebody_saw_the_term_end_begins_no_work_anew() {
    let fleet = Fleet::new();
    let candidacy = fleet.candidate();
    let leadership = candidacy.leadership();
    let term = leadership.leading().await.unwrap();
    // What anybody does who reads the clock past the deadline. The elector was told an earlier time just before.
    term.finish(TermEnd::Expired);
    let next = tokio::select! {
        next = leadership.leading() => next.unwrap(),
        () = tokio::time::sleep(LEASE * 3) => panic!("it goes on with a term that is over"),
    };
    assert!(next.fence() > term.fence());
    assert_eq!(term.end(), Some(TermEnd::Expired));
}
