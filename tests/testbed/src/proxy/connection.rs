//! One connection through a proxy, and the ways in which it ends.

use std::{
    net::{Shutdown, TcpStream},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use rustix::net::sockopt::set_socket_linger;

/// What is known of a connection that is open.
#[derive(Debug)]
pub(super) struct Open {
    /// Whoever carries it owns them.
    ends: Weak<Ends>,
    pub(super) fate: Fate,
    pub(super) talk: Talk,
}

/// Both ends of a connection: that of the client, and when there is one, that of the server.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) client: TcpStream,
    pub(super) server: OnceLock<TcpStream>,
}

/// What has become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Whole,
    /// The server's end is closed, and the client does not know.
    Forgotten,
    /// Nothing is passed on any more, and both ends are being closed.
    Over,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    /// The client's, who has not said anything so far.
    Silent,
    Asking,
    Answered,
}

impl Open {
    pub(super) fn new(ends: &Arc<Ends>) -> Self {
        Self { ends: Arc::downgrade(ends), fate: Fate::Whole, talk: Talk::Silent }
    }

    /// Closes both ends as their programs would.
    pub(super) fn close(&mut self) {
        self.end(Shutdown::Both);
    }

    /// Leaves nothing to do when the ends are dropped but to reset them. Whoever reads from one notices at once, and
    /// nothing is sent by it.
    pub(super) fn reset(&mut self) {
        if let Some(ends) = self.ends.upgrade() {
            for end in ends.both() {
                // One that is not connected any more needs no reset.
                let _ = set_socket_linger(end, Some(Duration::ZERO));
            }
        }
        self.end(Shutdown::Read);
    }

    fn end(&mut self, how: Shutdown) {
        self.fate = Fate::Over;
        if let Some(ends) = self.ends.upgrade() {
            for end in ends.both() {
                // It may have been closed already.
                let _ = end.shutdown(how);
            }
        }
    }

    /// A connection that has no server yet is only asked for, and asked for again.
    pub(super) fn forget(&mut self) {
        let ends = self.ends.upgrade();
        if let Some(server) = ends.as_ref().and_then(|ends| ends.server.get())
            && self.fate == Fate::Whole
        {
            self.fate = Fate::Forgotten;
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    #[cfg(test)]
    pub(super) fn untaken(&self) -> u64 {
        let ends = self.ends.upgrade();
        ends.map_or(0, |ends| rustix::io::ioctl_fionread(&ends.client).unwrap())
    }
}

impl Ends {
    pub(super) fn of(client: TcpStream) -> Arc<Self> {
        Arc::new(Self { client, server: OnceLock::new() })
    }

    fn both(&self) -> impl Iterator<Item = &TcpStream> {
        std::iter::once(&self.client).chain(self.server.get())
    }
}
