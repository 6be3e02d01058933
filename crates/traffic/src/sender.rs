//! Sends streams of test packets, each packet when it is due.

use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::atomic::AtomicBool;

use crate::datagram::{Datagram, Ends};
use crate::netlink::{ETHERNET_HEADER, Link, hardware_address, route};
use crate::outlet::Outlet;
use crate::run::Run;
use crate::schedule::Schedule;
use crate::transmit::{SendMethod, Transmission, Transmit, Udp, open_for_frames};
use crate::{
    PacingClock, Payload, SendError, SendReport, Sent, Stream, StreamReport, TxStamps, Unavailable,
};

/// Sends streams of packets, paced by a counter.
///
/// Its sockets belong to the network namespace of the thread that opens it.
#[derive(Debug)]
pub struct Sender {
    sources: Vec<Source>,
    /// Where the packets of each source go.
    outlets: Vec<Outlet>,
}

impl Sender {
    /// Opens a UDP socket for each stream.
    ///
    /// # Errors
    /// [`SendError`] when a pattern, an interface or a destination cannot be used.
    pub fn open(streams: Vec<Stream>) -> Result<Self, SendError> {
        Self::open_with(streams, &Transmission::default())
    }

    /// Makes each stream ready to be sent as `transmission` says.
    ///
    /// A method that sends whole frames takes the source address from the kernel's routes and the
    /// next hop's hardware address from its neighbours, unless it is given; it takes up to 4 s to
    /// find out that there is none.
    ///
    /// # Errors
    /// [`SendError`] when a pattern, an interface or a destination cannot be used.
    pub fn open_with(streams: Vec<Stream>, transmission: &Transmission) -> Result<Self, SendError> {
        let (mut sources, mut outlets) = (Vec::new(), Vec::new());
        for stream in streams {
            let (source, transmit) = Source::open(stream, transmission)?;
            let interface = source.stream.interface.as_deref();
            outlets.push(Outlet::new(transmit, interface, transmission)?);
            sources.push(source);
        }
        Ok(Self { sources, outlets })
    }

    /// Which transmit stamps cannot be had, and why; none if none were asked for.
    #[must_use]
    pub fn unavailable_stamps(&self) -> Option<&Unavailable> {
        self.outlets.first().and_then(Outlet::unavailable)
    }

    /// With [`SendMethod::Xdp`], `zero-copy` where the driver sends from our memory, or `copy`.
    #[must_use]
    pub fn mode(&self) -> Option<&'static str> {
        self.outlets.first().and_then(Outlet::mode)
    }

    /// Sends everything, or until `stop` is set, which is noticed within some 10 ms.
    ///
    /// Each packet is handed to the kernel when its deadline has come and never before; one that is
    /// late is sent at once. `on_sent` is called after each, or with transmit stamps when those of
    /// the packet are all there or given up. It belongs on a thread of its own, which it leaves
    /// with the shortest timer slack.
    pub fn run(
        mut self,
        clock: &mut impl PacingClock,
        stop: &AtomicBool,
        mut on_sent: impl FnMut(&Sent),
    ) -> SendReport {
        let plans = self.sources.iter().map(|source| source.stream.plan.clone()).collect();
        let mut run = Run::start(clock, stop);
        for due in Schedule::new(plans) {
            let Some(deadline) = run.wait(due.offset, &mut self.outlets, &mut on_sent) else {
                break;
            };
            let source = &mut self.sources[due.stream];
            source.send(run.clock, due.sequence, deadline, &mut self.outlets[due.stream]);
        }
        self.outlets.iter_mut().for_each(|outlet| outlet.finish(&mut on_sent));
        let reports = self.sources.iter().zip(self.outlets).map(Source::report);
        let (overslept, stopped) = (run.overslept, run.stopped);
        SendReport { streams: reports.collect(), overslept, stopped }
    }
}

/// A stream whose packets are made here.
#[derive(Debug)]
struct Source {
    stream: Stream,
    datagram: Datagram,
    /// Keeps the source port of frames from being used by others.
    _port: Option<UdpSocket>,
}

impl Source {
    fn open(
        stream: Stream,
        transmission: &Transmission,
    ) -> Result<(Self, Box<dyn Transmit>), SendError> {
        if stream.dscp > 63 {
            return Err(SendError::Dscp(stream.dscp));
        }
        let payload_bytes = stream.plan.pattern.payload_bytes(stream.destination.is_ipv6())?;
        if transmission.method == SendMethod::Udp {
            let transmit = Box::new(Udp::open(&stream)?);
            let datagram = Datagram::bare(payload_bytes);
            return Ok((Self { stream, datagram, _port: None }, transmit));
        }
        let interface = stream.interface.as_deref();
        let link = Link::find(interface.ok_or(SendError::NoInterface(transmission.method))?)?;
        let frame_bytes = stream.plan.pattern.frame_bytes();
        if usize::from(frame_bytes) > link.mtu + ETHERNET_HEADER {
            return Err(SendError::TooLong { frame_bytes, interface: link.name, mtu: link.mtu });
        }
        let (ends, port) = ends(&stream, &link, transmission)?;
        let datagram =
            Datagram::framed(&ends, stream.dscp, payload_bytes).ok_or(SendError::NoSource {
                interface: link.name.clone(),
                destination: stream.destination.ip(),
            })?;
        let transmit = open_for_frames(&link, transmission)?;
        Ok((Self { stream, datagram, _port: Some(port) }, transmit))
    }

    /// Sends one packet now.
    fn send(
        &mut self,
        clock: &impl PacingClock,
        sequence: u64,
        deadline: u64,
        outlet: &mut Outlet,
    ) {
        let (stream, frame_bytes) = (self.stream.id, self.stream.plan.pattern.frame_bytes());
        let intended = clock.utc(deadline);
        // The last thing before the system call that the packet can still tell of.
        let now = clock.now();
        let actual = clock.utc(now);
        let packet = self.datagram.write(&Payload { stream, sequence, intended, actual });
        let (pacing_error, stamps) = (clock.span(deadline, now), TxStamps::default());
        let sent = Sent { stream, sequence, intended, actual, pacing_error, stamps };
        outlet.send(packet, frame_bytes.into(), sent);
    }

    fn report((source, outlet): (&Self, Outlet)) -> StreamReport {
        let Outlet { sent, bytes, failed, first_error, .. } = outlet;
        StreamReport { id: source.stream.id, sent, bytes, failed, first_error }
    }
}

/// Both ends of a stream of frames over `link`, and the socket that holds its port.
fn ends(
    stream: &Stream,
    link: &Link,
    transmission: &Transmission,
) -> Result<(Ends, UdpSocket), SendError> {
    let Stream { destination, .. } = *stream;
    let way = route(link, destination.ip())?;
    let mac = transmission.mac.map_or_else(|| hardware_address(link, way.next_hop), Ok)?;
    let here = match way.source {
        IpAddr::V4(_) => SocketAddr::new(way.source, stream.source_port),
        // A link-local address says nothing without its link.
        IpAddr::V6(ip) => SocketAddrV6::new(ip, stream.source_port, 0, link.index).into(),
    };
    let reserve = || {
        let port = UdpSocket::bind(here)?;
        Ok((port.local_addr()?, port))
    };
    let (here, port) = reserve().map_err(|cause| SendError::Socket { destination, cause })?;
    Ok((Ends { mac: [link.mac, mac], address: [here, destination] }, port))
}
