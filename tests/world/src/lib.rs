//! A world on virtual time for the candidates of [`tenure`]: real protocols, a store, the way between them, and everything
//! that may befall them.
//!
//! A [`Script`] is data and determines a run entirely; chance writes it ([`Choices`]: a seed, or the bytes of a fuzzer), and
//! [`play`] plays it. Nobody in the world can read true time, but the [`Oracle`] does: it judges every event by what was
//! published and by the record's own log, and knows nothing of what goes on in the protocols.
//!
//! ```
//! use tenure_world::{Properties, Script, Seeded, anything, play};
//!
//! let script = Script::write(&anything(0), &mut Seeded::new(7), 1024);
//! let run = play(&script, Properties::ALL, false);
//! assert_eq!(run.violation, None);
//! assert!(run.steps > 1_000);
//! ```

mod agenda;
mod choices;
mod coverage;
mod event;
mod fault;
mod network;
mod oracle;
mod participant;
mod record;
mod rules;
mod script;
mod shrink;
mod term;
mod time;
mod world;

pub use choices::{Bytes, Choices, Seeded};
pub use coverage::{Coverage, Exercised};
pub use event::{CallKind, CallResult, Event, Lateness, Loss, What, Who, Wish};
pub use fault::{Fault, FaultKind, Incident, Way, Whom};
pub use network::{FAIR_ROUND_TRIP, Weather};
pub use oracle::{Oracle, Properties, Property, Violation};
pub use record::{Commit, Row, Store, StoreKind, Write};
pub use rules::{COMMON, anything};
pub use script::{Ahead, CALM_FROM, Candidate, END, Rates, Rules, Script};
pub use shrink::shrink;
pub use time::{Moment, Skew};
pub use world::{Run, play};
