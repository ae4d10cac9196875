//! Timelines of elections as pictures, and pages that hold them.

mod picture;
mod report;

pub use self::{
    picture::{Call, CallKind, CallOutcome, Fault, Gap, Lane, Picture, Term},
    report::{Report, Row},
};
