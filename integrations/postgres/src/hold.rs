//! Holding a term inside a transaction of the user's.

use sqlx::{AssertSqlSafe, PgConnection, Row, raw_sql};
use tenure::{Term, store::HoldError};

use crate::{
    PostgresStore,
    error::{sqlstate, store_error},
    record,
};

impl PostgresStore {
    /// Holds `term` inside a transaction of yours, in the database that keeps the leases: until it ends, nobody takes over.
    /// What the transaction writes is thus written by the leader, or not at all. It is the only protection for a write in
    /// flight; call it before the first write, or at the latest before the commit.
    ///
    /// - The transaction may be at any isolation level, and go through a pooler. If it took its snapshot before the lease
    ///   was taken over, deposed or released, the stricter levels answer with a serialization failure, which is retryable
    ///   as they always are. If the lease has only expired since, they may hold it: nobody took over, and nobody can. If it
    ///   was renewed since, they do not see that, and answer [`HoldError::NotCurrent`] once the lease that they see would
    ///   have run out. So hold the term first.
    /// - Renewals pass, and several transactions may hold one term. A take-over, a step-down and a release wait, and say so
    ///   in their errors, so keep the transaction much shorter than the lease.
    /// - What was locked after a savepoint, `ROLLBACK TO` it gives back, and the hold with it. So hold the term outside of
    ///   savepoints, or once more after such a rollback.
    /// - It works for as long as the term [may finish](Term::may_finish), so also while a voluntary end waits for work.
    /// - If the holder freezes, the server ends the transaction after as much idle time as the lease lasts
    ///   (`idle_in_transaction_session_timeout`, for this transaction only, unless you have set a shorter one), so it
    ///   blocks its successors for no longer than that.
    /// - The wait for the lock ends when the term would, or by your `lock_timeout`, if that is shorter.
    ///
    /// The role needs `SELECT` and `UPDATE` on the table. A `&mut Transaction` of sqlx's is passed as `&mut tx`.
    ///
    /// # Errors
    /// [`HoldError`]: roll the transaction back, whatever the error.
    ///
    /// # Cancel safety
    /// Dropped, the term may be held until the transaction ends.
    ///
    /// ```no_run
    /// use tenure::Term;
    /// use tenure_postgres::{PostgresStore, sqlx::{self, PgPool}};
    ///
    /// async fn book(store: &PostgresStore, pool: &PgPool, term: &Term) -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut tx = pool.begin().await?;
    ///     store.hold_term(&mut tx, term).await?; // dropped on an error, `tx` is rolled back
    ///     sqlx::query("UPDATE accounts SET total = total + 1").execute(&mut *tx).await?;
    ///     tx.commit().await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn hold_term(
        &self,
        connection: &mut PgConnection,
        term: &Term,
    ) -> Result<(), HoldError> {
        if let Some(end) = term.end() {
            return Err(HoldError::Ended(end));
        }
        // Only inside a transaction can there be a savepoint; and a lock, for longer than its statement.
        let message = format!(
            "SAVEPOINT tenure_hold; RELEASE SAVEPOINT tenure_hold; {}; {}",
            self.hold_sql(term),
            self.table().look_instead(term.election())
        );
        let rows = raw_sql(AssertSqlSafe(message)).fetch_all(connection).await;
        let rows = match rows {
            Err(error) if sqlstate(&error) == Some("25P01") => {
                return Err(HoldError::NotInTransaction);
            }
            rows => rows.map_err(|error| self.hold_failed(term, error))?,
        };
        // The first row is the answer, the last one the record. The wait for the lock may have outlived the term.
        let is_held = rows.first().map_or(Ok(false), |row| row.try_get("held"));
        if is_held.map_err(|error| self.hold_failed(term, error))? {
            return term.end().map_or(Ok(()), |end| Err(HoldError::Ended(end)));
        }
        let current = record::found(&rows).map_err(|error| self.hold_failed(term, error))?;
        Err(HoldError::NotCurrent { fence: term.fence(), current: current.map(Box::new) })
    }

    /// What [`hold_term`](Self::hold_term) does, as the text of one statement, for other drivers: without parameters, and
    /// for this call only, since it says how long to wait for the lock.
    ///
    /// It must be run inside a transaction, or nothing is held. **One row: the term is held. No row, or an error: it is
    /// not; roll back.** Before and after it, ask [`Term::may_finish`].
    ///
    /// The statement may be sent in any way that the driver has. Behind a pooler that keeps no prepared statements it must
    /// not be a named one.
    ///
    /// ```no_run
    /// # use tenure::Term;
    /// # use tenure_postgres::PostgresStore;
    /// # trait Client { fn query(&mut self, sql: &str) -> Vec<()>; }
    /// fn is_held(store: &PostgresStore, term: &Term, in_transaction: &mut impl Client) -> bool {
    ///     term.may_finish()
    ///         && in_transaction.query(&store.hold_sql(term)).len() == 1
    ///         && term.may_finish()
    /// }
    /// ```
    #[must_use]
    pub fn hold_sql(&self, term: &Term) -> String {
        let holder = term.identity().as_str();
        self.table().hold(term.election(), holder, term.fence(), term.remaining())
    }

    fn hold_failed(&self, term: &Term, error: sqlx::Error) -> HoldError {
        let attempt = format!("hold the term of {:?} with fence {}", term.election(), term.fence());
        HoldError::Store(store_error(&attempt, self.table(), self.source(), error))
    }
}
