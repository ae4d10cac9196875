//! Asking PostgreSQL, or what stands in front of it.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Longer than an answer takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Logs in as `postgres` and sends a query; answers all that the server says up to where it is ready for another one.
pub(crate) fn ask(addr: SocketAddr, query: &str, patience: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(patience))?;
    let hello = b"\x00\x03\x00\x00user\0postgres\0database\0postgres\0\0";
    let length = u32::try_from(hello.len() + 4).unwrap();
    stream.write_all(&[&length.to_be_bytes(), hello.as_slice()].concat())?;
    until_ready(&mut stream)?;
    let length = u32::try_from(query.len() + 5).unwrap();
    stream.write_all(&[b"Q", &length.to_be_bytes()[..], query.as_bytes(), b"\0"].concat())?;
    until_ready(&mut stream)
}

fn until_ready(stream: &mut TcpStream) -> std::io::Result<String> {
    const READY: &[u8] = b"Z\0\0\0\x05I";
    let mut said = Vec::new();
    while !said.ends_with(READY) {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        said.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}
