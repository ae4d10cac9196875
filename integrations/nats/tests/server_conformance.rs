//! The acceptance suite, on real servers of both versions.

#![allow(clippy::unwrap_used)] // a subject is for tests alone

mod common;

use std::sync::Mutex;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tenure::ElectionName;
use tenure_conformance::{Subject, Unsupported};
use tenure_nats::NatsStore;
use tenure_testbed::Nats;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use common::{Admin, Backup, fresh_name};

/// A bucket of its own.
struct Bucket {
    server: &'static Nats,
    name: String,
    backup: Mutex<Option<Backup>>,
}

impl Bucket {
    fn on(server: &'static Nats) -> Self {
        Self { server, name: fresh_name("bucket"), backup: Mutex::default() }
    }

    async fn admin(&self) -> Admin {
        Admin::of(self.server).await
    }

    /// Rewrites the record under a key, as a later version of tenure would.
    async fn rewrite(&self, key: &str, change: impl FnOnce(&mut Value)) {
        let admin = self.admin().await;
        let message = admin.message(&self.name, key).await.unwrap();
        let mut value = value(&message);
        if value["settled"] == false {
            let stored = message["time"].as_str().unwrap();
            let stored = OffsetDateTime::parse(stored, &Rfc3339).unwrap().unix_timestamp_nanos();
            let stored_ms = i64::try_from(stored / 1_000_000).unwrap();
            value["fence"] = value["fence"].as_i64().unwrap().max(stored_ms).into();
            value["settled"] = true.into();
        }
        change(&mut value);
        admin.put(&self.name, key, value.to_string()).await;
    }
}

fn value(message: &Value) -> Value {
    let data = BASE64_STANDARD.decode(message["data"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&data).unwrap()
}

/// As the documentation of the store says.
fn key_of(election: &ElectionName) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let bytes = election.as_str().bytes();
    let keys = bytes.map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("={byte:02X}"),
    });
    keys.collect()
}

impl Subject for Bucket {
    type Store = NatsStore;

    async fn store(&self) -> NatsStore {
        NatsStore::new(&self.server.url()).unwrap().with_bucket(&self.name).unwrap()
    }

    fn cut_points(&self) -> usize {
        6
    }

    async fn bytes(&self, election: &ElectionName) -> Result<Option<Vec<u8>>, Unsupported> {
        let message = self.admin().await.message(&self.name, &key_of(election)).await;
        Ok(message.map(|message| message.to_string().into_bytes()))
    }

    async fn lose_record(&self, election: &ElectionName) -> Result<(), Unsupported> {
        self.admin().await.forget(&self.name, &key_of(election)).await;
        Ok(())
    }

    async fn back_up(&self) -> Result<(), Unsupported> {
        let backup = self.admin().await.back_up(&self.name).await;
        *self.backup.lock().unwrap() = Some(backup);
        Ok(())
    }

    async fn restore(&self) -> Result<(), Unsupported> {
        let backup = self.backup.lock().unwrap().clone().expect("there is a backup");
        self.admin().await.restore(&self.name, backup).await;
        Ok(())
    }

    async fn upgrade(&self) -> Result<(), Unsupported> {
        for key in self.admin().await.keys(&self.name).await {
            if !key.starts_with('/') {
                self.rewrite(&key, |value| value["added"] = 0.into()).await;
            }
        }
        Ok(())
    }

    async fn write_added(&self, election: &ElectionName, added: i64) -> Result<(), Unsupported> {
        self.rewrite(&key_of(election), |value| value["added"] = added.into()).await;
        Ok(())
    }

    async fn read_added(&self, election: &ElectionName) -> Result<i64, Unsupported> {
        let message = self.admin().await.message(&self.name, &key_of(election)).await;
        Ok(value(&message.unwrap())["added"].as_i64().unwrap())
    }

    /// Pinned: version 0.1.0 made its buckets like this.
    async fn first_schema(&self) -> Result<(), Unsupported> {
        let (admin, name) = (self.admin().await, &self.name);
        admin.delete(name).await;
        let config = json!({
            "name": format!("KV_{name}"), "description": "leader elections of tenure",
            "subjects": [format!("$KV.{name}.>")], "retention": "limits", "storage": "file",
            "num_replicas": 1, "max_msgs_per_subject": 1, "max_msgs": -1, "max_bytes": -1,
            "max_age": 0, "max_msg_size": -1, "max_consumers": -1, "discard": "new",
            "deny_delete": true, "allow_rollup_hdrs": true,
        });
        admin.ask(&format!("STREAM.CREATE.KV_{name}"), &config).await;
        let begin = json!({"seq": 1_795_990_913_751_908_u64});
        admin.ask(&format!("STREAM.PURGE.KV_{name}"), &begin).await;
        admin.put(name, "/note", "a message that keeps the bucket from being empty").await;
        Ok(())
    }

    async fn drop_schema(&self) -> Result<(), Unsupported> {
        self.admin().await.delete(&self.name).await;
        Ok(())
    }
}

macro_rules! suite_on {
    ($server:path) => {
        tenure_conformance::suite!(async || Bucket::on($server()), unsupported: [
            // It has no clock.
            "administration::a_deposed_record_is_claimed_after_it_has_expired",
            "administration::a_placed_record_is_claimed_after_it_has_expired",
            "fences::a_fence_rises_over_an_expiry",
            "guards::an_expired_lease_can_still_be_released",
            "guards::an_expired_lease_is_not_renewed",
            "take_over::a_valid_lease_is_not_taken",
            "take_over::one_candidate_wins_an_expired_lease",
            "time::a_lease_is_never_valid_for_longer_than_asked",
            "time::a_lease_of_300_ms_expires_and_is_taken",
            "time::a_renewed_lease_of_300_ms_is_not_taken",
            "time::a_shorter_renewal_shortens_the_lease",
            "time::an_expired_lease_shows_that_nothing_is_left",
            "time::what_is_left_of_a_lease_runs_down",
            // It has no transactions.
            "hold::a_hold_may_be_dropped_at_any_point",
            "hold::a_hold_outlasts_the_lease_or_its_transaction_fails",
            "hold::a_term_is_held_while_it_drains_and_not_after_its_end",
            "hold::a_transaction_that_is_dropped_holds_nothing",
            "hold::it_is_offered_if_it_is_declared",
            "hold::no_late_write_under_read_committed",
            "hold::no_late_write_under_repeatable_read",
            "hold::no_late_write_under_serializable",
            "hold::nobody_takes_over_before_the_commit",
            "hold::nothing_is_added_after_a_take_over",
            "hold::renewals_pass_or_wait_as_declared",
            "hold::several_transactions_hold_one_term",
            "hold::to_depose_the_leader_breaks_no_hold",
        ]);
    };
}

mod nats_2_9 {
    use super::*;

    suite_on!(common::old);
}

mod nats_2_15 {
    use super::*;

    suite_on!(common::current);
}
