//! Each fault, seen from both ends.

mod resets;

use std::{
    io::{ErrorKind, Read, Write},
    time::{Duration, Instant},
};

use super::*;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

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
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
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
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
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

/// A path to a listener, and a connection on it, once it has carried a byte either way.
fn connected() -> (Proxy, TcpListener, TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
    let (client, server) = connect(&proxy, &listener);
    (proxy, listener, client, server)
}

fn connect(proxy: &Proxy, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let mut client = TcpStream::connect(proxy.addr()).unwrap();
    let mut server = listener.accept().unwrap().0;
    for end in [&client, &server] {
        end.set_read_timeout(Some(LONG)).unwrap();
        // What they say is not to wait for more.
        end.set_nodelay(true).unwrap();
    }
    say(&mut client, &mut server, b"?");
    say(&mut server, &mut client, b"!");
    (client, server)
}

fn say(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    from.write_all(bytes).unwrap();
    let mut heard = vec![0; bytes.len()];
    to.read_exact(&mut heard).unwrap();
    assert_eq!(heard, bytes);
}

/// Nothing comes for a while.
fn assert_silent(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    stream.set_read_timeout(Some(LONG)).unwrap();
}

fn assert_reset(stream: &mut TcpStream) {
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Waits until the proxy has what the client has said.
fn wait_until_taken(proxy: &Proxy) {
    for _ in 0..30_000 {
        if proxy.path.untaken() == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("what the client said waits at the door");
}

#[test]
#[allow(clippy::disallowed_methods)] // it is about real time
fn a_delay_is_waited_for_in_one_direction_only() {
    let (proxy, _listener, mut client, mut server) = connected();
    let delay = Duration::from_millis(500);
    proxy.set(Direction::ToServer, Conditions::default().delay(delay));
    let started = Instant::now();
    client.write_all(b"?").unwrap();
    say(&mut server, &mut client, b"not that I heard");
    server.read_exact(&mut [0]).unwrap();
    assert!(started.elapsed() >= delay);
}

#[test]
fn many_pieces_are_under_way_at_once_and_arrive_in_order() {
    let (proxy, _listener, mut client, mut server) = connected();
    proxy.set(Direction::ToServer, Conditions::default().delay(Duration::from_secs(3_600)));
    for piece in 0..100 {
        client.write_all(&[piece]).unwrap();
        wait_until_taken(&proxy);
    }
    proxy.heal();
    let mut arrived = [0; 100];
    server.read_exact(&mut arrived).unwrap();
    assert_eq!(Vec::from(arrived), (0..100).collect::<Vec<_>>());
}

#[test]
#[allow(clippy::disallowed_methods)] // it is about real time
fn a_new_connection_takes_the_time_of_its_handshake() {
    let (proxy, listener, ..) = connected();
    proxy.set_both(Conditions::default().delay(Duration::from_millis(100)));
    let started = Instant::now();
    drop(connect(&proxy, &listener));
    assert!(started.elapsed() >= Duration::from_millis(400));
}

#[test]
fn jitter_keeps_the_order() {
    let (proxy, _listener, mut client, mut server) = connected();
    proxy.set_both(Conditions::default().jitter(Duration::from_millis(50)));
    let writing = thread::spawn(move || {
        for piece in 0..200 {
            client.write_all(&[piece]).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        client
    });
    for piece in 0..200 {
        let mut arrived = [0];
        server.read_exact(&mut arrived).unwrap();
        assert_eq!(arrived, [piece]);
    }
    writing.join().unwrap();
}

#[test]
#[allow(clippy::disallowed_methods)] // it is about real time
fn bytes_come_one_after_the_other_at_a_low_bandwidth_until_it_heals() {
    let (proxy, _listener, mut client, mut server) = connected();
    proxy.set(Direction::ToServer, Conditions::default().bandwidth(100));
    let started = Instant::now();
    client.write_all(&[7; 10_000]).unwrap();
    let mut some = [0; 50];
    server.read_exact(&mut some).unwrap();
    assert!(started.elapsed() >= Duration::from_millis(500));
    // At once: the rest would take longer than anybody here waits.
    proxy.heal();
    let mut rest = [0; 9_950];
    server.read_exact(&mut rest).unwrap();
    assert!(rest.iter().all(|&byte| byte == 7));
}

#[test]
#[allow(clippy::disallowed_methods)] // it is about real time
fn one_bandwidth_is_all_that_the_pieces_of_a_connection_have() {
    let (proxy, _listener, mut client, mut server) = connected();
    proxy.set(Direction::ToServer, Conditions::default().bandwidth(100));
    let started = Instant::now();
    for _ in 0..10 {
        client.write_all(&[7; 10]).unwrap();
        wait_until_taken(&proxy);
    }
    server.read_exact(&mut [0; 100]).unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[test]
fn what_is_under_way_for_long_arrives_when_the_path_heals() {
    let hour = Duration::from_secs(3_600);
    for slow in [Conditions::default().delay(hour), Conditions::default().jitter(hour)] {
        let (proxy, _listener, mut client, mut server) = connected();
        proxy.set_both(slow);
        client.write_all(b"on its way").unwrap();
        assert_silent(&mut server);
        proxy.heal();
        server.read_exact(&mut [0; 10]).unwrap();
    }
}

#[test]
fn what_is_held_back_ends_with_its_connection_as_well() {
    let (proxy, _listener, client, mut server) = connected();
    proxy.set(Direction::ToServer, Conditions::default().held_back());
    drop(client);
    assert_silent(&mut server);
    proxy.heal();
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_path_can_hold_back_from_certain_bytes_on() {
    let (proxy, listener, mut client, mut server) = connected();
    let (mut other, mut others) = connect(&proxy, &listener);
    proxy.set(Direction::ToServer, Conditions::default().held_back_from(b"COMMIT"));
    say(&mut client, &mut server, b"COMMENT");
    assert!(!proxy.holds_back(Direction::ToServer));
    client.write_all(b"and COMMIT").unwrap();
    assert_silent(&mut server);
    assert!(proxy.holds_back(Direction::ToServer) && !proxy.holds_back(Direction::ToClient));
    say(&mut server, &mut client, b"replies arrive");
    other.write_all(b"what others say does not").unwrap();
    assert_silent(&mut others);

    proxy.heal();
    server.read_exact(&mut [0; 10]).unwrap();
    others.read_exact(&mut [0; 24]).unwrap();
    say(&mut client, &mut server, b"COMMIT");
}

#[test]
fn one_direction_can_end_while_the_other_goes_on() {
    let (_proxy, _listener, mut client, mut server) = connected();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    say(&mut server, &mut client, b"still here");
}

#[test]
fn a_half_open_connection_is_closed_at_the_server_and_the_client_does_not_know() {
    let (proxy, listener, mut client, mut server) = connected();
    proxy.half_open();
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    drop(server);
    for _ in 0..10 {
        client.write_all(b"is anybody there?").unwrap();
        assert_silent(&mut client);
    }
    // Not even now.
    proxy.heal();
    assert_silent(&mut client);
    connect(&proxy, &listener);
    // What the proxy has of it is gone with the client.
    drop(client);
    while proxy.path.open() > 0 {
        thread::yield_now();
    }
}

#[test]
fn a_path_can_lead_elsewhere() {
    let (proxy, _listener, mut client, mut server) = connected();
    let elsewhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    proxy.retarget(elsewhere.local_addr().unwrap());
    assert_reset(&mut client);
    assert_reset(&mut server);
    connect(&proxy, &elsewhere);
}

#[test]
fn the_latest_call_says_how_both_directions_are() {
    let (proxy, listener, mut client, mut server) = connected();
    proxy.black_hole();
    proxy.hold_back_replies();
    say(&mut client, &mut server, b"do it");
    server.write_all(b"done").unwrap();
    assert_silent(&mut client);
    proxy.cut();
    proxy.set_both(Conditions::default());
    connect(&proxy, &listener);
}

#[test]
fn a_server_that_takes_no_connections_is_asked_again() {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let unheard = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&unheard, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    listen(&unheard, 0).unwrap();
    let listener = TcpListener::from(unheard);
    let addr = listener.local_addr().unwrap();
    let soon = Duration::from_millis(100);
    let crowd: Vec<_> =
        std::iter::from_fn(|| TcpStream::connect_timeout(&addr, soon).ok()).collect();

    let proxy = Proxy::start(addr).unwrap();
    let mut client = TcpStream::connect(proxy.addr()).unwrap();
    client.write_all(b"?").unwrap();
    // For longer than one attempt takes.
    for _ in 0..15 {
        assert_silent(&mut client);
    }
    drop(crowd);
    let heard =
        listener.incoming().any(|server| server.unwrap().read(&mut [0]).is_ok_and(|n| n == 1));
    assert!(heard);
}
