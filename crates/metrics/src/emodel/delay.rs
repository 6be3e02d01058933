//! What delay does to a conversation: G.107 section 7.4.

use super::parameters::Parameters;
use super::simultaneous;

/// The delay that is not noticed, mT of table 1 for the default class of delay sensitivity, in
/// milliseconds.
const NOT_NOTICED_MS: f64 = 100.0;

/// Id, equation 7-18, from Ro and No.
pub(super) fn impairment(parameters: &Parameters, basic: f64, noise: f64) -> f64 {
    talker_echo(parameters, noise)
        + listener_echo(parameters, basic)
        + too_long(parameters.absolute_delay_ms)
}

/// Idte, equations 7-19 to 7-24: the talker hears himself. With an echo as weak as the default it
/// comes out as up to 0.11 below zero for delays of 1 to 4 ms; that is as the equations have it.
fn talker_echo(parameters: &Parameters, noise: f64) -> f64 {
    let delay = parameters.echo_delay_ms;
    if delay < 1.0 {
        return 0.0; // it is a sidetone then
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
    let echo = (lowered(without, with, 100.0) - 1.0) * (1.0 - (-delay).exp());
    if parameters.sidetone_masking > 20.0 { echo.hypot(sidetone) } else { echo }
}

/// Idle, equations 7-25 and 7-26: the listener hears the talker twice.
fn listener_echo(parameters: &Parameters, basic: f64) -> f64 {
    let with = 10.5
        * (parameters.weighted_echo_path_loss + 7.0)
        * (parameters.round_trip_ms + 1.0).powf(-0.25);
    lowered(basic, with, 169.0)
}

/// How much lower a rating gets by an echo, the form that both echoes share: half the difference and
/// the root of its square with a constant added.
fn lowered(without: f64, with: f64, constant: f64) -> f64 {
    let half = (without - with) / 2.0;
    half + (half.powi(2) + constant).sqrt()
}

/// Idd, equations 7-27 and 7-28, with a sensitivity sT of 1: a delay too long for a conversation, even
/// without an echo.
fn too_long(delay_ms: f64) -> f64 {
    if delay_ms <= NOT_NOTICED_MS {
        return 0.0;
    }
    let x = (delay_ms / NOT_NOTICED_MS).log2();
    let bend = |x: f64| (1.0 + x.powi(6)).powf(6f64.recip());
    25.0 * (bend(x) - 3.0 * bend(x / 3.0) + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_100_ms_a_delay_alone_is_not_noticed() {
        assert_eq!([0.0, 50.0, 100.0].map(too_long), [0.0; 3]);
        assert!(too_long(100.1) >= 0.0);
    }

    #[test]
    fn an_echo_within_a_millisecond_is_a_sidetone() {
        let echo = |echo_delay_ms| {
            talker_echo(&Parameters { echo_delay_ms, ..Parameters::default() }, -61.0)
        };
        assert_eq!(echo(0.9), 0.0);
        assert!(echo(1.0) < -0.1 && echo(10.0) > 0.1);
    }

    /// The equations by hand, for an echo that is heard: TERV = 45 - 40 log (6 / 1.333) = 18.87, so
    /// Re = 92.18, Roe = 94.5, and Idte = 1.16 + root (1.16² + 100) - 1; Rle = 388.5 · 101^-0.25 = 122.55, and
    /// Idle = -14.27 + root (14.27² + 169).
    #[test]
    fn echoes_cost_what_the_equations_say() {
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

    /// At twice the unnoticed delay X is 1: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2).
    #[test]
    fn twice_the_delay_that_is_not_noticed_costs_three() {
        assert!((too_long(200.0) - 3.0444).abs() < 0.0001, "{}", too_long(200.0));
    }
}
