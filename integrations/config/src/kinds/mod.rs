//! The kinds of stores that there are: one table, by the scheme of the URL.

mod memory;
mod mysql;
mod nats;
mod postgres;
mod sqlite;

use tenure::DynStore;

use crate::{
    error::ElectionConfigError,
    options::{Known, Options},
};

/// A kind of store.
pub(crate) struct Kind {
    /// The scheme to write, which is also the name of the feature.
    pub(crate) name: &'static str,
    /// All schemes that mean it.
    schemes: &'static [&'static str],
    /// What its URLs look like.
    form: &'static str,
    /// What there is beside the URL.
    pub(crate) options: &'static [Known],
    pub(crate) connect: fn(&str, &Options) -> Result<DynStore, ElectionConfigError>,
}

const KINDS: [&Kind; 5] =
    [&memory::KIND, &sqlite::KIND, &postgres::KIND, &mysql::KIND, &nats::KIND];

/// The kind that a URL names.
pub(crate) fn of_url(url: &str) -> Result<&'static Kind, ElectionConfigError> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    KINDS.into_iter().find(|kind| kind.schemes.contains(&scheme)).ok_or_else(|| {
        // Anything else in front of the colon might be a user, or part of a password.
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_lowercase());
        let followed = url[scheme.len()..].starts_with("://");
        ElectionConfigError::UnknownStore {
            scheme: if is_scheme && followed { scheme.to_owned() } else { String::new() },
            known: KINDS.map(|kind| kind.form).to_vec(),
        }
    })
}

/// For a kind that this program was built without.
#[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "nats")))]
fn feature_off(kind: &'static str) -> Result<DynStore, ElectionConfigError> {
    Err(ElectionConfigError::FeatureOff { kind })
}

/// A URL that the store does not take. The stores' own errors show nothing of it that may be secret.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "nats"))]
fn bad_url(error: impl std::error::Error + Send + Sync + 'static) -> ElectionConfigError {
    crate::error::ValueError::because("store.url", None, error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_documented_with_its_store() {
        let table = include_str!("../../stores.md");
        for kind in KINDS {
            let row = table.lines().find(|line| line.starts_with(&format!("| `{}:", kind.name)));
            let row = row.unwrap_or_else(|| panic!("{}: is not documented", kind.name));
            for option in kind.options {
                assert!(
                    row.contains(&format!("`{}`", option.key)),
                    "{}: {}",
                    kind.name,
                    option.key
                );
            }
        }
    }
}
