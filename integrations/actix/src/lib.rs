//! Leader-only actors for [actix]: one value of the actor per term of leadership.
//!
//! [`LeaderSupervisor`] starts an actor when this candidate is elected, hands it the [`Term`], and ends it with the term.
//! Everybody else holds a [`LeaderAddr`], which refuses messages while this candidate does not lead.
//!
//! - **elected**: the factory makes a new value of the actor. It is made at *elected*, not at *ready*, so that the actor
//!   itself can load what it needs and then call [`Term::ready`]; until then [`LeaderAddr`] refuses. (Unless the
//!   elector was built with `ready_when_told()`, the two are one.)
//! - **leading**: messages are accepted, up to the mailbox's capacity, and are *in flight* until they are answered. An
//!   actor that stops by itself or panics is made anew, after a delay; the message that it died of is lost, those behind it
//!   go to the next value. There are never two values at once.
//! - **cancelled** (a hand-over has begun): messages are refused. Those that were accepted are handled; then the actor is
//!   stopped, with its `stopping` and `stopped` hooks, before the lease is given back. An idle actor is stopped at once, also
//!   if requests that a hand-over lets finish would still have written to it: they are refused like everybody.
//! - **ended** (or the `drain_timeout` has passed): the actor is not polled again. Its hooks run, and it is dropped with
//!   its futures, with the tasks that it has spawned, and with the messages that it has not seen. After an end that nobody
//!   wanted the hooks come after the term: they should write nothing. [`Term::end`] tells.
//!
//! At its end an actor can't refuse to stop: that `stopping` returns `Running::Continue` changes nothing then. An actor that
//! panicked runs no hooks. See [`LeaderSupervisor`] for an example.
//!
//! # What an error means
//! A [`LeaderSendError`] says for certain whether a handler has seen the message. After `NotLeader` or `MailboxFull` it may
//! be sent again; after `TermEnded` or `Unanswered` the outcome is unknown.
//!
//! # Runtimes
//! Supervisors live where actors live: on an arbiter, or in a `LocalSet` on a plain tokio runtime with timers. The
//! election lives wherever it likes, best on tenure's own thread (`Elector::spawn`), which goes on when an arbiter is held
//! up; addresses work from everywhere.
//!
//! # What it can not stop
//! Each term has a `LocalSet` of its own, so `actix::spawn`, handlers that return a `ResponseFuture`, and child actors
//! that are started with `start()` end with the term. What goes elsewhere does not: `Arbiter::current().spawn`, actors on
//! other arbiters, `tokio::spawn`, `spawn_blocking`, threads. Use [`Term::spawn`], [`Term::spawn_blocking`] or a
//! [`Term::guard`] there, and give the [fence](Term::fence) to whatever is written to.
//!
//! The term is asked before each turn of the actor, and between two messages that came through a [`LeaderAddr`], but not
//! between what else a turn consists of: the messages that the actor has sent to itself (but see [`LeaderContext`]), each
//! of its futures once, and up to 61 of its tasks. A turn that begins before the deadline may go on past it, under a guard,
//! so keep handlers short.
//!
//! An actor's own [`Addr`](actix::Addr) that it gives away goes around all of this: messages to it are neither counted nor
//! refused as long as the actor lives.
//!
//! [actix]: https://docs.rs/actix

mod addr;
mod answer;
mod context;
mod error;
mod instance;
mod letter;
mod postbox;
mod supervisor;

#[cfg(doc)]
use tenure::Term;

pub use self::{
    addr::{LeaderAddr, LeaderRecipient},
    answer::Answer,
    context::{LeaderContext, SupervisedContext},
    error::LeaderSendError,
    supervisor::LeaderSupervisor,
};

/// So that its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
