//! Simultaneous impairment: G.107 section 7.3.

use super::parameters::Parameters;

/// Simultaneous impairment Is, equation 7-8, from Ro and No.
pub(super) fn impairment(parameters: &Parameters, basic: f64, noise: f64) -> f64 {
    too_loud(parameters, noise) + sidetone(parameters) + quantisation(parameters, basic)
}

/// Excessive loudness Iolr, equations 7-9 and 7-10.
fn too_loud(parameters: &Parameters, noise: f64) -> f64 {
    let Parameters { send_loudness, receive_loudness, .. } = *parameters;
    let excess = (send_loudness + receive_loudness + 0.2 * (64.0 + noise - receive_loudness)) / 8.0;
    20.0 * (soft_maximum(excess, 8.0) - excess)
}

/// Unsuitable sidetone Ist, equations 7-11 and 7-12.
pub(super) fn sidetone(parameters: &Parameters) -> f64 {
    let Parameters { sidetone_masking, talker_echo_loudness, echo_delay_ms, .. } = *parameters;
    let echo = (-echo_delay_ms / 4.0).exp() * 10f64.powf(-talker_echo_loudness / 10.0);
    let masking = -10.0 * (10f64.powf(-sidetone_masking / 10.0) + echo).log10();
    12.0 * soft_maximum((masking - 13.0) / 6.0, 8.0)
        - 28.0 * soft_maximum((masking + 1.0) / 19.4, 35.0)
        - 13.0 * soft_maximum((masking - 3.0) / 33.0, 13.0)
        + 29.0
}

/// Quantisation distortion Iq, equations 7-13 to 7-17.
fn quantisation(parameters: &Parameters, basic: f64) -> f64 {
    let ratio = 37.0 - 15.0 * parameters.quantisation_units.log10();
    let quality = 1.07 + 0.258 * ratio + 0.0602 * ratio.powi(2);
    let y = (basic - 100.0) / 15.0 + 46.0 / 8.4 - quality / 9.0;
    let z = 46.0 / 30.0 - quality / 40.0;
    15.0 * (1.0 + 10f64.powf(y) + 10f64.powf(z)).log10()
}

/// (1 + x^n)^(1/n): nearly 1 below 1, nearly the magnitude of `x` above.
fn soft_maximum(x: f64, exponent: f64) -> f64 {
    (1.0 + x.abs().powf(exponent)).powf(exponent.recip())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equation 7-11 by hand, term by term, without an echo that would add to the sidetone:
    /// 16.19 - 28 - 13 + 29, 12 - 28 - 13 + 29, 24.01 - 37.53 - 13.01 + 29, 64 - 66.39 - 16.60 + 29.
    #[test]
    fn sidetone_impairment_matches_the_equation() {
        let found = [5.0, 15.0, 25.0, 45.0].map(|sidetone_masking| {
            sidetone(&Parameters {
                sidetone_masking,
                talker_echo_loudness: 200.0,
                ..Parameters::default()
            })
        });
        let expected = [4.192, -0.001, 2.481, 10.009];
        let close = found.iter().zip(expected).all(|(it, truth)| (it - truth).abs() < 0.001);
        assert!(close, "{found:?}");
    }
}
