//! Calls that may take so long and no longer.

use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::Duration,
};

use tokio::time::sleep;

/// Gives `work` this much time: `None` if it is not done by then, and dropped.
///
/// It looks at the time before it looks at the work, at each poll. So what was done too late counts as not done, also when
/// the process was frozen meanwhile and finds the time over and the work done at once: a reply that has waited in a socket
/// tells nothing about now. `tokio::time::timeout` looks at the work first.
///
/// The time begins with the first poll. It is counted on tokio's clock, which stops while the machine is suspended: this
/// limits waiting, and proves nothing. Needs a tokio runtime with time enabled.
///
/// # Cancel safety
/// Dropping it drops the work.
///
/// # Examples
/// ```
/// use std::{future, time::Duration};
/// use tenure::store::within;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let limit = Duration::from_millis(10);
/// assert_eq!(within(limit, future::ready("an answer")).await, Some("an answer"));
/// assert_eq!(within(limit, future::pending::<&str>()).await, None);
/// # });
/// ```
pub fn within<F: Future>(limit: Duration, work: F) -> impl Future<Output = Option<F::Output>> {
    // What drivers do is large, and whatever waits for it would be larger: a few levels of that fill the stack of a thread, in
    // builds that are not optimized.
    let mut work = Box::pin(work);
    let mut over = None;
    poll_fn(move |cx| {
        let over = over.get_or_insert_with(|| Box::pin(sleep(limit)));
        match over.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => work.as_mut().poll(cx).map(Some),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::{future, thread};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    #[tokio::test(start_paused = true)]
    async fn work_is_done_in_its_time_or_not_at_all() {
        let takes = |duration| async move {
            sleep(duration).await;
            7
        };
        assert_eq!(within(LIMIT, takes(LIMIT / 2)).await, Some(7));
        assert_eq!(within(LIMIT, takes(LIMIT * 2)).await, None);
        assert_eq!(within(LIMIT, future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn what_is_found_done_when_the_time_is_over_was_not_done_in_time() {
        let mut polls = 0;
        let work = poll_fn(|cx| {
            polls += 1;
            if polls == 1 {
                cx.waker().wake_by_ref();
                // As if the process had been frozen.
                thread::sleep(LIMIT * 2);
                return Poll::Pending;
            }
            Poll::Ready(())
        });
        assert_eq!(within(LIMIT, work).await, None);
        assert_eq!(polls, 1);
    }
}
