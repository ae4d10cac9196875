//! Holding a term inside a transaction of the user's.

use sqlx::{MySqlConnection, mysql::MySqlRow};
use tenure::{Lease, Term, store::HoldError};

use crate::{error::describe, link::exchange, record, store::MysqlStore};

impl MysqlStore {
    /// Holds `term` in a transaction on the same database: until it ends, nobody takes over, deposes or releases. Everything
    /// that the transaction then writes is written before any later term begins, or not at all.
    ///
    /// ```no_run
    /// # use tenure::{Term, store::HoldError};
    /// # use tenure_mysql::{MysqlStore, sqlx};
    /// # async fn pay(store: &MysqlStore, pool: &sqlx::MySqlPool, term: &Term) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut transaction = pool.begin().await?;
    /// store.hold_term(&mut transaction, term).await?;
    /// sqlx::query("UPDATE accounts SET balance = balance - 10 WHERE id = 7").execute(&mut *transaction).await?;
    /// transaction.commit().await?; // an error, too, if the connection was lost meanwhile
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It works while the term [may finish](Term::may_finish), hence also while it drains, and at every isolation level.
    /// Several transactions may hold one term. The leader's own renewals pass, with two exceptions, in which they wait
    /// for the end of the transaction, so that the term ends at its deadline if that takes too long:
    /// - under `SERIALIZABLE`, where InnoDB locks whatever is looked at;
    /// - when the transaction began so long before that the lease it sees has expired. So make this its first statement.
    ///
    /// A candidate that finds the term held says so in its error, and tries again. Whoever holds a term and freezes keeps
    /// all successors away until the server ends its transaction. Nothing that this method could set would end with the
    /// transaction, so set it for the connections of your pool, to about the duration of the lease: in MariaDB
    /// `idle_transaction_timeout`, in MySQL, which has no such thing, `wait_timeout`, both in seconds.
    ///
    /// # Errors
    /// [`HoldError`]: roll back. Outside of a transaction nothing is held, which this method does not notice.
    ///
    /// # Cancel safety
    /// Dropped, it leaves the connection in the middle of a reply: close it.
    pub async fn hold_term(
        &self,
        transaction: &mut MySqlConnection,
        term: &Term,
    ) -> Result<(), HoldError> {
        if let Some(end) = term.end() {
            return Err(HoldError::Ended(end));
        }
        let table = self.table();
        let hold = table.hold(term.election(), term.identity(), term.fence());
        if !self.run(transaction, term, hold).await?.is_empty() {
            return Ok(());
        }
        // It is not current, or an older transaction can't see that it is.
        let [held, current] = table.hold_exactly(term.election(), term.fence());
        let held = self.run(transaction, term, held).await?;
        let rows = self.run(transaction, term, current).await?;
        let current = record::found(&rows).map_err(|error| self.hold_error(term, error))?;
        match current {
            Some(lease) if !held.is_empty() && is_valid(&lease, term) => Ok(()),
            current => {
                Err(HoldError::NotCurrent { fence: term.fence(), current: current.map(Box::new) })
            }
        }
    }

    /// The statement with which other drivers hold a term, as the first one of a transaction. It answers one row if the
    /// term is held until the transaction ends; otherwise roll back. It has no parameters.
    ///
    /// Unlike [`hold_term`](Self::hold_term) it does not ask the term whether it [may finish](Term::may_finish), and it
    /// refuses a term whose lease, as far as the transaction can see, has expired, or was ever renewed for a shorter
    /// time than before.
    #[must_use]
    pub fn hold_sql(&self, term: &Term) -> String {
        self.table().hold(term.election(), term.identity(), term.fence())
    }

    async fn run(
        &self,
        transaction: &mut MySqlConnection,
        term: &Term,
        statement: String,
    ) -> Result<Vec<MySqlRow>, HoldError> {
        let rows = exchange(transaction, statement.into()).await;
        rows.map_err(|error| self.hold_error(term, error))
    }

    fn hold_error(&self, term: &Term, error: sqlx::Error) -> HoldError {
        let attempt = format!("hold the term of {:?}", term.election());
        HoldError::Store(describe(&attempt, self.table(), "the transaction's server", error))
    }
}

fn is_valid(lease: &Lease, term: &Term) -> bool {
    lease.fence == term.fence()
        && lease.is_held_by(term.identity())
        && !lease.released
        && lease.ttl.is_some_and(|left| !left.is_zero())
}
