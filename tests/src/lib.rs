//! Tests of tenure across its crates, and across processes.
//!
//! A test starts a [`Fleet`] of *participants*, each with one candidate in it, that share nothing but a database:
//! processes or threads, which say what they do in [events](Event) and do what they are [told](Command), or processes of an
//! [`Example`], which are asked. Events carry readings of one clock, which all processes of a machine share. The test kills
//! participants, freezes them, or takes their database away, waits for what must happen, and has the [`oracle`] judge
//! everything that was said.
//!
//! What each test proves, and which rule's mutation it was seen to catch, stands in `tests/README.md`.
#![cfg(unix)]

mod candidate;
mod event;
mod example;
mod fleet;
pub mod oracle;
mod participant;
mod process;
mod settings;
mod stamp;
mod timeline;

pub use self::{
    candidate::{Reporter, run as run_candidate},
    event::{Answer, Call, Command, Event, Message, Refusal},
    example::{Client, Example, client},
    fleet::{Fleet, Seen},
    participant::Participant,
    process::Process,
    settings::{Settings, connect},
    stamp::Stamp,
    timeline::{Entry, LIMIT, Timeline, wait_until},
};
