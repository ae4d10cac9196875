//! Any text as a configuration in TOML: nothing panics, no secret is repeated, and what is accepted touches nothing.
//!
//! Placeholders are those of [`urls`](crate::urls).

use tenure::MemoryStore;
use tenure_config::ElectionConfig;

use crate::{
    secrets::{SECRET, everything},
    urls::{filled_in, nothing_was_touched},
};

const KEYS: [&str; 15] = [
    "drain_timeout",
    "election",
    "expiry",
    "fixed_identity_risking_two_leaders",
    "label",
    "lease_duration",
    "observer",
    "operation_timeout",
    "payload",
    "ready_when_told",
    "renew_interval",
    "resign_pause",
    "retry_period",
    "safety_margin",
    "store",
];

pub(crate) fn check(bytes: &[u8]) {
    let text = filled_in(&String::from_utf8_lossy(bytes));
    let is_secret = keeps_its_secret(&text);
    let secretive = |said: String| {
        assert!(!(is_secret && said.contains(SECRET)), "{text}\n\n{said}");
    };
    match toml::from_str::<ElectionConfig>(&text) {
        // In its `Debug` there is the whole text.
        Err(error) => secretive(error.to_string()),
        Ok(config) => {
            secretive(format!("{config:?}"));
            if let Err(error) = config.store() {
                secretive(everything(&error));
            }
            if let Err(error) = config.elector(MemoryStore::new()) {
                secretive(everything(&error));
            }
        }
    }
    nothing_was_touched();
}

/// Whether the secret stands nowhere but in the URLs of a store, behind a user's name, and all keys beside it are known: the
/// documentation promises nothing for those that are misspelled.
fn keeps_its_secret(text: &str) -> bool {
    let Ok(mut table) = text.parse::<toml::Table>() else { return false };
    let is_known = table.keys().all(|key| KEYS.contains(&key.as_str()));
    let urls = match table.remove("store") {
        Some(toml::Value::String(url)) => vec![url],
        Some(toml::Value::Table(mut store)) => {
            let urls = ["url", "listen_url"].map(|key| store.remove(key));
            if format!("{store:?}").contains(SECRET) {
                return false;
            }
            urls.into_iter().flatten().filter_map(|url| url.as_str().map(str::to_owned)).collect()
        }
        _ => return false,
    };
    let is_password = |url: &String| {
        !url.starts_with("sqlite:")
            && (!url.contains(SECRET) || crate::secrets::may_be_a_password(url))
    };
    is_known && urls.iter().all(is_password) && !format!("{table:?}").contains(SECRET)
}
