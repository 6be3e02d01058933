//! Datagrams in IP fragments.

use super::*;

/// Fragments of a packet of IPv4, with this many bytes above IP: a multiple of 8.
fn fragments(packet: &[u8], identification: u16, size: usize) -> Vec<Vec<u8>> {
    let (header, body) = packet.split_at(20);
    let last = body.len().div_ceil(size) - 1;
    let pieces = body.chunks(size).enumerate().map(|(number, piece)| {
        let offset = u16::try_from(number * size / 8).expect("a short packet");
        let more = if number < last { 0x2000 } else { 0 };
        let length = u16::try_from(20 + piece.len()).expect("a short packet");
        let mut fragment = [header, piece].concat();
        fragment[2..4].copy_from_slice(&length.to_be_bytes());
        fragment[4..6].copy_from_slice(&identification.to_be_bytes());
        fragment[6..8].copy_from_slice(&(more | offset).to_be_bytes());
        fragment
    });
    pieces.collect()
}

/// The frames of 100 packets of RTP with their times. Of those whose number is a multiple of `every`, three fragments.
fn stream(every: u16) -> Vec<(Vec<u8>, Time<Utc>)> {
    let mut frames = Vec::new();
    for number in 0..100 {
        let packet = udp(ENDS, &voice(9, 0, number));
        let of_packet =
            if number % every == 0 { fragments(&packet, 7 + number, 80) } else { vec![packet] };
        frames.extend(of_packet.into_iter().map(|frame| (frame, at(20 * i64::from(number)))));
    }
    frames
}

fn monitor_of(frames: &[(Vec<u8>, Time<Utc>)]) -> FlowMonitor {
    let mut monitor = monitor();
    frames.iter().for_each(|(frame, time)| observe(&mut monitor, frame, *time));
    monitor
}

#[test]
fn rtp_in_fragments_is_one_stream_without_loss() {
    for (every, reversed) in [(1, false), (1, true), (3, false), (3, true)] {
        let mut frames = stream(every);
        if reversed {
            // The fragments of a packet have one time; the sort keeps their order.
            frames.reverse();
            frames.sort_by_key(|(_, time)| *time);
        }
        let mut monitor = monitor_of(&frames);
        let [report] = &reports(&mut monitor)[..] else { panic!("one stream") };
        let rtp = report.rtp.as_ref().expect("RTP");
        assert_eq!((report.packets, report.lost, rtp.expected), (100, Some(0), 100));
        assert_eq!((report.duplicated, report.reordered), (Some(0), Some(0)));
        assert_eq!((report.bytes, monitor.packets()), (monitor.bytes(), frames.len() as u64));
        assert_eq!(monitor.datagrams_not_joined(), 0);
    }
}

#[test]
fn datagrams_with_a_missing_fragment_are_lost_and_counted() {
    for missing in 0..3 {
        let mut frames = stream(1);
        frames.remove(3 * 50 + missing);
        let mut monitor = monitor_of(&frames);
        let reports = reports(&mut monitor);
        let lost: Vec<_> = reports.iter().filter_map(|it| it.lost).collect();
        assert_eq!((lost, monitor.datagrams_not_joined()), (vec![1], 1), "{missing}");
        // The other two fragments are packets of their own.
        let others = reports.iter().filter(|it| it.rtp.is_none());
        assert_eq!(others.map(|it| it.packets).sum::<u64>(), 2);
        assert_eq!(reports.iter().map(|it| it.bytes).sum::<u64>(), monitor.bytes());
    }
}

#[test]
fn fragments_with_a_short_snap_length_are_joined() {
    let mut monitor = monitor();
    for (frame, time) in stream(1) {
        let packet = Packet::parse(LinkType::Ip, &frame[..frame.len().min(60)]).expect("a packet");
        let length = u32::try_from(frame.len()).expect("a short packet");
        monitor.observe(&FlowPacket { packet: &packet, length, time, encapsulation: None });
    }
    let [report] = &reports(&mut monitor)[..] else { panic!("one stream") };
    assert_eq!((report.packets, report.lost, report.bytes), (100, Some(0), monitor.bytes()));
}

#[test]
fn other_datagrams_in_fragments_are_single_packets() {
    let mut monitor = monitor();
    for number in 0..10 {
        let packet = udp(ENDS, &[7; 150]);
        for frame in fragments(&packet, number, 80) {
            observe(&mut monitor, &frame, at(10 * i64::from(number)));
        }
    }
    let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
    assert_eq!((report.packets, report.bytes, report.dport), (10, monitor.bytes(), 5004));
    let gaps = report.interarrival_ns.expect("gaps");
    assert_eq!((gaps.count, gaps.min, gaps.max), (9, 10_000_000, 10_000_000));
}
