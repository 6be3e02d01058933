//! Traffic over the loopback interface with quality metrics: a call and a download.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

/// A call in one direction, and a server to fetch from.
pub(crate) struct Conversation {
    caller: UdpSocket,
    callee: UdpSocket,
    server: TcpListener,
    /// Filter for both and nothing else.
    pub(crate) filter: String,
}

impl Conversation {
    pub(crate) fn new() -> Self {
        let [caller, callee] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = (callee.local_addr().unwrap().port(), server.local_addr().unwrap().port());
        caller.connect(("127.0.0.1", ports.0)).unwrap();
        let filter = format!("udp dst port {} or tcp port {}", ports.0, ports.1);
        Self { caller, callee, server, filter }
    }

    /// Sends packets of voice (RTP, PCMU) with a gap of `missing` packets, one at a time.
    pub(crate) fn call(&self, packets: u16, missing: u16) {
        let lost = 10..10 + missing;
        for number in (0..packets + missing).filter(|number| !lost.contains(number)) {
            // Version 2, payload type 0; a packet has 20 ms of 8000 Hz (RFC 3550, RFC 3551).
            let head = [&[0x80, 0], &number.to_be_bytes()[..]].concat();
            let time = (u32::from(number) * 160).to_be_bytes();
            let source = 0x1234_abcd_u32.to_be_bytes();
            let packet = [&head[..], &time, &source, &[0xff; 160]].concat();
            self.caller.send(&packet).unwrap();
            self.callee.recv(&mut [0; 200]).unwrap();
        }
    }

    /// Downloads from the server over TCP.
    pub(crate) fn fetch(&self) {
        let address = self.server.local_addr().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut asked, _) = self.server.accept().unwrap();
                asked.read_exact(&mut [0; 7]).unwrap();
                asked.write_all(&[7; 9000]).unwrap();
            });
            let mut asking = TcpStream::connect(address).unwrap();
            asking.write_all(b"request").unwrap();
            let mut answer = Vec::new();
            asking.read_to_end(&mut answer).unwrap();
            assert_eq!(answer.len(), 9000);
        });
    }
}
