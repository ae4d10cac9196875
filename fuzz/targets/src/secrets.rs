//! What an error says, and whether that may be said.

use std::error::Error;

/// Stands in a case for a password.
pub(crate) const SECRET: &str = "S3samE0pen";

/// All that an error says, in every form.
pub(crate) fn everything(error: &dyn Error) -> String {
    let mut said = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        said += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    said
}

/// Whether the secret stands nowhere but where somebody may have meant a password, or a token: behind the scheme, and before
/// the last `@`.
pub(crate) fn may_be_a_password(url: &str) -> bool {
    let Some((scheme, (login, rest))) = parts(url, url.len()) else { return false };
    login.contains(SECRET) && !scheme.contains(SECRET) && !rest.contains(SECRET)
}

/// Whether it is one, by the letter of what a URL is.
pub(crate) fn is_a_password(url: &str) -> bool {
    let behind_scheme = url.find("://").map_or(url.len(), |at| at + "://".len());
    let authority = url[behind_scheme..].find(['/', '?', '#', ',']);
    let end = authority.map_or(url.len(), |at| behind_scheme + at);
    let is_in_login = parts(url, end).is_some_and(|(_, (login, _))| login.contains(SECRET));
    may_be_a_password(url) && is_in_login && !url[end..].contains(SECRET)
}

/// The scheme, and what stands before and behind the last `@` of the authority, which ends there at the latest.
fn parts(url: &str, end: usize) -> Option<(&str, (&str, &str))> {
    let (scheme, rest) = url[..end].split_once("://")?;
    Some((scheme, rest.rsplit_once('@')?))
}
