//! Elections across processes that share a NATS server, which shows no clock.

mod scenarios;

use std::sync::OnceLock;

use scenarios::{grounds::NatsServer, run_all};

mod nats_2_9 {
    use super::*;

    fn shared() -> &'static NatsServer {
        static SERVER: OnceLock<NatsServer> = OnceLock::new();
        SERVER.get_or_init(NatsServer::old)
    }

    run_all!(shared: *shared(), own: NatsServer::old());
}

mod nats_2_15 {
    use super::*;

    fn shared() -> &'static NatsServer {
        static SERVER: OnceLock<NatsServer> = OnceLock::new();
        SERVER.get_or_init(NatsServer::current)
    }

    run_all!(shared: *shared(), own: NatsServer::current());
}
