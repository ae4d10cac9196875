//! Leases in a NATS JetStream key-value bucket, for [tenure].
//!
//! ```no_run
//! use tenure_nats::NatsStore;
//!
//! # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
//! let store = NatsStore::new("nats://app:secret@nats.internal")?; // no I/O: wrong URLs fail here
//! store.ensure_schema().await?; // safe on every replica at once
//! # Ok(())
//! # }
//! ```
//!
//! - **A lease is a key**, and every write a compare-and-set on its revision. A renewal is one round trip. No key is ever
//!   deleted, not even by a release, and nothing relies on the server to let anything expire.
//! - **Followers only read**, and from the stream's leader: a replica that lags behind decides nothing.
//! - **A release wakes the followers** ([hints](tenure::store::Hints)), by a consumer on a connection of its own. None of
//!   this is needed: [`without_hints`](NatsStore::without_hints) switches it off.
//! - **Fences follow the server's clock**, so that they rise over everything, also when the bucket was deleted and made
//!   anew, restored from a backup, or moved.
//! - **Errors say what to do**, and whether they pass by themselves: [`NatsError`] has the table.
//! - **nats-server 2.9 or newer.** Tests run on 2.9.10 and 2.15.1, on single servers; clusters are not tested here.
//!
//! # What it costs that the server shows no clock
//! A lease says for how long it is valid, and nobody can ask NATS how much of that is left. So a candidate watches: it may
//! claim a lease that it has seen unchanged for its whole duration, by its own clock (`Expiry::Observed`). Where followers
//! run already that costs one look more after a crash. **A candidate that has just been started waits one whole lease**,
//! also if the leader died long ago: if all candidates of a service crash together, nobody leads for one lease after the
//! first one is back. After an orderly end there is no wait, since the lease says that it was given back.
//!
//! # What is lost when the power fails
//! A single server acknowledges a write before it is on the disk (`sync_interval`, two minutes by default). Killing the
//! process loses nothing, but a power failure can take the latest renewals, and a term that was won in between: then there
//! may be two leaders for as long as the lost lease would have run. Fences rise all the same. Where that matters, run a
//! cluster and say [`with_replicas(3)`](NatsStore::with_replicas), or set `sync_interval: always`, or guard what is written
//! by the fence. [`Storage::Memory`] loses everything at a restart, and says so.
//!
//! # The bucket
//! [`ensure_schema`](NatsStore::ensure_schema) creates it: one message for each key, in files, without an age limit; it
//! begins its revisions at the time of its creation, so that a bucket that was lost and made anew repeats none, and puts a
//! note into it, for an empty stream may forget where it stood. A bucket that exists is taken if it can lose no lease;
//! otherwise the error names each setting that is in the way, and [`with_adopted`](NatsStore::with_adopted) has those
//! changed that you allow. It should be tenure's alone. [`migrate`] moves elections to another one.
//!
//! A key is the election's name, with `=` and two hexadecimal digits for every byte that is no letter, digit, `_` or `-`;
//! its value is JSON. What else stands under such a key, tenure never replaces: the leader's term is over, and every other
//! call is a fatal error that says so, until somebody deletes the key. A key that was deleted (`nats kv del`) is a lost
//! record: proof for the leader, and for the others something to wait for. To end a term there is
//! [`depose`](NatsStore::depose).
//!
//! For a bucket `B`, a user needs to publish to `$KV.B.>`, `$JS.API.STREAM.INFO.KV_B`, `$JS.API.STREAM.MSG.GET.KV_B` and, for
//! hints, `$JS.API.CONSUMER.CREATE.KV_B`, and to subscribe to `_INBOX.>`; to create the bucket also to publish to
//! `$JS.API.STREAM.CREATE.KV_B` and `$JS.API.STREAM.PURGE.KV_B`, and to change it to `$JS.API.STREAM.UPDATE.KV_B`.

mod api;
mod bucket;
mod entry;
mod error;
mod hints;
mod key;
mod link;
mod migrate;
mod session;
mod settings;
mod setup;
mod store;
mod value;

pub use async_nats;

pub use self::{
    bucket::BucketError,
    error::{NatsError, Refusal},
    migrate::migrate,
    session::NatsSession,
    settings::{Difference, Setting, Storage},
    setup::SetupError,
    store::NatsStore,
    value::ValueError,
};

#[cfg(fuzzing)]
#[doc(hidden)]
pub use self::value::check_value;
