//! How a path carries bytes.

use std::time::Duration;

/// Whom a path carries bytes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a path has two ends
pub enum Direction {
    /// What clients say.
    ToServer,
    /// What they are answered.
    ToClient,
}

/// How bytes travel in one direction. The default is a healthy path, which passes them on at once.
///
/// Like those of a cable, conditions are the same for everything that is under way when they change: bytes that had to
/// wait for a second arrive as soon as the delay is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "conditions are set on a proxy"]
pub struct Conditions {
    delay: Duration,
    jitter: Duration,
    bandwidth: Option<u32>,
    held_back: bool,
    held_back_from: Option<&'static [u8]>,
}

impl Conditions {
    /// For how long every byte is under way. Any number of them are so at once. Defaults to 0.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How much longer a piece is under way at most; each as long as chance will have it, and never past the one before.
    /// Defaults to 0.
    pub const fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// How many bytes of a connection set out in a second, at least one. Defaults to any number.
    pub const fn bandwidth(mut self, bytes_per_second: u32) -> Self {
        self.bandwidth = Some(bytes_per_second);
        self
    }

    /// Nothing arrives, and nobody is told. Connections stay, and take what fits. Defaults to what arrives does.
    pub const fn held_back(mut self) -> Self {
        self.held_back = true;
        self
    }

    /// The same from the first piece on in which these bytes are, on whichever connection.
    pub const fn held_back_from(mut self, bytes: &'static [u8]) -> Self {
        self.held_back_from = Some(bytes);
        self
    }

    pub(super) const fn are_held_back(self) -> bool {
        self.held_back
    }

    /// Whether they are held back from this piece on.
    pub(super) fn wait_for(self, piece: &[u8]) -> bool {
        self.held_back_from
            .is_some_and(|bytes| piece.windows(bytes.len()).any(|window| window == bytes))
    }

    /// How many of these bytes travel together.
    pub(super) fn segment(self, bytes: usize) -> usize {
        // About a packet, and at a low bandwidth what leaves within some ten milliseconds.
        let most = |rate: u32| (rate / 64).clamp(1, 1_460) as usize;
        self.bandwidth.map_or(bytes, |rate| bytes.min(most(rate)))
    }

    /// How long it takes until the last of so many bytes has set out.
    pub(super) fn sending(self, bytes: usize) -> Duration {
        let at = |rate: u32| Duration::from_secs_f64(bytes as f64 / f64::from(rate.max(1)));
        self.bandwidth.map_or(Duration::ZERO, at)
    }

    /// How long it is under way from then on, with luck between 0 and 1, which is bad.
    pub(super) fn travel(self, luck: f64) -> Duration {
        self.delay + self.jitter.mul_f64(luck)
    }
}
