//! Flows as a table for other programs: one row per flow, with the names of their JSON keys.

use wirestamp_metrics::Summary;
use wirestamp_metrics::flow::{
    EncapsulationReport, EncapsulationsReport, FlowReport, Iperf3Report, RtcpReport, RtpReport,
    TcpReport, TransportDeliveryReport, VideoFramesReport, VideoReport,
};

use crate::{Field, Table};

impl Table {
    /// The table of these flows. Its columns have the names of the JSON keys; nested keys are joined by an
    /// underscore. Series over time are left out.
    #[must_use]
    pub fn of_flows(flows: &[FlowReport]) -> Self {
        Self::of(flows, FIELDS)
    }
}

const FIELDS: &[Field<FlowReport>] = &[
    Field::text("src", |it| Some(it.src.to_string())),
    Field::text("dst", |it| Some(it.dst.to_string())),
    Field::whole("sport", |it| Some(it.sport.into())),
    Field::whole("dport", |it| Some(it.dport.into())),
    Field::whole("protocol", |it| Some(it.protocol.into())),
    Field::whole("packets", |it| whole(it.packets)),
    Field::whole("bytes", |it| whole(it.bytes)),
    Field::whole("first_ns", |it| Some(it.first_ns)),
    Field::whole("last_ns", |it| Some(it.last_ns)),
    Field::real("throughput_bps", |it| it.throughput_bps),
    Field::whole("lost", |it| it.lost.and_then(whole)),
    Field::whole("duplicated", |it| it.duplicated.and_then(whole)),
    Field::whole("reordered", |it| it.reordered.and_then(whole)),
    Field::real("interarrival_ns_mean", |it| it.interarrival_ns.map(|it| it.mean)),
    Field::real("interarrival_ns_stddev", |it| it.interarrival_ns.map(|it| it.stddev)),
    Field::whole("interarrival_ns_min", |it| it.interarrival_ns.map(|it| it.min)),
    Field::whole("interarrival_ns_p50", |it| it.interarrival_ns.map(|it| it.p50)),
    Field::whole("interarrival_ns_p99", |it| it.interarrival_ns.map(|it| it.p99)),
    Field::whole("trains", |it| whole(it.trains)),
    Field::whole("max_gap_ns", |it| it.max_gap_ns),
    Field::whole("ssrc", |it| rtp(it, |rtp| Some(rtp.ssrc.into()))),
    Field::whole("payload_type", |it| rtp(it, |rtp| Some(rtp.payload_type.into()))),
    Field::text("codec", |it| rtp(it, |rtp| rtp.codec.clone())),
    Field::whole("clock_rate_hz", |it| rtp(it, |rtp| rtp.clock_rate_hz.map(i64::from))),
    Field::whole("expected", |it| rtp(it, |rtp| whole(rtp.expected))),
    Field::whole("cumulative_lost", |it| rtp(it, |rtp| Some(rtp.cumulative_lost))),
    Field::whole("capture_lost", |it| rtp(it, |rtp| whole(rtp.capture_lost))),
    Field::whole("lost_uncertainty", |it| rtp(it, |rtp| whole(rtp.lost_uncertainty))),
    Field::whole("late", |it| rtp(it, |rtp| rtp.late.and_then(whole))),
    Field::whole("loss_periods", |it| rtp(it, |rtp| whole(rtp.loss_periods))),
    Field::real("burst_ratio", |it| rtp(it, |rtp| Some(rtp.burst_ratio))),
    Field::real("jitter_ms", |it| rtp(it, |rtp| rtp.jitter_ms)),
    Field::real("mean_jitter_ms", |it| rtp(it, |rtp| rtp.mean_jitter_ms)),
    Field::real("max_jitter_ms", |it| rtp(it, |rtp| rtp.max_jitter_ms)),
    Field::real("max_delta_ms", |it| rtp(it, |rtp| Some(rtp.max_delta_ms))),
    Field::real("skew_ms", |it| rtp(it, |rtp| rtp.skew_ms)),
    Field::real("max_skew_ms", |it| rtp(it, |rtp| rtp.max_skew_ms)),
    Field::real("mos", |it| rtp(it, |rtp| rtp.mos)),
    Field::real("mos_lowest", |it| rtp(it, |rtp| rtp.mos_lowest)),
    Field::real("mos_highest", |it| rtp(it, |rtp| rtp.mos_highest)),
    Field::real("r_factor", |it| rtp(it, |rtp| rtp.r_factor)),
    Field::real("media_rate_bps", |it| {
        video(it, |index| Some(index.media_rate_bps))
            .or_else(|| delivery(it, |index| index.media_rate_bps))
    }),
    Field::real("max_delay_factor_ms", |it| {
        video(it, |index| index.max_delay_factor_ms)
            .or_else(|| delivery(it, |index| index.max_delay_factor_ms))
    }),
    Field::real("max_loss_rate", |it| {
        video(it, |index| Some(index.max_loss_rate))
            .or_else(|| delivery(it, |index| index.max_loss_rate))
    }),
    Field::whole("iperf3_sent", |it| test(it, |test| whole(test.sent))),
    Field::whole("iperf3_lost", |it| test(it, |test| whole(test.lost))),
    Field::whole("iperf3_out_of_order", |it| test(it, |test| whole(test.out_of_order))),
    Field::real("iperf3_jitter_ms", |it| test(it, |test| Some(test.jitter_ms))),
    Field::whole("iperf3_capture_lost", |it| test(it, |test| whole(test.capture_lost))),
    Field::whole("iperf3_lost_uncertainty", |it| test(it, |test| whole(test.lost_uncertainty))),
    Field::whole("retransmitted", |it| tcp(it, |tcp| whole(tcp.retransmitted))),
    Field::whole("handshake_ns", |it| tcp(it, |tcp| tcp.handshake_ns)),
    Field::whole("rtt_ns_min", |it| trip(it).map(|it| it.min)),
    Field::real("rtt_ns_mean", |it| trip(it).map(|it| it.mean)),
    Field::whole("rtt_ns_p50", |it| trip(it).map(|it| it.p50)),
    Field::whole("rtt_ns_p99", |it| trip(it).map(|it| it.p99)),
    Field::whole("rtt_ns_max", |it| trip(it).map(|it| it.max)),
    Field::whole("segments", |it| tcp(it, |tcp| whole(tcp.segments))),
    Field::whole("capture_missed", |it| it.capture_missed.and_then(whole)),
    Field::time("first_time", |it| Some(it.first_ns)),
    Field::time("last_time", |it| Some(it.last_ns)),
    Field::whole("wirestamp_sent", |it| it.wirestamp.and_then(|test| whole(test.sent))),
    Field::whole("wirestamp_lost", |it| it.wirestamp.and_then(|test| whole(test.lost))),
    Field::whole("wirestamp_out_of_order", |it| {
        it.wirestamp.and_then(|test| whole(test.out_of_order))
    }),
    Field::real("wirestamp_jitter_ms", |it| it.wirestamp.map(|test| test.jitter_ms)),
    Field::text("mos_unknown", |it| rtp(it, |rtp| Some(rtp.mos_unknown?.name().to_owned()))),
    Field::text("rated_codecs", |it| rtp(it, |rtp| Some(rtp.rated_codecs.as_ref()?.to_string()))),
    Field::text("dtmf", |it| rtp(it, |rtp| rtp.dtmf.clone())),
    Field::text("r_scale", |it| rtp(it, |rtp| Some(rtp.r_scale?.name().to_owned()))),
    Field::whole("ts_packets", |it| it.transport_stream.and_then(|ts| whole(ts.packets))),
    Field::whole("ts_null_packets", |it| it.transport_stream.and_then(|ts| whole(ts.null_packets))),
    Field::whole("ts_pids", |it| it.transport_stream.and_then(|ts| whole(ts.pids))),
    Field::whole("ts_sync_byte_errors", |it| {
        it.transport_stream.and_then(|ts| whole(ts.sync_byte_errors))
    }),
    Field::whole("ts_pat_errors", |it| it.transport_stream.and_then(|ts| whole(ts.pat_errors))),
    Field::whole("ts_continuity_errors", |it| {
        it.transport_stream.and_then(|ts| whole(ts.continuity_errors))
    }),
    Field::whole("ts_pmt_errors", |it| it.transport_stream.and_then(|ts| whole(ts.pmt_errors))),
    Field::whole("ts_transport_errors", |it| {
        it.transport_stream.and_then(|ts| whole(ts.transport_errors))
    }),
    Field::whole("ts_crc_errors", |it| it.transport_stream.and_then(|ts| whole(ts.crc_errors))),
    Field::whole("ts_pcr_repetition_errors", |it| {
        it.transport_stream.and_then(|ts| whole(ts.pcr_repetition_errors))
    }),
    Field::whole("ts_pcr_discontinuity_errors", |it| {
        it.transport_stream.and_then(|ts| whole(ts.pcr_discontinuity_errors))
    }),
    Field::whole("ts_pts_errors", |it| it.transport_stream.and_then(|ts| whole(ts.pts_errors))),
    Field::whole("ts_malformed_packets", |it| {
        it.transport_stream.and_then(|ts| whole(ts.malformed_packets))
    }),
    Field::whole("rtcp_receiver_reports", |it| rtcp(it, |rtcp| whole(rtcp.receiver_reports))),
    Field::real("rtcp_fraction_lost", |it| rtcp(it, |rtcp| rtcp.fraction_lost)),
    Field::whole("rtcp_cumulative_lost", |it| rtcp(it, |rtcp| rtcp.cumulative_lost.map(i64::from))),
    Field::whole("rtcp_jitter_ns", |it| rtcp(it, |rtcp| rtcp.jitter_ns)),
    Field::whole("rtcp_round_trip_to_receiver_ns", |it| {
        rtcp(it, |rtcp| rtcp.round_trip_to_receiver.map(|trip| trip.last_ns))
    }),
    Field::whole("rtcp_round_trip_to_sender_ns", |it| {
        rtcp(it, |rtcp| rtcp.round_trip_to_sender.map(|trip| trip.last_ns))
    }),
    Field::whole("rtcp_lost_beyond", |it| {
        rtcp(it, |rtcp| rtcp.loss_comparison.and_then(|loss| whole(loss.lost_beyond)))
    }),
    Field::real("rtcp_mos_lq", |it| rtcp(it, |rtcp| rtcp.voip_metrics.and_then(|it| it.mos_lq))),
    Field::real("rtcp_mos_cq", |it| rtcp(it, |rtcp| rtcp.voip_metrics.and_then(|it| it.mos_cq))),
    Field::text("vlan", |it| encapsulation(it).and_then(EncapsulationReport::vlan)),
    Field::text("encapsulation", |it| encapsulation(it).map(EncapsulationReport::text)),
    Field::whole("video_frames", |it| frames(it, |it| whole(it.frames))),
    Field::whole("video_complete_frames", |it| frames(it, |it| whole(it.complete_frames))),
    Field::whole("video_damaged_frames", |it| frames(it, |it| it.damaged_frames.and_then(whole))),
    Field::whole("video_undetermined_frames", |it| frames(it, |it| whole(it.undetermined_frames))),
    Field::whole("video_key_frames", |it| frames(it, |it| it.key_frames.and_then(whole))),
    Field::real("video_frames_per_second", |it| frames(it, |it| it.frames_per_second)),
    Field::whole("video_min_frames_per_second", |it| {
        frames(it, |it| it.min_frames_per_second.and_then(whole))
    }),
    Field::real("video_bitrate_bps", |it| frames(it, |it| it.bitrate_bps)),
    Field::whole("video_max_bitrate_bps", |it| frames(it, |it| it.max_bitrate_bps.and_then(whole))),
    Field::whole("video_max_frame_bytes", |it| frames(it, |it| it.max_frame_bytes.and_then(whole))),
    Field::whole("video_freezes", |it| frames(it, |it| it.freezes.and_then(whole))),
    Field::whole("video_freezes_duration_ns", |it| frames(it, |it| it.freezes_duration_ns)),
    Field::whole("ts_sync_losses", |it| it.transport_stream.and_then(|ts| whole(ts.sync_losses))),
    Field::whole("ts_pid_errors", |it| it.transport_stream.and_then(|ts| whole(ts.pid_errors))),
    Field::whole("ts_pcr_accuracy_errors", |it| {
        it.transport_stream.and_then(|ts| ts.pcr_accuracy_errors.and_then(whole))
    }),
    Field::whole("ts_cat_errors", |it| it.transport_stream.and_then(|ts| whole(ts.cat_errors))),
];

/// A count, always far below the limit.
fn whole(count: u64) -> Option<i64> {
    i64::try_from(count).ok()
}

fn rtp<T>(flow: &FlowReport, get: impl FnOnce(&RtpReport) -> Option<T>) -> Option<T> {
    flow.rtp.as_ref().and_then(get)
}

fn rtcp<T>(flow: &FlowReport, get: impl FnOnce(&RtcpReport) -> Option<T>) -> Option<T> {
    flow.rtcp.as_ref().and_then(get)
}

/// That of most packets.
fn encapsulation(flow: &FlowReport) -> Option<&EncapsulationReport> {
    flow.encapsulations.as_ref().and_then(EncapsulationsReport::main)
}

fn video<T>(flow: &FlowReport, get: impl FnOnce(&VideoReport) -> Option<T>) -> Option<T> {
    rtp(flow, |rtp| rtp.media_delivery.as_ref().and_then(get))
}

fn delivery<T>(
    flow: &FlowReport,
    get: impl FnOnce(&TransportDeliveryReport) -> Option<T>,
) -> Option<T> {
    flow.transport_stream.as_ref().and_then(|it| it.media_delivery.as_ref()).and_then(get)
}

fn frames<T>(flow: &FlowReport, get: impl FnOnce(&VideoFramesReport) -> Option<T>) -> Option<T> {
    flow.video.as_ref().and_then(get)
}

fn tcp<T>(flow: &FlowReport, get: impl FnOnce(&TcpReport) -> Option<T>) -> Option<T> {
    flow.tcp.as_ref().and_then(get)
}

fn test<T>(flow: &FlowReport, get: impl FnOnce(&Iperf3Report) -> Option<T>) -> Option<T> {
    flow.iperf3.as_ref().and_then(get)
}

fn trip(flow: &FlowReport) -> Option<Summary> {
    tcp(flow, |tcp| tcp.rtt_ns)
}
