//! Where times lie in a picture.

use std::time::Duration;

use super::{EDGE, style::STRONG};
use crate::{picture::Picture, text};

pub(super) const WIDTH: f64 = 1200.0;

/// The part of a picture in which time passes from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) length: Duration,
}

impl Frame {
    /// The least and the most room for names at its left.
    const NAMES: (f64, f64) = (86.0, 220.0);

    pub(super) fn of(picture: &Picture) -> Self {
        let widths = picture.lanes.iter().map(|lane| text::width(&lane.name, STRONG.size));
        let (least, most) = Self::NAMES;
        let names = widths.fold(least, f64::max).min(most);
        Self {
            left: EDGE + names + 10.0,
            right: WIDTH - EDGE - 8.0,
            // Something must pass.
            length: picture.length.max(Duration::from_millis(1)),
        }
    }

    /// Where a time lies; what is later than the picture lies at its end.
    pub(super) fn x(&self, at: Duration) -> f64 {
        let part = at.min(self.length).as_secs_f64() / self.length.as_secs_f64();
        self.left + part * (self.right - self.left)
    }

    /// The room for names.
    pub(super) fn names(&self) -> f64 {
        self.left - EDGE - 10.0
    }
}
