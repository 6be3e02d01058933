//! Packets as fast as one thread can send them, of the kind that a reflector answers.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use wirestamp_studies::tester::{Bed, RECEIVER};

use crate::contenders::Contender;

/// Sends until `stop` is set.
pub(crate) fn flood(bed: &Bed, contender: Contender, stop: &AtomicBool) -> anyhow::Result<()> {
    let send = || {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect((RECEIVER, contender.port()))?;
        let (mut packet, number_at) = match contender {
            Contender::Wirestamp | Contender::StampSuite => stamp(contender),
            Contender::Irtt => irtt(&socket)?,
        };
        for number in 0_u32.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let bytes = match contender {
                Contender::Irtt => number.to_le_bytes(),
                Contender::Wirestamp | Contender::StampSuite => number.to_be_bytes(),
            };
            packet[number_at..number_at + 4].copy_from_slice(&bytes);
            // Packets beyond the capacity of the reflector are dropped later; a full queue here is not an error.
            let _ = socket.send(&packet);
        }
        anyhow::Ok(())
    };
    bed.sender().run(send)?
}

/// A STAMP packet (RFC 8762 section 4.2.1), and the position of its number: no extensions, min error
/// estimate.
fn stamp(contender: Contender) -> (Vec<u8>, usize) {
    let mut packet = vec![0; contender.payload().min(44).into()];
    packet[12..14].copy_from_slice(&[0x80, 0x01]);
    (packet, 0)
}

/// First bytes of irtt's packets (its `packet.go`).
const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
/// Which of them open a session.
const OPEN: u8 = 1;

/// Opens a session with irtt's server, whose token is in each packet. Returns a packet and the position of its number.
fn irtt(socket: &UdpSocket) -> anyhow::Result<(Vec<u8>, usize)> {
    // Keys and values, as irtt's client requests them: version, duration (an hour), min interval, length, stamps
    // of both kinds by both clocks, and both counts.
    let length = Contender::Irtt.payload();
    let wanted: [(u8, u64); 7] =
        [(1, 1), (2, 3_600_000_000_000), (3, 1), (4, length.into()), (5, 3), (6, 3), (7, 3)];
    let mut request = [&MAGIC[..], &[OPEN], &[0; 8]].concat();
    for (key, value) in wanted {
        request.push(key);
        // A positive number in zigzag, seven bits a byte.
        let mut left = value << 1;
        while left >= 0x80 {
            request.push(0x80 | u8::try_from(left & 0x7f)?);
            left >>= 7;
        }
        request.push(u8::try_from(left)?);
    }
    socket.send(&request)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut answer = [0; 512];
    let length_of_answer = socket.recv(&mut answer).context("irtt's server opens no session")?;
    ensure!(length_of_answer >= 12 && answer[..3] == MAGIC, "irtt's server answers strangely");
    let mut packet = vec![0; length.into()];
    packet[..3].copy_from_slice(&MAGIC);
    packet[4..12].copy_from_slice(&answer[4..12]);
    Ok((packet, 12))
}
