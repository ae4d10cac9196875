//! Timelines of elections as pictures, and pages that show them.
//!
//! A [`Picture`] says who led when, what was broken, what was asked of the store and when nobody led; it draws itself as SVG,
//! for light and dark screens, without a script. A [`Report`] is a table of what was tried, and puts the picture of each line
//! below it.
//!
//! ```
//! use std::time::Duration;
//! use tenure_drawing::{Lane, Picture, Term};
//!
//! let seconds = Duration::from_secs;
//! let term = Term { fence: 7, from: seconds(1), to: seconds(9), end: "resigned".into() };
//! let lane = Lane { name: "a".into(), terms: vec![term], ..Lane::default() };
//! let picture = Picture { length: seconds(10), lanes: vec![lane], ..Picture::default() };
//! assert!(picture.to_svg().starts_with("<svg"));
//! ```
#![allow(clippy::exhaustive_structs, reason = "data that those who draw put together")]

mod draw;
mod duration;
mod palette;
mod picture;
mod report;
mod text;
mod xml;

pub use self::{
    picture::{Call, CallKind, CallOutcome, Fault, Gap, Lane, Picture, Term},
    report::{Report, Row},
};
