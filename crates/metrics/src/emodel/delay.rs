//! Delay impairment: G.107 section 7.4.

use super::parameters::Parameters;
use super::simultaneous;

/// Delay below which there is no impairment, mT of table 1 for the default class of delay sensitivity, in
/// milliseconds.
const MIN_AUDIBLE_DELAY_MS: f64 = 100.0;

/// Delay impairment Id, equation 7-18, from Ro and No.
pub(super) fn impairment(parameters: &Parameters, basic: f64, noise: f64) -> f64 {
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
    let sidetone = simultaneous::sidetone(parameters);
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
fn absolute_delay(delay_ms: f64) -> f64 {
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
