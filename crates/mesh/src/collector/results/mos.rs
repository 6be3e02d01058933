//! Call quality over a path: the E-model (ITU-T G.107), applied to a window.
//!
//! Input: the mean delay and the loss of the whole window, whatever its length. So the MOS of a minute is not a mean of
//! MOS values. Packets of several flows share a window and their order is not kept, so losses count as random (burst
//! ratio 1); bursts sound worse. Packetisation and jitter buffers of end systems are not included.

use wirestamp_metrics::emodel::{Codec, Parameters};
use wirestamp_metrics::numeric::{count_to_f64, round_to_span};

use super::{Measured, MosUnavailable};

/// Random losses.
const BURST_RATIO: f64 = 1.0;

impl Measured {
    /// Adds the MOS of a call with this codec.
    pub(crate) fn rated(self, codec: Codec) -> Self {
        match self.call_mos(codec) {
            Ok(mos) => Self { mos: Some(mos), ..self },
            Err(why) => Self { no_mos: Some(why), ..self },
        }
    }

    fn call_mos(&self, codec: Codec) -> Result<f64, MosUnavailable> {
        if self.above_minimum_ns.is_none() {
            return Err(MosUnavailable::NoDelay);
        }
        let delay = self.delay_ns.ok_or(MosUnavailable::NotSynchronised)?;
        if self.contradicts_the_clocks {
            return Err(MosUnavailable::ContradictsTheClocks);
        }
        let [lost, matched] = [self.counts.lost, self.counts.matched].map(count_to_f64);
        let call = Parameters::of_call(
            codec,
            round_to_span(delay.mean),
            lost / (lost + matched),
            BURST_RATIO,
        );
        Ok(call.ok_or(MosUnavailable::Codec)?.rating().mos())
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_metrics::Counts;

    use super::*;
    use crate::collector::Spread;

    /// A window with a mean delay of `delay` ms and a loss of `lost` %.
    fn window(delay: f64, lost: u64) -> Measured {
        let spread = Spread { count: 100 - lost, mean: delay * 1e6, ..Spread::default() };
        Measured {
            counts: Counts { matched: 100 - lost, lost, ..Counts::default() },
            delay_ns: Some(spread),
            above_minimum_ns: Some(spread),
            error_ns: Some(1000),
            ..Measured::default()
        }
    }

    fn mos(window: Measured, codec: Codec) -> Result<f64, MosUnavailable> {
        let Measured { mos, no_mos, .. } = window.rated(codec);
        assert!(mos.is_some() != no_mos.is_some());
        mos.ok_or_else(|| no_mos.unwrap())
    }

    /// R of G.107's defaults is 93.2, which is 4.41; 1 % loss costs G.711 95 / (1 + 4.3) = 17.9 of it,
    /// and 75.3 is 3.83.
    #[test]
    fn mos_matches_the_e_model() {
        for (delay, lost, expected) in [(0.0, 0, 4.41), (0.0, 1, 3.83), (-3.0, 0, 4.41)] {
            let found = mos(window(delay, lost), Codec::G711).unwrap();
            assert!((found - expected).abs() < 0.01, "{found} for {delay} ms, {lost} %");
        }
        let [good, late] = [20.0, 400.0].map(|it| mos(window(it, 0), Codec::G711).unwrap());
        assert!(good > 4.3 && late < 3.4, "{good}, {late}");
    }

    #[test]
    fn missing_mos_has_a_reason() {
        let known = window(20.0, 1);
        let nothing = Measured::default();
        let unknown = Measured { delay_ns: None, error_ns: None, ..known.clone() };
        let wrong = Measured { contradicts_the_clocks: true, ..known.clone() };
        for (window, codec, why) in [
            (nothing, Codec::G711, MosUnavailable::NoDelay),
            (unknown, Codec::G711, MosUnavailable::NotSynchronised),
            (wrong, Codec::G711, MosUnavailable::ContradictsTheClocks),
            (known, Codec::G729, MosUnavailable::Codec),
        ] {
            assert_eq!(mos(window, codec), Err(why));
            assert_eq!(serde_json::to_value(why).unwrap(), why.as_ref());
        }
    }
}
