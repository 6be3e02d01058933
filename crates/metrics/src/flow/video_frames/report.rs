//! Report of the frames of a video.

use serde::{Deserialize, Serialize};

use super::unknown::UnknownVideoValue;
use super::{VideoFrames, per_second};
use crate::numeric::{count_to_f64, nanos_to_f64};

/// Frames of a video stream over RTP at this point. A frame is what the payload format sends with one RTP timestamp: a
/// picture with all its layers. All values are those of the packets that were captured here: a receiver may recover lost
/// packets (retransmission, FEC), may not get others, and may not show a complete frame whose references are damaged.
/// Unknown values are null; the key `..._unknown` has the reason.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VideoFramesReport {
    /// Frames of which a packet arrived: complete, damaged and undetermined ones. A frame of which no packet arrived is not
    /// counted.
    pub frames: u64,
    /// Frames of which all packets arrived.
    pub complete_frames: u64,
    /// Frames of which a packet is missing inside, or at the begin or end. Null if the capture lost packets of the stream.
    pub damaged_frames: Option<u64>,
    /// Why `damaged_frames` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged_frames_unknown: Option<UnknownVideoValue>,
    /// Frames beside missing packets that may belong to them or to others, and frames in which the capture began or ended.
    pub undetermined_frames: u64,
    /// Key frames among `complete_frames`: IDR pictures of H.264, IRAP pictures of H.265, key frames of VP8 and VP9, begins of
    /// coded video sequences of AV1.
    pub key_frames: Option<u64>,
    /// Why `key_frames` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_frames_unknown: Option<UnknownVideoValue>,
    /// Mean number of frames per second, without damaged ones.
    pub frames_per_second: Option<f64>,
    /// Min number of frames in a second, without damaged ones: in whole seconds since the first packet.
    pub min_frames_per_second: Option<u64>,
    /// Mean rate of the payload, in bits per second, without duplicates and without the headers of RTP.
    pub bitrate_bps: Option<f64>,
    /// Max rate of the payload in a whole second since the first packet, in bits per second.
    pub max_bitrate_bps: Option<u64>,
    /// Max size of a complete frame, in bytes of payload.
    pub max_frame_bytes: Option<u64>,
    /// Freezes by arrival at this point, as `freezeCount` of W3C webrtc-stats defines them for the screen: times between two
    /// frames of at least max(3 · mean, mean + 150 ms), with the mean of the 30 times before. A frame counts when its last
    /// packet arrives here; damaged frames do not count. Pauses of the sender count as freezes. Null if the capture lost
    /// packets of the stream, and below 7 frames.
    pub freezes: Option<u64>,
    /// Duration of all freezes, in nanoseconds (`totalFreezesDuration`).
    pub freezes_duration_ns: Option<i64>,
    /// Why `freezes` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freezes_unknown: Option<UnknownVideoValue>,
}

impl VideoFrames {
    /// The report; `capture_lost` if the capture lost packets of the stream, or may have.
    pub(in crate::flow) fn report(&self, capture_lost: bool) -> VideoFramesReport {
        let mut all = self.clone();
        while !all.pending.is_empty() {
            all.settle_front();
        }
        if let Some((first, last)) = all.first_arrival.zip(all.last_arrival) {
            let second = per_second::second(first, last);
            all.bytes_per_second.advance(second);
            all.settled.frames_per_second.advance(second);
        }
        let settled = &all.settled;
        let lost = capture_lost.then_some(UnknownVideoValue::CaptureLost);
        let key_frames = settled.key_frames();
        let freezes = match lost {
            Some(reason) => Err(reason),
            None => settled.freezes.totals().ok_or(UnknownVideoValue::TooFewFrames),
        };
        let per_second = |amount: u64, nanos: i64| 1e9 * count_to_f64(amount) / nanos_to_f64(nanos);
        let nanos = all.first_arrival.zip(all.last_arrival).map(|(a, b)| (b - a).as_nanos());
        VideoFramesReport {
            frames: settled.frames(),
            complete_frames: settled.complete,
            damaged_frames: lost.is_none().then_some(settled.damaged),
            damaged_frames_unknown: lost,
            undetermined_frames: settled.undetermined,
            key_frames: key_frames.ok(),
            key_frames_unknown: key_frames.err(),
            frames_per_second: settled.rendered().map(|(nanos, frames)| per_second(frames, nanos)),
            min_frames_per_second: settled.frames_per_second.min(),
            bitrate_bps: nanos
                .filter(|nanos| *nanos > 0)
                .map(|nanos| 8.0 * per_second(all.bytes, nanos)),
            max_bitrate_bps: all.bytes_per_second.max().map(|bytes| bytes.saturating_mul(8)),
            max_frame_bytes: settled.max_bytes,
            freezes: freezes.ok().map(|(count, _)| count),
            freezes_duration_ns: freezes.ok().map(|(_, nanos)| nanos),
            freezes_unknown: freezes.err(),
        }
    }
}
