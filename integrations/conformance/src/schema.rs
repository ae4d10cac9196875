//! What a store needs in its database before it can work.

use futures::future::join_all;
use tenure::{Store, store::Session};

use crate::{
    bench::{Bench, ExpectStore, LONG, at_once, lost, won},
    subject::{Subject, Unsupported},
};

/// Where it can not, all that is said about what changes nothing holds for the fields of [`tenure::Lease`] alone.
pub(crate) async fn a_record_can_be_compared_byte_by_byte<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    assert_eq!(bench.subject.bytes(&bench.election).await?, None);
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let bytes = bench.subject.bytes(&bench.election).await?;
    assert!(bytes.is_some(), "there is a record");
    won(leader.renew(term.fence, LONG).await);
    assert_ne!(bench.subject.bytes(&bench.election).await?, bytes, "a renewal can be seen in them");
    Ok(())
}

/// Several processes start at once on an empty database.
pub(crate) async fn all_replicas_may_create_the_schema_at_once<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    for _ in 0..5 {
        bench.subject.drop_schema().await?;
        let stores = join_all((0..8).map(|_| bench.subject.store())).await;
        let created = at_once(stores.into_iter().map(|store| async move {
            store.ensure_schema().await.expect_store("ensure_schema, beside others");
        }));
        created.await;
        won(bench.candidate("a candidate").await.claim(None, LONG).await);
    }
    Ok(())
}

pub(crate) async fn to_create_the_schema_again_leaves_the_records<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    let before = bench.record().await;
    bench.store.ensure_schema().await.expect_store("ensure_schema");
    bench.subject.store().await.ensure_schema().await.expect_store("ensure_schema");
    assert_eq!(bench.record().await, before);
    won(leader.renew(term.fence, LONG).await);
    Ok(())
}

pub(crate) async fn without_a_schema_a_term_is_lost_and_every_other_call_fails<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let mut leader = bench.candidate("the leader").await;
    let term = leader.lead(LONG).await;
    bench.subject.drop_schema().await?;
    for _ in 0..2 {
        let inspected = leader.session.inspect().await;
        assert!(inspected.as_ref().is_err_and(|error| error.is_fatal()), "{inspected:?}");
        let claim = leader.request(Some(&term), LONG);
        let claimed = leader.session.acquire(&claim).await;
        assert!(claimed.as_ref().is_err_and(|error| error.is_fatal()), "{claimed:?}");
        // For a leader it is proof: nobody's record says any more that it leads.
        assert_eq!(lost(leader.renew(term.fence, LONG).await), None);
    }
    if bench.subject.administration().is_ok() {
        let pinged = bench.store.ping().await;
        assert!(pinged.as_ref().is_err_and(|error| error.is_fatal()), "{pinged:?}");
    }

    bench.store.ensure_schema().await.expect_store("ensure_schema");
    assert_eq!(leader.inspect().await, None);
    let mut request = leader.request(None, LONG);
    request.floor = Some(term.fence);
    let successor = won(leader.acquire(&request).await);
    assert!(successor.fence > term.fence, "{successor:?} follows {term:?}");
    Ok(())
}
