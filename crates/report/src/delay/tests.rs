use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_metrics::emodel::Codec;
use wirestamp_metrics::{Observation, Outcome};
use wirestamp_packet::{FlowKey, PacketId};

use super::*;

fn seen(id: u64, nanos: i64) -> Observation {
    let stamp = Stamp {
        raw: RawStamp { domain: Domain::Realtime, value: nanos.unsigned_abs() },
        utc: Time::from_nanos(nanos),
        error: Span::from_nanos(20),
    };
    let address = ([10, 77, 1, 1], 5060).into();
    let flow = FlowKey { source: address, destination: address, protocol: 17 };
    Observation { id: PacketId(id), flow, length: 214, stamp }
}

/// A packet every 20 ms, of which every `losing`th is lost, with delays from 1 ms to `most`.
fn call(packets: u64, losing: u64, most: i64) -> Quality {
    let mut quality = Quality::of_flow();
    for id in 0..packets {
        let at = id.cast_signed() * 20_000_000;
        let delay = 1_000_000 + id.cast_signed() * 7_919_003 % (most - 1_000_000);
        let sent = seen(id, at);
        quality.record(&if losing > 0 && id % losing == 0 {
            Outcome::Lost { sent, sequence: id }
        } else {
            Outcome::Matched {
                sent,
                received: seen(id, at + delay),
                sequence: id,
                delay: Span::from_nanos(delay),
                error: Span::from_nanos(40),
                reordered: false,
                since_previous: Some(Span::from_nanos(delay % 1000)),
                until_next: None,
            }
        });
    }
    quality
}

fn report(quality: &Quality) -> DelayReport<'_> {
    let call = quality.as_call(&Codec::G711.into()).map(|rating| Call {
        buffer: JitterBuffer::default(),
        codec: "g711".into(),
        rating,
        over_time: quality.as_call_over_time(&Codec::G711.into()),
    });
    let more = vec![("Round <b>trip".to_owned(), "7 ms".to_owned())];
    let subject = Subject {
        name: "<b>udp</b>".into(),
        quality,
        is_loss_unknown: false,
        clock_error_ns: Some(40),
        call,
        more,
    };
    DelayReport {
        title: "A <script> measurement".into(),
        generated_at: "2026-11-21 10:00 UTC".into(),
        summary: vec![verdict(quality, false)],
        subjects: vec![subject.clone(), subject],
        sections: 1,
        trust: vec![("Skew".into(), "0.1 ± 0.2 ppm <i>".into())],
        ..DelayReport::default()
    }
}

#[test]
fn the_page_says_what_was_measured_and_interprets_nothing() {
    let quality = call(5000, 100, 3_000_000);
    let page = report(&quality).html();
    for text in [
        "5\u{202f}000",
        "50 (1.00\u{202f}%)",
        "loss, 1.00\u{202f}%",
        "burst ratio 0.99",
        "50 in 50 runs, the longest of 1 packet",
        "As a phone call",
        "Round &lt;b&gt;trip",
        "1 flow has no section below",
        "Red ticks",
        "RFC 5481",
    ] {
        assert!(page.contains(text), "{text}");
    }
    for foreign in ["<script", "<b>udp", "<i>", "http", "src=", "NaN", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // One section has delay and MOS over time in two sizes, and two histograms.
    assert_eq!(page.matches("<svg ").count(), 6);
    assert!(page.len() < 300_000, "{}", page.len());
}

#[test]
fn relative_delays_are_shown_as_such() {
    let quality = call(500, 0, 3_000_000);
    let page = DelayReport { relative: true, ..report(&quality) }.html();
    assert!(page.contains("Mean PDV") && page.contains("delay above the least"));
    assert!(!page.contains("One-way delay (µs)") && !page.contains("Mean delay"));
}

#[test]
fn the_volume_of_a_sample_is_not_taken_for_that_of_all() {
    let quality = call(500, 0, 3_000_000);
    let page = DelayReport { sampled: true, ..report(&quality) }.html();
    assert!(page.contains("Throughput of the sample") && page.contains("between packets chosen"));
    assert!(!report(&quality).html().contains("of the sample"));
}

#[test]
fn what_hurts_is_what_exceeds_the_limits() {
    for (quality, hurts) in [
        (call(2000, 0, 3_000_000), "good enough"),
        (call(2000, 2000, 3_000_000), "good enough"),
        (call(2000, 900, 3_000_000), "loss, 0.150"),
        (call(2000, 0, 80_000_000), "delay variation"),
        (call(2000, 0, 300_000_000), "delay variation; delay."),
    ] {
        let said = verdict(&quality, false);
        assert!(said.contains(hurts), "{hurts} in {said}");
    }
    assert!(!verdict(&call(2000, 0, 300_000_000), true).contains("; delay."));
}

#[test]
fn a_report_of_nothing_is_a_page() {
    assert!(DelayReport::default().html().contains("No packet was seen."));
    let nothing = Quality::of_flow();
    assert!(report(&nothing).html().contains("No packet was observed"));
    let lost = call(3, 1, 3_000_000);
    assert!(report(&lost).html().contains("No packet arrived"));
    let mut others = Quality::new();
    others.merge(&Quality::new());
    assert!(report(&others).html().contains("No packet was observed"));
}
