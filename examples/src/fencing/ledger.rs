//! A service that protects itself: it accepts no request of a term that is over, as far as it can know.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Extension, Router, body::Body, extract::State, response::IntoResponse, routing::post};
use http::StatusCode;
use tenure::{ElectionName, Fence};
use tenure_axum::RequireFence;
use tenure_http::{FenceRefusal, Form, Stamp};
use tokio::net::TcpListener;

/// What is written and the highest fence are kept together, and compared and written under one lock. A database would do
/// both in one transaction.
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

/// Serves a ledger in the background, for as long as the runtime lives: for the leaders of `election`.
pub(super) async fn serve(election: ElectionName) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, app(election)).into_future());
    Ok(address)
}

/// Requests of a term that is over are refused by [`RequireFence`], before anything looks at them.
fn app(election: ElectionName) -> Router {
    Router::new()
        .route("/entries", post(append))
        .route_layer(RequireFence::new(election))
        .with_state(Arc::<Mutex<Ledger>>::default())
}

/// The fence is compared once more where the entry is written: between the two, a request of a later term may have come.
async fn append(
    State(ledger): State<Arc<Mutex<Ledger>>>,
    Extension(stamp): Extension<Stamp>,
    entry: String,
) -> impl IntoResponse {
    let appended =
        ledger.lock().unwrap_or_else(PoisonError::into_inner).append(stamp.fence(), entry);
    match appended {
        Ok(()) => StatusCode::CREATED.into_response(),
        Err(highest) => {
            let refusal = FenceRefusal::Outdated { stamp, highest };
            refusal.to_response_in(Form::default()).map(Body::from).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use tower::ServiceExt;

    use super::*;

    fn fence(number: i64) -> Fence {
        Fence::try_from(number).unwrap()
    }

    #[test]
    fn a_lower_fence_than_the_highest_is_refused_and_changes_nothing() {
        let mut ledger = Ledger::default();
        ledger.append(fence(7), "a".into()).unwrap();
        ledger.append(fence(7), "b".into()).unwrap();
        ledger.append(fence(9), "c".into()).unwrap();
        assert_eq!(ledger.append(fence(7), "late".into()), Err(fence(9)));
        assert_eq!(ledger.entries.len(), 3);
        assert_eq!(ledger.highest, Some(fence(9)));
    }

    #[tokio::test]
    async fn only_requests_of_the_latest_term_that_was_seen_are_let_in() {
        let app = app(ElectionName::new("fencing").unwrap());
        for (election, number, status) in
            [("fencing", 7, 201), ("fencing", 9, 201), ("fencing", 7, 412), ("other", 9, 412)]
        {
            let mut request = Request::post("/entries").body(Body::from("entry")).unwrap();
            let stamp = Stamp::new(ElectionName::new(election).unwrap(), fence(number));
            stamp.write(request.headers_mut());
            let response = app.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{election} {number}");
        }
        let unstamped = Request::post("/entries").body(Body::from("entry")).unwrap();
        assert_eq!(app.oneshot(unstamped).await.unwrap().status(), 428);
    }
}
