//! Asks the programs that may steer the clock.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::chrony::{Tracking, tracking_request};
use super::ptp4l::{CurrentDataSet, LONGEST, ManagementId, TimeStatus, management_request};
use super::{Statement, chrony, ptp4l};

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Where chronyd listens, unless it is told otherwise (`cmdport`, chrony.conf(5)). Its socket in the file system
/// would say the same, and is only for root and for chronyd itself.
const CHRONY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 323);

/// Where ptp4l listens: since version 4 there is a socket for everybody (`uds_ro_address`, ptp4l(8)).
const PTP4L: [&str; 2] = ["/var/run/ptp4lro", "/var/run/ptp4l"];

/// Of requests, so that each answer is to its own.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// What chronyd says, if it is there.
pub(super) fn chrony() -> Option<Statement> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let reply = ask_chrony(number).ok()?;
    Some(Tracking::parse(&reply, number).ok()?.statement())
}

fn ask_chrony(number: u32) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind((CHRONY.0, 0))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.connect(CHRONY)?;
    socket.send(&tracking_request(number))?;
    // One octet more shows what is too long.
    let mut reply = vec![0; chrony::TRACKING_LENGTH + 1];
    let length = socket.recv(&mut reply)?;
    reply.truncate(length);
    Ok(reply)
}

/// What ptp4l says, if it is there and follows somebody.
pub(super) fn ptp4l() -> Option<Statement> {
    PTP4L.iter().find_map(|path| {
        let status = ask_ptp4l(path, ManagementId::TimeStatus, TimeStatus::parse)?;
        let current = ask_ptp4l(path, ManagementId::CurrentDataSet, CurrentDataSet::parse)?;
        ptp4l::statement(&status, &current)
    })
}

fn ask_ptp4l<T, E>(
    path: &str,
    what: ManagementId,
    parse: impl Fn(&[u8], u16) -> Result<T, E>,
) -> Option<T> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // The answer carries 16 bits of it.
    let number = u16::try_from(number % (1 << 16)).unwrap_or(0);
    let reply = exchange(path, number, &management_request(what, number)).ok()?;
    parse(&reply, number).ok()
}

fn exchange(path: &str, number: u16, request: &[u8]) -> io::Result<Vec<u8>> {
    // A name that is no file: nobody has to be able to write where it would be, and nothing is left behind.
    let name = format!("wirestamp-{}-{number}", process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    socket.send_to(request, path)?;
    let mut reply = vec![0; LONGEST];
    let length = socket.recv(&mut reply)?;
    reply.truncate(length);
    Ok(reply)
}
