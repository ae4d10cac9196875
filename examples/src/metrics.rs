//! What an election counts and measures, for Prometheus.

use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};

use crate::{
    args::ReplicaArgs,
    replica::{self, ReplicaError},
};

/// In seconds: a call of a store takes milliseconds if all is well, and a drain as long as a request.
const BUCKETS: [f64; 11] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Why a replica could not start, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// There is a recorder already.
    #[error("metrics can not be recorded")]
    Recorder(#[from] BuildError),
    /// The replica itself.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
}

/// Serves as the `axum` example does, with `GET /metrics` beside it.
///
/// # Errors
/// [`MetricsError`] if it cannot start, or if work would not stop.
pub async fn run(args: &ReplicaArgs) -> Result<(), MetricsError> {
    // Before the elector is built: what is recorded earlier is recorded nowhere.
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &BUCKETS)?
        .install_recorder()?;
    tenure::metrics::describe();
    let serve = replica::serve(args, |leadership| {
        replica::app(leadership).route("/metrics", get(async move || recorder.render()))
    });
    Ok(serve.await?)
}
