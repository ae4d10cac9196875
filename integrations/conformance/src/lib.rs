#![doc = include_str!("../README.md")]

mod administration;
mod bench;
mod cancellation;
mod fences;
mod freshness;
mod guards;
mod hints;
mod hold;
mod limits;
mod report;
mod schema;
mod subject;
mod suite;
mod take_over;
mod time;
mod transaction;
mod versions;

pub use report::{Report, Verdict};
pub use subject::{Subject, Unsupported};
pub use suite::{check, judge, obligations, run};
pub use transaction::{BoxError, Isolation, Transaction};
