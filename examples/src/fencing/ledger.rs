//! A resource that protects itself: it accepts no write of a term that is over, as far as it can know.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Router, extract::State, http::HeaderMap, response::IntoResponse, routing::post};
use http::StatusCode;
use tenure::Fence;
use tokio::net::TcpListener;

/// The header in which a write carries the fence of its term.
pub(super) const FENCE: &str = "fence";

/// The whole pattern: what is written and the highest fence are kept together, and compared and written under one lock. A
/// database would do both in one transaction.
#[derive(Debug, Default)]
struct Ledger {
    highest: Option<Fence>,
    entries: Vec<(Fence, String)>,
}

impl Ledger {
    fn append(&mut self, fence: Fence, entry: String) -> Result<(), Fence> {
        match self.highest {
            Some(highest) if fence < highest => Err(highest),
            _ => {
                self.highest = Some(fence);
                self.entries.push((fence, entry));
                Ok(())
            }
        }
    }
}

/// Serves a ledger in the background, for as long as the runtime lives.
pub(super) async fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let ledger = Arc::<Mutex<Ledger>>::default();
    let app = Router::new().route("/entries", post(append)).with_state(ledger);
    tokio::spawn(axum::serve(listener, app).into_future());
    Ok(address)
}

async fn append(
    State(ledger): State<Arc<Mutex<Ledger>>>,
    headers: HeaderMap,
    entry: String,
) -> impl IntoResponse {
    let fence = headers.get(FENCE).and_then(|value| value.to_str().ok()?.parse().ok());
    let Some(fence) = fence else {
        return (StatusCode::BAD_REQUEST, "a write needs the fence of its term\n".to_owned());
    };
    match ledger.lock().unwrap_or_else(PoisonError::into_inner).append(fence, entry) {
        Ok(()) => (StatusCode::CREATED, String::new()),
        Err(highest) => {
            (StatusCode::CONFLICT, format!("fence {fence} is below {highest}, which has written\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_fence_than_the_highest_is_refused_and_changes_nothing() {
        let fence = |number: i64| Fence::try_from(number).unwrap();
        let mut ledger = Ledger::default();
        ledger.append(fence(7), "a".into()).unwrap();
        ledger.append(fence(7), "b".into()).unwrap();
        ledger.append(fence(9), "c".into()).unwrap();
        assert_eq!(ledger.append(fence(7), "late".into()), Err(fence(9)));
        assert_eq!(ledger.entries.len(), 3);
        assert_eq!(ledger.highest, Some(fence(9)));
    }
}
