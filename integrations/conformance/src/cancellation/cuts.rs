//! Where a call can be dropped.

use std::{collections::BTreeMap, fmt, future::poll_fn, pin::pin, task::Poll};

use super::MOST_POLLS;

/// A place in which a call is dropped: after so many polls, and then at once, or when it was woken to be polled again: with
/// the answer here, and nobody who has read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    polls: usize,
    is_woken: bool,
}

impl Cut {
    /// `None` if the call was dropped.
    pub(crate) async fn apply<T>(self, call: impl Future<Output = T>) -> Option<T> {
        let mut call = pin!(call);
        let mut left = self.polls;
        let mut is_awaited = false;
        poll_fn(|cx| {
            // Nothing else in this task is waited for meanwhile, so being polled again is to be woken.
            if left == 0 || is_awaited {
                return Poll::Ready(None);
            }
            left -= 1;
            match call.as_mut().poll(cx) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending if left == 0 && !self.is_woken => Poll::Ready(None),
                Poll::Pending => {
                    is_awaited = left == 0;
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// How often in a row a call must be done before it can be dropped, with more polls each time, until later places are taken
/// for none: on a busy machine answers are sometimes here before anybody asks for them.
const DONE_IN_A_ROW: usize = 3;

/// In how many places each call was dropped: the most of all rounds, since luck only makes them fewer.
#[derive(Debug)]
pub(crate) struct Cuts {
    rounds: usize,
    places: BTreeMap<String, usize>,
}

impl Cuts {
    /// Each call is to be tried in so many rounds.
    pub(crate) const fn in_rounds(rounds: usize) -> Self {
        Self { rounds, places: BTreeMap::new() }
    }

    /// Has `attempt` apply every cut to the call of this name, until the call is done before it can be dropped: it says
    /// whether that was so.
    pub(crate) async fn everywhere(
        &mut self,
        call: impl Into<String>,
        mut attempt: impl AsyncFnMut(Cut) -> bool,
    ) {
        let most = self.places.entry(call.into()).or_default();
        for _ in 0..self.rounds {
            *most = round(&mut attempt).await.max(*most);
        }
    }

    /// Says in how many, and insists that they were enough.
    pub(crate) fn report(&self, at_least: usize) {
        println!("places in which a call was dropped before it was done: {self}");
        let too_few = self.places.values().any(|places| *places < at_least);
        assert!(!too_few, "fewer than {at_least} places to drop a call in: {self}");
    }
}

async fn round(mut attempt: impl AsyncFnMut(Cut) -> bool) -> usize {
    let (mut places, mut done_in_a_row) = (0, 0);
    for polls in 0..MOST_POLLS {
        let mut is_done = true;
        for is_woken in [false, true] {
            if polls == 0 && is_woken {
                continue;
            }
            let done = attempt(Cut { polls, is_woken }).await;
            places += usize::from(!done);
            is_done &= done;
        }
        done_in_a_row = if is_done { done_in_a_row + 1 } else { 0 };
        if done_in_a_row == DONE_IN_A_ROW {
            return places;
        }
    }
    panic!("a call is not done after {MOST_POLLS} polls");
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (call, places) in &self.places {
            write!(f, "{separator}{call} {places}")?;
            separator = ", ";
        }
        Ok(())
    }
}
