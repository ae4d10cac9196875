//! `nats:`, which is NATS JetStream.

use tenure::DynStore;

use super::Kind;
use crate::{error::ElectionConfigError, options::Options};

pub(super) const KIND: Kind =
    Kind { name: "nats", schemes: &["nats", "tls"], options: &[], connect };

fn connect(_: &str, _: &Options) -> Result<DynStore, ElectionConfigError> {
    super::feature_off("nats")
}
