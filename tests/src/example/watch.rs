//! Asks an example all the time.

use std::{error::Error, process::ExitStatus, time::Duration};

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use tenure::store::within;
use tokio::{runtime::Builder, time};

use super::{
    Client, Example, client, events,
    shown::{Answer, Shown},
};
use crate::{Event, Stamp};

/// Between an answer and the next request.
const INTERVAL: Duration = Duration::from_millis(10);
/// After this a request is given up. A process that is frozen is to find one, when it wakes, that was sent not long ago: in
/// the term of its successor, not in its own.
const PATIENCE: Duration = Duration::from_millis(300);

/// Says what the example tells and what its answers show, until its process has ended.
pub(crate) fn watch(example: &Example, hear: impl Fn(Event)) -> std::io::Result<()> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let client = client();
        let error = match events::open(&client, example.url()).await {
            Ok(events) => {
                let listening = events::listen(events, &hear);
                let (status, ()) = tokio::join!(ask(&client, example, &hear), listening);
                example.complaint(status)
            }
            Err(error) => Some(error.to_string()),
        };
        hear(Event::Stopped { error });
    });
    Ok(())
}

/// One request after the other, over one connection.
async fn ask(client: &Client, example: &Example, hear: impl Fn(Event)) -> ExitStatus {
    let mut shown = Shown::default();
    let mut question = Question::Status;
    loop {
        let sent = Stamp::now();
        let answer = within(PATIENCE, question.ask(client, example.url())).await;
        if let Some(Ok(answer)) = answer {
            shown.hear(sent, Stamp::now(), answer).into_iter().for_each(&hear);
        } else if let Some(status) = example.process().status() {
            return status;
        }
        question = question.other();
        time::sleep(INTERVAL).await;
    }
}

#[derive(Clone, Copy, Debug)]
enum Question {
    Status,
    Job,
}

impl Question {
    const fn other(self) -> Self {
        match self {
            Self::Status => Self::Job,
            Self::Job => Self::Status,
        }
    }

    async fn ask(self, client: &Client, url: &str) -> Result<Answer, Box<dyn Error + Send + Sync>> {
        let (method, path) = match self {
            Self::Status => (Method::GET, "leadership"),
            Self::Job => (Method::POST, "jobs"),
        };
        let request = Request::builder().method(method).uri(format!("{url}/{path}"));
        let (head, body) = client.request(request.body(Empty::new())?).await?.into_parts();
        // Also of a refusal, so that the connection can be used again.
        let body = body.collect().await?.to_bytes();
        match (self, head.status) {
            (Self::Status, StatusCode::OK) => Ok(Answer::Status(serde_json::from_slice(&body)?)),
            (Self::Job, StatusCode::OK) => Ok(Answer::Done(serde_json::from_slice(&body)?)),
            (Self::Job, StatusCode::SERVICE_UNAVAILABLE) => Ok(Answer::Refused),
            (_, status) => Err(format!("{path} answers {status}").into()),
        }
    }
}
