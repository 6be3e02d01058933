//! Sends streams of test packets, each packet at its deadline.

use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::atomic::AtomicBool;

use crate::datagram::{Contents, Datagram, FrameAddresses};
use crate::egress::Egress;
use crate::mac::ETHERNET_HEADER;
use crate::netlink::{Link, hardware_address, route};
use crate::paced_run::PacedRun;
use crate::schedule::{DuePacket, MergedSchedule};
use crate::transmit::{SendMethod, SendOptions, Transmit, Udp, open_for_frames};
use crate::{
    PacingClock, Payload, SendError, SendReport, SentPacket, Stream, StreamReport,
    UnavailableStamps,
};

/// Sends streams of packets, paced by a counter.
///
/// The sockets belong to the network namespace of the thread that opens it.
#[derive(Debug)]
pub struct Sender {
    sources: Vec<Source>,
    /// The socket of each source.
    egresses: Vec<Egress>,
}

impl Sender {
    /// Opens a UDP socket for each stream.
    ///
    /// # Errors
    /// [`SendError`] when a pattern, an interface or a destination cannot be used.
    pub fn open(streams: Vec<Stream>) -> Result<Self, SendError> {
        Self::open_with(streams, &SendOptions::default())
    }

    /// Prepares each stream to be sent with `options`.
    ///
    /// For a method that sends whole frames, the source address comes from the kernel's routes. The
    /// next hop's hardware address comes from its neighbours unless given; this fails after up to 4 s
    /// without an answer.
    ///
    /// # Errors
    /// [`SendError`] when a pattern, an interface or a destination cannot be used.
    pub fn open_with(streams: Vec<Stream>, options: &SendOptions) -> Result<Self, SendError> {
        let (mut sources, mut egresses) = (Vec::new(), Vec::new());
        for stream in streams {
            let (source, transmit) = Source::open(stream, options)?;
            let interface = source.stream.interface.as_deref();
            egresses.push(Egress::new(transmit, interface, options)?);
            sources.push(source);
        }
        Ok(Self { sources, egresses })
    }

    /// Unavailable transmit stamps, with the reason; none if no stamps were requested.
    #[must_use]
    pub fn unavailable_stamps(&self) -> Option<&UnavailableStamps> {
        self.egresses.first().and_then(Egress::unavailable)
    }

    /// For [`SendMethod::Xdp`]: `zero-copy` if the driver sends from the socket's memory, otherwise
    /// `copy`.
    #[must_use]
    pub fn mode(&self) -> Option<&'static str> {
        self.egresses.first().and_then(Egress::mode)
    }

    /// Sends everything, or until `stop` is set; reacts to `stop` within about 10 ms.
    ///
    /// Each packet is handed to the kernel at its deadline, never before; a late packet is sent at
    /// once. `on_sent` is called after each packet; with transmit stamps, when all stamps of the
    /// packet are read or no longer expected. Run this on a separate thread: it sets the thread's
    /// timer slack to the minimum.
    pub fn run(
        mut self,
        clock: &mut impl PacingClock,
        stop: &AtomicBool,
        mut on_sent: impl FnMut(&SentPacket),
    ) -> SendReport {
        let plans = self.sources.iter().map(|source| source.stream.plan.clone()).collect();
        let mut run = PacedRun::start(clock, stop);
        for due in MergedSchedule::new(plans) {
            let Some(deadline) = run.wait(due.offset, &mut self.egresses, &mut on_sent) else {
                break;
            };
            let source = &mut self.sources[due.stream];
            source.send(run.clock, &due, deadline, &mut self.egresses[due.stream]);
        }
        self.egresses.iter_mut().for_each(|egress| egress.finish(&mut on_sent));
        let reports = self.sources.iter().zip(self.egresses).map(Source::report);
        let (overslept, stopped) = (run.overslept, run.stopped);
        SendReport { streams: reports.collect(), overslept, stopped }
    }
}

/// A stream and its packet buffer.
#[derive(Debug)]
struct Source {
    stream: Stream,
    datagram: Datagram,
    /// Reserves the source port of frames.
    _port: Option<UdpSocket>,
}

impl Source {
    fn open(stream: Stream, options: &SendOptions) -> Result<(Self, Box<dyn Transmit>), SendError> {
        if stream.dscp > 63 {
            return Err(SendError::Dscp(stream.dscp));
        }
        let pattern = &stream.plan.pattern;
        let payload_bytes = pattern.payload_bytes(stream.destination.is_ipv6())?;
        let contents = Contents { stream: stream.id, payload_bytes, rtp: pattern.rtp() };
        if options.method == SendMethod::Udp {
            let transmit = Box::new(Udp::open(&stream)?);
            let datagram = Datagram::without_headers(contents);
            return Ok((Self { stream, datagram, _port: None }, transmit));
        }
        let interface = stream.interface.as_deref();
        let link = Link::find(interface.ok_or(SendError::NoInterface(options.method))?)?;
        let frame_bytes = stream.plan.pattern.frame_bytes();
        if usize::from(frame_bytes) > link.mtu + ETHERNET_HEADER {
            return Err(SendError::TooLong { frame_bytes, interface: link.name, mtu: link.mtu });
        }
        let (addresses, port) = addresses(&stream, &link, options)?;
        let datagram = Datagram::with_headers(&addresses, stream.dscp, contents).ok_or(
            SendError::NoSource {
                interface: link.name.clone(),
                destination: stream.destination.ip(),
            },
        )?;
        let transmit = open_for_frames(&link, options)?;
        Ok((Self { stream, datagram, _port: Some(port) }, transmit))
    }

    /// Sends one packet now.
    fn send(
        &mut self,
        clock: &impl PacingClock,
        due: &DuePacket,
        deadline: u64,
        egress: &mut Egress,
    ) {
        let (stream, frame_bytes) = (self.stream.id, self.stream.plan.pattern.frame_bytes());
        // Contains the last reading that can still be written into the packet.
        let sent = SentPacket::now(clock, stream, due.sequence, deadline);
        let SentPacket { sequence, intended, actual, .. } = sent;
        let payload = Payload { stream, sequence, intended, actual };
        let packet = self.datagram.write(&payload, due.offset);
        egress.send(packet, frame_bytes.into(), sent);
    }

    fn report((source, egress): (&Self, Egress)) -> StreamReport {
        let Egress { sent, bytes, failed, first_error, .. } = egress;
        StreamReport { id: source.stream.id, sent, bytes, failed, first_error }
    }
}

/// Source and destination of a stream of frames over `link`, and the socket that reserves its port.
fn addresses(
    stream: &Stream,
    link: &Link,
    options: &SendOptions,
) -> Result<(FrameAddresses, UdpSocket), SendError> {
    let Stream { destination, .. } = *stream;
    let way = route(link, destination.ip())?;
    let mac = options.mac.map_or_else(|| hardware_address(link, way.next_hop), Ok)?;
    let here = match way.source {
        IpAddr::V4(_) => SocketAddr::new(way.source, stream.source_port),
        // A link-local address is ambiguous without its link.
        IpAddr::V6(ip) => SocketAddrV6::new(ip, stream.source_port, 0, link.index).into(),
    };
    let reserve = || {
        let port = UdpSocket::bind(here)?;
        Ok((port.local_addr()?, port))
    };
    let (here, port) = reserve().map_err(|cause| SendError::Socket { destination, cause })?;
    Ok((FrameAddresses { mac: [link.mac, mac], address: [here, destination] }, port))
}
