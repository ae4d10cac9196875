//! What all connections of a proxy have in common, and what becomes of each.

// A path takes real time; no election is judged by it.
#![allow(clippy::disallowed_methods)]

use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    conditions::{Conditions, Direction},
    connection::{Ends, Fate, Open, Talk},
    pump::{Piece, pump},
};

/// How long a target is asked for a connection before we look whether it is still wanted.
const CONNECTING: Duration = Duration::from_secs(1);

/// The same of an end that takes no bytes.
const WRITING: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct NetworkPath {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    target: SocketAddr,
    admits: Admits,
    to_server: Conditions,
    to_client: Conditions,
    reset_on_first_use: bool,
    mid_reply: Option<MidReply>,
    open: BTreeMap<u64, Open>,
    opened: u64,
    round_trips: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admits {
    Everybody,
    /// Cut: new connections are closed at once.
    Nobody,
    /// The same for good.
    NobodyEver,
}

/// A reset that is due.
#[derive(Debug)]
struct MidReply {
    /// So many bytes into what a connection carries from now on.
    after: usize,
    /// The connection whose turn it is, once it has carried some of them, and how many are left.
    turn: Option<(u64, usize)>,
}

/// What a piece that has arrived may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// That many bytes of it are passed on, and then perhaps the connection is reset.
    Pass { bytes: usize, reset: bool },
    /// It goes nowhere.
    Vanish,
    /// The connection is over.
    Over,
}

/// When to look again.
enum Wait<T> {
    Done(T),
    Until(Instant),
    ForChange,
}

impl NetworkPath {
    pub(super) fn to(target: SocketAddr) -> Self {
        let inner = Inner {
            target,
            admits: Admits::Everybody,
            to_server: Conditions::default(),
            to_client: Conditions::default(),
            reset_on_first_use: false,
            mid_reply: None,
            open: BTreeMap::new(),
            opened: 0,
            round_trips: 0,
        };
        Self { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    pub(super) fn set(&self, directions: &[Direction], conditions: Conditions) {
        self.change(|inner| {
            inner.admits = Admits::Everybody;
            for direction in directions {
                *inner.conditions_mut(*direction) = conditions;
            }
        });
    }

    pub(super) fn heal(&self) {
        self.change(|inner| {
            inner.admits = Admits::Everybody;
            (inner.to_server, inner.to_client) = Default::default();
            inner.reset_on_first_use = false;
            inner.mid_reply = None;
        });
    }

    pub(super) fn cut(&self) {
        self.change(|inner| inner.shut(Admits::Nobody));
    }

    pub(super) fn abandon(&self) {
        self.change(|inner| inner.shut(Admits::NobodyEver));
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.lock().admits == Admits::NobodyEver
    }

    pub(super) fn reset_on_first_use(&self, reset: bool) {
        self.change(|inner| inner.reset_on_first_use = reset);
    }

    pub(super) fn reset_mid_reply(&self, after: usize) {
        self.change(|inner| inner.mid_reply = Some(MidReply { after, turn: None }));
    }

    pub(super) fn reset_all(&self) {
        let opened = self.change(|inner| {
            inner.open.values_mut().for_each(Open::reset);
            inner.opened
        });
        self.wait(|inner| match inner.open.first_key_value() {
            Some((&oldest, _)) if oldest < opened => Wait::ForChange,
            _ => Wait::Done(()),
        });
    }

    pub(super) fn retarget(&self, target: SocketAddr) {
        self.change(|inner| inner.target = target);
        self.reset_all();
    }

    pub(super) fn forget_all(&self) {
        self.change(|inner| inner.open.values_mut().for_each(Open::forget));
    }

    pub(super) fn round_trips(&self) -> u64 {
        self.lock().round_trips
    }

    /// How many connections there are.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.lock().open.len()
    }

    /// How many bytes clients have said that nobody has taken yet.
    #[cfg(test)]
    pub(super) fn untaken(&self) -> u64 {
        self.lock().open.values().map(Open::untaken).sum()
    }

    /// Carries what is said on this connection, until it is over.
    pub(super) fn carry(&self, client: TcpStream) {
        let ends = Ends::of(client);
        let opened = self.change(|inner| inner.admit(&ends));
        let Some(id) = opened else {
            return;
        };
        // What the client sees of a server that refuses is that its connection ends.
        if let Ok(Some(server)) = self.connect(id, &ends) {
            pump(self, id, &ends.client, server);
        }
        // Closed, with a reset if that is its fate, before anybody is told that it is gone.
        drop(ends);
        self.change(|inner| inner.close(id));
    }

    /// Connects to the server, when the time for a handshake is over; `None` if the connection is over before.
    fn connect<'a>(&self, id: u64, ends: &'a Ends) -> io::Result<Option<&'a TcpStream>> {
        let asked = Instant::now();
        loop {
            let target = self.wait(|inner| {
                let ready = asked + inner.to_server.travel(0.0) + inner.to_client.travel(0.0);
                match inner.fate(id) {
                    Fate::Over => Wait::Done(None),
                    _ if inner.to_server.are_held_back() => Wait::ForChange,
                    _ if Instant::now() < ready => Wait::Until(ready),
                    _ => Wait::Done(Some(inner.target)),
                }
            });
            let Some(target) = target else {
                return Ok(None);
            };
            let server = match TcpStream::connect_timeout(&target, CONNECTING) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
                connected => connected?,
            };
            for end in [&ends.client, &server] {
                end.set_nodelay(true)?;
                end.set_write_timeout(Some(WRITING))?;
            }
            let inner = self.lock();
            // From here on it is found there by who closes it.
            let whole = inner.fate(id) == Fate::Whole;
            return Ok(whole.then(|| ends.server.get_or_init(|| server)));
        }
    }

    /// Waits until this piece has arrived, of which so many bytes are left, and says what becomes of them. What is passed
    /// on is counted before it is, so before anybody can answer it.
    pub(super) fn passage(
        &self,
        id: u64,
        direction: Direction,
        piece: &mut Piece,
        left: usize,
    ) -> Passage {
        self.wait(|inner| match inner.fate(id) {
            Fate::Over => Wait::Done(Passage::Over),
            Fate::Forgotten => Wait::Done(Passage::Vanish),
            Fate::Whole => {
                let conditions = inner.conditions(direction);
                if conditions.are_held_back() {
                    return Wait::ForChange;
                }
                let segment = conditions.segment(left);
                let sent = piece.since + conditions.sending(segment);
                let arrives = sent + conditions.travel(piece.luck);
                if Instant::now() < arrives {
                    return Wait::Until(arrives);
                }
                // The next bytes set out after these.
                piece.since = sent;
                Wait::Done(inner.pass(id, direction, segment))
            }
        })
    }

    /// This piece is next: from here on everything may be held back.
    pub(super) fn comes(&self, direction: Direction, piece: &[u8]) {
        if self.lock().conditions(direction).wait_for(piece) {
            self.change(|inner| {
                let conditions = inner.conditions_mut(direction);
                *conditions = conditions.held_back();
            });
        }
    }

    pub(super) fn holds_back(&self, direction: Direction) -> bool {
        self.lock().conditions(direction).are_held_back()
    }

    pub(super) fn fate(&self, id: u64) -> Fate {
        self.lock().fate(id)
    }

    pub(super) fn reset(&self, id: u64) {
        self.change(|inner| inner.open.get_mut(&id).into_iter().for_each(Open::reset));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    fn wait<T>(&self, mut look: impl FnMut(&mut Inner) -> Wait<T>) -> T {
        let mut inner = self.lock();
        loop {
            inner = match look(&mut inner) {
                Wait::Done(found) => return found,
                Wait::ForChange => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Wait::Until(then) => {
                    let left = then.saturating_duration_since(Instant::now());
                    let waited = self.changed.wait_timeout(inner, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Inner {
    fn conditions(&self, direction: Direction) -> Conditions {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    fn conditions_mut(&mut self, direction: Direction) -> &mut Conditions {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }

    fn fate(&self, id: u64) -> Fate {
        self.open.get(&id).map_or(Fate::Over, |open| open.fate)
    }

    fn admit(&mut self, ends: &Arc<Ends>) -> Option<u64> {
        if self.admits != Admits::Everybody {
            return None;
        }
        let id = self.opened;
        self.opened += 1;
        self.open.insert(id, Open::new(ends));
        Some(id)
    }

    fn close(&mut self, id: u64) {
        self.open.remove(&id);
        if let Some(reset) = &mut self.mid_reply {
            // It is another one's turn.
            reset.turn = reset.turn.filter(|&(on, _)| on != id);
        }
    }

    fn shut(&mut self, admits: Admits) {
        self.admits = admits;
        self.open.values_mut().for_each(Open::close);
    }

    fn pass(&mut self, id: u64, direction: Direction, bytes: usize) -> Passage {
        let all = Passage::Pass { bytes, reset: false };
        let Some(open) = self.open.get_mut(&id) else {
            return Passage::Over;
        };
        if bytes == 0 {
            // The end of what somebody says is nothing said.
            return all;
        }
        match direction {
            Direction::ToServer => {
                if open.talk == Talk::Silent && self.reset_on_first_use {
                    return Passage::Pass { bytes: 0, reset: true };
                }
                if open.talk != Talk::Asking {
                    self.round_trips += 1;
                }
                open.talk = Talk::Asking;
                all
            }
            // A greeting is no reply.
            Direction::ToClient if open.talk == Talk::Silent => all,
            Direction::ToClient => {
                open.talk = Talk::Answered;
                let Some(due) = &mut self.mid_reply else {
                    return all;
                };
                let (on, left) = due.turn.unwrap_or((id, due.after));
                if on != id {
                    return all;
                }
                let bytes = bytes.min(left);
                due.turn = Some((id, left - bytes));
                let reset = bytes == left;
                if reset {
                    self.mid_reply = None;
                }
                Passage::Pass { bytes, reset }
            }
        }
    }
}
