//! Holding a term inside a transaction of the user's.

use sqlx::{MySqlConnection, mysql::MySqlRow};
use tenure::{Lease, Term, store::HoldError};

use crate::{
    error::{describe, number},
    link::exchange,
    record,
    store::MysqlStore,
};

/// Fails outside of a transaction, where a savepoint is gone with the statement that set it.
const IN_TRANSACTION: &str = "SAVEPOINT tenure_hold; RELEASE SAVEPOINT tenure_hold";
const NO_SAVEPOINT: u16 = 1305;

impl MysqlStore {
    /// Holds `term` inside a transaction of yours, in the database that keeps the leases: until it ends, nobody takes over.
    /// What the transaction writes is thus written by the leader, or not at all. It is the only protection for a write in
    /// flight; call it before the first write, or at the latest before the commit.
    ///
    /// - The transaction may be at any isolation level. With MariaDB's `innodb_snapshot_isolation`, one whose snapshot is
    ///   older than a change of hands gets a retryable error (1020).
    /// - Several transactions may hold one term. A take-over, a step-down and a release wait, and say so in their errors.
    /// - Renewals pass, but for two cases in which they wait for the end of the transaction, so that the term ends at its
    ///   deadline if that takes too long: under `SERIALIZABLE`, where InnoDB locks whatever is looked at; and if the
    ///   transaction's snapshot is so old that the lease in it has expired. So hold the term first, and keep the transaction
    ///   much shorter than the lease.
    /// - `ROLLBACK TO` a savepoint that was the first thing in the transaction gives everything back, and the hold with it. So
    ///   hold the term outside of savepoints, or once more after such a rollback.
    /// - It works for as long as the term [may finish](Term::may_finish), so also while a voluntary end waits for work.
    /// - If the holder freezes, its successors wait until the server ends the transaction. No setting that does this would
    ///   end with the transaction, so none is made here. Make it for the connections of your pool, in its
    ///   `after_connect`, to about the duration of the lease: in MariaDB `SET SESSION idle_transaction_timeout = 15`, in
    ///   MySQL, which has no such thing, `SET SESSION wait_timeout = 15`.
    ///
    /// The user needs `SELECT` on both tables; MySQL asks for `UPDATE` on the second one as well. A `&mut Transaction` of
    /// sqlx's is passed as `&mut tx`.
    ///
    /// # Errors
    /// [`HoldError`]: roll the transaction back, whatever the error.
    ///
    /// # Cancel safety
    /// Dropped, it leaves the connection in the middle of a reply; close it.
    ///
    /// ```no_run
    /// use tenure::Term;
    /// use tenure_mysql::{MysqlStore, sqlx::{self, MySqlPool}};
    ///
    /// async fn book(store: &MysqlStore, pool: &MySqlPool, term: &Term) -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut tx = pool.begin().await?;
    ///     store.hold_term(&mut tx, term).await?; // dropped on an error, `tx` is rolled back
    ///     sqlx::query("UPDATE accounts SET total = total + 1").execute(&mut *tx).await?;
    ///     tx.commit().await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn hold_term(
        &self,
        connection: &mut MySqlConnection,
        term: &Term,
    ) -> Result<(), HoldError> {
        if let Some(end) = term.end() {
            return Err(HoldError::Ended(end));
        }
        let message = format!("{IN_TRANSACTION}; {}", self.hold_sql(term));
        let mut is_held = !self.run(connection, term, message).await?.is_empty();
        let mut current = None;
        if !is_held {
            // It is not current, or the transaction sees too old a lease to know.
            let [row, record] = self.table().hold_exactly(term.election(), term.fence());
            let is_ours = !self.run(connection, term, row).await?.is_empty();
            let record = record::found(&self.run(connection, term, record).await?);
            current = record.map_err(|error| self.hold_failed(term, error))?;
            is_held = is_ours && current.as_ref().is_some_and(|lease| is_valid(lease, term));
        }
        if !is_held {
            let fence = term.fence();
            return Err(HoldError::NotCurrent { fence, current: current.map(Box::new) });
        }
        // The wait for the lock may have outlived the term.
        term.end().map_or(Ok(()), |end| Err(HoldError::Ended(end)))
    }

    /// The statement by which [`hold_term`](Self::hold_term) holds a term, for other drivers. It has no parameters.
    ///
    /// It must be run inside a transaction, or nothing is held. **One row: the term is held. No row, or an error: it is
    /// not; roll back.** Before and after it, ask [`Term::may_finish`].
    ///
    /// It never makes renewals wait, except under `SERIALIZABLE`. In return it answers no row where
    /// [`hold_term`](Self::hold_term) would look again: when the lease has expired in the snapshot of the transaction. So
    /// let it be the first statement.
    #[must_use]
    pub fn hold_sql(&self, term: &Term) -> String {
        self.table().hold(term.election(), term.identity(), term.fence())
    }

    async fn run(
        &self,
        connection: &mut MySqlConnection,
        term: &Term,
        message: String,
    ) -> Result<Vec<MySqlRow>, HoldError> {
        match exchange(connection, message.into()).await {
            Err(error) if number(&error) == Some(NO_SAVEPOINT) => Err(HoldError::NotInTransaction),
            rows => rows.map_err(|error| self.hold_failed(term, error)),
        }
    }

    fn hold_failed(&self, term: &Term, error: sqlx::Error) -> HoldError {
        let attempt = format!("hold the term of {:?} with fence {}", term.election(), term.fence());
        HoldError::Store(describe(&attempt, self.table(), "the transaction's server", error))
    }
}

fn is_valid(lease: &Lease, term: &Term) -> bool {
    lease.fence == term.fence()
        && lease.is_held_by(term.identity())
        && !lease.released
        && lease.ttl.is_some_and(|left| !left.is_zero())
}
