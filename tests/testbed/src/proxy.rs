//! A network path that can be counted, and broken.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

/// Passes TCP connections on to a target, counts round trips, and can be made to fail in the two ways in which networks
/// do: without a word, in both directions or in one, and with a reset.
///
/// Dropping it closes its connections and stops listening.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    path: Arc<NetworkPath>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Healthy,
    /// Connections stay open, also new ones, and nothing arrives.
    BlackHole,
    /// What clients say arrives, what they are answered does not.
    Mute,
    /// Connections are closed, and new ones at once.
    Cut,
    /// Like cut, for good.
    Gone,
}

/// Whom it carries bytes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

impl State {
    const fn holds_back(self, direction: Direction) -> bool {
        match self {
            Self::BlackHole => true,
            Self::Mute => matches!(direction, Direction::ToClient),
            Self::Healthy | Self::Cut | Self::Gone => false,
        }
    }
}

#[derive(Debug)]
struct NetworkPath {
    target: SocketAddr,
    inner: Mutex<Inner>,
    changed: Condvar,
    round_trips: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    state: State,
    /// Both ends of each open connection, to close them.
    open: Vec<TcpStream>,
}

impl Proxy {
    /// Listens on a free port of the loopback interface and passes on to `target`.
    ///
    /// # Errors
    /// If there is no port, or no thread.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let inner = Inner { state: State::Healthy, open: Vec::new() };
        let path = Arc::new(NetworkPath {
            target,
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            round_trips: AtomicU64::new(0),
        });
        let accepting = thread::Builder::new().name("proxy".into()).spawn({
            let path = path.clone();
            move || path.accept(&listener)
        })?;
        Ok(Self { addr, path, accepting: Some(accepting) })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Lets nothing through any more, without telling anybody. What is under way arrives after [`heal`](Self::heal), as
    /// TCP would have it.
    pub fn black_hole(&self) {
        self.path.set(State::BlackHole);
    }

    /// Lets requests through and no replies, without telling anybody. What is under way arrives after
    /// [`heal`](Self::heal).
    pub fn hold_back_replies(&self) {
        self.path.set(State::Mute);
    }

    /// Breaks all connections, and refuses new ones.
    pub fn cut(&self) {
        self.path.set(State::Cut);
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.path.set(State::Healthy);
    }

    /// How often a client began to speak, at first or after it was answered, on all connections so far. The packets into
    /// which a message happens to be split do not count.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.path.round_trips.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.path.set(State::Gone);
        // It waits for a connection, so it gets one.
        let woken = TcpStream::connect(self.addr);
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            // That it panicked, if it did, was printed.
            let _ = accepting.join();
        }
    }
}

impl NetworkPath {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        let mut inner = self.lock();
        inner.state = state;
        if matches!(state, State::Cut | State::Gone) {
            for stream in inner.open.drain(..) {
                // It may have been closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until nothing in this direction is held back, and says whether the path is whole.
    fn lets_through(&self, direction: Direction) -> bool {
        let inner = self.lock();
        let waited = self.changed.wait_while(inner, |inner| inner.state.holds_back(direction));
        let state = waited.unwrap_or_else(PoisonError::into_inner).state;
        !matches!(state, State::Cut | State::Gone)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            if self.lock().state == State::Gone {
                return;
            }
            let path = self.clone();
            // Dropping the client closes it.
            let _ = thread::Builder::new().spawn(move || path.connect(client));
        }
    }

    fn connect(&self, client: TcpStream) -> io::Result<()> {
        if !self.lets_through(Direction::ToServer) {
            return Ok(());
        }
        let server = TcpStream::connect(self.target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (to_client, to_server) = (client.try_clone()?, server.try_clone()?);
        {
            let mut inner = self.lock();
            if matches!(inner.state, State::Cut | State::Gone) {
                return Ok(());
            }
            inner.open.extend([client.try_clone()?, server.try_clone()?]);
        }
        let client_spoke = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                self.pump(Direction::ToServer, client, to_server, || {
                    if !client_spoke.swap(true, Ordering::AcqRel) {
                        self.round_trips.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
            let answered = || client_spoke.store(false, Ordering::Release);
            self.pump(Direction::ToClient, server, to_client, answered);
        });
        Ok(())
    }

    /// Passes on one direction until either end closes. `passing` is called before each piece is passed on, so before
    /// anybody can answer it.
    fn pump(
        &self,
        direction: Direction,
        mut from: TcpStream,
        mut to: TcpStream,
        passing: impl Fn(),
    ) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if !self.lets_through(direction) {
                break;
            }
            passing();
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // The end of one direction is passed on like everything else, unless the path is a black hole for ever.
        if self.lets_through(direction) {
            let _ = to.shutdown(Shutdown::Both);
        }
        let _ = from.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Answers every byte by the same byte, on any number of connections.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
                });
            }
        });
        addr
    }

    fn ask(stream: &mut TcpStream, byte: u8) -> io::Result<u8> {
        stream.write_all(&[byte])?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        Ok(answer[0])
    }

    #[test]
    fn round_trips_are_counted_over_all_connections() {
        let proxy = Proxy::start(echo()).unwrap();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(proxy.addr()).unwrap();
            for byte in 0..10 {
                assert_eq!(ask(&mut stream, byte).unwrap(), byte);
            }
        }
        assert_eq!(proxy.round_trips(), 20);
    }

    #[test]
    fn what_a_black_hole_swallowed_arrives_when_it_heals() {
        let proxy = Proxy::start(echo()).unwrap();
        let mut stream = TcpStream::connect(proxy.addr()).unwrap();
        ask(&mut stream, 1).unwrap();
        proxy.black_hole();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let error = ask(&mut stream, 2).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        proxy.heal();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [2]);
    }

    #[test]
    fn a_reply_that_is_held_back_was_given_before_the_path_heals() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
        proxy.hold_back_replies();
        let mut client = TcpStream::connect(proxy.addr()).unwrap();
        client.write_all(&[1]).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        server.write_all(&[2]).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let error = client.read(&mut byte).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        proxy.heal();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        client.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [2]);
    }

    #[test]
    fn a_cut_breaks_connections_and_refuses_new_ones_until_it_heals() {
        let proxy = Proxy::start(echo()).unwrap();
        let mut stream = TcpStream::connect(proxy.addr()).unwrap();
        ask(&mut stream, 1).unwrap();
        proxy.cut();
        ask(&mut stream, 2).unwrap_err();
        ask(&mut TcpStream::connect(proxy.addr()).unwrap(), 3).unwrap_err();
        proxy.heal();
        assert_eq!(ask(&mut TcpStream::connect(proxy.addr()).unwrap(), 4).unwrap(), 4);
    }
}
