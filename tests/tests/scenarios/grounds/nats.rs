//! Elections on NATS.

use serde_json::Value;
use tenure_nats::async_nats;
use tenure_testbed::Nats;

use super::{
    super::{Ground, Hang, runtime},
    Frozen,
};

/// A private NATS server.
pub(crate) struct NatsServer(Nats);

impl NatsServer {
    /// As Debian has it.
    pub(crate) fn old() -> Self {
        Self(Nats::start().unwrap())
    }

    /// A current one.
    pub(crate) fn current() -> Self {
        Self(Nats::start_current().unwrap())
    }
}

impl Ground for NatsServer {
    fn config(&self) -> Value {
        self.0.url().into()
    }

    fn hang(&self) -> Box<dyn Hang + '_> {
        self.0.stop();
        Box::new(Frozen(|| self.0.cont()))
    }

    fn drop_schema(&self) {
        runtime().block_on(async {
            let client = async_nats::connect(self.0.url()).await.unwrap();
            let delete = "$JS.API.STREAM.DELETE.KV_leader_election";
            let answer = client.request(delete, "".into()).await.unwrap();
            let answer = String::from_utf8_lossy(&answer.payload).into_owned();
            assert!(answer.contains("\"success\":true"), "{answer}");
        });
    }
}
