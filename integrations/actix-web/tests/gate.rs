//! Requests through the middleware, without a server.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use actix_web::{
    App, HttpResponse, Responder,
    body::{BodySize, MessageBody},
    dev::{Service, ServiceResponse},
    http::{StatusCode, header::RETRY_AFTER},
    test::{TestRequest, init_service, read_body, try_call_service},
    web,
};
use bytes::Bytes;
use tenure::{Elector, Leadership, MemoryStore, Term, TermEnd, TermEnded};
use tenure_actix_web::{LeaderOnly, LeaderTerm};
use tokio::task::JoinHandle;

/// A replica whose term begins and ends when a test says so.
struct Replica {
    leadership: Leadership,
    running: JoinHandle<()>,
}

impl Replica {
    fn elector() -> Elector {
        Elector::builder("billing", MemoryStore::new()).build().unwrap()
    }

    async fn leading(drain_timeout: Duration) -> (Self, Term) {
        let elector = Elector::builder("billing", MemoryStore::new())
            .lease_duration(Duration::from_secs(3))
            .drain_timeout(drain_timeout)
            .build()
            .unwrap();
        let leadership = elector.leadership();
        let running = tokio::spawn(async move {
            let _stopped = elector.run(pending::<()>()).await;
        });
        let term = leadership.leading().await.unwrap();
        (Self { leadership, running }, term)
    }

    /// Ends the term at once: what is in flight is not waited for.
    async fn end_the_term(self) {
        self.running.abort();
        let _ = self.running.await;
    }
}

/// For hand-overs that have nothing to wait for any more: long before they would give up waiting.
async fn promptly<F: Future>(work: F) -> F::Output {
    tokio::select! {
        done = work => done,
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("still waiting"),
    }
}

const MINUTE: Duration = Duration::from_secs(60);

async fn fence(LeaderTerm(term): LeaderTerm) -> String {
    term.fence().to_string()
}

fn reason<B>(response: &ServiceResponse<B>) -> &str {
    response.headers().get("tenure-reason").map_or("none", |reason| reason.to_str().unwrap())
}

/// A macro, since the type that it makes has no name here.
macro_rules! asking {
    ($path:expr) => {
        TestRequest::get().uri($path).to_request()
    };
}

/// The status of a path of its own, of one that does not exist, and of another method, on a standby.
macro_rules! on_a_standby {
    ($app:expr) => {{
        let app = init_service($app).await;
        let mut statuses = Vec::new();
        for request in [
            asking!("/jobs/one"),
            asking!("/jobs/no-such-path"),
            asking!("/no-such-path"),
            TestRequest::delete().uri("/jobs/one").to_request(),
        ] {
            let response = try_call_service(&app, request).await.unwrap();
            statuses.push(response.status().as_u16());
        }
        statuses
    }};
}

#[actix_web::test]
async fn what_a_standby_refuses_depends_on_what_is_wrapped() {
    let never = || async { panic!("a standby called a handler") as String };
    let elector = Replica::elector();
    let gate = || LeaderOnly::new(elector.leadership());
    let resource = || web::resource("/one").route(web::get().to(never));
    let around_a_resource =
        App::new().service(web::scope("/jobs").service(resource().wrap(gate())));
    assert_eq!(on_a_standby!(around_a_resource), [503, 404, 404, 503]);
    let around_a_scope = App::new().service(web::scope("/jobs").service(resource()).wrap(gate()));
    assert_eq!(on_a_standby!(around_a_scope), [503, 503, 404, 503]);
    let around_an_app = App::new().service(web::scope("/jobs").service(resource())).wrap(gate());
    assert_eq!(on_a_standby!(around_an_app), [503, 503, 503, 503]);
}

/// Routing takes a request apart, and panics if somebody else holds it.
#[actix_web::test]
async fn http_request_not_cloned_across_call() {
    let (replica, term) = Replica::leading(MINUTE).await;
    let gate = LeaderOnly::new(replica.leadership.clone());
    let inner = web::scope("/deeper").route("/{name}", web::get().to(fence));
    let app = App::new().service(web::scope("/deep").service(inner)).wrap(gate);
    let app = init_service(app).await;
    let response = try_call_service(&app, asking!("/deep/deeper/one")).await.unwrap();
    assert_eq!(read_body(response).await, term.fence().to_string());
}

#[actix_web::test]
async fn handlers_behind_it_get_their_term_and_others_say_what_is_wrong() {
    async fn maybe(term: Option<LeaderTerm>) -> impl Responder {
        HttpResponse::Ok().body(if term.is_some() { "some" } else { "none" })
    }
    let (replica, term) = Replica::leading(MINUTE).await;
    let gate = || LeaderOnly::new(replica.leadership.clone());
    let data = |term: web::ReqData<Term>| async move { term.fence().to_string() };
    let app = App::new()
        .service(web::resource("/fence").wrap(gate()).route(web::get().to(fence)))
        .service(web::resource("/data").wrap(gate()).route(web::get().to(data)))
        .service(web::resource("/maybe").wrap(gate()).route(web::get().to(maybe)))
        .service(
            web::resource("/without").wrap(gate().without_extension()).route(web::get().to(maybe)),
        )
        .route("/mistaken", web::get().to(fence));
    let app = init_service(app).await;
    for (path, said) in [
        ("/fence", term.fence().to_string()),
        ("/data", term.fence().to_string()),
        ("/maybe", "some".to_owned()),
        ("/without", "none".to_owned()),
    ] {
        let response = try_call_service(&app, asking!(path)).await.unwrap();
        assert_eq!(read_body(response).await, said, "{path}");
    }
    let mistaken = try_call_service(&app, asking!("/mistaken")).await.unwrap();
    assert_eq!(mistaken.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[actix_web::test]
async fn at_the_end_of_the_term_the_handler_is_dropped_and_the_outcome_is_unknown() {
    struct Shows(Arc<AtomicBool>);
    impl Drop for Shows {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    let (replica, _term) = Replica::leading(MINUTE).await;
    let dropped = Arc::new(AtomicBool::new(false));
    let shows = dropped.clone();
    let hang = move || {
        let shows = Shows(shows.clone());
        async move {
            let _shows = shows;
            pending::<String>().await
        }
    };
    let gate = LeaderOnly::new(replica.leadership.clone());
    let app = App::new().service(web::resource("/").wrap(gate).route(web::get().to(hang)));
    let app = init_service(app).await;
    let mut answer = pin!(app.call(asking!("/")));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(answer.as_mut().poll(&mut cx).is_pending());
    dropped.store(false, SeqCst);

    replica.end_the_term().await;
    // The handler's future is still in our hands; it must be gone after this poll, not only when we let go of it.
    let Poll::Ready(Err(cut)) = answer.as_mut().poll(&mut cx) else {
        panic!("still waiting for a handler whose term is over");
    };
    assert!(dropped.load(SeqCst));
    let response = cut.error_response();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers().get("tenure-reason").unwrap(), "cut");
    assert!(!response.headers().contains_key(RETRY_AFTER));
}

#[actix_web::test]
async fn a_body_whose_last_bytes_were_taken_is_out_of_flight() {
    let (replica, term) = Replica::leading(MINUTE).await;
    let gate = LeaderOnly::new(replica.leadership.clone());
    let app = App::new().service(web::resource("/").wrap(gate).route(web::get().to(fence)));
    let app = init_service(app).await;
    let response = try_call_service(&app, asking!("/")).await.unwrap();
    let mut body = Box::pin(response.into_body());
    assert!(matches!(body.size(), BodySize::Sized(1..)));
    let resigned = replica.leadership.resign();
    term.cancelled().await;
    assert_eq!(term.end(), None, "the hand-over did not wait for the body");
    assert!(next(body.as_mut()).await.unwrap().is_ok());
    // Nobody has asked for more, nor dropped it.
    promptly(resigned).await;
    assert_eq!(term.ended().await, TermEnd::Resigned);
    assert!(next(body.as_mut()).await.is_none());
}

async fn next<B: MessageBody>(mut body: Pin<&mut B>) -> Option<Result<Bytes, B::Error>> {
    poll_fn(|cx| body.as_mut().poll_next(cx)).await
}

#[actix_web::test]
async fn a_body_that_nobody_reads_does_not_keep_the_replica_from_leading_again() {
    let (replica, term) = Replica::leading(Duration::from_millis(50)).await;
    let gate = LeaderOnly::new(replica.leadership.clone());
    let lines = || async {
        let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from("x")));
        HttpResponse::Ok().streaming(endless)
    };
    let app = App::new().service(web::resource("/").wrap(gate).route(web::get().to(lines)));
    let app = init_service(app).await;
    let response = try_call_service(&app, asking!("/")).await.unwrap();
    let mut body = Box::pin(response.into_body());
    assert!(next(body.as_mut()).await.unwrap().is_ok());
    replica.leadership.resign().await;
    let later = replica.leadership.leading().await.unwrap();
    assert!(later.fence() > term.fence());
    let Some(Err(error)) = next(body.as_mut()).await else { panic!("polled after the end") };
    assert!(error.is::<TermEnded>());
}

#[actix_web::test]
async fn errors_of_what_is_inside_stay_what_they_are() {
    let (replica, term) = Replica::leading(MINUTE).await;
    let gate = LeaderOnly::new(replica.leadership.clone());
    let fails = actix_web::middleware::from_fn(
        async |_, _: actix_web::middleware::Next<actix_web::body::BoxBody>| {
            Err::<ServiceResponse, _>(actix_web::error::ErrorPaymentRequired("out of paper"))
        },
    );
    let resource = web::resource("/").wrap(fails).wrap(gate).route(web::get().to(fence));
    let app = init_service(App::new().service(resource)).await;
    let error = try_call_service(&app, asking!("/")).await.unwrap_err();
    assert_eq!(error.to_string(), "out of paper");
    promptly(replica.leadership.resign()).await;
    assert_eq!(term.ended().await, TermEnd::Resigned);
}

#[actix_web::test]
async fn a_load_balancer_finds_the_leader_by_its_status() {
    let (replica, _term) = Replica::leading(MINUTE).await;
    let routes = tenure_actix_web::routes(replica.leadership.clone());
    let app = init_service(App::new().service(web::scope("/internal").configure(routes))).await;
    let ask = |method: TestRequest| method.uri("/internal/leader").to_request();
    for method in [TestRequest::get(), TestRequest::with_uri("/").method("HEAD".parse().unwrap())] {
        let response = try_call_service(&app, ask(method)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
    }
    replica.end_the_term().await;
    let response = try_call_service(&app, ask(TestRequest::get())).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reason(&response), "refused");
}

/// A process that was restarted: the lease of its last life runs on, at its own address.
#[actix_web::test]
async fn a_standby_leads_nobody_to_its_own_address() {
    let store = MemoryStore::new();
    let contender = |payload: &str| {
        Elector::builder("billing", store.clone()).payload(payload).build().unwrap().spawn()
    };
    let leader = contender("http://10.0.0.7");
    leader.leadership().leading().await.unwrap();
    for (own, expected) in [
        ("http://10.0.0.8", StatusCode::TEMPORARY_REDIRECT),
        ("http://10.0.0.7:80/", StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let standby = contender(own);
        let mut watch = standby.leadership().watch();
        watch.wait_for(|status| status.leader().is_some()).await.unwrap();
        let gate = LeaderOnly::new(standby.leadership()).redirect_to_leader();
        let app = App::new().service(web::resource("/job").wrap(gate).route(web::get().to(fence)));
        let app = init_service(app).await;
        let answered = try_call_service(&app, asking!("/job")).await.unwrap();
        assert_eq!(answered.status(), expected, "published by the standby: {own}");
    }
}
