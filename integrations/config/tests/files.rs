//! Configurations in the formats that people use.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{error::Error, time::Duration};

use config::{Config, Environment, File, FileFormat};
use serde::Deserialize;
use tenure::protocol::Expiry;
use tenure_config::ElectionConfig;

/// Where it usually stands: in the application's own configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Application {
    workers: u32,
    leader: ElectionConfig,
}

fn text_of(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

fn from_file(format: FileFormat, text: &str) -> Result<Application, config::ConfigError> {
    Config::builder().add_source(File::from_str(text, format)).build()?.try_deserialize()
}

fn check(application: &Application) {
    let config = &application.leader;
    assert_eq!(application.workers, 4);
    assert_eq!(config.election, "invoice-reconciler");
    assert_eq!(config.payload.as_deref(), Some("https://replica-7.internal"));
    assert_eq!(config.lease_duration, Some(Duration::from_secs(20)));
    assert_eq!(config.retry_period, Some(Duration::from_millis(1500)));
    assert_eq!(config.drain_timeout, Some(Duration::from_secs(90)));
    assert_eq!(config.safety_margin, None);
    assert_eq!(config.expiry, Some(Expiry::Observed));
    assert!(config.observer && !config.ready_when_told);
    let elector = config.elector(config.store().unwrap()).unwrap();
    assert!(!elector.leadership().is_leader());
}

#[test]
fn toml_is_read() {
    let text = r#"
        workers = 4
        [leader]
        election = "invoice-reconciler"
        store.url = "memory:"
        payload = "https://replica-7.internal"
        lease_duration = "20s"
        retry_period = "1s 500ms"
        drain_timeout = "1m 30s"
        expiry = "observed"
        observer = true
    "#;
    check(&toml::from_str(text).unwrap());
    check(&from_file(FileFormat::Toml, text).unwrap());
}

#[test]
fn yaml_is_read() {
    let text = "
workers: 4
leader:
  election: invoice-reconciler
  store:
    url: 'memory:'
  payload: https://replica-7.internal
  lease_duration: 20s
  retry_period: 1500ms
  drain_timeout: 90s
  expiry: observed
  observer: true
";
    check(&from_file(FileFormat::Yaml, text).unwrap());
}

#[test]
fn json_is_read() {
    let text = r#"{"workers": 4, "leader": {"election": "invoice-reconciler", "store": "memory:",
        "payload": "https://replica-7.internal", "lease_duration": "20s", "retry_period": "1500ms",
        "drain_timeout": "90s", "expiry": "observed", "observer": true}}"#;
    check(&serde_json::from_str(text).unwrap());
    check(&from_file(FileFormat::Json, text).unwrap());
}

/// Variables are texts, all of them.
#[test]
fn the_environment_is_read_and_wins_over_a_file() {
    let variables = [
        ("APP__LEADER__LEASE_DURATION", "20s"),
        ("APP__LEADER__RETRY_PERIOD", "1500ms"),
        ("APP__LEADER__OBSERVER", "true"),
        ("APP__LEADER__STORE__URL", "memory:"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment =
        Environment::with_prefix("APP").separator("__").source(Some(variables.into()));
    let file = r#"
        workers = 4
        [leader]
        election = "invoice-reconciler"
        store.url = "sqlite:/nowhere/app.db"
        payload = "https://replica-7.internal"
        lease_duration = "5s"
        drain_timeout = "90s"
        expiry = "observed"
    "#;
    let config = Config::builder().add_source(File::from_str(file, FileFormat::Toml));
    check(&config.add_source(environment).build().unwrap().try_deserialize().unwrap());
}

#[test]
fn what_is_left_out_is_as_in_the_builder() {
    let config: ElectionConfig =
        toml::from_str("election = \"jobs\"\nstore = \"memory:\"").unwrap();
    let plain = tenure::Elector::builder("jobs", tenure::MemoryStore::new()).build().unwrap();
    let elector = config.elector(config.store().unwrap()).unwrap();
    assert_eq!(elector.timing(), plain.timing());
}

/// Each wrong configuration, and what its error must name.
#[test]
fn an_error_names_the_key_and_the_value() {
    let cases: &[(&str, &[&str])] = &[
        ("store = \"memory:\"", &["`election` is missing"]),
        ("election = \"jobs\"", &["`store` is missing"]),
        ("election = \"jobs\"\n[store]\ntable = \"t\"", &["`store.url` is missing"]),
        ("election = \"jobs\"\nstore = \"memory:\"\nleese = \"15s\"", &["leese", "lease_duration"]),
        ("lease_duration = 15", &["lease_duration", "15", "`15s`"]),
        ("lease_duration = \"15 parsecs\"", &["lease_duration", "15 parsecs"]),
        ("drain_timeout = \"-1s\"", &["drain_timeout", "-1s"]),
        ("resign_pause = [\"1s\"]", &["resign_pause"]),
        ("expiry = \"never\"", &["expiry", "never", "`observed`"]),
        ("observer = \"yes\"", &["observer", "yes", "`true`"]),
        (
            "election = \"jobs\"\nstore = \"gopher://db\"",
            &["store.url", "gopher", "`postgres://USER"],
        ),
        (
            "election = \"jobs\"\nstore = { url = \"memory:\", bucket = \"b\" }",
            &["store.bucket", "memory"],
        ),
    ];
    for (text, named) in cases {
        let whole = if text.contains("store") || text.contains("election") {
            (*text).to_owned()
        } else {
            format!("election = \"jobs\"\nstore = \"memory:\"\n{text}")
        };
        let said = match toml::from_str::<ElectionConfig>(&whole) {
            Ok(config) => text_of(&config.store().unwrap_err()),
            Err(error) => text_of(&error),
        };
        assert!(named.iter().all(|name| said.contains(name)), "{text}\n{said}\n{named:?}");
    }
}

/// What can only be seen when it is put together.
#[test]
fn building_refuses_what_contradicts_itself() {
    let cases: &[(&str, &[&str])] = &[
        ("lease_duration = \"0s\"", &["lease_duration"]),
        ("lease_duration = \"2h\"", &["lease_duration"]),
        ("renew_interval = \"14s\"", &["renew_interval", "14s"]),
        ("label = \"a\"\nfixed_identity_risking_two_leaders = \"b\"", &["label", "fixed_identity"]),
        ("fixed_identity_risking_two_leaders = \"\"", &["identity"]),
    ];
    for (text, named) in cases {
        let text = format!("election = \"jobs\"\nstore = \"memory:\"\n{text}");
        let config: ElectionConfig = toml::from_str(&text).unwrap();
        let said = text_of(&config.elector(config.store().unwrap()).unwrap_err());
        assert!(named.iter().all(|name| said.contains(name)), "{text}\n{said}\n{named:?}");
    }
    let unnamed: ElectionConfig = toml::from_str("election = \"\"\nstore = \"memory:\"").unwrap();
    let said = text_of(&unnamed.elector(unnamed.store().unwrap()).unwrap_err());
    assert!(said.contains("election"), "{said}");
    tenure_config::connect("memory:jobs").unwrap_err();
}

#[test]
fn no_password_is_shown() {
    let urls = [
        "postgres://app:sesame@db:notaport/app",
        "postgres://app:sesame@",
        "app:sesame@db",
        "sesame",
        "sesame:",
        "mysql://app:sesame@db:notaport/app",
        "nats://app:sesame@db:notaport",
        "memory:sesame",
        "postgres://db/app\", listen_url = \"postgres://app:sesame@db:notaport",
    ];
    for url in urls {
        let text = format!("election = \"jobs\"\nstore = {{ url = \"{url}\" }}");
        let said = match serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()) {
            Ok(value) => match serde_json::from_value::<ElectionConfig>(value) {
                Ok(config) => {
                    let shown = format!("{config:?}");
                    assert!(!shown.contains("sesame"), "{shown}");
                    let error = config.store().unwrap_err();
                    format!("{} {error:?}", text_of(&error))
                }
                Err(error) => format!("{} {error:?}", text_of(&error)),
            },
            Err(error) => panic!("{error}"),
        };
        assert!(!said.contains("sesame"), "{url}: {said}");
    }
}

/// TOML's errors quote the line at fault, which may be the one with the password.
#[test]
fn no_format_is_given_a_reason_to_quote_the_line_with_the_password() {
    let stores = [
        r#"{ url = "postgres://app:sesame@db/app", bucket = "b" }"#,
        r#"{ url = "postgres://app:sesame@db/app", table = ["b"] }"#,
        r#"{ ur1 = "postgres://app:sesame@db/app" }"#,
        r#"{ url = ["postgres://app:sesame@db/app"] }"#,
        r#""postgresq://app:sesame@db/app""#,
    ];
    for store in stores {
        let text = format!("workers = 4\nleader = {{ election = \"jobs\", store = {store} }}");
        let application: Application =
            toml::from_str(&text).map_err(|error| error.to_string()).unwrap();
        let error = application.leader.store().unwrap_err();
        let said = format!("{} {error:?} {application:?}", text_of(&error));
        assert!(!said.contains("sesame"), "{said}");
    }
}

#[test]
#[cfg(all(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "nats"))]
fn every_option_of_every_store_is_taken() {
    let stores = [
        r#"{ url = "sqlite:app.db", table = "leases" }"#,
        r#"{ url = "postgres://app@db/app", schema = "jobs", table = "leases", max_connection_age = "10m",
             listen_url = "postgres://app@direct/app" }"#,
        r#"{ url = "mysql://app@db/app", database = "jobs", table = "leases" }"#,
        r#"{ url = "nats://db", bucket = "jobs", storage = "memory", replicas = 3, max_bytes = 1000000, hints = false,
             adopt = ["replicas", "max_age"], credentials_file = "/a", root_certificates = "/b", client_certificate = "/c", client_key = "/d" }"#,
        r#"{ url = "nats://db", adopt = "replicas, max_age", hints = "true", replicas = "1" }"#,
    ];
    for store in stores {
        let config: ElectionConfig =
            toml::from_str(&format!("election = \"jobs\"\nstore = {}", store.replace('\n', " ")))
                .unwrap_or_else(|error| panic!("{store}: {error}"));
        config.store().unwrap_or_else(|error| panic!("{store}: {}", text_of(&error)));
    }
}

#[test]
#[cfg(all(feature = "sqlite", feature = "postgres", feature = "mysql", feature = "nats"))]
fn an_option_that_a_store_refuses_is_named_with_its_value() {
    let cases: &[(&str, &[&str])] = &[
        (r#"{ url = "sqlite:app.db", table = "" }"#, &["store.table"]),
        (r#"{ url = "sqlite::memory:" }"#, &["store.url", "MemoryStore"]),
        (r#"{ url = "sqlite:app.db", table = ["a"] }"#, &["store.table", "list"]),
        (
            r#"{ url = "postgres://db/app", schema = "s", table = "a\u0000b" }"#,
            &["store.table", "NUL"],
        ),
        (r#"{ url = "postgres://db/app", schema = "", table = "t" }"#, &["store.schema", "empty"]),
        (
            r#"{ url = "postgres://db/app", max_connection_age = "1" }"#,
            &["store.max_connection_age", "1"],
        ),
        (
            r#"{ url = "postgres://db/app", listen_url = "mysql://db/app" }"#,
            &["store.listen_url", "mysql"],
        ),
        (r#"{ url = "postgres://db/app", bucket = "b" }"#, &["store.bucket", "`schema`"]),
        (r#"{ url = "mysql://db/app", database = "x " }"#, &["store.database", "x "]),
        (r#"{ url = "nats://db", replicas = 9 }"#, &["store.replicas", "9"]),
        (r#"{ url = "nats://db", replicas = "many" }"#, &["store.replicas", "many"]),
        (r#"{ url = "nats://db", storage = "tape" }"#, &["store.storage", "tape", "file"]),
        (r#"{ url = "nats://db", adopt = ["replicas", "colour"] }"#, &["store.adopt", "colour"]),
        (r#"{ url = "nats://db", bucket = "a.b" }"#, &["store.bucket", "a.b"]),
        (r#"{ url = "nats://db", hints = 1 }"#, &["store.hints", "1"]),
        (r#"{ url = "nats://db", client_key = "/d" }"#, &["store.client_certificate", "missing"]),
    ];
    for (store, named) in cases {
        let text = format!("election = \"jobs\"\nstore = {store}");
        let said = match toml::from_str::<ElectionConfig>(&text) {
            Ok(config) => text_of(&config.store().expect_err(store)),
            Err(error) => text_of(&error),
        };
        assert!(named.iter().all(|name| said.contains(name)), "{store}\n{said}\n{named:?}");
    }
}
