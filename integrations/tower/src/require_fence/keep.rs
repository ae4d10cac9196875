//! Where it is remembered which fences were seen.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::{Future, Ready, ready},
    sync::{Arc, Mutex, PoisonError},
};

use tenure::{ElectionName, Fence};
use tenure_http::Stamp;

use crate::BoxError;

/// Remembers the highest fence seen of each election, for [`RequireFence`](crate::RequireFence).
///
/// Replicas of one service have to share what they remember, and it has to survive their restarts, or a late request
/// finds one that has not heard of the later term. [`HighestSeen`], which is in memory, does for one process whose state
/// is gone with it; others keep it where they keep the state that it protects.
///
/// With SQL, one statement does it:
/// `INSERT INTO fences VALUES ($1, $2) ON CONFLICT (election) DO UPDATE SET fence = greatest(fences.fence, excluded.fence)
/// RETURNING fence`.
///
/// ```
/// use std::{future::Future, io, pin::Pin};
/// use tenure::Fence;
/// use tenure_http::Stamp;
/// use tenure_tower::KeepFences;
///
/// # #[derive(Clone)] struct Database;
/// # impl Database { async fn raise(&self, _: &str, fence: i64) -> io::Result<i64> { Ok(fence) } }
/// impl KeepFences for Database {
///     type Error = Box<dyn std::error::Error + Send + Sync>;
///     type Future = Pin<Box<dyn Future<Output = Result<Fence, Self::Error>> + Send>>;
///
///     fn raise(&self, stamp: &Stamp) -> Self::Future {
///         let (database, stamp) = (self.clone(), stamp.clone());
///         Box::pin(async move {
///             let highest = database.raise(stamp.election().as_str(), stamp.fence().into()).await?;
///             Ok(Fence::try_from(highest)?)
///         })
///     }
/// }
/// ```
pub trait KeepFences {
    /// Why it cannot be told. The request is refused then, and this goes to the log.
    type Error: Into<BoxError>;
    /// Gives the highest fence.
    type Future: Future<Output = Result<Fence, Self::Error>>;

    /// Remembers the fence, unless a higher one of its election was seen, in one atomic step; and gives the highest, this
    /// one included. Dropping the future may leave it remembered or not.
    fn raise(&self, stamp: &Stamp) -> Self::Future;
}

/// Remembers fences in memory. Clones share what they remember.
#[derive(Clone, Debug, Default)]
pub struct HighestSeen(Arc<Mutex<HashMap<ElectionName, Fence>>>);

impl HighestSeen {
    /// Nothing was seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl KeepFences for HighestSeen {
    type Error = Infallible;
    type Future = Ready<Result<Fence, Infallible>>;

    fn raise(&self, stamp: &Stamp) -> Self::Future {
        // A number is whole, whoever panicked beside it.
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let highest = match seen.get_mut(stamp.election()) {
            Some(highest) => {
                *highest = stamp.fence().max(*highest);
                *highest
            }
            None => *seen.entry(stamp.election().clone()).or_insert(stamp.fence()),
        };
        ready(Ok(highest))
    }
}
