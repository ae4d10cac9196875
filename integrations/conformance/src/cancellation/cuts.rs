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

/// How often which call was dropped.
#[derive(Debug, Default)]
pub(crate) struct Cuts(BTreeMap<String, usize>);

impl Cuts {
    /// Has `attempt` apply every cut to the call of this name, until the call is done before it can be dropped, again and
    /// again: it says whether that was so.
    pub(crate) async fn everywhere(
        &mut self,
        call: impl Into<String>,
        mut attempt: impl AsyncFnMut(Cut) -> bool,
    ) {
        let count = self.0.entry(call.into()).or_default();
        let mut done_in_a_row = 0;
        for polls in 0..MOST_POLLS {
            let mut is_done = true;
            for is_woken in [false, true] {
                if polls == 0 && is_woken {
                    continue;
                }
                let done = attempt(Cut { polls, is_woken }).await;
                *count += usize::from(!done);
                is_done &= done;
            }
            done_in_a_row = if is_done { done_in_a_row + 1 } else { 0 };
            if done_in_a_row == DONE_IN_A_ROW {
                return;
            }
        }
        panic!("a call is not done after {MOST_POLLS} polls");
    }

    /// Says how often, and insists that this was often enough: so often on average, and each at least once. How often one of
    /// them is, depends on what the machine does besides.
    pub(crate) fn report(&self, at_least: usize) {
        println!("dropped before they were done: {self}");
        let total: usize = self.0.values().sum();
        assert!(
            self.0.values().all(|count| *count > 0) && total >= at_least * self.0.len(),
            "fewer than {at_least} places to drop a call in: {self}"
        );
    }
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (call, count) in &self.0 {
            write!(f, "{separator}{call} {count}")?;
            separator = ", ";
        }
        Ok(())
    }
}
