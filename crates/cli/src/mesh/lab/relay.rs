//! A TCP relay from this machine into a namespace.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::Context;
use wirestamp_lab::Netns;

/// Listens on a loopback port and relays connections to an address in a namespace, until the process ends. `to`
/// receives the listening address, which is also returned.
pub(super) fn relay(
    inside: &Netns,
    to: impl FnOnce(SocketAddr) -> SocketAddr,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let address = listener.local_addr().context("cannot listen")?;
    let (inside, to) = (inside.clone(), to(address));
    let relay = move || {
        for outer in listener.incoming() {
            let inside = inside.clone();
            let pass = move || outer.and_then(|outer| pass(&outer, &inside, to));
            // On an error the connection is closed.
            drop(thread::Builder::new().name("ws-relayed".into()).spawn(pass));
        }
    };
    thread::Builder::new().name("ws-relay".into()).spawn(relay).context("cannot start a thread")?;
    Ok(address)
}

/// Relays both directions until both ends are closed.
fn pass(outer: &TcpStream, inside: &Netns, to: SocketAddr) -> io::Result<()> {
    let inner = &inside.run(|| TcpStream::connect(to))??;
    thread::scope(|scope| {
        scope.spawn(|| one_way(inner, outer));
        one_way(outer, inner)
    })
}

fn one_way(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    to.set_nodelay(true)?;
    let passed = io::copy(&mut from, &mut to);
    to.shutdown(Shutdown::Write)?;
    passed.map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn relay_passes_both_directions() {
        if wirestamp_lab::check_privilege().is_err() {
            eprintln!("skipped: needs root");
            return;
        }
        let inside = Netns::new().unwrap();
        let up = inside.command("ip").args(["link", "set", "dev", "lo", "up"]).status();
        assert!(up.unwrap().success());
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listener = inside.run(listen).unwrap();
        let address = relay(&inside, |_| listener.local_addr().unwrap()).unwrap();
        let mut caller = TcpStream::connect(address).unwrap();
        let (mut called, _) = listener.accept().unwrap();
        caller.write_all(b"question").unwrap();
        caller.shutdown(Shutdown::Write).unwrap();
        let mut received = String::new();
        called.read_to_string(&mut received).unwrap();
        called.write_all(b"answer").unwrap();
        drop(called);
        caller.read_to_string(&mut received).unwrap();
        assert_eq!(received, "questionanswer");
    }
}
