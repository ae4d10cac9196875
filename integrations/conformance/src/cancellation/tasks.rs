//! What is left of calls that were dropped.

use std::time::Duration;

use futures::StreamExt;
use tenure::{Store, store::Session};
use tokio::{runtime::Handle, time::sleep};

use super::Cuts;
use crate::{
    bench::{Bench, ExpectStore},
    subject::{Subject, Unsupported},
};

/// Given to what was dropped to go away.
const LIMIT: Duration = Duration::from_secs(30);

/// Whatever calls, hints and administration have spawned is gone when they and their sessions are.
pub(crate) async fn dropped_calls_leave_no_task_behind<S: Subject>(
    bench: Bench<S>,
) -> Result<(), Unsupported> {
    let metrics = Handle::current().metrics();
    let at_first = metrics.num_alive_tasks();
    // On a busy machine some answers are here at once.
    let mut cuts = Cuts::in_rounds(3);
    cuts.everywhere("inspect", async |cut| {
        let mut candidate = bench.candidate("a candidate").await;
        let mut hints = candidate.session.hints();
        let listen = async {
            tokio::select! {
                _ = hints.next() => {}
                // Without anything to hear of.
                () = sleep(Duration::from_millis(100)) => {}
            }
        };
        let _ = cut.apply(listen).await;
        let done = cut.apply(candidate.session.inspect()).await.is_some();
        if bench.subject.administration().is_ok() {
            let _ = cut.apply(bench.store.leaders()).await;
        }
        done
    })
    .await;
    bench.store.ensure_schema().await.expect_store("ensure_schema");
    let gone = async {
        while metrics.num_alive_tasks() > at_first {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = gone => {}
        () = sleep(LIMIT) => panic!("{} tasks, {at_first} at first", metrics.num_alive_tasks()),
    }
    cuts.report(bench.subject.cut_points());
    Ok(())
}
