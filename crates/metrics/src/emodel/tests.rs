use proptest::prelude::*;
use wirestamp_clock::Span;

use super::*;

fn call(codec: Codec, delay_ms: i64, loss_ratio: f64, burst_ratio: f64) -> Rating {
    Parameters::of_call(codec, Span::from_millis(delay_ms), loss_ratio, burst_ratio)
        .expect("a codec with a robustness")
        .rating()
}

fn close(found: f64, expected: f64, within: f64) -> bool {
    (found - expected).abs() <= within
}

#[test]
fn the_default_rating_has_the_mos_of_the_recommendation() {
    let rating = Parameters::default().rating();
    assert!(close(rating.mos(), 4.41, 0.005), "{}", rating.mos());
}

/// G.107 table B.1, which rounds the 4.024 that belong to R = 80 up.
#[test]
fn mos_matches_the_table() {
    for (r, mos) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
        assert!(close(mos_of(r), mos, 0.0065), "{r}: {}", mos_of(r));
    }
}

#[test]
fn mos_stays_on_the_scale() {
    let found = [-20.0, 0.0, 3.0, 100.0, 120.0].map(mos_of);
    assert_eq!(found, [1.0, 1.0, 1.0, 4.5, 4.5]);
}

#[test]
fn nan_input_gives_nan() {
    let undefined = call(Codec::G711, 0, f64::NAN, 1.0);
    assert!(undefined.r_factor().is_nan() && undefined.mos().is_nan());
    assert!(call(Codec::G711, 0, 0.1, f64::NAN).mos().is_nan());
}

#[test]
fn without_loss_a_codec_costs_its_impairment() {
    for codec in Codec::all() {
        let parameters = Parameters::of_call(codec, Span::ZERO, 0.0, 1.0).expect("no loss");
        assert_eq!(parameters.rating().equipment, codec.equipment_impairment());
    }
}

/// Equation 7-29 by hand: 95 · 1 / (1 + 25.1), 11 + 84 · 2 / (2 + 19), and 95 · 4.3 / (4.3 / 2 + 4.3).
#[test]
fn loss_impairment_matches_the_equation() {
    let found = [
        call(Codec::G711Concealing, 0, 0.01, 1.0).equipment,
        call(Codec::G729A, 0, 0.02, 1.0).equipment,
        call(Codec::G711, 0, 0.043, 2.0).equipment,
    ];
    let expected = [3.640, 19.0, 63.333];
    assert!(found.iter().zip(expected).all(|(it, truth)| close(*it, truth, 0.001)), "{found:?}");
}

/// G.107.1 section 7.7: R = 129 without impairments, MOS 4.5. The MOS of the modes of AMR-WB by G.107.1 Annex A.
#[test]
fn wideband_ratings_follow_their_recommendation() {
    let unimpaired = Parameters { scale: Scale::Wideband, ..Parameters::default() }.rating();
    assert_eq!((unimpaired.r_factor(), unimpaired.mos()), (129.0, 4.5));
    let mos = [3.51, 4.02, 4.34, 4.39, 4.43, 4.46, 4.48, 4.49, 4.42];
    for (mode, mos) in (0..).zip(mos) {
        let codec = Codec::amr_wb(mode).expect("a mode");
        let rating = Parameters::of_call(codec, Span::from_millis(100), 0.0, 1.0).expect("no loss");
        assert!(close(rating.rating().mos(), mos, 0.006), "{codec}: {}", rating.rating().mos());
    }
    let late = Parameters::of_call(Codec::AmrWb1265, Span::from_millis(200), 0.0, 1.0);
    assert!(close(late.expect("no loss").rating().r_factor(), 129.0 - 13.0 - 3.044, 0.001));
}

/// G.107.2: R = 148 without impairments, MOS 4.5. The rest are the equations by hand: 7.2 + 124.8 · 2 / (2 + 11.4), and at
/// 200 ms 1.48 · 3.0444; the MOS of R / 1.48 = 82.55.
#[test]
fn fullband_ratings_follow_their_recommendation() {
    let unimpaired = Parameters { scale: Scale::Fullband, ..Parameters::default() }.rating();
    assert_eq!((unimpaired.r_factor(), unimpaired.mos()), (148.0, 4.5));
    let lossy = call(Codec::EvsSwb2440, 100, 0.02, 1.0);
    assert!(close(lossy.equipment, 25.827, 0.001), "{lossy:?}");
    assert!(close(lossy.mos(), 4.117, 0.001), "{}", lossy.mos());
    let late = call(Codec::EvsSwb2440, 200, 0.0, 1.0);
    assert!(close(late.r_factor(), 148.0 - 4.5057 - 7.2, 0.001), "{late:?}");
    let bursty = call(Codec::EvsSwb2440, 100, 0.02, 2.0);
    assert!(bursty.is_extrapolated && close(bursty.r_factor(), lossy.r_factor(), 1e-9));
}

/// 148 - (20.209 + 111.791 · 1 / (1 + 11.28)), and 129 - 19.959; the values of Alahmadi et al.
#[test]
fn opus_is_rated_on_the_scale_of_its_bandwidth() {
    let lossy = call(Codec::OpusSwbVbr25, 0, 0.01, 1.0);
    assert!(close(lossy.r_factor(), 148.0 - 20.209 - 111.791 / 12.28, 0.001), "{lossy:?}");
    let wideband = call(Codec::OpusWbVbr13, 0, 0.0, 1.0);
    assert!(close(wideband.r_factor(), 129.0 - 19.959, 0.001), "{wideband:?}");
}

#[test]
fn loss_without_codec_robustness_is_not_rated() {
    let parameters = |loss| Parameters::of_call(Codec::G729, Span::ZERO, loss, 1.0);
    assert!(parameters(0.0).is_some());
    assert_eq!(parameters(0.01), None);
}

/// Cole & Rosenbluth fit two straight lines to the delay impairment of G.107 up to 400 ms: 0.024 d, and 0.11 (d -
/// 177.3) more from 177.3 ms on. The tolerance for the curve is 3 on the scale of R.
#[test]
fn delay_impairment_follows_the_published_fit() {
    for delay in (0..=400).step_by(10) {
        let found = call(Codec::G711, delay, 0.0, 1.0).delay;
        let delay = f64::from(i32::try_from(delay).expect("small"));
        let fit = 0.024 * delay + 0.11 * (delay - 177.3).max(0.0);
        assert!(close(found, fit, 3.0), "{delay} ms: {found} and {fit}");
    }
}

#[test]
fn a_negative_delay_is_none() {
    assert_eq!(call(Codec::G711, -5, 0.0, 1.0), call(Codec::G711, 0, 0.0, 1.0));
}

#[test]
fn values_beyond_the_table_are_extrapolated() {
    let beyond = |delay, loss, burst| {
        Parameters::of_call(Codec::G711, Span::from_millis(delay), loss, burst)
            .expect("a robustness")
            .extrapolates()
    };
    assert!(!beyond(500, 0.2, 8.0));
    assert!(beyond(501, 0.0, 1.0) && beyond(0, 0.21, 1.0) && beyond(0, 0.0, 8.1));
}

proptest! {
    #[test]
    fn more_delay_is_never_better(delay in 0i64..1000, more in 1i64..500) {
        let rated = |delay| call(Codec::G711, delay, 0.0, 1.0).r_factor();
        // The talker echo may be below zero, see `impairments.rs`.
        let excess = if delay < 4 { 0.06 } else { 1e-9 };
        prop_assert!(rated(delay + more) <= rated(delay) + excess);
    }

    #[test]
    fn more_or_burstier_loss_is_never_better(
        loss in 0.0..1.0f64, more in 0.0..1.0f64, burst in 1.0..8.0f64, burstier in 0.0..8.0f64,
    ) {
        let rated = |loss, burst| call(Codec::G729A, 50, loss, burst).r_factor();
        prop_assert!(rated(loss + more, burst) <= rated(loss, burst) + 1e-9);
        prop_assert!(rated(loss, burst + burstier) <= rated(loss, burst) + 1e-9);
    }

    #[test]
    fn mos_grows_with_the_rating(r in -50.0..150.0f64, more in 0.0..50.0f64) {
        prop_assert!(mos_of(r + more) >= mos_of(r));
    }
}
