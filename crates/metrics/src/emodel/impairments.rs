//! Impairments of a call: G.107 sections 7.2 to 7.4.

use super::parameters::Parameters;

/// Delay below which there is no impairment, mT of table 1 for the default class of delay sensitivity, in
/// milliseconds.
const MIN_AUDIBLE_DELAY_MS: f64 = 100.0;

/// Basic signal-to-noise ratio Ro, equation 7-2, from the noise of [`total_noise`].
pub(super) fn signal_to_noise(parameters: &Parameters, noise: f64) -> f64 {
    15.0 - 1.5 * (parameters.send_loudness + noise)
}

/// Power sum of all noises No, equation 7-3, in dBm0p.
pub(super) fn total_noise(parameters: &Parameters) -> f64 {
    power_sum([
        parameters.circuit_noise,
        of_send_room(parameters),
        of_receive_room(parameters),
        // Nfo, equation 7-7.
        parameters.noise_floor + parameters.receive_loudness,
    ])
}

/// Room noise at the send side Nos, equation 7-4.
fn of_send_room(parameters: &Parameters) -> f64 {
    let Parameters { send_loudness, receive_loudness, send_d_value, send_room_noise, .. } =
        *parameters;
    let overall = send_loudness + receive_loudness;
    let excess = send_room_noise - overall - send_d_value - 14.0;
    send_room_noise - send_loudness - send_d_value - 100.0 + 0.004 * excess.powi(2)
}

/// Room noise at the receive side Nor, equations 7-5 and 7-6.
fn of_receive_room(parameters: &Parameters) -> f64 {
    let effective = power_sum([
        parameters.receive_room_noise,
        parameters.receive_room_noise + 10.0 - parameters.listener_sidetone,
    ]);
    parameters.receive_loudness - 121.0 + effective + 0.008 * (effective - 35.0).powi(2)
}

/// Sum of levels in decibels.
fn power_sum<const N: usize>(levels: [f64; N]) -> f64 {
    10.0 * levels.iter().map(|level| 10f64.powf(level / 10.0)).sum::<f64>().log10()
}

/// Simultaneous impairment Is, equation 7-8, from Ro and No.
pub(super) fn simultaneous_impairment(parameters: &Parameters, basic: f64, noise: f64) -> f64 {
    too_loud(parameters, noise) + sidetone(parameters) + quantisation(parameters, basic)
}

/// Excessive loudness Iolr, equations 7-9 and 7-10.
fn too_loud(parameters: &Parameters, noise: f64) -> f64 {
    let Parameters { send_loudness, receive_loudness, .. } = *parameters;
    let excess = (send_loudness + receive_loudness + 0.2 * (64.0 + noise - receive_loudness)) / 8.0;
    20.0 * (soft_maximum(excess, 8.0) - excess)
}

/// Unsuitable sidetone Ist, equations 7-11 and 7-12.
fn sidetone(parameters: &Parameters) -> f64 {
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

/// Delay impairment Id, equation 7-18, from Ro and No.
pub(super) fn delay_impairment(parameters: &Parameters, basic: f64, noise: f64) -> f64 {
    talker_echo(parameters, noise)
        + listener_echo(parameters, basic)
        + absolute_delay(parameters.absolute_delay_ms)
}

/// Talker echo Idte, equations 7-19 to 7-24. With an echo as weak as the default, the equations give up to 0.11 below
/// zero for delays of 1 to 4 ms.
fn talker_echo(parameters: &Parameters, noise: f64) -> f64 {
    let delay = parameters.echo_delay_ms;
    if delay < 1.0 {
        return 0.0; // a sidetone, not an echo
    }
    let sidetone = sidetone(parameters);
    let mut loudness = parameters.talker_echo_loudness
        - 40.0 * ((1.0 + delay / 10.0) / (1.0 + delay / 150.0)).log10()
        + 6.0 * (-0.3 * delay.powi(2)).exp();
    if parameters.sidetone_masking < 9.0 {
        loudness += sidetone / 2.0; // a loud sidetone hides the echo
    }
    let without = -1.5 * (noise - parameters.receive_loudness);
    let with = 80.0 + 2.5 * (loudness - 14.0);
    let echo = (echo_reduction(without, with, 100.0) - 1.0) * (1.0 - (-delay).exp());
    if parameters.sidetone_masking > 20.0 { echo.hypot(sidetone) } else { echo }
}

/// Listener echo Idle, equations 7-25 and 7-26.
fn listener_echo(parameters: &Parameters, basic: f64) -> f64 {
    let with = 10.5
        * (parameters.weighted_echo_path_loss + 7.0)
        * (parameters.round_trip_ms + 1.0).powf(-0.25);
    echo_reduction(basic, with, 169.0)
}

/// Reduction of a rating by an echo, common to both echoes: half the difference plus the root of its square with a
/// constant added.
fn echo_reduction(without: f64, with: f64, constant: f64) -> f64 {
    let half = (without - with) / 2.0;
    half + (half.powi(2) + constant).sqrt()
}

/// Absolute delay Idd, equations 7-27 and 7-28, with a sensitivity sT of 1: a delay too long for a conversation, even
/// without an echo.
pub(super) fn absolute_delay(delay_ms: f64) -> f64 {
    if delay_ms <= MIN_AUDIBLE_DELAY_MS {
        return 0.0;
    }
    let x = (delay_ms / MIN_AUDIBLE_DELAY_MS).log2();
    let bend = |x: f64| (1.0 + x.powi(6)).powf(6f64.recip());
    25.0 * (bend(x) - 3.0 * bend(x / 3.0) + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The equations by hand: -36 + 0.004 · 48², and with Pre = 75 + 10 log (1 + 10^-0.8) = 75.64,
    /// -43.36 + 0.008 · 40.64².
    #[test]
    fn room_noise_matches_the_equations() {
        let loud =
            Parameters { send_room_noise: 75.0, receive_room_noise: 75.0, ..Parameters::default() };
        assert!((of_send_room(&loud) + 26.784).abs() < 0.001, "{}", of_send_room(&loud));
        assert!((of_receive_room(&loud) + 30.149).abs() < 0.001, "{}", of_receive_room(&loud));
    }

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

    #[test]
    fn delay_up_to_100_ms_has_no_impairment() {
        assert_eq!([0.0, 50.0, 100.0].map(absolute_delay), [0.0; 3]);
        assert!(absolute_delay(100.1) >= 0.0);
    }

    #[test]
    fn an_echo_within_a_millisecond_is_a_sidetone() {
        let echo = |echo_delay_ms| {
            talker_echo(&Parameters { echo_delay_ms, ..Parameters::default() }, -61.0)
        };
        assert_eq!(echo(0.9), 0.0);
        assert!(echo(1.0) < -0.1 && echo(10.0) > 0.1);
    }

    /// The equations by hand, for an audible echo: TERV = 45 - 40 log (6 / 1.333) = 18.87, so Re = 92.18, Roe = 94.5,
    /// and Idte = 1.16 + root (1.16² + 100) - 1; Rle = 388.5 · 101^-0.25 = 122.55, and Idle = -14.27 + root (14.27² +
    /// 169).
    #[test]
    fn echo_impairment_matches_the_equations() {
        let parameters = Parameters {
            talker_echo_loudness: 45.0,
            echo_delay_ms: 50.0,
            weighted_echo_path_loss: 30.0,
            round_trip_ms: 100.0,
            ..Parameters::default()
        };
        let (talker, listener) =
            (talker_echo(&parameters, -61.0), listener_echo(&parameters, 94.0));
        assert!((talker - 10.228).abs() < 0.001, "{talker}");
        assert!((listener - 5.032).abs() < 0.001, "{listener}");
    }

    /// At twice this delay X is 1: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2).
    #[test]
    fn delay_of_200_ms_costs_three() {
        assert!((absolute_delay(200.0) - 3.0444).abs() < 0.0001, "{}", absolute_delay(200.0));
    }
}
