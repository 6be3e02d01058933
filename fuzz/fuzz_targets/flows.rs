//! Frames at any times, and their flows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_clock::Time;
use wirestamp_metrics::flow::{FlowConfig, FlowMonitor, FlowPacket};
use wirestamp_packet::{Encapsulation, LinkType, Packet};

fuzz_target!(|frames: Vec<(i64, u16, Vec<u8>)>| {
    let codecs = ["96=H264/90000", "97=H265/90000", "98=VP8/90000", "99=VP9/90000", "100=AV1/90000"];
    let rtp_map = codecs.into_iter().filter_map(|codec| codec.parse().ok()).collect();
    let mut monitor = FlowMonitor::new(FlowConfig { flows: 3, calls: 3, digits: true, rtp_map, ..FlowConfig::default() });
    let mut observed = 0;
    for (nanos, length, bytes) in &frames {
        let Ok(packet) = Packet::parse(LinkType::Ip, bytes) else { continue };
        let time = Time::from_nanos(*nanos);
        // Frames of several link types have the same bytes, because here only the headers before IP matter.
        let link = LinkType::of_number(u32::from(*length)).unwrap_or(LinkType::Ethernet);
        let encapsulation = Encapsulation::of(link, bytes, nanos % 2 == 0);
        let length = u32::from(*length);
        monitor.observe(&FlowPacket { packet: &packet, length, time, encapsulation });
        observed += 1;
    }
    let reported: u64 = monitor.flows().map(|report| report.packets).sum();
    assert_eq!(reported + monitor.evicted.packets, observed);
    let flows: Vec<_> = monitor.flows().collect();
    assert!(monitor.calls(&flows).len() <= 3);
    for video in monitor.flows().filter_map(|report| report.video) {
        assert!(video.complete_frames + video.undetermined_frames <= video.frames && video.frames <= observed);
        assert!(video.key_frames.is_none_or(|frames| frames <= video.complete_frames));
    }
    for rtp in monitor.flows().filter_map(|report| report.rtp) {
        assert!(rtp.mos.is_none_or(|mos| (1.0..=4.5).contains(&mos)));
        assert!(rtp.mos_over_time.len() <= 60);
    }
});
