//! Names: of elections, and of candidates.

use std::{fmt, str::FromStr, sync::Arc};

use super::InvalidValue;

/// The most bytes that an election's name, an identity or an identity's label may have.
pub const MAX_NAME_BYTES: usize = 255;

fn checked_name(what: &'static str, text: &str) -> Result<(), InvalidValue> {
    if text.is_empty() {
        return Err(InvalidValue::Empty { what });
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(InvalidValue::TooLong { what, bytes: text.len(), limit: MAX_NAME_BYTES });
    }
    match text.bytes().position(|byte| byte == 0) {
        Some(at) => Err(InvalidValue::Nul { what, at }),
        None => Ok(()),
    }
}

/// Two string newtypes share everything but their meaning.
macro_rules! name {
    ($(#[$docs:meta])* $name:ident, $what:literal) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = concat!("Checks the text and makes it an ", $what, ".")]
            ///
            /// # Errors
            /// [`InvalidValue`] unless it has 1 to 255 bytes and no NUL character.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidValue> {
                let text = text.as_ref();
                checked_name($what, text)?;
                Ok(Self(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidValue;

            fn try_from(text: &str) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidValue;

            fn try_from(text: String) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl TryFrom<&String> for $name {
            type Error = InvalidValue;

            fn try_from(text: &String) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }

        impl FromStr for $name {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name! {
    /// What is contended for. Elections with different names have nothing to do with each other, also in one table.
    ///
    /// 1 to 255 bytes of UTF-8 without NUL, compared byte by byte: `Foo`, `foo` and `foo ` are three elections.
    ///
    /// ```
    /// use tenure::ElectionName;
    ///
    /// assert_eq!(ElectionName::new("invoice-reconciler")?.as_str(), "invoice-reconciler");
    /// assert!(ElectionName::new("").is_err());
    /// # Ok::<(), tenure::InvalidValue>(())
    /// ```
    ElectionName, "election name"
}

name! {
    /// Names one candidate, that is, one elector that was built: never a machine, nor a process over its restarts.
    ///
    /// The builder draws it as `hostname-pid-random`, with 128 random bits from the operating system (rule S11): two
    /// candidates with one identity would both believe that the lease is theirs.
    Identity, "identity"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_with_what_is_wrong() {
        let long = "é".repeat(128);
        assert_eq!(ElectionName::new(""), Err(InvalidValue::Empty { what: "election name" }));
        assert_eq!(
            Identity::new(&long),
            Err(InvalidValue::TooLong { what: "identity", bytes: 256, limit: 255 })
        );
        assert_eq!(
            ElectionName::new("a\0b"),
            Err(InvalidValue::Nul { what: "election name", at: 1 })
        );
        assert!(ElectionName::new(&long[..254]).is_ok());
    }

    #[test]
    fn a_name_is_made_of_any_kind_of_text_and_is_text_again() {
        let (text, name) = ("billing".to_owned(), ElectionName::new("billing").unwrap());
        assert_eq!(ElectionName::try_from("billing").unwrap(), name);
        assert_eq!(ElectionName::try_from(&text).unwrap(), name);
        assert_eq!(ElectionName::try_from(text).unwrap(), name);
        assert_eq!("billing".parse::<ElectionName>().unwrap(), name);
        let borrowed: &str = name.as_ref();
        assert_eq!((borrowed, name.to_string().as_str()), ("billing", "billing"));
    }
}
