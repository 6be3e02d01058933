//! Streams and path of the demo.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use wirestamp_clock::Span;
use wirestamp_lab::{Impairments, SINK_V4, SINK_V6, Selector};
use wirestamp_traffic::{Pattern, PatternError, Stream, StreamPlan};

/// One of the demo's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Role {
    /// Name of the stream in the report.
    pub(super) name: &'static str,
    /// Short name.
    pub(super) short: &'static str,
    /// UDP destination port; identifies the flow.
    pub(super) port: u16,
}

pub(super) const CALL: Role = Role { name: "Phone call (G.729)", short: "call", port: 5004 };
pub(super) const VIDEO: Role = Role { name: "HD video", short: "video", port: 5006 };
pub(super) const BURST: Role = Role { name: "Burst", short: "burst", port: 5008 };

/// The streams in the order in which they are sent and shown.
pub(super) const ROLES: [Role; 3] = [CALL, VIDEO, BURST];

/// The path: the video alone takes 89 % of the bottleneck, a burst on top of it fills the queue.
/// Every 128th packet of the video is duplicated, and every 32nd overtakes the queue.
pub(super) fn impairments() -> Impairments {
    let offset = Pattern::hd_video().sequence_low_byte_offset();
    let video = |mask, value| Selector { port: VIDEO.port, offset, mask, value };
    Impairments {
        duplicate: Some(video(0x7f, 0x40)),
        expedite: Some(video(0x1f, 0x10)),
        ..Impairments::bottleneck(9_000_000, 50_000)
    }
}

/// Max queueing delay.
pub(super) fn full_queue(path: &Impairments) -> Span {
    at_the_rate(path, path.queue_bytes)
}

/// Serialisation delay of the longest frame.
pub(super) fn full_frame(path: &Impairments) -> Span {
    at_the_rate(path, 1514)
}

fn at_the_rate(path: &Impairments, bytes: u32) -> Span {
    let bits = u128::from(bytes) * 8;
    let nanos = bits * 1_000_000_000 / u128::from(path.rate_bits_per_s.max(1));
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// The three streams for `duration`, towards the lab's sink.
pub(super) fn streams(duration: Duration, ipv6: bool) -> Result<Vec<Stream>, PatternError> {
    let lasting = Span::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX));
    // 60 frames of 1000 bytes at once exceed the queue by a fifth, and take half of the capacity that the
    // video leaves in the second until the next burst.
    let burst = Pattern::new("burst", 1000, Span::from_secs(1))?.with_burst(60, Span::ZERO)?;
    let patterns = [Pattern::voip(), Pattern::hd_video(), burst];
    // Offsets that prevent packets of two streams from always coinciding.
    let starts = [0, 3_300_000, 501_700_000].map(Span::from_nanos);
    let streams = ROLES.iter().zip(1..).zip(patterns).zip(starts);
    Ok(streams
        .map(|(((role, id), pattern), start)| {
            let packets = pattern.packets_in(lasting - start);
            Stream::new(id, StreamPlan { pattern, start, packets }, destination(*role, ipv6))
        })
        .collect())
}

/// Where a stream goes.
pub(super) fn destination(role: Role, ipv6: bool) -> SocketAddr {
    let sink: IpAddr = if ipv6 { SINK_V6.into() } else { SINK_V4.into() };
    (sink, role.port).into()
}

/// A stream's rhythm in words.
pub(super) fn describe(pattern: &Pattern) -> String {
    let bytes = pattern.frame_bytes();
    let micros = (pattern.interval().as_nanos() + 500) / 1_000;
    let (whole, thousandths) = (micros / 1_000, micros % 1_000);
    let every = if thousandths == 0 {
        format!("{whole} ms")
    } else {
        format!("{whole}.{thousandths:03} ms")
    };
    match pattern.burst() {
        1 => format!("{bytes}-byte frames every {every}"),
        burst => format!("{burst} {bytes}-byte frames back to back every {every}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_video_fits_and_a_burst_overfills_the_queue() {
        let path = impairments();
        let video = Pattern::hd_video();
        let bits = i64::from(video.frame_bytes()) * 8;
        let rate = bits * 1_000_000_000 / video.interval().as_nanos();
        assert!((7_900_000..8_100_000).contains(&rate), "{rate} bit/s");
        assert!(60 * 1000 > path.queue_bytes);
        assert_eq!(full_queue(&path), Span::from_nanos(44_444_444));
    }

    #[test]
    fn patterns_are_described_in_whole_and_broken_milliseconds() {
        assert_eq!(describe(&Pattern::voip()), "140-byte frames every 20 ms");
        assert_eq!(describe(&Pattern::hd_video()), "1368-byte frames every 1.368 ms");
    }

    #[test]
    fn a_run_of_ten_seconds_has_what_fits_into_it() {
        let streams = streams(Duration::from_secs(10), false).unwrap();
        let packets: Vec<_> = streams.iter().map(|stream| stream.plan.packets).collect();
        assert_eq!(packets, [500, 7308, 600]);
    }
}
