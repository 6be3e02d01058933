//! Replayed captures, received at the other end of a path.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Impairments, PathLab, SINK_V4, SOURCE_INTERFACE, check_privilege};
use wirestamp_traffic::{
    Replay, ReplayError, ReplayOptions, ReplayReport, SendMethod, SendOptions, SentPacket,
    ServiceClock, Speed,
};

/// The times of the packets in a file, in milliseconds.
const TIMES: [u32; 6] = [0, 4, 5, 25, 30, 70];

fn lab() -> Option<PathLab> {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap())
}

/// A UDP packet from the lab's source to its sink, with a payload of `number` and zeroes, and
/// without a UDP checksum.
fn frame(number: u8, payload_bytes: u8) -> Vec<u8> {
    let mut frame = vec![0x02, 0x77, 0, 0, 1, 2, 0x02, 0x77, 0, 0, 1, 1, 8, 0];
    let lengths = [28, 8].map(|headers: u8| headers + payload_bytes);
    let mut ip =
        vec![0x45, 0, 0, lengths[0], 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 2, 2];
    let words = ip.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!u16::try_from(sum).unwrap()).to_be_bytes());
    frame.extend(ip);
    frame.extend([0x13, 0x88, 0x13, 0x88, 0, lengths[1], 0, 0, number]);
    frame.resize(42 + usize::from(payload_bytes), 0);
    frame
}

/// A pcap file with microsecond stamps; the times of `frames` are in milliseconds.
fn classic(folder: &TempDir, frames: &[(u32, Vec<u8>)]) -> PathBuf {
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    for (millis, frame) in frames {
        let length = u32::try_from(frame.len()).unwrap();
        let head = [1_700_000_000, 500_000 + millis * 1000, length, length];
        file.extend(head.into_iter().flat_map(u32::to_ne_bytes));
        file.extend(frame);
    }
    let path = folder.path().join("classic.pcap");
    fs::write(&path, file).unwrap();
    path
}

fn six(folder: &TempDir) -> PathBuf {
    let frames: Vec<_> = TIMES.into_iter().zip((0..).map(|n| frame(n, 20 + n))).collect();
    classic(folder, &frames)
}

fn recording(path: &Path) -> ReplayOptions {
    ReplayOptions { path: path.to_owned(), speed: Speed::RECORDED, loops: 1 }
}

fn open(
    lab: &PathLab,
    recording: ReplayOptions,
    method: SendMethod,
) -> Result<Replay, ReplayError> {
    let by = SendOptions { method, tx_stamps: true, ..SendOptions::default() };
    lab.source().run(|| Replay::open(recording, SOURCE_INTERFACE, &by)).unwrap()
}

fn replay(
    lab: &PathLab,
    recording: ReplayOptions,
    method: SendMethod,
) -> (ReplayReport, Vec<SentPacket>) {
    let service = ClockService::start(Counter::select()).unwrap();
    let (running, mut sent) = (AtomicBool::new(false), Vec::new());
    let replay = open(lab, recording, method).unwrap();
    let report = replay.run(&mut ServiceClock::new(&service), &running, |s| sent.push(*s));
    (report, sent)
}

/// Intended times since the first packet, in microseconds.
fn intended(sent: &[SentPacket]) -> Vec<i64> {
    let first = sent[0].intended;
    sent.iter().map(|sent| (sent.intended - first).as_nanos() / 1000).collect()
}

#[test]
fn frames_arrive_unchanged_with_the_files_timing() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let classic = six(&folder);
    let next = folder.path().join("next.pcapng");
    let converted =
        Command::new("editcap").arg("-F").arg("pcapng").args([&classic, &next]).status();
    assert!(converted.unwrap().success());
    let receiver = lab.sink().run(|| UdpSocket::bind((SINK_V4, 5000))).unwrap().unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for (file, method) in
        [(&classic, SendMethod::Packet), (&next, SendMethod::Packet), (&next, SendMethod::Ring)]
    {
        let (report, sent) = replay(&lab, recording(file), method);
        assert_eq!((report.sent, report.bytes, report.failed), (6, 6 * 62 + 15, 0), "{report:?}");
        for (number, sent) in (0..).zip(&sent) {
            let mut buffer = [0; 100];
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!((length, buffer[0]), (20 + usize::from(number), number));
            assert_eq!(sent.sequence, u64::from(number));
            assert!(sent.actual >= sent.intended && sent.stamps.software.is_some(), "{sent:?}");
        }
        for (found, expected) in intended(&sent).into_iter().zip(TIMES) {
            assert!(
                (found - i64::from(expected) * 1000).abs() < 500,
                "{found} us for {expected} ms"
            );
        }
    }
}

#[test]
fn speed_divides_intervals_and_loops_repeat() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let speed = Speed::new(10.0).unwrap();
    let twice = ReplayOptions { speed, loops: 2, ..recording(&six(&folder)) };
    let (report, sent) = replay(&lab, twice, SendMethod::Packet);
    assert_eq!((report.sent, sent.last().unwrap().sequence), (12, 11));
    let found = intended(&sent);
    // 70 ms with five intervals at speed 10: 7 ms, and a mean interval of 1.4 ms to the next loop.
    for (at, expected) in [(3, 2500), (5, 7000), (6, 8400), (11, 15_400)] {
        assert!((found[at] - expected).abs() < 100, "{} us for {expected}", found[at]);
    }
}

#[test]
fn unsendable_and_truncated_packets_are_counted() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let frames = [
        (5, frame(0, 20)),
        (9, frame(1, 20)),
        (7, frame(2, 20)),
        (10, vec![1; 1515]),
        (12, vec![2; 9]),
    ];
    let (report, sent) = replay(&lab, recording(&classic(&folder, &frames)), SendMethod::Packet);
    assert_eq!((report.sent, report.failed, report.too_long), (3, 1, 1), "{report:?}");
    assert_eq!((report.time_went_back, report.cut_short), (1, 0));
    assert_eq!(sent.iter().map(|sent| sent.sequence).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(sent[2].intended == sent[1].intended && report.first_error.is_some());

    let cut = folder.path().join("cut.pcap");
    let path = classic(&folder, &frames[..2]);
    let shortened = Command::new("editcap").args(["-s", "50"]).args([&path, &cut]).status();
    assert!(shortened.unwrap().success());
    let (report, _) = replay(&lab, recording(&cut), SendMethod::Packet);
    assert_eq!((report.sent, report.bytes, report.cut_short), (2, 100, 2), "{report:?}");
}

#[test]
fn truncated_file_is_sent_up_to_its_end() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = six(&folder);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 70]).unwrap();
    let (report, _) = replay(&lab, recording(&path), SendMethod::Packet);
    assert_eq!(report.sent, 5);
    assert!(report.read_error.unwrap().to_string().contains("classic.pcap"));
}

#[test]
fn stop_ends_an_endless_replay() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let endless = ReplayOptions {
        loops: u64::MAX,
        speed: Speed::new(1000.0).unwrap(),
        ..recording(&six(&folder))
    };
    let service = ClockService::start(Counter::select()).unwrap();
    let stop = AtomicBool::new(false);
    let replay = open(&lab, endless, SendMethod::Packet).unwrap();
    let report = replay.run(&mut ServiceClock::new(&service), &stop, |sent| {
        stop.store(sent.sequence >= 99, Ordering::Relaxed);
    });
    assert!(report.stopped && report.sent >= 100, "{report:?}");
}

#[test]
fn file_without_frames_is_rejected_with_next_step() {
    let Some(lab) = lab() else { return };
    let folder = tempfile::tempdir().unwrap();
    let empty = open(&lab, recording(&classic(&folder, &[])), SendMethod::Packet).unwrap_err();
    assert!(empty.to_string().ends_with("show its contents with `capinfos`"), "{empty}");
    let path = six(&folder);
    let mut raw = fs::read(&path).unwrap();
    raw[20..24].copy_from_slice(&101_u32.to_ne_bytes()); // LINKTYPE_RAW
    fs::write(&path, raw).unwrap();
    let raw = open(&lab, recording(&path), SendMethod::Packet).unwrap_err();
    assert!(matches!(raw, ReplayError::NotEthernet(_)), "{raw}");
    let nowhere = open(&lab, recording(Path::new("/nowhere")), SendMethod::Packet).unwrap_err();
    assert!(nowhere.to_string().contains("/nowhere"), "{nowhere}");
}
