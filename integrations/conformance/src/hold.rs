//! A term that is held in a transaction of the user's: nobody takes over before its commit, and nobody who was followed
//! commits anything.

use std::{pin::pin, time::Duration};

use tenure::{
    Candidacy, ElectionName, Elector, Lease, Store, StoreError, Term, TermEnd,
    store::{Hold, HoldError, Outcome, RenewRequest, Session, When},
};
use tokio::time::sleep;

use crate::{
    bench::{Bench, Candidate, ExpectStore, LONG, SHORT, Sess, election, won},
    subject::{Subject, Unsupported},
    transaction::{BoxError, Isolation, Transaction},
};

/// How long the calls of a candidate may take that is to be kept away.
const PATIENCE: Duration = Duration::from_secs(1);
/// Given to what is to wait, so that it is waiting.
const A_WHILE: Duration = Duration::from_millis(100);
/// More than what a store needs to notice that a transaction has ended.
const ATTEMPTS: usize = 60;

/// A store either declares that it can hold a term and offers it, or neither.
pub(crate) async fn it_is_offered_if_it_is_declared<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let offered = bench.transaction().await.map(drop);
    match bench.store.capabilities().hold {
        Hold::None => {
            assert!(offered.is_err(), "a term can be held, which the store does not declare");
            Err(Unsupported("the store can not hold a term"))
        }
        declared => {
            assert_eq!(offered, Ok(()), "the store declares {declared:?}");
            Ok(())
        }
    }
}

pub(crate) async fn nobody_takes_over_before_the_commit<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut rival = impatient(&bench, "a rival").await;
    hold(&mut transaction, &leader.term).await;
    // Before anything else is written: in some databases that would keep it away as well.
    is_kept_away(&mut rival).await;
    transaction.add().await.expect_user("add");
    transaction.commit().await.expect_user("commit");

    assert_eq!(bench.count().await, 1);
    let successor = rival.lead(LONG).await;
    assert!(successor.fence > leader.term.fence(), "{successor:?} follows {:?}", leader.term);
    Ok(())
}

/// What the term was needed for is done before anybody else leads, or it is never done: the promise itself, with
/// take-overs at any moment of the transaction.
pub(crate) async fn nothing_is_added_after_a_take_over<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    bench.transaction().await.map(drop)?;
    for isolation in Isolation::ALL {
        if bench.subject.begin(isolation).await.is_err() {
            continue;
        }
        for round in 0..6 {
            let contended = election(&format!("{isolation:?} {round}"));
            let leader = Leader::of(&bench, &contended).await;
            let mut rival = bench.candidate_of("a rival", &contended).await;
            let seen = rival.look().await;
            let before = bench.count().await;
            let writing = async {
                let mut transaction = bench.subject.begin(isolation).await.expect("as before");
                transaction.count().await?;
                transaction.hold(&leader.term).await?;
                sleep(Duration::from_millis(round % 3)).await;
                transaction.add().await?;
                transaction.commit().await
            };
            let taking_over = async {
                sleep(Duration::from_micros(500 * round)).await;
                take_over(&mut rival, &seen).await;
                bench.count().await
            };
            let (written, at_the_take_over) = tokio::join!(writing, taking_over);
            let after = bench.count().await;
            assert_eq!(after, at_the_take_over, "added after the take-over ({isolation:?})");
            assert_eq!(after - before, i64::from(written.is_ok()), "{isolation:?}: {written:?}");
        }
    }
    Ok(())
}

pub(crate) async fn renewals_pass_or_wait_as_declared<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut renewing = leader.again(&bench).await;
    renewing.session.limit_calls(PATIENCE);
    hold(&mut transaction, &leader.term).await;
    match bench.store.capabilities().hold {
        Hold::Shared => {
            let renewed = won(renewing.renew(leader.term.fence(), LONG).await);
            assert_eq!(renewed.fence, leader.term.fence());
            let mut rival = impatient(&bench, "a rival").await;
            is_kept_away(&mut rival).await;
        }
        _ => {
            let request = RenewRequest::new(renewing.identity.clone(), leader.term.fence(), LONG);
            says_what_is_in_the_way(renewing.session.renew(&request).await);
        }
    }
    transaction.commit().await.expect_user("commit");
    won(renewing.renew(leader.term.fence(), LONG).await);
    Ok(())
}

pub(crate) async fn several_transactions_hold_one_term<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut first = bench.transaction().await?;
    if bench.store.capabilities().hold != Hold::Shared {
        return Err(Unsupported("the store declares that holds exclude each other"));
    }
    let mut second = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut rival = impatient(&bench, "a rival").await;
    hold(&mut first, &leader.term).await;
    hold(&mut second, &leader.term).await;
    first.commit().await.expect_user("commit");
    is_kept_away(&mut rival).await;
    second.add().await.expect_user("add");
    second.commit().await.expect_user("commit");
    assert_eq!(bench.count().await, 1);
    rival.lead(LONG).await;
    Ok(())
}

pub(crate) async fn a_transaction_that_is_dropped_holds_nothing<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut rival = impatient(&bench, "a rival").await;
    let seen = rival.look().await;
    hold(&mut transaction, &leader.term).await;
    transaction.add().await.expect_user("add");
    drop(transaction);
    take_over(&mut rival, &seen).await;
    assert_eq!(bench.count().await, 0);
    Ok(())
}

/// The operator's step-down comes after the commit, or changes nothing about it. What is held after it is refused.
pub(crate) async fn to_depose_the_leader_breaks_no_hold<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    bench.subject.administration()?;
    let leader = Leader::of(&bench, &bench.election).await;
    hold(&mut transaction, &leader.term).await;

    let mut deposing = pin!(bench.store.depose(&bench.election));
    let early = tokio::select! {
        deposed = &mut deposing => Some(deposed),
        () = sleep(A_WHILE) => None,
    };
    transaction.add().await.expect_user("add");
    transaction.commit().await.expect_user("commit");
    let deposed = match early {
        Some(deposed) => deposed,
        None => deposing.await,
    };
    if let Err(error) = deposed {
        assert!(error.is_retryable(), "{error}");
        bench.store.depose(&bench.election).await.expect_store("depose");
    }
    assert_eq!(bench.count().await, 1);
    refuses(&mut bench.transaction().await?, &leader.term).await;
    Ok(())
}

pub(crate) async fn no_late_write_under_read_committed<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    no_late_write(&bench, Isolation::ReadCommitted).await
}

pub(crate) async fn no_late_write_under_repeatable_read<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    no_late_write(&bench, Isolation::RepeatableRead).await
}

pub(crate) async fn no_late_write_under_serializable<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    no_late_write(&bench, Isolation::Serializable).await
}

/// While it hands over, admitted work may still write. After its end nothing is asked of the database.
pub(crate) async fn a_term_is_held_while_it_drains_and_not_after_its_end<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    let leader = Leader::of(&bench, &bench.election).await;
    let guard = leader.term.guard().expect("the term is live");
    let resigned = leader.candidacy.resign();
    leader.term.cancelled().await;
    assert!(!leader.term.is_live() && leader.term.may_finish(), "{:?}", leader.term);
    hold(&mut transaction, &leader.term).await;
    transaction.add().await.expect_user("add");
    transaction.commit().await.expect_user("commit");
    drop(guard);
    resigned.await;

    let mut late = bench.transaction().await?;
    let held = late.hold(&leader.term).await;
    assert!(matches!(held, Err(HoldError::Ended(TermEnd::Resigned))), "{held:?}");
    drop(late);
    assert_eq!(bench.count().await, 1);
    Ok(())
}

/// A lease may run out while its term is held: then nobody takes over, or what was added is never seen.
pub(crate) async fn a_hold_outlasts_the_lease_or_its_transaction_fails<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut transaction = bench.transaction().await?;
    bench.needs_clock()?;
    let leader = Leader::of(&bench, &bench.election).await;
    let mut renewing = leader.again(&bench).await;
    let mut rival = impatient(&bench, "a rival").await;
    won(renewing.renew(leader.term.fence(), PATIENCE).await);
    match transaction.hold(&leader.term).await {
        Ok(()) => {}
        // So slow a machine has nothing to show here.
        Err(HoldError::NotCurrent { .. }) => return Ok(()),
        Err(error) => panic!("hold failed: {error}"),
    }
    let expired = rival.wait_for_expiry().await;
    let mut claim = rival.request(Some(&expired), LONG);
    claim.when = When::Expired;
    let followed = match rival.session.acquire(&claim).await {
        Ok(outcome) => Some(won(outcome)),
        kept_away => {
            says_what_is_in_the_way(kept_away);
            None
        }
    };
    let committed = match transaction.add().await {
        Ok(()) => transaction.commit().await,
        refused => refused,
    };
    assert!(followed.is_none() || committed.is_err(), "committed after {followed:?} had begun");
    if followed.is_none() {
        take_over(&mut rival, &expired).await;
    }
    assert_eq!(bench.count().await, i64::from(committed.is_ok()), "{committed:?}");
    Ok(())
}

/// What may befall a leader that does not know of it yet.
#[derive(Clone, Copy, Debug)]
enum Befalls {
    TakenOver,
    LeadsAgain,
    Released,
    Deposed,
    Expired,
    Lost,
}

/// In a transaction that saw the database before, or after: the write is refused, or its commit is.
async fn no_late_write<S: Subject>(
    bench: &Bench<S>,
    isolation: Isolation,
) -> Result<(), Unsupported> {
    use Befalls::*;

    bench.subject.begin(isolation).await.map(drop)?;
    for befalls in [TakenOver, LeadsAgain, Released, Deposed, Expired, Lost] {
        for snapshot_is_older in [true, false] {
            let case = format!("{befalls:?}, the snapshot older: {snapshot_is_older}");
            let contended = election(&case);
            let leader = Leader::of(bench, &contended).await;
            let mut transaction = bench.subject.begin(isolation).await?;
            if snapshot_is_older {
                transaction.count().await.expect_user("count");
            }
            if befall(bench, &leader, befalls).await.is_err() {
                continue; // by what the subject declares, which the obligations about it show
            }
            if !snapshot_is_older {
                transaction.count().await.expect_user("count");
            }
            match transaction.hold(&leader.term).await {
                Err(HoldError::NotCurrent { fence, .. }) => {
                    assert_eq!(fence, leader.term.fence(), "{case}");
                }
                Err(HoldError::Store(error)) if snapshot_is_older && error.is_retryable() => {}
                Err(error) => panic!("{case}: hold failed: {error:?}"),
                Ok(()) if snapshot_is_older => {
                    let written = match transaction.add().await {
                        Ok(()) => transaction.commit().await,
                        refused => refused,
                    };
                    assert!(written.is_err(), "{case}: held and committed");
                }
                Ok(()) => panic!("{case}: held"),
            }
            assert_eq!(bench.count().await, 0, "{case}");
        }
    }
    Ok(())
}

async fn befall<S: Subject>(
    bench: &Bench<S>,
    leader: &Leader,
    befalls: Befalls,
) -> Result<(), Unsupported> {
    let (contended, fence) = (leader.term.election(), leader.term.fence());
    match befalls {
        Befalls::TakenOver => {
            bench.candidate_of("a rival", contended).await.lead(LONG).await;
        }
        Befalls::LeadsAgain => {
            leader.again(bench).await.lead(LONG).await;
        }
        Befalls::Released => {
            won(leader.again(bench).await.release(fence).await);
        }
        Befalls::Deposed => {
            bench.subject.administration()?;
            bench.store.depose(contended).await.expect_store("depose");
        }
        Befalls::Expired => {
            bench.needs_clock()?;
            let mut itself = leader.again(bench).await;
            won(itself.renew(fence, SHORT).await);
            itself.wait_for_expiry().await;
        }
        Befalls::Lost => bench.subject.lose_record(contended).await?,
    }
    Ok(())
}

/// A whole elector that leads: terms come from nowhere else. Its lease is so long that it does nothing by itself while
/// the obligation runs.
struct Leader {
    candidacy: Candidacy,
    term: Term,
}

impl Leader {
    async fn of<S: Subject>(bench: &Bench<S>, contended: &ElectionName) -> Self {
        let elector = Elector::builder(contended, bench.subject.store().await)
            .lease_duration(LONG)
            .build()
            .expect("the settings are valid");
        let candidacy = elector.spawn();
        let term = candidacy.leadership().leading().await.expect("it was not stopped");
        Self { candidacy, term }
    }

    /// The same candidate with a session of its own.
    async fn again<S: Subject>(&self, bench: &Bench<S>) -> Candidate<Sess<S>> {
        let store = bench.subject.store().await;
        Candidate::new(self.term.identity().clone(), &store, self.term.election())
    }
}

impl<S: Subject> Bench<S> {
    /// One of the user's, at the weakest isolation level that there is.
    async fn transaction(&self) -> Result<impl Transaction, Unsupported> {
        let mut begun = self.subject.begin(Isolation::ReadCommitted).await;
        for stricter in [Isolation::RepeatableRead, Isolation::Serializable] {
            if begun.is_err() {
                begun = self.subject.begin(stricter).await;
            }
        }
        begun
    }

    /// What was committed.
    async fn count(&self) -> i64 {
        let transaction = self.transaction().await;
        transaction.expect("there was one before").count().await.expect_user("count")
    }
}

async fn impatient<S: Subject>(bench: &Bench<S>, name: &str) -> Candidate<Sess<S>> {
    let mut candidate = bench.candidate(name).await;
    candidate.session.limit_calls(PATIENCE);
    candidate
}

async fn hold(transaction: &mut impl Transaction, term: &Term) {
    transaction.hold(term).await.unwrap_or_else(|error| panic!("hold failed: {error:?}"));
}

async fn refuses(transaction: &mut impl Transaction, term: &Term) {
    let held = transaction.hold(term).await;
    assert!(matches!(held, Err(HoldError::NotCurrent { .. })), "{held:?}");
}

/// It can look, and can't claim what it sees.
async fn is_kept_away<Se: Session>(rival: &mut Candidate<Se>) {
    let seen = rival.look().await;
    let claim = rival.request(Some(&seen), LONG);
    says_what_is_in_the_way(rival.session.acquire(&claim).await);
}

/// That it lost would be proof that somebody else has written, and nobody has.
fn says_what_is_in_the_way(answer: Result<Outcome, StoreError>) {
    let error = match answer {
        Ok(outcome) => panic!("nothing kept it away: {outcome:?}"),
        Err(error) => error,
    };
    assert!(error.is_retryable(), "it passes by itself, but: {error}");
    assert!(error.to_string().contains("transaction"), "does not say what is in the way: {error}");
}

/// Claims the record that was seen, as soon as nothing is in the way any more.
async fn take_over<Se: Session>(rival: &mut Candidate<Se>, seen: &Lease) -> Lease {
    let claim = rival.request(Some(seen), LONG);
    for _ in 0..ATTEMPTS {
        match rival.session.acquire(&claim).await {
            Ok(Outcome::Lost(Some(own))) if own.is_held_by(&rival.identity) => return own,
            Ok(outcome) => return won(outcome),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the transaction keeps everybody away after its end");
}

/// An error of a statement that must succeed breaks an obligation.
trait ExpectUser<T> {
    fn expect_user(self, statement: &str) -> T;
}

impl<T> ExpectUser<T> for Result<T, BoxError> {
    fn expect_user(self, statement: &str) -> T {
        self.unwrap_or_else(|error| panic!("{statement} failed: {error}"))
    }
}
