//! Candidates as users run them: processes of an example, of which no more is known than what it answers over HTTP.
//!
//! An answer under a fence proves that its term was not over at *some* instant between request and answer. Only two of
//! them prove something about a time for certain: what lies between the first answer and the second request.

mod client;
mod events;
mod program;
mod shown;
mod watch;

pub(crate) use self::watch::watch;
pub use self::{
    client::{Client, client},
    program::Example,
};
