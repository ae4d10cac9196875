//! Listens to what an example tells by itself.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use serde::Deserialize;

use super::Client;
use crate::Event;

/// Begins to listen at `GET /leadership/events`.
pub(super) async fn open(
    client: &Client,
    url: &str,
) -> Result<Incoming, Box<dyn std::error::Error + Send + Sync>> {
    let request = Request::get(format!("{url}/leadership/events")).body(Empty::new())?;
    Ok(client.request(request).await.map(Response::into_body)?)
}

/// Passes on which terms begin and end, until the candidate has stopped or its process is gone.
pub(super) async fn listen(mut stream: Incoming, hear: impl Fn(Event)) {
    let mut unread = Unread::default();
    while let Some(Ok(frame)) = stream.frame().await {
        if let Ok(data) = frame.into_data() {
            unread.add(&data).into_iter().for_each(&hear);
        }
    }
}

/// What has come of a server-sent event that is not whole.
#[derive(Debug, Default)]
struct Unread(Vec<u8>);

impl Unread {
    /// More of the stream. Returns what is whole with it.
    fn add(&mut self, data: &Bytes) -> Vec<Event> {
        self.0.extend_from_slice(data);
        let mut events = Vec::new();
        while let Some(end) = self.0.windows(2).position(|two| two == b"\n\n") {
            let text: Vec<u8> = self.0.drain(..end + 2).collect();
            events.extend(event(&String::from_utf8_lossy(&text)));
        }
        events
    }
}

/// The beginning and the end of a term; other events are nothing new.
fn event(text: &str) -> Option<Event> {
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
    let (name, data) = (field("event: ")?, field("data: ")?);
    let Term { fence, reason } = serde_json::from_str(data).ok()?;
    match (name, reason) {
        ("started", None) => Some(Event::Elected { fence }),
        ("ended", Some(reason)) => Some(Event::Ended { fence, reason }),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Term {
    fence: i64,
    reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_begin_and_end_however_the_stream_is_cut_into_pieces() {
        let stream = b"event: status\ndata: {\"fence\":null}\n\n\
            event: started\ndata: {\"election\":\"a\",\"identity\":\"b\",\"fence\":7}\n\n\
            event: new_leader\ndata: {\"identity\":\"b\",\"fence\":7,\"payload\":\"p\"}\n\n\
            :\n\n\
            event: ended\ndata: {\"election\":\"a\",\"identity\":\"b\",\"fence\":7,\"reason\":\"lost\"}\n\n\
            event: started\ndata: {\"fence\":8}";
        let expected =
            [Event::Elected { fence: 7 }, Event::Ended { fence: 7, reason: "lost".to_owned() }];
        for size in 1..=stream.len() {
            let mut unread = Unread::default();
            let pieces = stream.chunks(size).map(Bytes::copy_from_slice);
            let events: Vec<Event> = pieces.flat_map(|piece| unread.add(&piece)).collect();
            assert_eq!(events, expected, "{size} at a time");
        }
    }
}
