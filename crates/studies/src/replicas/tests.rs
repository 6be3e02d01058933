//! Real packets; needs root.

use super::*;

/// Sends packets whose delay changes after the first half, and returns the result of the taps.
fn measured(technique: &str) -> Measured {
    let round = Round {
        technique: Technique::named(technique).unwrap(),
        frame_bytes: 64,
        interval: Span::from_micros(100),
        packets: 400,
        time: Span::from_secs(20),
        delay: &|number| Span::from_micros(if number < 200 { 20 } else { 60 }),
        stressed: false,
    };
    Bed::build().unwrap().run(&round, &Stop::new().unwrap()).unwrap()
}

#[test]
fn the_taps_see_both_replicas_of_each_packet_and_the_sender_knows_the_delay() {
    for technique in ["ring:kernel", "recvmsg:raw", "xdp:xdp", "xdp-pass:xdp"] {
        let Measured { packets, losses, seconds } = measured(technique);
        assert_eq!((packets.len(), losses.unexplained), (400, 0), "{technique}: {losses:?}");
        assert!(seconds >= 0.039, "{technique}: {seconds}");
        let (early, late) = packets.split_at(200);
        // The counter's own rate may be known less well than to the nanosecond.
        assert!(early.iter().all(|(truth, _)| *truth > 19_990.0), "{technique}");
        assert!(late.iter().all(|(truth, _)| *truth > 59_980.0), "{technique}");
        let missing = packets.iter().filter(|(_, delay)| delay.is_none()).count();
        let lost = losses.captures + losses.interfaces;
        assert!(u64::try_from(missing).unwrap() <= lost, "{technique}: {missing}, {losses:?}");
    }
}

#[test]
fn a_frame_that_no_number_fits_in_is_refused() {
    let round = Round {
        technique: Technique::named("ring:kernel").unwrap(),
        frame_bytes: 40,
        interval: Span::ZERO,
        packets: 1,
        time: Span::from_secs(1),
        delay: &|_| Span::ZERO,
        stressed: false,
    };
    let error = Bed::build().unwrap().run(&round, &Stop::new().unwrap()).map(drop).unwrap_err();
    assert!(error.to_string().contains("no room"), "{error:#}");
}
