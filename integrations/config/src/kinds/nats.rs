//! `nats:`, which is a key-value bucket of NATS JetStream.

use tenure::DynStore;

use super::Kind;
use crate::{
    error::ElectionConfigError,
    options::{Known, Options},
};

const BUCKET: Known = Known::plain("bucket");
const STORAGE: Known = Known::plain("storage");
const REPLICAS: Known = Known::plain("replicas");
const MAX_BYTES: Known = Known::plain("max_bytes");
const ADOPT: Known = Known::list("adopt");
const CREDENTIALS_FILE: Known = Known::plain("credentials_file");
const ROOT_CERTIFICATES: Known = Known::plain("root_certificates");
const CLIENT_CERTIFICATE: Known = Known::plain("client_certificate");
const CLIENT_KEY: Known = Known::plain("client_key");
const HINTS: Known = Known::plain("hints");

pub(super) const KIND: Kind = Kind {
    name: "nats",
    form: "nats://HOST",
    schemes: &["nats", "tls"],
    options: &[
        BUCKET,
        STORAGE,
        REPLICAS,
        MAX_BYTES,
        ADOPT,
        CREDENTIALS_FILE,
        ROOT_CERTIFICATES,
        CLIENT_CERTIFICATE,
        CLIENT_KEY,
        HINTS,
    ],
    connect,
};

#[cfg(feature = "nats")]
fn connect(url: &str, options: &Options) -> Result<DynStore, ElectionConfigError> {
    use tenure::Store;
    use tenure_nats::{NatsStore, Setting, SetupError, Storage};

    use crate::scalar::Scalar;

    let mut store = NatsStore::new(url).map_err(super::bad_url)?;
    if let Some(storage) = options.read(STORAGE, Scalar::parse::<Storage>)? {
        store = store.with_storage(storage);
    }
    if let Some(settings) = options.read(ADOPT, Scalar::parse_list::<Setting>)? {
        store = store.with_adopted(settings);
    }
    if let Some(replicas) = options.read(REPLICAS, Scalar::parse)? {
        store = store.with_replicas(replicas).map_err(|error| options.refused(REPLICAS, error))?;
    }
    if let Some(bytes) = options.read(MAX_BYTES, Scalar::parse)? {
        store = store.with_max_bytes(bytes).map_err(|error| options.refused(MAX_BYTES, error))?;
    }
    type Set = fn(NatsStore, &str) -> Result<NatsStore, SetupError>;
    let texts: [(Known, Set); 3] = [
        (BUCKET, |store, name| store.with_bucket(name)),
        (CREDENTIALS_FILE, |store, path| store.with_credentials_file(path)),
        (ROOT_CERTIFICATES, |store, path| store.with_root_certificates(path)),
    ];
    for (option, set) in texts {
        if let Some(text) = options.text(option) {
            store = set(store, text).map_err(|error| options.refused(option, error))?;
        }
    }
    match (options.text(CLIENT_CERTIFICATE), options.text(CLIENT_KEY)) {
        (None, None) => {}
        (Some(certificate), Some(key)) => {
            store = store
                .with_client_certificate(certificate, key)
                .map_err(|error| options.refused(CLIENT_CERTIFICATE, error))?;
        }
        (None, _) => {
            return Err(ElectionConfigError::Missing { key: "store.client_certificate" });
        }
        (_, None) => return Err(ElectionConfigError::Missing { key: "store.client_key" }),
    }
    if options.read(HINTS, Scalar::flag)? == Some(false) {
        store = store.without_hints();
    }
    Ok(store.into_dyn())
}

#[cfg(not(feature = "nats"))]
fn connect(_: &str, _: &Options) -> Result<DynStore, ElectionConfigError> {
    super::feature_off("nats")
}
