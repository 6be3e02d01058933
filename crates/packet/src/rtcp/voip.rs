//! VoIP metrics of extended reports (RFC 3611 section 4.7).

/// Value of 8-bit fields that are unavailable (sections 4.7.4 and 4.7.5).
const UNAVAILABLE: u8 = 127;
/// Max R factor, and range of MOS in units of 0.1 (section 4.7.5).
const MAX_R_FACTOR: u8 = 100;
const MOS: std::ops::RangeInclusive<u8> = 10..=50;

/// What a receiver of voice reports on a stream. Unavailable values, and those out of the range of RFC 3611, are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoipMetrics {
    /// SSRC of the stream.
    pub ssrc: u32,
    /// Share of packets lost since the receiver began, in units of 1/256.
    pub loss_rate: u8,
    /// Share of packets discarded by the de-jitter buffer, in units of 1/256.
    pub discard_rate: u8,
    /// Share of packets lost or discarded within bursts, in units of 1/256.
    pub burst_density: u8,
    /// The same within the gaps between bursts.
    pub gap_density: u8,
    /// Mean length of bursts, in ms.
    pub burst_duration_ms: u16,
    /// Mean length of the gaps between them, in ms.
    pub gap_duration_ms: u16,
    /// Round trip between the RTP interfaces as the receiver computed it, in ms. `None` for 0: not computed.
    pub round_trip_ms: Option<u16>,
    /// Delay inside the receiver's and the sender's parts of this end, in ms.
    pub end_system_delay_ms: u16,
    /// Signal level in dBm0.
    pub signal_level_dbm0: Option<i8>,
    /// Noise level in dBm0.
    pub noise_level_dbm0: Option<i8>,
    /// Residual echo return loss in dB.
    pub residual_echo_return_loss_db: Option<u8>,
    /// Number of packets received in a row that ends a burst.
    pub gmin: u8,
    /// R factor of the call in this direction, 0 to 100.
    pub r_factor: Option<u8>,
    /// R factor of a network beyond the RTP path.
    pub external_r_factor: Option<u8>,
    /// MOS for listening quality, in units of 0.1, 10 to 50.
    pub mos_lq: Option<u8>,
    /// MOS for conversational quality, in units of 0.1, 10 to 50.
    pub mos_cq: Option<u8>,
    /// Whether the de-jitter buffer is adaptive.
    pub is_buffer_adaptive: Option<bool>,
    /// Delay of the de-jitter buffer for packets on time, in ms.
    pub buffer_nominal_ms: u16,
    /// Delay of the de-jitter buffer for the earliest packet that is not discarded, in ms.
    pub buffer_max_ms: u16,
    /// Max delay that the de-jitter buffer can reach, in ms; 65535 for that or more.
    pub buffer_absolute_max_ms: u16,
}

impl VoipMetrics {
    /// Parses the content of a block; `None` for another length.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let body: &[u8; 32] = body.try_into().ok()?;
        let [ssrc, rates, durations, delays, levels, ratings, buffer, maxima] =
            *body.as_chunks::<4>().0
        else {
            return None;
        };
        let [loss_rate, discard_rate, burst_density, gap_density] = rates;
        let [burst_duration_ms, gap_duration_ms] = halves(durations);
        let [round_trip_ms, end_system_delay_ms] = halves(delays);
        let [signal, noise, echo, gmin] = levels;
        let [r_factor, external_r_factor, mos_lq, mos_cq] = ratings;
        let [configuration, _, _, _] = buffer;
        let [_, buffer_nominal_ms] = halves(buffer);
        let [buffer_max_ms, buffer_absolute_max_ms] = halves(maxima);
        let available = |value: u8| (value != UNAVAILABLE).then_some(value);
        let r_factor_of = |value: u8| (value <= MAX_R_FACTOR).then_some(value);
        let mos_of = |value: u8| MOS.contains(&value).then_some(value);
        Some(Self {
            ssrc: u32::from_be_bytes(ssrc),
            loss_rate,
            discard_rate,
            burst_density,
            gap_density,
            burst_duration_ms,
            gap_duration_ms,
            round_trip_ms: Some(round_trip_ms).filter(|ms| *ms > 0),
            end_system_delay_ms,
            signal_level_dbm0: available(signal).map(u8::cast_signed),
            noise_level_dbm0: available(noise).map(u8::cast_signed),
            residual_echo_return_loss_db: available(echo),
            gmin,
            r_factor: r_factor_of(r_factor),
            external_r_factor: r_factor_of(external_r_factor),
            mos_lq: mos_of(mos_lq),
            mos_cq: mos_of(mos_cq),
            is_buffer_adaptive: match configuration >> 4 & 3 {
                2 => Some(false),
                3 => Some(true),
                _ => None,
            },
            buffer_nominal_ms,
            buffer_max_ms,
            buffer_absolute_max_ms,
        })
    }
}

fn halves([a, b, c, d]: [u8; 4]) -> [u16; 2] {
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}
