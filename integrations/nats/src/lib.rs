//! Leases in a NATS JetStream key-value bucket, for [tenure].
