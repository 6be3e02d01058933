//! Errors of transport streams that ffmpeg writes and the test damages in known ways.

mod stream;

use std::path::Path;

use serde_json::Value;

use super::rtcp::SECOND;
use crate::common::tool;
use stream::{
    AUDIO, MAP, NULL, Packet, VIDEO, absences, arrival, blank, breaks, capture, clock, constant,
    datagrams, multiplex, pid, report, shift_clock,
};

/// The keys of all errors.
const ERRORS: [&str; 14] = [
    "sync_losses",
    "sync_byte_errors",
    "pat_errors",
    "continuity_errors",
    "pmt_errors",
    "pid_errors",
    "transport_errors",
    "crc_errors",
    "pcr_repetition_errors",
    "pcr_discontinuity_errors",
    "pcr_accuracy_errors",
    "pts_errors",
    "cat_errors",
    "malformed_packets",
];

const HALF_SECOND: u64 = 500_000_000;

/// Asserts these errors, and no others. `None` is unknown.
#[track_caller]
fn assert_errors(found: &Value, expected: &[(&str, Option<u64>)]) {
    for key in ERRORS {
        let expected = expected.iter().find(|(name, _)| *name == key).map_or(Some(0), |it| it.1);
        assert_eq!(found[key].as_u64(), expected, "{key}: {found:#}");
    }
}

/// Reports the stream after `damage`.
fn damaged(path: &Path, packets: &[Packet], damage: impl FnOnce(&mut Vec<Packet>)) -> Value {
    let mut packets = packets.to_vec();
    damage(&mut packets);
    report(path, &datagrams(&packets), &[])
}

#[test]
fn errors_of_damaged_streams_equal_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stream.pcap");
    let packets = constant(folder.path());
    clean_stream(&path, &packets);
    bytes_of_packets(&path, &packets);
    missing_tables_and_pids(&path, &packets);
    clock_references(&path, &packets);
    lost_datagrams(&path, &packets);
    delivery_index(&path, &packets);
}

fn clean_stream(path: &Path, packets: &[Packet]) {
    let found = report(path, &datagrams(packets), &[]);
    assert_errors(&found, &[]);
    let references = packets.iter().filter(|it| clock(it).is_some()).count();
    let nulls = packets.iter().filter(|it| pid(it) == NULL).count();
    assert_eq!(found["packets"], packets.len(), "{found:#}");
    assert_eq!(found["null_packets"], nulls, "{found:#}");
    // Of windows of 32 references that overlap by two, the inner ones.
    assert_eq!(found["pcr_accuracy_checked"], (references - 2) / 30 * 30, "{found:#}");
    assert!(found["pcr_accuracy_max_ns"].as_f64() < Some(38.0), "{found:#}");
}

fn bytes_of_packets(path: &Path, packets: &[Packet]) {
    // Null packets have no counters: nothing else is wrong where their sync byte is.
    let nulls: Vec<_> = (700..packets.len()).filter(|it| pid(&packets[*it]) == NULL).collect();
    let alone: Vec<_> =
        nulls.windows(3).filter(|it| it[0] + 1 < it[1] && it[1] + 1 < it[2]).collect();
    let found = damaged(path, packets, |packets| {
        alone[..3].iter().for_each(|it| packets[it[1]][0] = 0);
    });
    assert_errors(&found, &[("sync_byte_errors", Some(3))]);
    let pair = nulls.windows(2).find(|it| it[0] + 1 == it[1]).unwrap();
    let found = damaged(path, packets, |packets| {
        pair.iter().for_each(|it| packets[*it][0] = 0);
    });
    let accuracy = found["pcr_accuracy_errors"].as_u64();
    assert_eq!(accuracy, Some(0));
    assert_errors(&found, &[("sync_byte_errors", Some(2)), ("sync_losses", Some(1))]);
    let found = damaged(path, packets, |packets| {
        nulls[..4].iter().for_each(|it| packets[*it][1] |= 0x80);
    });
    assert_errors(&found, &[("transport_errors", Some(4))]);
    let associations: Vec<_> = (700..packets.len()).filter(|it| pid(&packets[*it]) == 0).collect();
    let found = damaged(path, packets, |packets| {
        [2, 7, 20].iter().for_each(|it| packets[associations[*it]][15] ^= 0x10);
    });
    assert_errors(&found, &[("crc_errors", Some(3))]);
    // A map on the PID of the conditional access table.
    let map = packets.iter().find(|it| pid(it) == MAP).unwrap();
    let found = damaged(path, packets, |packets| {
        packets[nulls[9]] = *map;
        packets[nulls[9]][1..3].copy_from_slice(&[0x40, 1]);
    });
    assert_errors(&found, &[("cat_errors", Some(1))]);
    let found = damaged(path, packets, |packets| {
        packets[nulls[9]..].iter_mut().filter(|it| pid(it) == VIDEO).for_each(|it| it[3] |= 0x80);
    });
    // The stream has no such table; after 5 s and after 10 s. Encrypted time stamps are not due.
    let periods = (arrival(packets.len()) - arrival(nulls[9])) / 5_000_000_000;
    assert_errors(&found, &[("cat_errors", Some(periods))]);
}

fn missing_tables_and_pids(path: &Path, packets: &[Packet]) {
    for (missing, key) in [(0, "pat_errors"), (MAP, "pmt_errors")] {
        let mut left = packets.to_vec();
        blank(&mut left, |place, packet| pid(packet) == missing && (2000..6000).contains(&place));
        let expected = absences(&left, HALF_SECOND, |it| pid(it) == missing);
        assert_eq!(expected, 6, "3 s without it");
        let continuity = u64::try_from(breaks(&datagrams(&left)).len()).unwrap();
        let found = report(path, &datagrams(&left), &[]);
        let accuracy = found["pcr_accuracy_errors"].as_u64();
        let errors = [
            (key, Some(expected)),
            ("continuity_errors", Some(continuity)),
            ("pcr_accuracy_errors", accuracy),
        ];
        assert_errors(&found, &errors);
        assert_eq!(accuracy, Some(0));
    }
    let mut left = packets.to_vec();
    blank(&mut left, |place, packet| pid(packet) == AUDIO && (2000..11_000).contains(&place));
    for (options, period) in [(&[][..], 5), (&["--pid-period", "2s"], 2)] {
        let expected = absences(&left, period * 2 * HALF_SECOND, |it| pid(it) == AUDIO);
        assert_eq!(expected, [3, 1][usize::from(period == 5)], "6.8 s without it");
        let continuity = u64::try_from(breaks(&datagrams(&left)).len()).unwrap();
        let errors = [
            ("pid_errors", Some(expected)),
            ("pts_errors", Some(1)),
            ("continuity_errors", Some(continuity)),
        ];
        assert_errors(&report(path, &datagrams(&left), options), &errors);
    }
}

fn clock_references(path: &Path, packets: &[Packet]) {
    let references: Vec<_> =
        (0..packets.len()).filter(|it| clock(&packets[*it]).is_some()).collect();
    let checked = (references.len() - 2) / 30 * 30;
    // 13 ticks are 481 ns, 14 are 519 ns; 2,000 are 74 µs.
    for (ticks, is_error) in [(13, false), (14, true), (2000, true)] {
        let wrong: Vec<_> = (5..references.len()).step_by(11).collect();
        let found = damaged(path, packets, |packets| {
            wrong.iter().for_each(|it| shift_clock(&mut packets[references[*it]], ticks));
        });
        let count = wrong.iter().filter(|it| (1..=checked).contains(*it)).count();
        let count = if is_error { u64::try_from(count).ok() } else { Some(0) };
        assert_errors(&found, &[("pcr_accuracy_errors", count)]);
    }
    // 10 references of 20 ms are missing: the values step by 220 ms, too.
    let found = damaged(path, packets, |packets| {
        references[100..110].iter().for_each(|it| packets[*it][5] &= !0x10);
    });
    let gap = [("pcr_repetition_errors", Some(1)), ("pcr_discontinuity_errors", Some(1))];
    assert_errors(&found, &gap);
    let found = damaged(path, packets, |packets| {
        references[300..].iter().for_each(|it| shift_clock(&mut packets[*it], 27_000_000));
    });
    assert_errors(&found, &[("pcr_discontinuity_errors", Some(1))]);
}

fn lost_datagrams(path: &Path, packets: &[Packet]) {
    let all = datagrams(packets);
    let is_lost = |number: usize| number > 4 && (number % 97 == 50 || number % 300 < 2);
    let left: Vec<_> = (0..all.len()).filter(|it| !is_lost(*it)).map(|it| all[it]).collect();
    let breaks = breaks(&left);
    let found = report(path, &left, &[]);
    let count = u64::try_from(breaks.len()).unwrap();
    assert!(count > 20);
    // The bitrate is known between the losses.
    assert_errors(&found, &[("continuity_errors", Some(count))]);
    // tshark counts one packet fewer where the next one has no payload.
    let skips = breaks.iter().map(|it| it.missing - u64::from(!it.has_payload));
    let expected: Vec<_> = skips.filter(|it| *it > 0).collect();
    assert_eq!(tshark_skips(path), expected);
}

/// Missing packets before each break, as tshark counts them.
fn tshark_skips(path: &Path) -> Vec<u64> {
    let fields = ["-Y", "mp2t.analysis.skips", "-T", "fields", "-e", "mp2t.analysis.skips"];
    let options = ["-r", path.to_str().unwrap(), "-d", "udp.port==5004,mp2t"];
    let text = tool("tshark", &[&options[..], &fields].concat());
    text.split([',', '\n']).filter_map(|it| it.trim().parse().ok()).collect()
}

fn delivery_index(path: &Path, packets: &[Packet]) {
    let all = datagrams(packets);
    // All of these seconds but the last are complete.
    let seconds = usize::try_from(all.last().unwrap().0 / SECOND).unwrap();
    let index = |datagrams: &[(u64, &[Packet])]| {
        let found = report(path, datagrams, &[])["media_delivery"].clone();
        ["media_rate_bps", "delay_factor_ms", "max_delay_factor_ms", "loss_rate", "max_loss_rate"]
            .map(|key| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {found:#}")))
    };
    #[track_caller]
    fn assert_near(found: [f64; 5], expected: [f64; 5]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= b.abs() * 1e-6;
        assert!(found.iter().zip(&expected).all(is_near), "{found:?} {expected:?}");
    }
    // One datagram lasts 5.264 ms.
    assert_near(index(&all), [2e6, 5.264, 5.264, 0.0, 0.0]);
    // The datagrams of 10 intervals arrive together, so that the buffer has to hold 10.
    let mut late = all.clone();
    let until = late[1210].0;
    late[1201..1210].iter_mut().for_each(|it| it.0 = until);
    assert_near(index(&late), [2e6, 5.264, 52.64, 0.0, 0.0]);
    // Losses within two seconds.
    let is_lost = |number: usize| [700, 760, 761, 1100].contains(&number);
    let left: Vec<_> = (0..all.len()).filter(|it| !is_lost(*it)).map(|it| all[it]).collect();
    let mut lost = vec![0; seconds + 1];
    for it in breaks(&left) {
        lost[usize::try_from(it.time / SECOND).unwrap()] += it.missing;
    }
    let max = *lost[..seconds].iter().max().unwrap();
    assert!(max >= 7 && lost[seconds - 1] == 0, "{lost:?}");
    let found = index(&left);
    assert_eq!(found[3..], [0.0, f64::from(u32::try_from(max).unwrap())], "{lost:?}");
    assert!((found[0] - 2e6).abs() < 1.0, "{found:?}");
}

#[test]
fn accuracy_of_clocks_is_unknown_at_a_variable_bitrate() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stream.pcap");
    let packets = multiplex(folder.path(), &[]);
    let found = report(&path, &datagrams(&packets), &[]);
    assert_eq!(found["pcr_accuracy_unknown"], "variable-bitrate", "{found:#}");
    assert_eq!(
        (&found["pcr_accuracy_errors"], &found["pcr_accuracy_checked"]),
        (&Value::Null, &0.into())
    );
    let delivery = &found["media_delivery"];
    assert_eq!(delivery["media_rate_unknown"], "variable-bitrate", "{found:#}");
    assert_eq!(delivery["delay_factor_unknown"], "variable-bitrate", "{found:#}");
    assert_eq!(
        (&delivery["media_rate_bps"], &delivery["delay_factor_ms"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(delivery["loss_rate"], 0.0, "{found:#}");
    // Too short.
    capture(&path, &datagrams(&packets[..200]));
    let found = report(&path, &datagrams(&packets[..200]), &[]);
    assert_eq!(found["pcr_accuracy_unknown"], "too-few-clock-references", "{found:#}");
}
