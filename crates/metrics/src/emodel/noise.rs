//! Basic signal-to-noise ratio: G.107 section 7.2.

use super::parameters::Parameters;

/// Basic signal-to-noise ratio Ro, equation 7-2, from the noise of [`sum`].
pub(super) fn signal_to_noise(parameters: &Parameters, noise: f64) -> f64 {
    15.0 - 1.5 * (parameters.send_loudness + noise)
}

/// Power sum of all noises No, equation 7-3, in dBm0p.
pub(super) fn sum(parameters: &Parameters) -> f64 {
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
}
