//! A leader that was followed does not know of it yet, and writes.

use tenure::{Store, store::HoldError};

use super::leader::{ExpectUser, Leader};
use crate::{
    bench::{Bench, ExpectStore, LONG, SHORT, election, won},
    subject::{Subject, Unsupported},
    transaction::{Isolation, Transaction},
};

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
            if let Expired = befalls {
                // Before the snapshot: a leader does not shorten its lease, it only lets it run out.
                won(leader.again(bench).await.renew(leader.term.fence(), SHORT).await);
            }
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
                // It may see the lease as it was, and nobody has taken over: its lock sees to that.
                Ok(()) if snapshot_is_older && matches!(befalls, Expired) => {}
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
            leader.again(bench).await.wait_for_expiry().await;
        }
        Befalls::Lost => bench.subject.lose_record(contended).await?,
    }
    Ok(())
}
