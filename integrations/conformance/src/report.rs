//! What came of it.

use std::fmt;

use crate::subject::Unsupported;

/// Whether what is listed is this obligation, or its theme: `"hold::*"`.
pub(crate) fn covers(listed: &str, name: &str) -> bool {
    match listed.strip_suffix('*') {
        Some(theme) => theme.ends_with("::") && name.starts_with(theme),
        None => listed == name,
    }
}

/// What came of one obligation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The store keeps it.
    Kept,
    /// The store breaks it; how that was seen.
    Broken(String),
    /// It could not be tried, because the subject declares that it can not do what is needed.
    Unsupported(&'static str),
}

/// What came of each obligation of the suite.
#[derive(Clone, Debug)]
#[must_use = "call `assert_kept()`"]
pub struct Report(Vec<(&'static str, Verdict)>);

impl Report {
    pub(crate) fn new(verdicts: Vec<(&'static str, Verdict)>) -> Self {
        Self(verdicts)
    }

    /// The obligations by name, in the order in which they were tried.
    pub fn verdicts(&self) -> impl Iterator<Item = (&'static str, &Verdict)> {
        self.0.iter().map(|(name, verdict)| (*name, verdict))
    }

    /// The names of those that the store breaks.
    #[must_use]
    pub fn broken(&self) -> Vec<&'static str> {
        self.named(|verdict| matches!(verdict, Verdict::Broken(_)))
    }

    /// The names of those that could not be tried.
    #[must_use]
    pub fn unsupported(&self) -> Vec<&'static str> {
        self.named(|verdict| matches!(verdict, Verdict::Unsupported(_)))
    }

    /// Nothing is broken, and what could not be tried is exactly what is expected: obligations by name, or whole themes
    /// as `"hold::*"`.
    ///
    /// # Panics
    /// With the whole report otherwise.
    pub fn assert_kept(&self, unsupported: &[&str]) {
        assert!(self.broken().is_empty(), "the store breaks the contract:\n{self}");
        let is_expected = |name: &str| unsupported.iter().any(|listed| covers(listed, name));
        let unexpected = self.verdicts().find(|(name, verdict)| {
            matches!(verdict, Verdict::Unsupported(_)) != is_expected(name)
        });
        assert!(
            unexpected.is_none(),
            "what can not be tried is not what is expected, see {unexpected:?}:\n{self}"
        );
    }

    fn named(&self, which: impl Fn(&Verdict) -> bool) -> Vec<&'static str> {
        self.verdicts().filter(|(_, verdict)| which(verdict)).map(|(name, _)| name).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, verdict) in self.verdicts() {
            writeln!(f, "{verdict} {name}")?;
        }
        let tried = self.0.len() - self.unsupported().len();
        write!(
            f,
            "{} of {tried} kept, {} not tried",
            tried - self.broken().len(),
            self.0.len() - tried
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => f.write_str("kept       "),
            Self::Broken(how) => write!(f, "BROKEN      ({how})"),
            Self::Unsupported(why) => write!(f, "not tried   ({why})"),
        }
    }
}

impl From<Result<(), Unsupported>> for Verdict {
    fn from(result: Result<(), Unsupported>) -> Self {
        match result {
            Ok(()) => Self::Kept,
            Err(Unsupported(why)) => Self::Unsupported(why),
        }
    }
}
