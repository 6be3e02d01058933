//! How good a narrow-band telephone call is: the E-model of ITU-T G.107 (06/2015).
//!
//! A call's [`Parameters`] give a [`Rating`], whose R-factor goes from 0 (unbearable) to 93.2 (all
//! defaults), and a mean opinion score from 1 to 4.5. Equation and table numbers are those of
//! G.107; they are given at each formula.
//!
//! The model is meant for planning. What is fed with measured delay and loss is how the network
//! would be judged by people who talk over it with good handsets in quiet rooms, the defaults; what a
//! loud room or an echo adds is not in it unless its parameter is set.
//!
//! | file | computes |
//! |---|---|
//! | `noise.rs` | the basic signal-to-noise ratio Ro, section 7.2 |
//! | `simultaneous.rs` | the simultaneous impairment Is, section 7.3 |
//! | `delay.rs` | the delay impairment Id, section 7.4 |
//! | `equipment.rs` | the effective equipment impairment Ie-eff, section 7.5 |
//! | `codec.rs` | codecs and what they cost, ITU-T G.113 Appendix I |
//! | `mos.rs` | mean opinion scores, Annex B |

mod codec;
mod delay;
mod equipment;
mod mos;
mod noise;
mod simultaneous;

#[cfg(test)]
mod tests;

pub use codec::{Codec, NoCodec};
pub use mos::mean_opinion_score;

use serde::Serialize;
use wirestamp_clock::Span;

use crate::distribution::nanos_to_f64;

/// What the E-model knows of a call. [`Default`] are the default values of G.107 table 2; the ranges
/// for which the model was made, of the same table, are given with each. Values beyond them
/// extrapolate it, see [`Parameters::extrapolates`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
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
    /// Advantage factor A, 0 to 20: what users forgive for being mobile; 0.
    pub advantage: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
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
    /// A call over a network with this mouth-to-ear delay (the same in both directions), share of lost
    /// packets (0 to 1, clamped) and burst ratio; all else is default.
    ///
    /// A negative delay, which only clocks can make, is taken as 0; a burst ratio below 1 as 1, which
    /// is where the model begins. `None` where packets were lost and G.113 does not say what that
    /// does to the codec.
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

    /// Whether delay, loss or burst ratio lie beyond what the model was made for: the rating is then
    /// worse than that at the end of the range, but how much worse is an extrapolation.
    #[must_use]
    pub fn extrapolates(&self) -> bool {
        let within = (0.0..=500.0).contains(&self.echo_delay_ms)
            && (0.0..=1000.0).contains(&self.round_trip_ms)
            && (0.0..=500.0).contains(&self.absolute_delay_ms)
            && (0.0..=20.0).contains(&self.loss_percent)
            && (1.0..=8.0).contains(&self.burst_ratio);
        !within
    }

    /// How the call is rated. Not a number where a parameter is not.
    #[must_use]
    pub fn rating(&self) -> Rating {
        let noise = noise::sum(self);
        let basic = noise::signal_to_noise(self, noise);
        Rating {
            basic,
            simultaneous: simultaneous::impairment(self, basic, noise),
            delay: delay::impairment(self, basic, noise),
            equipment: equipment::impairment(self),
            advantage: self.advantage,
        }
    }
}

/// The parts of a rating, all on the scale of R.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rating {
    /// The basic signal-to-noise ratio Ro.
    pub basic: f64,
    /// The simultaneous impairment factor Is: what comes with the voice itself.
    pub simultaneous: f64,
    /// The delay impairment factor Id.
    pub delay: f64,
    /// The effective equipment impairment factor Ie-eff: codec and packet loss.
    pub equipment: f64,
    /// The advantage factor A.
    pub advantage: f64,
}

impl Rating {
    /// The transmission rating factor R, equation 7-1. The model lets it fall below 0 and rise above
    /// 100; a mean opinion score takes both as the ends of the scale.
    #[must_use]
    pub fn r_factor(&self) -> f64 {
        self.basic - self.simultaneous - self.delay - self.equipment + self.advantage
    }

    /// The mean opinion score of a conversation, MOS-CQE, 1 to 4.5.
    #[must_use]
    pub fn mos(&self) -> f64 {
        mean_opinion_score(self.r_factor())
    }
}
