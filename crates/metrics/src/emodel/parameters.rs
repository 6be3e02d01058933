//! Input parameters of the E-model: G.107 table 2.

use wirestamp_clock::Span;

use super::codec::Codec;
use super::scale::Scale;
use crate::numeric::nanos_to_f64;

/// Parameters of a call. [`Default`] has the default values of G.107 table 2. Each field states the range for which
/// the model was made, from the same table, and its default. Values outside extrapolate the model, see
/// [`Parameters::extrapolates`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The scale. On the wideband and fullband scales, only absolute delay, equipment impairment, loss and advantage count.
    pub scale: Scale,
    /// Send loudness rating SLR, 0 to 18 dB; 8.
    pub send_loudness: f64,
    /// Receive loudness rating RLR, -5 to 14 dB; 2.
    pub receive_loudness: f64,
    /// Sidetone masking rating STMR, 10 to 20 dB; 15.
    pub sidetone_masking: f64,
    /// Listener sidetone rating LSTR, 13 to 23 dB; 18.
    pub listener_sidetone: f64,
    /// D-value of the telephone on the send side Ds, -3 to 3; 3.
    pub send_d_value: f64,
    /// Talker echo loudness rating TELR, 5 to 65 dB; 65.
    pub talker_echo_loudness: f64,
    /// Weighted echo path loss WEPL, 5 to 110 dB; 110.
    pub weighted_echo_path_loss: f64,
    /// Mean one-way delay of the echo path T, 0 to 500 ms; 0.
    pub echo_delay_ms: f64,
    /// Round-trip delay in a 4-wire loop Tr, 0 to 1000 ms; 0.
    pub round_trip_ms: f64,
    /// Absolute delay in echo-free connections Ta, 0 to 500 ms; 0.
    pub absolute_delay_ms: f64,
    /// Quantisation distortion units qdu, 1 to 14; 1.
    pub quantisation_units: f64,
    /// Equipment impairment factor Ie, 0 to 40; 0.
    pub equipment_impairment: f64,
    /// Packet-loss robustness factor Bpl, 4.3 to 40; 4.3.
    pub loss_robustness: f64,
    /// Packet-loss probability Ppl, 0 to 20 percent; 0.
    pub loss_percent: f64,
    /// Burst ratio BurstR, 1 to 8; 1. See [`crate::LossPattern::burst_ratio`].
    pub burst_ratio: f64,
    /// Circuit noise referred to the 0 dBr point Nc, -80 to -40 dBm0p; -70.
    pub circuit_noise: f64,
    /// Noise floor at the receive side Nfor, dBmp; -64.
    pub noise_floor: f64,
    /// Room noise at the send side Ps, 35 to 85 dB(A); 35.
    pub send_room_noise: f64,
    /// Room noise at the receive side Pr, 35 to 85 dB(A); 35.
    pub receive_room_noise: f64,
    /// Advantage factor A, 0 to 20: tolerance of users for mobility; 0.
    pub advantage: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            scale: Scale::Narrowband,
            send_loudness: 8.0,
            receive_loudness: 2.0,
            sidetone_masking: 15.0,
            listener_sidetone: 18.0,
            send_d_value: 3.0,
            talker_echo_loudness: 65.0,
            weighted_echo_path_loss: 110.0,
            echo_delay_ms: 0.0,
            round_trip_ms: 0.0,
            absolute_delay_ms: 0.0,
            quantisation_units: 1.0,
            equipment_impairment: 0.0,
            loss_robustness: 4.3,
            loss_percent: 0.0,
            burst_ratio: 1.0,
            circuit_noise: -70.0,
            noise_floor: -64.0,
            send_room_noise: 35.0,
            receive_room_noise: 35.0,
            advantage: 0.0,
        }
    }
}

impl Parameters {
    /// A call over a network with this mouth-to-ear delay (equal in both directions), share of lost packets (0 to 1,
    /// clamped) and burst ratio; all else is default.
    ///
    /// A negative delay, which only clock errors cause, is taken as 0; a burst ratio below 1 as 1, the min of the
    /// model. `None` where packets were lost and G.113 has no loss robustness for the codec.
    #[must_use]
    pub fn of_call(codec: Codec, delay: Span, loss_ratio: f64, burst_ratio: f64) -> Option<Self> {
        let loss_ratio = loss_ratio.clamp(0.0, 1.0);
        let defaults = Self::default();
        let loss_robustness = match codec.loss_robustness() {
            Some(robustness) => robustness,
            None if loss_ratio == 0.0 => defaults.loss_robustness,
            None => return None,
        };
        let delay_ms = nanos_to_f64(delay.max(Span::ZERO).as_nanos()) / 1e6;
        Some(Self {
            scale: codec.scale(),
            echo_delay_ms: delay_ms,
            round_trip_ms: 2.0 * delay_ms,
            absolute_delay_ms: delay_ms,
            equipment_impairment: codec.equipment_impairment(),
            loss_robustness,
            loss_percent: 100.0 * loss_ratio,
            burst_ratio: burst_ratio.clamp(1.0, f64::INFINITY),
            ..defaults
        })
    }

    /// Whether delay, loss or burst ratio are outside the range of the model. The rating is then worse than at the end
    /// of the range, by an extrapolated amount.
    #[must_use]
    pub fn extrapolates(&self) -> bool {
        // The fullband model is one of random loss.
        let max_burst_ratio = if self.scale == Scale::Fullband { 1.0 } else { 8.0 };
        let within = (0.0..=500.0).contains(&self.echo_delay_ms)
            && (0.0..=1000.0).contains(&self.round_trip_ms)
            && (0.0..=500.0).contains(&self.absolute_delay_ms)
            && (0.0..=20.0).contains(&self.loss_percent)
            && (1.0..=max_burst_ratio).contains(&self.burst_ratio);
        !within
    }
}
