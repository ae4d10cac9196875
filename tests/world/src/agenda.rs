//! What is going to happen, in the order of time.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::time::Moment;

/// Happenings, each at a moment; of two at the same moment the one that was put down first.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    order: BinaryHeap<Reverse<(Moment, u64, usize)>>,
    happenings: Vec<Option<T>>,
    free: Vec<usize>,
    count: u64,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { order: BinaryHeap::new(), happenings: Vec::new(), free: Vec::new(), count: 0 }
    }

    pub(crate) fn put(&mut self, at: Moment, happening: T) {
        let place = self.free.pop().unwrap_or(self.happenings.len());
        if place == self.happenings.len() {
            self.happenings.push(None);
        }
        self.happenings[place] = Some(happening);
        self.count += 1;
        self.order.push(Reverse((at, self.count, place)));
    }

    pub(crate) fn next_at(&self) -> Moment {
        self.order.peek().map_or(Moment::NEVER, |Reverse((at, _, _))| *at)
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        let Reverse((_, _, place)) = self.order.pop()?;
        self.free.push(place);
        self.happenings[place].take()
    }

    /// These will not happen.
    pub(crate) fn forget(&mut self, which: impl Fn(&T) -> bool) {
        for happening in &mut self.happenings {
            if happening.as_ref().is_some_and(&which) {
                *happening = None;
            }
        }
    }

    /// Everything that is put down, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Moment, &T)> {
        self.order
            .iter()
            .filter_map(|Reverse((at, _, place))| Some((*at, self.happenings[*place].as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_is_taken_first_and_of_equals_what_was_put_down_first() {
        let mut agenda = Agenda::new();
        for (at, what) in [(3, "c"), (1, "a"), (3, "d"), (2, "b")] {
            agenda.put(Moment::from_secs(at), what);
        }
        assert_eq!(agenda.next_at(), Moment::from_secs(1));
        assert_eq!(agenda.iter().count(), 4);
        agenda.put(Moment::from_secs(1), "forgotten");
        agenda.forget(|what| *what == "forgotten");
        let taken: Vec<_> = (0..5).filter_map(|_| agenda.take()).collect();
        assert_eq!(taken, ["a", "b", "c", "d"]);
        assert_eq!(agenda.next_at(), Moment::NEVER);
    }
}
