//! When the doors of a replica open: not before its term is ready, and not while a health check fails.

use std::{net::SocketAddr, thread, time::Duration};

use actix::{Actor, Context, Handler, Message, MessageResult, System};
use futures::FutureExt;
use serde_json::Value;
use tenure::{Candidacy, Elector, Fence, LeaderOnlyError, Leadership, MemoryStore, Phase, Term};
use tenure_actix::{LeaderAddr, LeaderSendError, LeaderSupervisor};

use super::{
    answer, get, promptly,
    servers::{Controls, Framework, Gate, serve},
};

/// By which way a replica is asked.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http(Framework),
    Actor,
}

const WAYS: [Way; 3] = [Way::Http(Framework::Axum), Way::Http(Framework::ActixWeb), Way::Actor];

/// Says in which term it lives.
struct Clerk(Term);

#[derive(Message)]
#[rtype(result = "Fence")]
struct WhichTerm;

impl Actor for Clerk {
    type Context = Context<Self>;
}

impl Handler<WhichTerm> for Clerk {
    type Result = MessageResult<WhichTerm>;

    fn handle(&mut self, _: WhichTerm, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.0.fence())
    }
}

enum Door {
    Http(SocketAddr),
    Actor(LeaderAddr<Clerk>),
}

impl Door {
    fn open(way: Way, leadership: &Leadership) -> Self {
        match way {
            Way::Http(framework) => {
                Self::Http(serve(framework, leadership, Gate::Plain, &Controls::new()))
            }
            Way::Actor => {
                let leadership = leadership.clone();
                let (give, address) = std::sync::mpsc::channel();
                thread::spawn(move || {
                    System::new().block_on(async {
                        let _ = give.send(LeaderSupervisor::new(leadership).start(Clerk));
                        std::future::pending::<()>().await;
                    });
                });
                Self::Actor(address.recv().unwrap())
            }
        }
    }

    /// In which term it serves; `None` if it refuses, with the right words.
    async fn serves(&self) -> Option<String> {
        match self {
            Self::Http(address) => {
                let job = answer(*address, get("/job")).await;
                let leader = answer(*address, get("/leader")).await;
                assert_eq!(job.status, leader.status, "the gate and `/leader` are not of one mind");
                if job.status == 200 {
                    return Some(job.body);
                }
                for refused in [job, leader] {
                    assert_eq!(refused.status, 503);
                    assert_eq!(refused.headers["tenure-reason"], "refused");
                }
                None
            }
            Self::Actor(address) => match address.send(WhichTerm).await {
                Ok(fence) => Some(fence.to_string()),
                Err(LeaderSendError::NotLeader { .. }) => None,
                Err(other) => panic!("{other}"),
            },
        }
    }
}

struct Replica {
    leadership: Leadership,
    door: Door,
    _candidacy: Candidacy,
}

impl Replica {
    fn start(way: Way, store: &MemoryStore) -> Self {
        let elector =
            Elector::builder("doors", store.clone()).lease_duration(Duration::from_secs(3));
        let candidacy = elector.build().unwrap().spawn();
        let leadership = candidacy.leadership();
        Self { door: Door::open(way, &leadership), leadership, _candidacy: candidacy }
    }

    /// Waits until it leads, and asks whether it serves.
    async fn leads(&self) -> Term {
        let term = promptly(self.leadership.leading()).await.unwrap();
        assert_eq!(self.door.serves().await, Some(term.fence().to_string()));
        term
    }
}

#[tokio::test]
async fn no_door_opens_before_the_term_is_ready() {
    for way in WAYS {
        let elector = Elector::builder("doors", MemoryStore::new()).ready_when_told();
        let candidacy = elector.build().unwrap().spawn();
        let leadership = candidacy.leadership();
        let door = Door::open(way, &leadership);
        let mut leading = Box::pin(leadership.leading());
        let term = promptly(leadership.terms().next()).await.unwrap();

        assert_eq!(door.serves().await, None, "{way:?}");
        assert!(leading.as_mut().now_or_never().is_none(), "{way:?}");
        assert!(!leadership.is_leader(), "{way:?}");
        let refused = leadership.leader_only(async {}).await;
        assert!(matches!(refused, Err(LeaderOnlyError::NotLeader { .. })), "{way:?}");
        match &door {
            Door::Http(address) => {
                let shown = answer(*address, get("/leadership")).await.body;
                let shown: Value = serde_json::from_str(&shown).unwrap();
                assert_eq!(shown["is_leader"], false, "{way:?}");
                // Elected it is, and says so.
                assert_eq!(shown["phase"], "leading", "{way:?}");
            }
            Door::Actor(address) => {
                assert!(address.wait_leading().now_or_never().is_none());
            }
        }

        term.ready();
        assert_eq!(promptly(leading).await.unwrap(), term, "{way:?}");
        assert_eq!(door.serves().await, Some(term.fence().to_string()), "{way:?}");
        if let Door::Actor(address) = &door {
            assert_eq!(promptly(address.wait_leading()).await.unwrap(), term);
        }
    }
}

/// What a health check does with `set_eligible`.
#[tokio::test]
async fn a_replica_that_is_not_healthy_hands_over_and_contends_again_when_it_is() {
    for way in WAYS {
        let store = MemoryStore::new();
        let first = Replica::start(way, &store);
        let before = first.leads().await;
        let second = Replica::start(way, &store);
        assert_eq!(second.door.serves().await, None, "{way:?}");

        first.leadership.set_eligible(false);
        let between = second.leads().await;
        assert!(between.fence() > before.fence(), "{way:?}");
        assert_eq!(first.door.serves().await, None, "{way:?}");

        // As long as the other one is healthy it keeps its term.
        first.leadership.set_eligible(true);
        let mut status = first.leadership.watch();
        let follows = status.wait_for(|now| {
            now.phase() == Phase::Following
                && now.other_leader().is_some_and(|leader| leader.fence() == between.fence())
        });
        promptly(follows).await.unwrap();
        assert!(between.is_live(), "{way:?}");

        second.leadership.set_eligible(false);
        let after = first.leads().await;
        assert!(after.fence() > between.fence(), "{way:?}");
        assert_eq!(second.door.serves().await, None, "{way:?}");
    }
}
