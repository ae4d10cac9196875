//! Connections that break, servers that freeze, replies that are lost, and others who write.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::{ConnectOptions, HeaderMap, connection::State};
use tenure::{
    Lease,
    store::{Outcome, PlaceRequest, Session, When},
};
use tenure_nats::{NatsStore, async_nats};
use tenure_testbed::{Nats, Proxy};
use tokio::time::sleep;

use common::{Admin, Candidate, OneWay, current, election, fresh_store, lost, old, wait_for, won};

/// Short enough to wait for, and long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(4);

async fn behind_proxy(server: &Nats) -> (Proxy, NatsStore, NatsStore) {
    let (direct, bucket) = fresh_store(server).await;
    let proxy = Proxy::start(server.addr()).unwrap();
    let store = NatsStore::new(&format!("nats://{}", proxy.addr())).unwrap();
    (proxy, store.with_bucket(&bucket).unwrap(), direct)
}

async fn behind_one_way(server: &Nats) -> (OneWay, NatsStore, NatsStore) {
    let (direct, bucket) = fresh_store(server).await;
    let path = OneWay::to(server).await;
    let store = NatsStore::new(&path.url).unwrap().with_bucket(&bucket).unwrap();
    (path, store, direct)
}

async fn onlooker(store: &NatsStore) -> Lease {
    Candidate::new("onlooker", store).look().await.unwrap()
}

#[tokio::test]
async fn a_look_and_a_renewal_take_one_round_trip_and_a_claim_two() {
    for server in [old(), current()] {
        let (proxy, store, _) = behind_proxy(server).await;
        let mut leader = Candidate::new("a", &store);
        let mut term = leader.lead().await;
        let mut taken = async |what: &str| {
            let before = proxy.round_trips();
            match what {
                "look" => drop(leader.look().await.unwrap()),
                "renew" => drop(won(leader.renew(term.fence).await)),
                _ => {
                    let seen = leader.claim_of(Some(&onlooker(&store).await));
                    leader.look().await.unwrap();
                    let before = proxy.round_trips();
                    term = won(leader.session.acquire(&seen).await.unwrap());
                    return proxy.round_trips() - before;
                }
            }
            proxy.round_trips() - before
        };
        assert_eq!(taken("look").await, 1);
        assert_eq!(taken("renew").await, 1);
        assert_eq!(taken("renew").await, 1);
        assert_eq!(taken("claim").await, 2);
        assert_eq!(taken("renew").await, 1);
    }
}

#[tokio::test]
async fn a_broken_path_is_an_error_until_it_heals() {
    let (proxy, store, _) = behind_proxy(old()).await;
    let mut leader = Candidate::new("a", &store);
    let term = leader.lead().await;
    let renewal = leader.renewal_of(term.fence);
    proxy.cut();
    assert!(leader.session.renew(&renewal).await.unwrap_err().is_retryable());
    assert!(leader.session.renew(&renewal).await.unwrap_err().is_retryable());
    proxy.heal();
    won(leader.session.renew(&renewal).await.unwrap());
}

/// A restart closes connections, the lease is in a file, and the term goes on under its fence.
#[tokio::test]
async fn a_term_outlives_a_frozen_a_restarted_and_a_killed_server() {
    for mut server in [Nats::start().unwrap(), Nats::start_current().unwrap()] {
        let store = NatsStore::new(&server.url()).unwrap();
        store.ensure_schema().await.unwrap();
        let mut leader = Candidate::new("a", &store);
        let term = leader.lead().await;
        let renewal = leader.renewal_of(term.fence);

        server.stop();
        tokio::select! {
            outcome = leader.session.renew(&renewal) => panic!("{outcome:?} from a frozen server"),
            () = sleep(Duration::from_millis(200)) => {}
        }
        leader.session.limit_calls(Duration::from_millis(400));
        let frozen = leader.session.renew(&renewal).await.unwrap_err();
        assert!(frozen.is_retryable(), "{frozen}");
        server.cont();
        leader.session.limit_calls(LIMIT);
        assert_eq!(won(leader.session.renew(&renewal).await.unwrap()).fence, term.fence);

        // The connection that was idle is replaced within the call.
        server.restart().unwrap();
        assert_eq!(won(leader.session.renew(&renewal).await.unwrap()).fence, term.fence);

        server.kill().unwrap();
        let down = leader.session.renew(&renewal).await.unwrap_err();
        assert!(down.is_retryable() && down.to_string().contains("127.0.0.1"), "{down}");
        server.restart().unwrap();
        assert_eq!(won(leader.session.renew(&renewal).await.unwrap()).fence, term.fence);
        // Whoever read it before and reads it now sees one fence.
        assert_eq!(onlooker(&store).await.fence, term.fence);
    }
}

/// A claim whose reply is lost leaves a fence that was never read back: everybody reads the same one all the same.
#[tokio::test]
async fn a_claim_whose_reply_is_lost_is_not_adopted() {
    for server in [old(), current()] {
        let (path, store, direct) = behind_one_way(server).await;
        let mut candidate = Candidate::new("a", &store);
        assert_eq!(candidate.look().await, None);
        let create = candidate.claim_of(None);
        let mut claim = create;
        let mut highest = None;
        // To create the record, and to update it.
        for _ in 0..2 {
            path.lose_replies(true);
            candidate.session.limit_calls(Duration::from_millis(400));
            let unknown = candidate.session.acquire(&claim).await.unwrap_err();
            assert!(unknown.is_retryable(), "{unknown}");
            path.lose_replies(false);
            candidate.session.limit_calls(LIMIT);

            let late = onlooker(&direct).await;
            assert!(late.is_held_by(&candidate.identity) && Some(late.fence) > highest, "{late:?}");
            assert_eq!(onlooker(&direct).await, late);
            let by = lost(candidate.session.acquire(&claim).await.unwrap());
            assert_eq!(by.as_ref(), Some(&late), "the same claim again loses against itself");
            let own =
                won(candidate.session.acquire(&candidate.claim_of(Some(&late))).await.unwrap());
            assert!(own.fence > late.fence, "{own:?} follows {late:?}");
            highest = Some(own.fence);
            claim = candidate.claim_of(Some(&own));
        }
    }
}

/// Rule S14: what was left behind is not a success; the session writes again, on top of it.
#[tokio::test]
async fn a_renewal_and_a_release_after_lost_replies_are_written_anew() {
    for server in [old(), current()] {
        let (path, store, direct) = behind_one_way(server).await;
        let mut leader = Candidate::new("a", &store);
        let term = leader.lead().await;
        let renewal = leader.renewal_of(term.fence);
        path.lose_replies(true);
        leader.session.limit_calls(Duration::from_millis(400));
        assert!(leader.session.renew(&renewal).await.unwrap_err().is_retryable());
        path.lose_replies(false);
        leader.session.limit_calls(LIMIT);
        let left = onlooker(&direct).await;
        assert_ne!(left.version, term.version, "it was executed");
        let renewed = won(leader.session.renew(&renewal).await.unwrap());
        assert!(renewed.version != left.version && renewed.fence == term.fence);

        path.lose_replies(true);
        leader.session.limit_calls(Duration::from_millis(400));
        assert!(leader.session.renew(&renewal).await.unwrap_err().is_retryable());
        path.lose_replies(false);
        leader.session.limit_calls(LIMIT);
        let release = leader.release_of(term.fence);
        assert!(won(leader.session.release(&release).await.unwrap()).released);
        assert!(onlooker(&direct).await.released);
    }
}

/// The client would keep what it is given, and send it when it is back.
#[tokio::test]
async fn a_client_that_is_disconnected_is_given_nothing_to_send_later() {
    for mut server in [Nats::start().unwrap(), Nats::start_current().unwrap()] {
        let options = ConnectOptions::new().reconnect_delay_callback(|_| Duration::from_millis(20));
        let client = options.connect(server.url()).await.unwrap();
        let store = NatsStore::from_client(client.clone());
        store.ensure_schema().await.unwrap();
        let mut leader = Candidate::new("a", &store);
        let term = leader.lead().await;
        let renewal = leader.renewal_of(term.fence);
        let renewed = won(leader.session.renew(&renewal).await.unwrap());

        server.kill().unwrap();
        wait_for("the client to notice", async || {
            (client.connection_state() == State::Disconnected).then_some(())
        })
        .await;
        let sent = client.statistics().out_messages.load(std::sync::atomic::Ordering::Relaxed);
        for _ in 0..5 {
            let down = leader.session.renew(&renewal).await.unwrap_err();
            assert!(down.is_retryable() && down.to_string().contains("nothing was sent"), "{down}");
        }
        server.restart().unwrap();
        wait_for("the client to be back", async || {
            (client.connection_state() == State::Connected).then_some(())
        })
        .await;
        client.flush().await.unwrap();
        assert_eq!(
            client.statistics().out_messages.load(std::sync::atomic::Ordering::Relaxed),
            sent
        );
        let direct = NatsStore::new(&server.url()).unwrap();
        assert_eq!(onlooker(&direct).await.version, renewed.version);
        won(leader.session.renew(&renewal).await.unwrap());
    }
}

/// Another client of the bucket, or an operator: what tenure did not write, it does not replace.
#[tokio::test]
async fn a_foreign_value_ends_the_term_and_is_never_overwritten() {
    for server in [old(), current()] {
        let (store, bucket) = fresh_store(server).await;
        let admin = Admin::of(server).await;
        for foreign in ["web-1", "", r#"{"tenure":2}"#, r#"{"tenure":1,"holder":7}"#] {
            let mut leader = Candidate::new("a", &store);
            let term = leader.lead().await;
            admin.put(&bucket, "billing", foreign).await;
            let before = admin.message(&bucket, "billing").await;
            for _ in 0..2 {
                assert_eq!(lost(leader.renew(term.fence).await), None, "{foreign:?}");
            }
            let mut other = Candidate::new("b", &store);
            let claims = [other.claim_of(None), other.claim_of(Some(&term))];
            let failed = [
                leader.session.release(&leader.release_of(term.fence)).await.unwrap_err(),
                other.session.inspect().await.unwrap_err(),
                other.session.acquire(&claims[0]).await.unwrap_err(),
                other.session.acquire(&claims[1]).await.unwrap_err(),
                other.session.place(&PlaceRequest::new(common::LONG)).await.unwrap_err(),
                store.depose(&election()).await.unwrap_err(),
                store.leaders().await.unwrap_err(),
            ];
            for error in failed {
                assert!(error.is_fatal(), "{error}");
                assert!(error.to_string().contains("did not write"), "{error}");
            }
            assert_eq!(admin.message(&bucket, "billing").await, before);
            admin.forget(&bucket, "billing").await;
        }
    }
}

/// `nats kv del` leaves a mark, which is a vacancy: it is proof for the leader, and is claimed like one.
#[tokio::test]
async fn a_key_that_another_client_deleted_is_vacant() {
    for server in [old(), current()] {
        let (store, bucket) = fresh_store(server).await;
        let admin = Admin::of(server).await;
        let mut leader = Candidate::new("a", &store);
        let mut highest = None;
        for operation in ["DEL", "PURGE", "DEL"] {
            let term = leader.lead().await;
            assert!(Some(term.fence) > highest);
            highest = Some(term.fence);
            let mut headers = HeaderMap::new();
            headers.insert("KV-Operation", operation);
            admin.put_with(&bucket, "billing", "", headers).await;
            assert_eq!(lost(leader.renew(term.fence).await), None);
            let mut other = Candidate::new("b", &store);
            assert_eq!(other.look().await, None);
            let mut request = PlaceRequest::new(common::LONG);
            request.floor = Some(term.fence);
            let placed = other.session.place(&request).await.unwrap();
            assert_eq!((placed.holder, placed.fence), (None, term.fence));
        }
    }
}

#[tokio::test]
async fn of_several_servers_the_next_one_is_used() {
    let (store, bucket) = fresh_store(old()).await;
    let dead = Proxy::start(old().addr()).unwrap();
    dead.cut();
    let frozen = Nats::start().unwrap();
    frozen.stop();
    for first in [dead.addr(), frozen.addr()] {
        let url = format!("nats://{first},{}", old().url());
        let mut candidate =
            Candidate::new("a", &NatsStore::new(&url).unwrap().with_bucket(&bucket).unwrap());
        candidate.session.limit_calls(LIMIT);
        candidate.lead().await;
    }
    drop(store);
}

#[tokio::test]
async fn a_bucket_that_was_created_anew_is_reported() {
    let said = Said::default();
    let log = said.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let reports = || {
        let said = std::mem::take(&mut *said.0.lock().unwrap());
        String::from_utf8(said).unwrap().matches("the bucket was deleted and created anew").count()
    };
    for server in [old(), current()] {
        let (store, bucket) = fresh_store(server).await;
        let (mut leader, mut follower) = (Candidate::new("a", &store), Candidate::new("b", &store));
        let term = leader.lead().await;
        follower.look().await.unwrap();
        Admin::of(server).await.delete(&bucket).await;
        store.ensure_schema().await.unwrap();
        assert_eq!(follower.look().await, None);
        assert_eq!(reports(), 1);
        assert_eq!(lost(leader.renew(term.fence).await), None);
        assert_eq!(reports(), 1);
    }
}

/// Also through a connection on which it was looked at before: a leader hears of it by its renewal, others by a look.
#[tokio::test]
async fn a_bucket_that_somebody_else_created_anew_is_looked_at_before_it_is_used() {
    for server in [old(), current()] {
        let (store, bucket) = fresh_store(server).await;
        let admin = Admin::of(server).await;
        let (mut leader, mut follower) = (Candidate::new("a", &store), Candidate::new("b", &store));
        let term = leader.lead().await;
        follower.look().await.unwrap();
        admin.delete(&bucket).await;
        admin.create(&bucket, |config| config["max_age"] = 60_000_000_000_u64.into()).await;
        assert_eq!(lost(leader.renew(term.fence).await), None);
        for mut candidate in [leader, follower] {
            let failed = [
                candidate.session.inspect().await.unwrap_err(),
                candidate.session.place(&PlaceRequest::new(common::LONG)).await.unwrap_err(),
                candidate.session.acquire(&candidate.claim_of(None)).await.unwrap_err(),
            ];
            for error in failed {
                assert!(error.is_fatal() && error.to_string().contains("not prepared"), "{error}");
            }
        }
        assert_eq!(admin.keys(&bucket).await, Vec::<String>::new());
    }
}

#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl io::Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// There is no clock by which a lease could have expired.
#[tokio::test]
async fn a_claim_by_the_clock_is_always_lost() {
    let (store, _) = fresh_store(old()).await;
    let term = Candidate::new("a", &store).lead().await;
    let mut other = Candidate::new("b", &store);
    let mut claim = other.claim_of(Some(&term));
    claim.when = When::Expired;
    assert_eq!(lost(other.session.acquire(&claim).await.unwrap()), Some(term));
}

/// Each session believes that it may renew and take over; the revision decides.
#[tokio::test]
async fn a_session_that_knows_an_old_state_changes_nothing() {
    let (store, _) = fresh_store(old()).await;
    let mut former = Candidate::new("a", &store);
    let term = former.lead().await;
    let mut stale = Candidate::new("b", &store);
    let seen = stale.look().await.unwrap();
    let successor = Candidate::new("c", &store).lead().await;
    let by = lost(stale.session.acquire(&stale.claim_of(Some(&seen))).await.unwrap());
    assert_eq!(by.as_ref(), Some(&successor));
    let Outcome::Lost(by) = former.renew(term.fence).await else { panic!("a renewal") };
    assert_eq!(by.as_ref(), Some(&successor));
    assert_eq!(onlooker(&store).await, successor);
}
