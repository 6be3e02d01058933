//! Queries of chronyd and ptp4l over their sockets.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::chrony::{TRACKING_LENGTH, Tracking, tracking_request};
use super::ptp4l::{self, CurrentDataSet, MAX_REPLY, ManagementId, TimeStatus, management_request};
use super::status::SyncStatus;

const REPLY_TIMEOUT: Duration = Duration::from_millis(200);

/// chronyd's default command address (`cmdport`, chrony.conf(5)). Its Unix socket gives the same answer, but
/// only to root and chronyd's own user.
const CHRONY_ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 323);

/// ptp4l's sockets. Since version 4 the first is open to all users (`uds_ro_address`, ptp4l(8)).
const PTP4L_SOCKETS: [&str; 2] = ["/var/run/ptp4lro", "/var/run/ptp4l"];

/// Number of the next request; the reply repeats it.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);

/// chronyd's status, if it runs.
pub(super) fn chrony() -> Option<SyncStatus> {
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    let reply = exchange_chrony(number).ok()?;
    Some(Tracking::parse(&reply, number).ok()?.status())
}

fn exchange_chrony(number: u32) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind((CHRONY_ADDRESS.0, 0))?;
    socket.set_read_timeout(Some(REPLY_TIMEOUT))?;
    socket.connect(CHRONY_ADDRESS)?;
    socket.send(&tracking_request(number))?;
    // One extra octet detects a reply that is too long.
    let mut reply = vec![0; TRACKING_LENGTH + 1];
    let length = socket.recv(&mut reply)?;
    reply.truncate(length);
    Ok(reply)
}

/// ptp4l's status, if it runs and follows a master.
pub(super) fn ptp4l() -> Option<SyncStatus> {
    PTP4L_SOCKETS.iter().find_map(|path| {
        let time = query_ptp4l(path, ManagementId::TimeStatus, TimeStatus::parse)?;
        let current = query_ptp4l(path, ManagementId::CurrentDataSet, CurrentDataSet::parse)?;
        ptp4l::status(&time, &current)
    })
}

fn query_ptp4l<T, E>(
    path: &str,
    id: ManagementId,
    parse: impl Fn(&[u8], u16) -> Result<T, E>,
) -> Option<T> {
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    // PTP carries 16 bits.
    let number = u16::try_from(number % (1 << 16)).unwrap_or(0);
    let reply = exchange_ptp4l(path, number, &management_request(id, number)).ok()?;
    parse(&reply, number).ok()
}

fn exchange_ptp4l(path: &str, number: u16, request: &[u8]) -> io::Result<Vec<u8>> {
    // An abstract address needs no writable folder and leaves no file behind.
    let name = format!("wirestamp-{}-{number}", process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.set_read_timeout(Some(REPLY_TIMEOUT))?;
    socket.set_write_timeout(Some(REPLY_TIMEOUT))?;
    socket.send_to(request, path)?;
    let mut reply = vec![0; MAX_REPLY];
    let length = socket.recv(&mut reply)?;
    reply.truncate(length);
    Ok(reply)
}
