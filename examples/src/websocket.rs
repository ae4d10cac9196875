//! WebSockets that only the leader serves, and that say goodbye when its term ends.

use std::time::Duration;

use axum::{
    Router,
    extract::{
        State, WebSocketUpgrade,
        ws::{CloseFrame, Message, WebSocket, close_code},
    },
    response::Response,
    routing::any,
};
use tenure::{Leadership, Term};
use tenure_axum::{LeaderOnlyLayer, LeaderTerm};
use tokio::time;
use tokio_util::task::TaskTracker;

use crate::{
    args::ReplicaArgs,
    replica::{self, ReplicaError},
};

/// How long a client may take to confirm that the session is over.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// One replica: [`replica::serve`] with the routes of [`app`]. It stops when all sessions are closed.
///
/// # Errors
/// [`ReplicaError`] if it cannot start, or if work would not stop.
pub async fn run(args: &ReplicaArgs) -> Result<(), ReplicaError> {
    let sessions = TaskTracker::new();
    let served = replica::serve(args, |leadership| app(leadership, &sessions)).await;
    // The server knows nothing of connections that were upgraded.
    sessions.close();
    sessions.wait().await;
    served
}

/// `GET /ws` for the leader only, and who leads for everybody.
pub fn app(leadership: &Leadership, sessions: &TaskTracker) -> Router {
    Router::new()
        .route("/ws", any(connect))
        .with_state(sessions.clone())
        .route_layer(LeaderOnlyLayer::new(leadership.clone()))
        .merge(tenure_axum::routes(leadership.clone()))
}

/// The request is answered, and out of the layer's hands, as soon as the connection is upgraded; what follows runs in a task
/// of its own and looks after its term itself.
async fn connect(
    State(sessions): State<TaskTracker>,
    LeaderTerm(term): LeaderTerm,
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade.on_upgrade(move |socket| sessions.track_future(session(socket, term)))
}

/// Talks for as long as the term admits work. When a hand-over begins, or the term ends in any other way, the conversation
/// is dropped in the midst of whatever it was doing, and the socket is closed.
async fn session(mut socket: WebSocket, term: Term) {
    if term.leader_only(converse(&mut socket, &term)).await.is_err() {
        tokio::select! {
            () = close(&mut socket) => {}
            () = time::sleep(CLOSE_TIMEOUT) => {}
        }
    }
}

/// Answers each text with itself and the fence under which it was answered, until the client leaves.
async fn converse(socket: &mut WebSocket, term: &Term) {
    while let Some(Ok(message)) = socket.recv().await {
        let Message::Text(text) = message else { continue };
        let answer = format!("{text} (fence {})", term.fence());
        if socket.send(Message::Text(answer.into())).await.is_err() {
            return;
        }
    }
}

/// Says why, in the way that tells clients to connect again, and waits until the client has heard it.
async fn close(socket: &mut WebSocket) {
    let why = CloseFrame {
        code: close_code::RESTART, // 1012
        reason: "this replica does not lead any more; connect again".into(),
    };
    if socket.send(Message::Close(Some(why))).await.is_ok() {
        while let Some(Ok(_)) = socket.recv().await {}
    }
}
