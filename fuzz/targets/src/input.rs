//! How bytes are read as a case.

use std::time::Duration;

use arbitrary::Unstructured;
use tenure::{Fence, Instant};

/// The bytes of a case. Behind their end everything is zero, which is the most harmless choice.
pub(crate) struct Input<'a>(Unstructured<'a>);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.0.is_empty()
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.int_in_range(0..=bound - 1).unwrap_or_default()
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    pub(crate) fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or_default()
    }

    pub(crate) fn small(&mut self) -> u16 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// Of every size that there is, and the last ones before each end more often.
    pub(crate) fn duration(&mut self) -> Duration {
        match self.below(6) {
            0 => Duration::from_millis(self.small().into()),
            1 => Duration::from_micros(self.number() >> 32),
            2 => Duration::from_nanos(self.number()),
            3 => Duration::from_secs(self.number()),
            4 => Duration::MAX - Duration::from_nanos(self.small().into()),
            _ => Duration::from_nanos(u64::MAX - u64::from(self.small())),
        }
    }

    pub(crate) fn instant(&mut self) -> Instant {
        Instant::from_nanos(match self.below(3) {
            0 => u64::from(self.small()),
            1 => self.number(),
            _ => u64::MAX - u64::from(self.small()),
        })
    }

    pub(crate) fn fence(&mut self) -> Fence {
        let number = match self.below(3) {
            0 => u64::from(self.small()),
            1 => self.number() >> 1,
            _ => i64::MAX as u64 - u64::from(self.small()),
        };
        Fence::try_from(number.max(1)).unwrap()
    }

    pub(crate) fn bytes(&mut self, most: usize) -> &'a [u8] {
        let length = self.below(most + 1).min(self.0.len());
        self.0.bytes(length).unwrap_or_default()
    }

    /// Text of that many bytes at most.
    pub(crate) fn text(&mut self, most: usize) -> String {
        let mut text = String::from_utf8_lossy(self.bytes(most)).into_owned();
        while text.len() > most {
            text.pop();
        }
        text
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }
}
