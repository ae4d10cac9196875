//! Candidates are alike: which of them lives where makes no difference.

use std::hash::{Hash, Hasher};

use crate::{record::Caller, world::World};

impl World {
    /// Puts the candidates in an order that does not depend on where they live. They differ in nothing but that, so that what
    /// can become of one order can become of every other, with other numbers.
    pub(crate) fn line_up(&mut self) {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_cached_key(|place| self.likeness(*place));
        if !order.is_sorted() {
            self.reorder(&order);
        }
    }

    /// Who lived at the place that comes first in `order` moves to the first place, and so on, with all that is theirs.
    fn reorder(&mut self, order: &[usize]) {
        let mut places: Vec<_> = self.places.drain(..).map(Some).collect();
        self.places = order.iter().filter_map(|from| places[*from].take()).collect();
        let store = self.ahead.split_off(order.len());
        self.ahead = order.iter().map(|from| self.ahead[*from]).chain(store).collect();
        let record = self.store.record.iter_mut().filter_map(|record| record.holder.as_mut());
        let strays = self.strays.iter_mut().map(|(caller, _)| caller);
        for caller in record.chain(strays) {
            if let Caller::At(place) = caller
                && let Some(to) = order.iter().position(|from| from == place)
            {
                *place = to;
            }
        }
    }

    /// The same number for candidates that nothing tells apart, and hardly ever for others: where it is, one state may be
    /// explored as two.
    fn likeness(&self, place: usize) -> u64 {
        let mut hasher = Sum::default();
        self.places[place].hash(&mut hasher);
        self.ahead[place].hash(&mut hasher);
        let holder = self.store.record.as_ref().and_then(|record| record.holder);
        (holder == Some(Caller::At(place))).hash(&mut hasher);
        for (caller, call) in &self.strays {
            if *caller == Caller::At(place) {
                call.hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// Tells candidates apart, nothing else: each step of the search asks for some, and std's hasher withstands attackers, at
/// twice the time.
#[derive(Default)]
struct Sum(u64);

impl Hasher for Sum {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use stateright::Model;

    use super::*;
    use crate::{
        model::{
            Election,
            tests::{troubled, walk},
        },
        scope::Scope,
    };

    /// What a world looks like to the search, and what can become of it next.
    fn futures(election: &Election, scope: &Scope, world: &World) -> HashSet<World> {
        let mut here = world.clone();
        here.normalise(scope);
        election.next_states(world).into_iter().chain([here]).collect()
    }

    #[test]
    fn who_lives_where_makes_no_difference() {
        let scope = Scope { candidates: 3, crashes: 1, ..troubled() };
        let election = Election::new(scope);
        let (mut seen, mut moved) = (0, 0);
        walk(scope, 3, |world| {
            seen += 1;
            if seen % 20 != 0 {
                return;
            }
            for order in [[1, 0, 2], [1, 2, 0]] {
                let mut other = world.clone();
                other.reorder(&order);
                moved += usize::from(other != *world);
                assert_eq!(futures(&election, &scope, &other), futures(&election, &scope, world));
            }
        });
        assert!(moved > 100, "{moved}");
    }

    #[test]
    fn whoever_moves_takes_along_what_is_theirs() {
        let scope = Scope { candidates: 3, ..troubled() };
        let mut theirs = 0;
        walk(scope, 4, |world| {
            let order = [2, 0, 1];
            let mut other = world.clone();
            other.reorder(&order);
            for (to, from) in order.into_iter().enumerate() {
                assert_eq!(other.likeness(to), world.likeness(from));
            }
            theirs += usize::from(!world.strays.is_empty());
        });
        assert!(theirs > 100, "{theirs}");
    }
}
