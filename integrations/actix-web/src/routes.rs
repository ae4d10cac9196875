//! The three routes.

use std::{convert::Infallible, time::Duration};

use actix_web::{
    HttpResponse, Route,
    guard::{Any, Get, Head},
    http::header::{CACHE_CONTROL, ContentType},
    web::{self, ServiceConfig},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tenure::Leadership;
use tenure_http::RefusalSettings;
use tokio::time::sleep;

use crate::convert;

/// How long a stream of events is quiet before it says so: by comments, proxies and clients tell a quiet election from a
/// dead connection.
const QUIET: Duration = Duration::from_secs(15);

/// Routes that show what this replica knows about its election, whether it leads or not; for
/// [`App::configure`](actix_web::App::configure) and [`Scope::configure`](actix_web::Scope::configure):
///
/// | route | answer |
/// |---|---|
/// | `GET /leadership` | `200`, what this replica knows, as JSON |
/// | `GET /leader` | `200` while this replica leads and is ready, otherwise `503`: what a load balancer asks |
/// | `GET /leadership/events` | server-sent events: first `status` with the same JSON, then `started`, `ended` and `new_leader`, beginning with what holds already |
///
/// They show the leader's payload, the identity of this replica (which contains its host name), and the text of the
/// last error; keep them off the public internet. Do not wrap them in a [`LeaderOnly`](crate::LeaderOnly), or the standbys
/// would refuse to say that they are standbys.
///
/// The stream of events ends when the elector has stopped. A server that waits for open connections before it exits
/// must therefore shut its elector down first, or at the same time.
///
/// ```
/// use actix_web::{App, web};
/// use tenure::{Elector, MemoryStore};
///
/// let elector = Elector::builder("billing", MemoryStore::new()).build()?;
/// let leadership = elector.leadership();
/// let app = App::new()
///     .service(web::scope("/internal").configure(tenure_actix_web::routes(leadership)));
/// # Ok::<(), tenure::ConfigError>(())
/// ```
pub fn routes(leadership: Leadership) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let (status, leader, events) = (leadership.clone(), leadership.clone(), leadership);
        config
            .service(web::resource("/leadership").route(get().to(move || {
                let json = tenure_http::status_json(&status.status());
                async { HttpResponse::Ok().content_type(ContentType::json()).body(json) }
            })))
            .service(web::resource("/leadership/events").route(get().to(move || {
                let body = body(&events);
                async {
                    HttpResponse::Ok()
                        .content_type("text/event-stream")
                        .insert_header((CACHE_CONTROL, "no-cache"))
                        .streaming(body)
                }
            })))
            .service(web::resource("/leader").route(get().to(move || {
                let answer = answer(&leader);
                async { answer }
            })));
    }
}

/// `HEAD` as well, as load balancers like to ask.
fn get() -> Route {
    web::route().guard(Any(Get()).or(Head()))
}

fn answer(leadership: &Leadership) -> HttpResponse {
    match leadership.term() {
        Some(term) => {
            HttpResponse::Ok().content_type(ContentType::json()).body(tenure_http::term_json(&term))
        }
        None => convert::response(RefusalSettings::new().refusal(leadership).to_response()),
    }
}

fn body(leadership: &Leadership) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
    let events = Box::pin(tenure_http::leadership_events(leadership));
    stream::unfold(events, async |mut events| {
        let text = tokio::select! {
            biased;
            event = events.next() => event?.to_text(),
            () = sleep(QUIET) => ":\n\n".to_owned(),
        };
        Some((Ok(Bytes::from(text)), events))
    })
}
