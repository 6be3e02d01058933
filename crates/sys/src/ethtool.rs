//! Settings and abilities of network drivers: ethtool(8), linux/ethtool.h. A request can use any
//! socket of the interface's network namespace.

use std::io;
use std::os::fd::AsFd;

use crate::interface::{ETHTOOL_WORDS, EthtoolCommand as Command, ethtool_ioctl};

/// Struct of a command as 32-bit words; the first is the command.
type Words = [u32; ETHTOOL_WORDS];

fn ask(socket: &impl AsFd, interface: &str, command: Command) -> io::Result<Words> {
    let mut words = [0; ETHTOOL_WORDS];
    ethtool_ioctl(socket, interface, command, &mut words)?;
    Ok(words)
}

/// The driver's name; empty where the interface has none (struct `ethtool_drvinfo`).
///
/// # Errors
/// The interface does not exist, or its driver does not answer.
pub fn driver(socket: &impl AsFd, interface: &str) -> io::Result<String> {
    let words = ask(socket, interface, Command::GetDriver)?;
    let name = words[1..9].iter().flat_map(|word| word.to_ne_bytes());
    let name: Vec<_> = name.take_while(|&byte| byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Number of receive queues in use (struct `ethtool_channels`), including combined queues, which also send.
///
/// # Errors
/// `EOPNOTSUPP` where the driver does not report them.
pub fn receive_queues(socket: &impl AsFd, interface: &str) -> io::Result<u32> {
    let words = ask(socket, interface, Command::GetChannels)?;
    // Words 1 to 4: the maximum number of receive, transmit, other and combined queues; 5 to 8: those in use.
    Ok(words[5].saturating_add(words[8]))
}

/// Stamping abilities of an interface (struct `ethtool_ts_info`, `ethtool -T`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamping {
    /// `SOF_TIMESTAMPING_*`.
    pub flags: u32,
    /// The number of the network card's clock, `/dev/ptpN`.
    pub clock: Option<u32>,
    /// One bit for each of `HWTSTAMP_FILTER_*`.
    pub receive_filters: u32,
}

/// Reads the stamping abilities of an interface.
///
/// # Errors
/// The interface does not exist, or its driver does not answer.
pub fn timestamping(socket: &impl AsFd, interface: &str) -> io::Result<Timestamping> {
    let words = ask(socket, interface, Command::GetTimestamping)?;
    let clock = u32::try_from(words[2].cast_signed()).ok(); // -1 where there is none
    Ok(Timestamping { flags: words[1], clock, receive_filters: words[7] })
}

/// Whether generic receive offload (GRO) is on.
///
/// # Errors
/// The interface does not exist.
pub fn gro(socket: &impl AsFd, interface: &str) -> io::Result<bool> {
    Ok(ask(socket, interface, Command::GetGro)?[1] != 0)
}

/// Switches generic receive offload (GRO).
///
/// # Errors
/// Without `CAP_NET_ADMIN`, or where the interface does not exist.
pub fn set_gro(socket: &impl AsFd, interface: &str, value: u32) -> io::Result<()> {
    set(socket, interface, Command::SetGro, value)
}

/// The flags `ETH_FLAG_*`.
///
/// # Errors
/// The interface does not exist, or its driver has no flags.
pub fn flags(socket: &impl AsFd, interface: &str) -> io::Result<u32> {
    Ok(ask(socket, interface, Command::GetFlags)?[1])
}

/// Sets the flags `ETH_FLAG_*`.
///
/// # Errors
/// Without `CAP_NET_ADMIN`, or where the driver rejects a flag.
pub fn set_flags(socket: &impl AsFd, interface: &str, value: u32) -> io::Result<()> {
    set(socket, interface, Command::SetFlags, value)
}

fn set(socket: &impl AsFd, interface: &str, command: Command, value: u32) -> io::Result<()> {
    let mut words = [0; ETHTOOL_WORDS];
    words[1] = value;
    ethtool_ioctl(socket, interface, command, &mut words)
}

/// A parameter in struct `ethtool_coalesce`; the enum value is the index of its 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coalescing {
    /// Microseconds for which an interrupt may wait for more packets.
    ReceiveMicroseconds = 1,
    /// Whether the driver adapts that time to the packet rate.
    AdaptiveReceive = 10,
}

/// Reads a parameter of the driver's interrupt coalescing.
///
/// # Errors
/// `EOPNOTSUPP` where the driver has none.
pub fn coalescing(socket: &impl AsFd, interface: &str, which: Coalescing) -> io::Result<u32> {
    Ok(ask(socket, interface, Command::GetCoalescing)?[which as usize])
}

/// Sets a parameter of the driver's interrupt coalescing, and does not change the others.
///
/// # Errors
/// Without `CAP_NET_ADMIN`, or where the driver rejects the value.
pub fn set_coalescing(
    socket: &impl AsFd,
    interface: &str,
    which: Coalescing,
    value: u32,
) -> io::Result<()> {
    let mut words = ask(socket, interface, Command::GetCoalescing)?;
    words[which as usize] = value;
    ethtool_ioctl(socket, interface, Command::SetCoalescing, &mut words)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn loopback_has_software_stamps_and_no_coalescing() {
        let socket = UnixDatagram::unbound().unwrap();
        gro(&socket, "lo").unwrap();
        let stamping = timestamping(&socket, "lo").unwrap();
        assert_ne!(stamping.flags & libc::SOF_TIMESTAMPING_RX_SOFTWARE, 0);
        assert_eq!((stamping.clock, stamping.receive_filters), (None, 0));
        assert!(coalescing(&socket, "lo", Coalescing::ReceiveMicroseconds).is_err());
    }
}
