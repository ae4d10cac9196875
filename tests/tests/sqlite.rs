//! Elections across processes that share a SQLite file.

mod scenarios;

use std::time::Duration;

use scenarios::{Ground, grounds::SqliteFile, in_process::Leader, run_all};
use tenure::testing::FlakyStore;
use tenure_postgres::sqlx::query_as;
use tenure_tests::Stamp;

run_all!(shared: SqliteFile::new(), own: SqliteFile::new());
run_all!(clocked: SqliteFile::new());

/// A wall clock that is set forward would let a lease that is still relied on run out. The row says when it was renewed,
/// on the clock on which all deadlines stand.
#[test]
fn a_lease_is_counted_on_a_clock_that_nobody_can_set() {
    let file = SqliteFile::new();
    let before = Stamp::now();
    let leader = Leader::elect("clock", FlakyStore::new(file.store()));
    leader.renews(1);
    let connect = scenarios::runtime();
    let (acquired, renewed, expires) = connect
        .block_on(async {
            let row = "SELECT acquired_at, renewed_at, expires_at FROM leader_election";
            query_as::<_, (i64, i64, i64)>(row).fetch_one(&mut file.connect().await).await
        })
        .unwrap();
    let after = Stamp::now();
    let [acquired, renewed, expires] = [acquired, renewed, expires].map(Stamp::from_micros);
    assert!(
        before <= acquired + Duration::from_micros(1),
        "acquired at {acquired}, after {before}"
    );
    assert!(acquired < renewed && renewed <= after, "renewed at {renewed}, before {after}");
    assert_eq!(expires - renewed, Duration::from_secs(2));
}
