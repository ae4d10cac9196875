//! Both directions of one connection. In each, one thread takes what is said and another one passes it on when it
//! arrives, so that any number of pieces are under way at once.

// A path takes real time; no election is judged by it.
#![allow(clippy::disallowed_methods)]

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::Instant,
};

use super::{
    conditions::Direction,
    connection::Fate,
    path::{NetworkPath, Passage},
};

/// How many pieces are under way at once at most, and how long each is. Who says more has to wait.
const PIECES: usize = 1_024;
const PIECE: usize = 16 * 1_024;

/// What is under way.
#[derive(Debug)]
pub(super) struct Piece {
    what: What,
    /// When it was said; or later, when all bytes before it have set out.
    pub(super) since: Instant,
    /// How much it is hit by jitter, from 0 to 1.
    pub(super) luck: f64,
}

#[derive(Debug)]
enum What {
    Bytes(Vec<u8>),
    /// There is no more to say.
    End,
    /// The end that said it was reset.
    Reset,
}

/// Passes on what both say until both have ended, or the connection is over.
pub(super) fn pump(path: &NetworkPath, id: u64, client: &TcpStream, server: &TcpStream) {
    let half = |direction, from, to| Half { path, id, direction, from, to };
    let to_server = half(Direction::ToServer, client, server);
    let to_client = half(Direction::ToClient, server, client);
    thread::scope(|scope| {
        for half in [to_server, to_client] {
            let (sender, pieces) = sync_channel(PIECES);
            scope.spawn(move || half.take(&sender));
            scope.spawn(move || half.pass_on(pieces));
        }
    });
}

#[derive(Clone, Copy)]
struct Half<'a> {
    path: &'a NetworkPath,
    id: u64,
    direction: Direction,
    from: &'a TcpStream,
    to: &'a TcpStream,
}

impl Half<'_> {
    fn take(&self, pieces: &SyncSender<Piece>) {
        let mut from = self.from;
        let mut buffer = vec![0; PIECE];
        loop {
            let what = match from.read(&mut buffer) {
                Ok(0) => What::End,
                Ok(length) => What::Bytes(buffer[..length].to_vec()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => What::Reset,
            };
            let goes_on = matches!(what, What::Bytes(_));
            let piece = Piece { what, since: Instant::now(), luck: fastrand::f64() };
            if pieces.send(piece).is_err() || !goes_on {
                return;
            }
        }
    }

    fn pass_on(&self, pieces: Receiver<Piece>) {
        let mut set_out = None;
        for mut piece in pieces {
            piece.since = set_out.map_or(piece.since, |before| piece.since.max(before));
            match self.pass(&mut piece) {
                Ok(true) => set_out = Some(piece.since),
                Ok(false) => return,
                Err(_) => match self.path.fate(self.id) {
                    // Whoever speaks to somebody who is gone is told so.
                    Fate::Whole => return self.path.reset(self.id),
                    Fate::Forgotten => {}
                    Fate::Over => return,
                },
            }
        }
    }

    /// Passes on one piece, and says whether there may be others.
    fn pass(&self, piece: &mut Piece) -> io::Result<bool> {
        let bytes = match &mut piece.what {
            What::Bytes(bytes) => std::mem::take(bytes),
            What::End | What::Reset => Vec::new(),
        };
        self.path.comes(self.direction, &bytes);
        let mut left = &bytes[..];
        loop {
            match self.path.passage(self.id, self.direction, piece, left.len()) {
                Passage::Over => return Ok(false),
                Passage::Vanish => return Ok(true),
                Passage::Pass { bytes, reset } => {
                    let (passing, rest) = left.split_at(bytes);
                    self.write(passing)?;
                    left = rest;
                    if reset {
                        self.path.reset(self.id);
                        return Ok(false);
                    }
                }
            }
            if left.is_empty() {
                break;
            }
        }
        match piece.what {
            What::Bytes(_) => {}
            What::End => {
                // It may have been closed already.
                let _ = self.to.shutdown(Shutdown::Write);
            }
            What::Reset => self.path.reset(self.id),
        }
        Ok(true)
    }

    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        let mut to = self.to;
        while !bytes.is_empty() {
            match to.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It takes nothing at present.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.path.fate(self.id) != Fate::Whole {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
