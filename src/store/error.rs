//! How a call to a store fails.

use std::{error::Error as StdError, fmt};

type BoxError = Box<dyn StdError + Send + Sync>;

/// Whether a failure passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It will pass: a restart, a lost connection, a lock, a fail-over. The elector tries again.
    Transient,
    /// Someone must do something: a missing table, a missing privilege, a wrong password. The elector tries again as
    /// well, and nobody leads until it is mended.
    Fatal,
}

/// A call to a store failed, and its outcome is unknown.
///
/// The message says what was tried and what to do; the cause is its [`source`](StdError::source). Branch on
/// [`is_fatal`](Self::is_fatal) or [`is_retryable`](Self::is_retryable), or downcast the source to the store's own error
/// type; never on the text.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Box<str>,
    source: Option<BoxError>,
}

impl StoreError {
    /// A failure that will pass.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Transient, message)
    }

    /// A failure that someone must mend.
    #[must_use]
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Fatal, message)
    }

    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into().into(), source: None }
    }

    /// Keeps what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(super) fn unsupported(operation: &str) -> Self {
        Self::fatal(format!("this store does not support `{operation}`"))
    }

    /// Whether it passes by itself.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether someone must do something.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.kind == StoreErrorKind::Fatal
    }

    /// Whether trying again may help without anybody doing anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.kind == StoreErrorKind::Transient
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
