//! Which key of the bucket an election has.

use tenure::ElectionName;

/// What says that two hexadecimal digits follow.
const ESCAPE: u8 = b'=';

/// The key of an election: letters, digits, `_` and `-` stand for themselves, so that people can read it, and every
/// other byte is `=` and two digits. No two elections have one key.
pub(crate) fn key_of(election: &ElectionName) -> String {
    let mut key = String::new();
    for byte in election.as_str().bytes() {
        if is_plain(byte) {
            key.push(byte.into());
        } else {
            key.push_str(&format!("={byte:02X}"));
        }
    }
    key
}

/// The election that has this key; `None` if it is a key of another kind.
pub(crate) fn election_of(key: &str) -> Option<ElectionName> {
    let mut bytes = key.bytes();
    let mut name = Vec::new();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            ESCAPE => 16 * digit(bytes.next()?)? + digit(bytes.next()?)?,
            plain if is_plain(plain) => plain,
            _ => return None,
        });
    }
    let election = ElectionName::new(str::from_utf8(&name).ok()?).ok()?;
    // What is written in another way than ours is not ours.
    (key_of(&election) == key).then_some(election)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_from_its_key() {
        for name in
            ["invoice-reconciler", "a b", ".", "*", ">", "=", "=41", "é👑\r\n\u{1}", "A_z-0"]
        {
            let election = ElectionName::new(name).unwrap();
            let key = key_of(&election);
            assert!(key.bytes().all(|byte| is_plain(byte) || byte == ESCAPE), "{key}");
            assert_eq!(election_of(&key), Some(election));
        }
        assert_eq!(key_of(&ElectionName::new("a b").unwrap()), "a=20b");
        assert_eq!(key_of(&ElectionName::new("x".repeat(255)).unwrap()).len(), 255);
    }

    #[test]
    fn keys_of_another_kind_are_nobodys() {
        for key in ["", "/bucket", "a.b", "=", "=4", "=4g", "=41", "=61", "=FF", "=00", "=é"] {
            assert_eq!(election_of(key), None, "{key}");
        }
    }
}
