//! One candidate in one election.

use std::time::Duration;

use serde::Deserialize;
use tenure::{DynStore, Elector, ElectorBuilder, Store, protocol::Expiry};

use crate::{
    error::{ElectionConfigError, ValueError},
    scalar::Scalar,
    store::StoreConfig,
};

/// One candidate in one election, as it stands in a configuration. The keys are the fields; the [crate's
/// table](crate#keys) says what they mean and what follows if they are left out.
///
/// It may stand alone, or as a field of the application's own configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Raw")]
#[non_exhaustive]
pub struct ElectionConfig {
    /// What is contended for.
    pub election: String,
    /// Where the lease is kept.
    pub store: StoreConfig,
    /// What this candidate publishes while it leads.
    pub payload: Option<String>,
    /// A prefix for this candidate's identity.
    pub label: Option<String>,
    /// The identity itself, also over restarts.
    pub fixed_identity_risking_two_leaders: Option<String>,
    /// How long a lease is valid.
    pub lease_duration: Option<Duration>,
    /// How often the leader extends it.
    pub renew_interval: Option<Duration>,
    /// How often a follower looks.
    pub retry_period: Option<Duration>,
    /// Bounds one call to the store.
    pub operation_timeout: Option<Duration>,
    /// How much earlier than the lease the term ends here.
    pub safety_margin: Option<Duration>,
    /// How long a voluntary end waits for work.
    pub drain_timeout: Option<Duration>,
    /// How long this candidate does not contend after it resigned.
    pub resign_pause: Option<Duration>,
    /// Who says that a lease has expired.
    pub expiry: Option<Expiry>,
    /// Whether it takes part without ever contending.
    pub observer: bool,
    /// Whether a term that was won is shown only once [`Term::ready`](tenure::Term::ready) was called.
    pub ready_when_told: bool,
}

impl ElectionConfig {
    /// A candidate with everything else left at its default.
    #[must_use]
    pub fn new(election: impl Into<String>, store: StoreConfig) -> Self {
        Self {
            election: election.into(),
            store,
            payload: None,
            label: None,
            fixed_identity_risking_two_leaders: None,
            lease_duration: None,
            renew_interval: None,
            retry_period: None,
            operation_timeout: None,
            safety_margin: None,
            drain_timeout: None,
            resign_pause: None,
            expiry: None,
            observer: false,
            ready_when_told: false,
        }
    }

    /// Makes the store. No I/O; call its `ensure_schema()` before the first election.
    ///
    /// Two calls make two stores, which for `memory:` means two databases.
    ///
    /// # Errors
    /// [`ElectionConfigError`] names the key and the value that is wrong.
    pub fn store(&self) -> Result<DynStore, ElectionConfigError> {
        self.store.connect()
    }

    /// Builds the elector on `store`, usually [`store()`](Self::store). No I/O.
    ///
    /// # Errors
    /// [`ElectionConfigError`] names the key and the value that is wrong.
    pub fn elector(&self, store: impl Store) -> Result<Elector, ElectionConfigError> {
        Ok(self.builder(store)?.build()?)
    }

    /// Hands everything to a builder, for what no file can say.
    ///
    /// # Errors
    /// [`ElectionConfigError`] if both `label` and `fixed_identity_risking_two_leaders` are given.
    pub fn builder(&self, store: impl Store) -> Result<ElectorBuilder, ElectionConfigError> {
        let mut builder = Elector::builder(self.election.as_str(), store);
        if let Some(payload) = &self.payload {
            builder = builder.payload(payload.as_str());
        }
        builder = match (&self.label, &self.fixed_identity_risking_two_leaders) {
            (None, None) => builder,
            (Some(label), None) => builder.label(label),
            (None, Some(identity)) => builder.fixed_identity_risking_two_leaders(identity.as_str()),
            (Some(_), Some(_)) => {
                return Err(ElectionConfigError::Contradiction {
                    one: "label",
                    other: "fixed_identity_risking_two_leaders",
                });
            }
        };
        type Set = fn(ElectorBuilder, Duration) -> ElectorBuilder;
        let timings: [(Option<Duration>, Set); 7] = [
            (self.lease_duration, ElectorBuilder::lease_duration),
            (self.renew_interval, ElectorBuilder::renew_interval),
            (self.retry_period, ElectorBuilder::retry_period),
            (self.operation_timeout, ElectorBuilder::operation_timeout),
            (self.safety_margin, ElectorBuilder::safety_margin),
            (self.drain_timeout, ElectorBuilder::drain_timeout),
            (self.resign_pause, ElectorBuilder::resign_pause),
        ];
        for (duration, set) in timings {
            if let Some(duration) = duration {
                builder = set(builder, duration);
            }
        }
        if let Some(expiry) = self.expiry {
            builder = builder.expiry(expiry);
        }
        if self.observer {
            builder = builder.observer();
        }
        if self.ready_when_told {
            builder = builder.ready_when_told();
        }
        Ok(builder)
    }
}

/// As it stands in the file: which key a value belongs to is known here, so that an error can name both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    election: Option<Scalar>,
    store: Option<StoreConfig>,
    payload: Option<Scalar>,
    label: Option<Scalar>,
    fixed_identity_risking_two_leaders: Option<Scalar>,
    lease_duration: Option<Scalar>,
    renew_interval: Option<Scalar>,
    retry_period: Option<Scalar>,
    operation_timeout: Option<Scalar>,
    safety_margin: Option<Scalar>,
    drain_timeout: Option<Scalar>,
    resign_pause: Option<Scalar>,
    expiry: Option<Scalar>,
    observer: Option<Scalar>,
    ready_when_told: Option<Scalar>,
}

impl TryFrom<Raw> for ElectionConfig {
    type Error = ElectionConfigError;

    fn try_from(raw: Raw) -> Result<Self, ElectionConfigError> {
        let missing = |key| ElectionConfigError::Missing { key };
        let text = |value: Option<Scalar>| value.map(Scalar::into_string);
        let duration = |key, value| read(key, value, Scalar::duration);
        let flag = |key, value| read(key, value, Scalar::flag).map(Option::unwrap_or_default);
        Ok(Self {
            election: text(raw.election).ok_or(missing("election"))?,
            store: raw.store.ok_or(missing("store"))?,
            payload: text(raw.payload),
            label: text(raw.label),
            fixed_identity_risking_two_leaders: text(raw.fixed_identity_risking_two_leaders),
            lease_duration: duration("lease_duration", raw.lease_duration)?,
            renew_interval: duration("renew_interval", raw.renew_interval)?,
            retry_period: duration("retry_period", raw.retry_period)?,
            operation_timeout: duration("operation_timeout", raw.operation_timeout)?,
            safety_margin: duration("safety_margin", raw.safety_margin)?,
            drain_timeout: duration("drain_timeout", raw.drain_timeout)?,
            resign_pause: duration("resign_pause", raw.resign_pause)?,
            expiry: read("expiry", raw.expiry, Scalar::expiry)?,
            observer: flag("observer", raw.observer)?,
            ready_when_told: flag("ready_when_told", raw.ready_when_told)?,
        })
    }
}

fn read<T>(
    key: &'static str,
    value: Option<Scalar>,
    read: fn(&Scalar) -> Result<T, String>,
) -> Result<Option<T>, ValueError> {
    let Some(value) = value else {
        return Ok(None);
    };
    read(&value).map(Some).map_err(|why| ValueError::new(key, Some(value.as_str()), why))
}
