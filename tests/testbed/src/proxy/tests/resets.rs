//! Connections that are reset: when, which of them, and that both ends learn of it.

use rustix::net::sockopt::set_socket_linger;

use super::*;

#[test]
fn a_reset_reaches_both_ends_of_all_connections_and_no_new_one() {
    let (proxy, listener, mut client, mut server) = connected();
    // It does not matter what they are doing.
    let (mut idle, mut idle_server) = connect(&proxy, &listener);
    proxy.black_hole();
    client.write_all(b"under way").unwrap();
    let mut waiting = TcpStream::connect(proxy.addr()).unwrap();
    waiting.set_read_timeout(Some(LONG)).unwrap();
    // It is at the proxy, not only at its door.
    while proxy.path.open() < 3 {
        thread::yield_now();
    }
    proxy.reset();
    assert_eq!(proxy.path.open(), 0);
    for end in [&mut client, &mut server, &mut idle, &mut idle_server, &mut waiting] {
        assert_reset(end);
    }
    proxy.heal();
    connect(&proxy, &listener);
}

#[test]
fn a_reset_does_not_wait_for_somebody_who_takes_nothing() {
    let (proxy, _listener, mut client, server) = connected();
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    while client.write(&[0; 1 << 16]).is_ok() {}
    proxy.reset();
    assert_eq!(proxy.path.open(), 0);
    drop(server);
}

#[test]
fn the_reset_of_one_end_is_passed_on_to_the_other() {
    let (_proxy, _listener, client, mut server) = connected();
    set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
    assert_reset(&mut server);
}

#[test]
fn a_connection_can_be_reset_when_it_is_first_used() {
    let (proxy, listener, mut client, mut server) = connected();
    proxy.reset_on_first_use(true);
    let mut fresh = TcpStream::connect(proxy.addr()).unwrap();
    let mut greeting = listener.accept().unwrap().0;
    say(&mut greeting, &mut fresh, b"welcome");
    fresh.write_all(b"thanks").unwrap();
    assert_reset(&mut fresh);
    assert_reset(&mut greeting);
    // One that was used before is fine.
    say(&mut client, &mut server, b"again");
    proxy.reset_on_first_use(false);
    connect(&proxy, &listener);
}

#[test]
fn a_connection_can_be_reset_in_the_middle_of_a_reply() {
    let (proxy, listener, mut client, mut server) = connected();
    let mut other = connect(&proxy, &listener);
    proxy.reset_mid_reply(5);
    say(&mut client, &mut server, b"what time is it?");
    say(&mut server, &mut client, b"ten ");
    server.write_all(b"o'clock").unwrap();
    client.read_exact(&mut [0]).unwrap();
    assert_reset(&mut client);
    assert_reset(&mut server);
    // It was one connection's turn, once.
    say(&mut other.0, &mut other.1, b"and to you?");
    say(&mut other.1, &mut other.0, b"ten o'clock");
}

#[test]
fn only_one_connection_is_reset_in_the_middle_of_its_replies_and_its_turn_ends_with_it() {
    let (proxy, listener, mut client, mut server) = connected();
    let mut other = connect(&proxy, &listener);
    proxy.reset_mid_reply(5);
    say(&mut server, &mut client, b"ten ");
    say(&mut other.1, &mut other.0, b"ten o'clock");
    // It goes before it is reset, and the count begins anew.
    drop((client, server));
    while proxy.path.open() > 1 {
        thread::yield_now();
    }
    say(&mut other.1, &mut other.0, b"five");
    other.1.write_all(b" o'clock").unwrap();
    other.0.read_exact(&mut [0]).unwrap();
    assert_reset(&mut other.0);
}

#[test]
fn a_connection_can_be_reset_in_place_of_a_reply() {
    let (proxy, _listener, mut client, mut server) = connected();
    proxy.reset_mid_reply(0);
    say(&mut client, &mut server, b"do it");
    server.write_all(b"done").unwrap();
    assert_reset(&mut client);
}

#[test]
fn a_path_that_healed_resets_nothing() {
    let (proxy, listener, mut client, mut server) = connected();
    proxy.reset_mid_reply(0);
    proxy.reset_on_first_use(true);
    proxy.heal();
    connect(&proxy, &listener);
    say(&mut client, &mut server, b"do it");
    say(&mut server, &mut client, b"done");
}
