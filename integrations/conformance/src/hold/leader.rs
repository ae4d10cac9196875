//! Leaders whose terms are held, the user's transactions, and rivals that are kept away.

use std::time::Duration;

use tenure::{
    Candidacy, ElectionName, Elector, Lease, StoreError, Term,
    store::{Outcome, Session},
};
use tokio::time::sleep;

use crate::{
    bench::{Bench, Candidate, LONG, Sess, won},
    subject::{Subject, Unsupported},
    transaction::{BoxError, Isolation, Transaction},
};

/// How long the calls of a candidate may take that is to be kept away.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// More than what a store needs to notice that a transaction has ended.
const LIMIT: Duration = Duration::from_secs(15);

/// A whole elector that leads: terms come from nowhere else. Its lease is so long that it does nothing by itself while
/// the obligation runs.
pub(super) struct Leader {
    pub(super) candidacy: Candidacy,
    pub(super) term: Term,
}

impl Leader {
    pub(super) async fn of<S: Subject>(bench: &Bench<S>, contended: &ElectionName) -> Self {
        let elector = Elector::builder(contended, bench.subject.store().await)
            .lease_duration(LONG)
            .build()
            .expect("the settings are valid");
        let candidacy = elector.spawn();
        let term = candidacy.leadership().leading().await.expect("it was not stopped");
        Self { candidacy, term }
    }

    /// The same candidate with a session of its own.
    pub(super) async fn again<S: Subject>(&self, bench: &Bench<S>) -> Candidate<Sess<S>> {
        let store = bench.subject.store().await;
        Candidate::new(self.term.identity().clone(), &store, self.term.election())
    }
}

impl<S: Subject> Bench<S> {
    /// One of the user's, at the weakest isolation level that there is.
    pub(crate) async fn transaction(&self) -> Result<impl Transaction, Unsupported> {
        let mut begun = self.subject.begin(Isolation::ReadCommitted).await;
        for stricter in [Isolation::RepeatableRead, Isolation::Serializable] {
            if begun.is_err() {
                begun = self.subject.begin(stricter).await;
            }
        }
        begun
    }

    /// What was committed.
    pub(crate) async fn count(&self) -> i64 {
        let transaction = self.transaction().await;
        transaction.expect("there was one before").count().await.expect_user("count")
    }
}

pub(super) async fn impatient<S: Subject>(bench: &Bench<S>, name: &str) -> Candidate<Sess<S>> {
    let mut candidate = bench.candidate(name).await;
    candidate.session.limit_calls(PATIENCE);
    candidate
}

pub(super) async fn hold(transaction: &mut impl Transaction, term: &Term) {
    transaction.hold(term).await.unwrap_or_else(|error| panic!("hold failed: {error:?}"));
}

/// It can look, and can't claim what it sees.
pub(super) async fn is_kept_away<Se: Session>(rival: &mut Candidate<Se>) {
    let seen = rival.look().await;
    let claim = rival.request(Some(&seen), LONG);
    says_what_is_in_the_way(rival.session.acquire(&claim).await);
}

/// That it lost would be proof that somebody else has written, and nobody has.
pub(super) fn says_what_is_in_the_way(answer: Result<Outcome, StoreError>) {
    let error = match answer {
        Ok(outcome) => panic!("nothing kept it away: {outcome:?}"),
        Err(error) => error,
    };
    assert!(error.is_retryable(), "it passes by itself, but: {error}");
    assert!(error.to_string().contains("transaction"), "does not say what is in the way: {error}");
}

/// Claims the record that was seen, as soon as nothing is in the way any more.
pub(super) async fn take_over<Se: Session>(rival: &mut Candidate<Se>, seen: &Lease) -> Lease {
    let claim = rival.request(Some(seen), LONG);
    let claiming = async {
        loop {
            match rival.session.acquire(&claim).await {
                // By a call before that one, whose outcome was unknown.
                Ok(Outcome::Lost(Some(own))) if own.is_held_by(&rival.identity) => return own,
                Ok(outcome) => return won(outcome),
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        taken = claiming => taken,
        () = sleep(LIMIT) => panic!("the transaction keeps everybody away after its end"),
    }
}

/// An error of a statement that must succeed breaks an obligation.
pub(super) trait ExpectUser<T> {
    fn expect_user(self, statement: &str) -> T;
}

impl<T> ExpectUser<T> for Result<T, BoxError> {
    fn expect_user(self, statement: &str) -> T {
        self.unwrap_or_else(|error| panic!("{statement} failed: {error}"))
    }
}
