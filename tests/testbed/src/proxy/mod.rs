//! A network path that can be counted, and broken.

mod conditions;
mod connection;
mod path;
mod pump;
#[cfg(test)]
mod tests;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread::{self, JoinHandle},
};

pub use self::conditions::{Conditions, Direction};
use self::path::NetworkPath;

/// Passes TCP connections on to a target, counts round trips, and can be made to fail in the ways in which networks do:
/// without a word, in one direction or both, slowly, and with a reset.
///
/// The latest call says how both directions are, so that [`set`](Self::set) or [`black_hole`](Self::black_hole) also
/// end a [`cut`](Self::cut). Connecting to the proxy succeeds at once, as the kernel does it; what a new connection
/// carries waits in addition for the round trip that this would have taken.
///
/// Dropping it closes its connections and stops listening.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    path: Arc<NetworkPath>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port of the loopback interface and passes on to `target`.
    ///
    /// # Errors
    /// If there is no port, or no thread.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let path = Arc::new(NetworkPath::to(target));
        let accepting = thread::Builder::new().name("proxy".into()).spawn({
            let path = path.clone();
            move || accept(&path, &listener)
        })?;
        Ok(Self { addr, path, accepting: Some(accepting) })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Carries bytes in this direction under these conditions.
    pub fn set(&self, direction: Direction, conditions: Conditions) {
        self.path.set(&[direction], conditions);
    }

    /// The same in both directions.
    pub fn set_both(&self, conditions: Conditions) {
        self.path.set(&[Direction::ToServer, Direction::ToClient], conditions);
    }

    /// Whether nothing arrives at present in this direction.
    #[must_use]
    pub fn holds_back(&self, direction: Direction) -> bool {
        self.path.holds_back(direction)
    }

    /// Lets nothing through any more, without telling anybody. What is under way arrives after [`heal`](Self::heal), as
    /// TCP would have it.
    pub fn black_hole(&self) {
        self.set_both(Conditions::default().held_back());
    }

    /// Lets requests through and no replies, without telling anybody. What is under way arrives after
    /// [`heal`](Self::heal).
    pub fn hold_back_replies(&self) {
        self.set(Direction::ToClient, Conditions::default().held_back());
        self.set(Direction::ToServer, Conditions::default());
    }

    /// Breaks all connections, and refuses new ones.
    pub fn cut(&self) {
        self.path.cut();
    }

    /// Lets everything through again, at once, and resets nothing any more. What was under way arrives.
    pub fn heal(&self) {
        self.path.heal();
    }

    /// Resets all connections at both ends. They are gone when this returns, with what was under way on them; new ones
    /// are fine.
    pub fn reset(&self) {
        self.path.reset_all();
    }

    /// Whether a connection is reset when its client first says something. Until then it looks healthy. Ends with
    /// [`heal`](Self::heal).
    pub fn reset_on_first_use(&self, reset: bool) {
        self.path.reset_on_first_use(reset);
    }

    /// Resets the next connection that carries a reply, after this many bytes of it; with 0, in place of it. A reply that
    /// is shorter is passed on, and the bytes of those that follow it on this connection count as well; if the connection
    /// is over before, it is another one's turn, from its first byte. Ends with that reset, or with
    /// [`heal`](Self::heal).
    pub fn reset_mid_reply(&self, after_bytes: usize) {
        self.path.reset_mid_reply(after_bytes);
    }

    /// Does to the connections that there are what a firewall does that has lost its memory: the server's ends are
    /// closed, the clients' stay open, what clients say vanishes, and nobody tells them. New connections are fine, and
    /// nothing brings the old ones back.
    pub fn half_open(&self) {
        self.path.forget_all();
    }

    /// Leads new connections to another target, and resets those that there are.
    pub fn retarget(&self, target: SocketAddr) {
        self.path.retarget(target);
    }

    /// How often a client began to speak, at first or after it was answered, on all connections so far. The packets into
    /// which a message happens to be split do not count.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.path.round_trips()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.path.abandon();
        // It waits for a connection, so it gets one.
        let woken = TcpStream::connect(self.addr);
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            // That it panicked, if it did, was printed.
            let _ = accepting.join();
        }
    }
}

fn accept(path: &Arc<NetworkPath>, listener: &TcpListener) {
    while let Ok((client, _)) = listener.accept() {
        if path.is_abandoned() {
            return;
        }
        let path = path.clone();
        // Dropping the client closes it.
        let _ = thread::Builder::new().spawn(move || path.carry(client));
    }
}
