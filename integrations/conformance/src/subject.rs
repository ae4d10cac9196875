//! What a store's author provides: the store, and a hand on what lies beneath it.

use std::{
    convert::Infallible,
    future::{self, Future},
};

use tenure::{ElectionName, Store};

use crate::transaction::{Isolation, Transaction};

/// A database, or an isolated part of one, that starts out empty: each obligation gets one of its own.
///
/// [`store`](Self::store) is all that must be written. The other methods reach behind the store's back, to lose or to
/// restore a record or to compare its bytes; the default of each is to declare that it can not be done, which the
/// [`Report`](crate::Report) shows and the tests of [`suite!`](crate::suite) refuse unless it is expected.
pub trait Subject: Send + Sync + 'static {
    /// The store under test.
    type Store: Store;

    /// Another store on the same records, with connections of its own: what a further process would use. Nobody has
    /// called `ensure_schema` yet when the first one is made.
    fn store(&self) -> impl Future<Output = Self::Store> + Send;

    /// Everything that is stored for `election`, or `None` if there is no record: to be compared, not understood.
    fn bytes(
        &self,
        election: &ElectionName,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, Unsupported>> + Send {
        let _ = election;
        future::ready(Err(Unsupported("a record's bytes can not be shown")))
    }

    /// Deletes the record of `election`.
    fn lose_record(
        &self,
        election: &ElectionName,
    ) -> impl Future<Output = Result<(), Unsupported>> + Send {
        let _ = election;
        future::ready(Err(Unsupported("a record can not be deleted")))
    }

    /// Remembers all records as they are now, in place of what was remembered before.
    fn back_up(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        future::ready(Err(Unsupported("records can not be backed up")))
    }

    /// Puts all records back as they were remembered.
    fn restore(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        future::ready(Err(Unsupported("records can not be restored")))
    }

    /// Takes away what `ensure_schema` creates, with all records.
    fn drop_schema(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        future::ready(Err(Unsupported("the store has no schema that could be dropped")))
    }

    /// Begins a transaction of the user's, in the database in which the leases are, on a connection of its own. It takes no
    /// lock and no snapshot before its first statement. Whatever [`Transaction`] counts in is created with the subject, and
    /// starts at zero.
    ///
    /// Must be offered by every store whose [`Capabilities::hold`](tenure::store::Capabilities::hold) is not
    /// [`Hold::None`](tenure::store::Hold::None), at one level at least, and by no other. A session must then give up
    /// waiting within the time that it was told by [`limit_calls`](tenure::store::Session::limit_calls), and say in its
    /// error that a transaction is in the way.
    fn begin(
        &self,
        isolation: Isolation,
    ) -> impl Future<Output = Result<impl Transaction, Unsupported>> + Send {
        let _ = isolation;
        future::ready(Err::<Infallible, _>(Unsupported("the store can not hold a term")))
    }

    /// Adds what a later version might add to all records, those that are there and those to come: a column of some
    /// name that no version uses, with a default. Where records have no columns, a field in each record that is there.
    fn upgrade(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        future::ready(Err(Unsupported("nothing can be added to the records")))
    }

    /// Writes to what [`upgrade`](Self::upgrade) has added, in the record of `election`, as a later version would.
    fn write_added(
        &self,
        election: &ElectionName,
        value: i64,
    ) -> impl Future<Output = Result<(), Unsupported>> + Send {
        let _ = (election, value);
        future::ready(Err(Unsupported("nothing can be added to the records")))
    }

    /// Reads what was written there. The writes of this version must leave it as it is.
    fn read_added(
        &self,
        election: &ElectionName,
    ) -> impl Future<Output = Result<i64, Unsupported>> + Send {
        let _ = election;
        future::ready(Err(Unsupported("nothing can be added to the records")))
    }

    /// Puts the schema that version 0.1.0 created, from a text that is pinned in the subject, in place of what is there,
    /// without any record.
    fn first_schema(&self) -> impl Future<Output = Result<(), Unsupported>> + Send {
        future::ready(Err(Unsupported("the store has no schema")))
    }

    /// Whether the store offers `ping`, `leaders` and `depose`. It does by default.
    ///
    /// # Errors
    /// [`Unsupported`] if it does not.
    fn administration(&self) -> Result<(), Unsupported> {
        Ok(())
    }

    /// In how many places, at least, a call that has to connect can be dropped before it is done. One by default: before it
    /// is polled at all. A store that reaches its server through sockets has several for each message, and says so here,
    /// lest an obligation be kept because there was nothing to drop.
    fn cut_points(&self) -> usize {
        1
    }

    /// Whether new fences follow a wall clock of the store's (rule S5), so that they also rise for a candidate that has
    /// seen nothing of what was lost. They do by default.
    ///
    /// # Errors
    /// [`Unsupported`] if they do not.
    fn wall_clock(&self) -> Result<(), Unsupported> {
        Ok(())
    }
}

/// A [`Subject`] declares that it can not do something, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs)] // a reason, and nothing else
pub struct Unsupported(pub &'static str);
