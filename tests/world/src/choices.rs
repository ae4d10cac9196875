//! Where everything comes from that is left to chance.

use std::time::Duration;

/// Decides what is left to chance. Zero is always the most harmless answer, so that what is not chosen any more makes a
/// schedule simpler.
pub trait Choices {
    /// A number below `bound`, which is not zero.
    fn below(&mut self, bound: u32) -> u32;

    /// Yes in `percent` of a hundred cases.
    fn chance(&mut self, percent: u32) -> bool {
        self.below(100) >= 100_u32.saturating_sub(percent)
    }

    /// A duration of at least `least` and less than `least + spread`, in steps of a 65,536th of the spread.
    fn duration(&mut self, least: Duration, spread: Duration) -> Duration {
        least + spread.mul_f64(f64::from(self.below(1 << 16)) / 65_536.0)
    }

    /// One of these.
    fn one_of<T: Copy>(&mut self, of: &[T]) -> T
    where
        Self: Sized,
    {
        of[self.below(of.len() as u32) as usize]
    }

    /// One of these, as often as its weight says.
    fn weighted<T: Copy>(&mut self, of: &[(T, u32)]) -> T
    where
        Self: Sized,
    {
        let mut left = self.below(of.iter().map(|(_, weight)| weight).sum());
        for (item, weight) in of {
            if left < *weight {
                return *item;
            }
            left -= weight;
        }
        of[0].0
    }

    /// 64 bits that one call of a candidate gets its fate from.
    fn roll(&mut self) -> u64 {
        u64::from(self.below(u32::MAX)) << 32 | u64::from(self.below(u32::MAX))
    }
}

/// Chance that a seed determines.
#[derive(Clone, Debug)]
pub struct Seeded(fastrand::Rng);

impl Seeded {
    /// The same choices for the same seed, on every machine.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }
}

impl Choices for Seeded {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.u32(..bound)
    }

    fn roll(&mut self) -> u64 {
        self.0.u64(..)
    }
}

/// Chance that somebody else has written down, as a fuzzer does. What lies behind the end is zero.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Chooses by these bytes, from the first one on.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all has been chosen that stands there.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.0.is_empty()
    }
}

impl Choices for Bytes<'_> {
    fn below(&mut self, bound: u32) -> u32 {
        let width = (32 - (bound - 1).leading_zeros()).div_ceil(8) as usize;
        let (now, later) = self.0.split_at(width.min(self.0.len()));
        self.0 = later;
        let number = now.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        number % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_chooses_the_same() {
        let draw = |seed| {
            let mut choices = Seeded::new(seed);
            (0..100).map(|_| choices.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bytes_choose_what_they_say_and_zero_behind_their_end() {
        let mut choices = Bytes::new(&[5, 1, 0, 9]);
        assert_eq!(choices.below(1), 0);
        assert_eq!(choices.below(10), 5);
        assert_eq!(choices.below(1 << 16), 256);
        assert!(!choices.is_used_up());
        assert_eq!(choices.below(4), 1);
        assert!(choices.is_used_up());
        assert_eq!((choices.below(1_000), choices.chance(99)), (0, false));
    }

    #[test]
    fn weights_are_kept() {
        let mut choices = Seeded::new(1);
        let drawn = (0..1_000).filter(|_| choices.weighted(&[("rare", 1), ("often", 9)]) == "rare");
        let rare = drawn.count();
        assert!((50..150).contains(&rare), "{rare}");
    }
}
