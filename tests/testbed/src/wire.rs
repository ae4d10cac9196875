//! As much of PostgreSQL's protocol as it takes to see whether a server is there, and to tell it something.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Opens a connection, which is then before the first message after the request for authentication, or its success. While
/// a server starts up it answers with an error.
pub(crate) fn hello(
    addr: SocketAddr,
    user: &str,
    database: &str,
    patience: Duration,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(patience))?;
    let parameters = format!("user\0{user}\0database\0{database}\0\0");
    let version = [0, 3, 0, 0];
    let length = u32::try_from(4 + version.len() + parameters.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), &version, parameters.as_bytes()].concat())?;
    let mut request = [0; 9];
    stream.read_exact(&mut request)?;
    if request[0] == b'R' { Ok(stream) } else { Err(io::Error::other("it takes no connections")) }
}

/// Says something as the superuser, and waits for as long as the answer takes: all values in it.
pub(crate) fn ask(addr: SocketAddr, database: &str, query: &str) -> io::Result<Vec<String>> {
    let mut stream = hello(addr, "postgres", database, Duration::from_secs(5))?;
    until_ready(&mut stream)?;
    let length = u32::try_from(query.len() + 5).map_err(io::Error::other)?;
    stream.write_all(&[b"Q", &length.to_be_bytes()[..], query.as_bytes(), b"\0"].concat())?;
    // It may have to wait for others.
    stream.set_read_timeout(None)?;
    until_ready(&mut stream)
}

/// Reads messages up to the one that says that the next query may come.
fn until_ready(stream: &mut TcpStream) -> io::Result<Vec<String>> {
    let mut outcome = Ok(Vec::new());
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]).saturating_sub(4);
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body)?;
        match (head[0], &mut outcome) {
            (b'E', _) => {
                outcome = Err(io::Error::other(String::from_utf8_lossy(&body).into_owned()));
            }
            (b'D', Ok(values)) => values.extend(row(&body)),
            (b'Z', _) => return outcome,
            _ => {}
        }
    }
}

/// The values of a row, up to one that is null: its length is -1.
fn row(body: &[u8]) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = body.get(2..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk()
        && let Some((value, after)) = after.split_at_checked(u32::from_be_bytes(*length) as usize)
    {
        values.push(String::from_utf8_lossy(value).into_owned());
        rest = after;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_its_values_up_to_what_is_null() {
        assert_eq!(row(b"\0\x02\0\0\0\x02ab\0\0\0\x01c"), ["ab", "c"]);
        assert_eq!(row(b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff"), ["ab"]);
        assert!(row(b"\0\x01\0\0\0\x09short").is_empty());
    }
}
