use proptest::prelude::*;

use super::format::{HEADER, MONOTONIC};
use super::*;
use crate::anchor::Anchor;
use crate::history::History;
use crate::ratio::Rate;
use crate::vdso::KernelLine;
use crate::vdso::history::LineHistory;
use crate::{Domain, Span, Time, Timeline};

const SECOND: u64 = 1_000_000_000;
const START_UTC: i64 = 1_790_000_000_000_000_000;

/// Anchor of a clock of 2 GHz at `millis`, after a step of the system clock by `step`.
fn anchor(millis: u64, step: i64) -> Anchor {
    let nanos = (millis * 1_000_000).cast_signed();
    Anchor {
        raw: (1 << 40) + millis * 2_000_000,
        utc: Time::from_nanos(START_UTC + nanos + step),
        monotonic_raw: Time::from_nanos(nanos),
        error: Span::from_nanos(40),
    }
}

fn history(domain: Domain, first: Anchor) -> History {
    let rate = Rate { nanos_per_tick: 0.5, error: 1e-6 };
    History::new(domain, first, rate, Span::from_nanos(7))
}

/// A file of these anchors, written with an update for each.
fn write(anchors: &[Anchor]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = AnchorWriter::new(&mut file, "tsc", "b-1").unwrap();
    let mut history = history(Domain::Counter, anchors[0]);
    writer.update(&history.timeline()).unwrap();
    for &anchor in &anchors[1..] {
        history.push(anchor);
        writer.update(&history.timeline()).unwrap();
    }
    assert_eq!(writer.gaps(), 0);
    file
}

fn read(file: &[u8]) -> Result<AnchorFile, String> {
    AnchorFile::read(file).map_err(|error| error.to_string())
}

fn seconds(from: u64, until: u64, step: i64) -> Vec<Anchor> {
    (from..until).map(|second| anchor(1_000 * second, step)).collect()
}

fn error(timeline: &Timeline, millis: u64) -> Span {
    timeline.convert(anchor(millis, 0).raw).error
}

#[test]
fn file_has_a_header_and_a_line_per_anchor() {
    let file = write(&seconds(1, 3, 0));
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,granularity_ns,\
         frequency_hz,rate_error_ppm,row,line_ns_per_tick,line_error_ns\n\
         1101511627776,1790000001000000000,1000000000,40,0,tsc,b-1,7,2000000000,2,anchor,,\n\
         1103511627776,1790000002000000000,2000000000,40,0,tsc,b-1,7,2000000000,0.08,anchor,,\n"
    );
}

#[test]
fn rare_updates_lose_no_anchors() {
    let mut history = history(Domain::Counter, anchor(0, 0));
    let mut file = Vec::new();
    let mut writer = AnchorWriter::new(&mut file, "tsc", "").unwrap();
    for quarter in 1..1_200 {
        history.push(anchor(250 * quarter, 0));
        if quarter % 100 == 0 {
            writer.update(&history.timeline()).unwrap();
            writer.update(&history.timeline()).unwrap();
        }
    }
    writer.update(&history.timeline()).unwrap();
    assert_eq!((writer.written(), writer.gaps()), (1_200, 0));
    let file = read(&file).unwrap();
    assert_eq!((file.clock(), file.boot_id()), ("tsc", ""));
    assert!(file.timeline().anchors().eq((0..1_200).map(|quarter| anchor(250 * quarter, 0))));
    assert_eq!(file.timeline().steps(), 0);
    assert_eq!(error(file.timeline(), 250), Span::from_nanos(42), "all are in the timeline");
}

#[test]
fn steps_keep_their_place() {
    let hour = 3_600 * SECOND.cast_signed();
    let file = write(&[seconds(0, 5, 0), seconds(5, 9, hour), seconds(9, 12, -hour)].concat());
    let timeline = read(&file).unwrap().timeline().clone();
    assert_eq!(timeline.steps(), 2);
    for (millis, step) in [(1_500, 0), (6_300, hour), (10_900, -hour), (12_000, -hour)] {
        let stamp = timeline.convert(anchor(millis, 0).raw);
        assert_eq!(stamp.utc, anchor(millis, step).utc);
        assert!(stamp.error < Span::from_nanos(2_000), "{millis}: {stamp:?}");
    }
    assert!(error(&timeline, 4_500) >= Span::from_nanos(hour), "both epochs");
}

#[test]
fn old_slew_does_not_widen_later_bounds() {
    let slewed = |quarter: u64| {
        let gained = quarter.min(40) * 25_000; // 100 ppm for ten seconds
        anchor(250 * quarter, gained.cast_signed())
    };
    let anchors: Vec<_> = (0..2_400).map(slewed).collect();
    let timeline = read(&write(&anchors)).unwrap().timeline().clone();
    assert_eq!(timeline.steps(), 0);
    assert!(error(&timeline, 500_125) < Span::from_nanos(500));
    assert!(error(&timeline, 599_875) < Span::from_nanos(500), "beyond the last anchor");
    let soon = read(&write(&anchors[..80])).unwrap();
    assert!(error(soon.timeline(), 19_875) > Span::from_nanos(10_000), "in the minute after it");
}

#[test]
fn gap_is_counted_and_has_no_bound() {
    let mut file = Vec::new();
    let mut writer = AnchorWriter::new(&mut file, "tsc", "").unwrap();
    for (from, until) in [(0, 5), (50, 55)] {
        let anchors = seconds(from, until, 0);
        let mut history = history(Domain::Counter, anchors[0]);
        anchors[1..].iter().for_each(|&anchor| history.push(anchor));
        writer.update(&history.timeline()).unwrap();
    }
    assert_eq!(writer.gaps(), 1);
    let timeline = read(&file).unwrap().timeline().clone();
    assert!(error(&timeline, 3_500) < Span::from_nanos(1_000));
    assert_eq!(error(&timeline, 4_001), Span::MAX);
    assert_eq!(error(&timeline, 49_999), Span::MAX);
    assert!(error(&timeline, 50_500) < Span::from_nanos(1_000));
    assert!(error(&timeline, 55_000) < Span::from_millis(1), "beyond the end");
}

/// The counter restarts from a value that lies `ahead` seconds from the old ones.
fn restarted(ahead: i64) -> Vec<u8> {
    let shifted = seconds(5, 10, 0).into_iter().map(|anchor| Anchor {
        raw: anchor.raw.checked_add_signed(ahead * 2 * SECOND.cast_signed()).unwrap(),
        ..anchor
    });
    write(&seconds(0, 5, 0).into_iter().chain(shifted).collect::<Vec<_>>())
}

#[test]
fn stamps_before_a_disruption_keep_their_time() {
    for ahead in [-100_i64, 100] {
        let timeline = read(&restarted(ahead)).unwrap().timeline().clone();
        assert_eq!(timeline.steps(), 1);
        assert!(error(&timeline, 2_500) < Span::from_nanos(1_000));
        assert_eq!(error(&timeline, 4_001), Span::MAX);
        let raw = |millis| {
            let ticks = ahead * 2 * SECOND.cast_signed();
            anchor(millis, 0).raw.checked_add_signed(ticks).unwrap()
        };
        let after = timeline.convert(raw(8_500));
        assert_eq!(after.utc, anchor(8_500, 0).utc);
        assert!(after.error < Span::from_nanos(1_000));
        assert_eq!(timeline.convert(raw(4_999)).error, Span::MAX);
    }
}

#[test]
fn repeated_counter_values_are_rejected() {
    let reason = read(&restarted(-7)).unwrap_err();
    assert!(reason.starts_with("line 7: the clock started again here"), "{reason}");
}

#[test]
fn epoch_reveals_a_hidden_disruption() {
    let file = String::from_utf8(write(&seconds(0, 6, 0))).unwrap();
    let rewritten = file.lines().map(|line| {
        let late = line.contains(",4000000000,") || line.contains(",5000000000,");
        line.replacen(",40,0,", if late { ",40,1," } else { ",40,0," }, 1) + "\n"
    });
    let timeline = read(rewritten.collect::<String>().as_bytes()).unwrap().timeline().clone();
    assert_eq!(timeline.steps(), 1);
    assert_eq!(error(&timeline, 3_500), Span::MAX);
    assert!(error(&timeline, 2_500) < Span::from_nanos(1_000));
}

#[test]
fn invalid_file_is_rejected_with_line_and_reason() {
    let file = String::from_utf8(write(&seconds(0, 3, 0))).unwrap();
    let with = |from: &str, to: &str| file.replacen(from, to, 1).into_bytes();
    let cases = [
        (Vec::new(), "no anchors"),
        (format!("{HEADER}\n").into_bytes(), "no anchors"),
        (b"a,b\n".to_vec(), "line 1: not the header"),
        (vec![0xff, b'\n'], "line 1: it is no text"),
        (vec![b'1'; 5_000], "line 1: it is too long"),
        (file.as_bytes()[..file.len() - 4].to_vec(), "line 4: it is cut short"),
        (with(",tsc", ""), "line 2: expected 13 columns"),
        (with("1101511627776", "-1"), "line 3: raw_ticks cannot be \"-1\""),
        (with(",40,", ",-40,"), "line 2: error_ns cannot be -40"),
        (with(",2000000000,2,", ",NaN,2,"), "line 2: frequency_hz cannot be NaN"),
        (with(",2000000000,2,", ",1e30,2,"), "line 2: frequency_hz cannot be"),
        (with(",2000000000,2,", ",2,inf,"), "line 2: rate_error_ppm cannot be inf"),
        (with("1000000000,40", "0,40"), "line 3: monotonic_raw_ns does not ascend"),
        (with(",40,0,", ",40,1,"), "line 3: epoch descends"),
        (with(",tsc,b-1", ",hpet,b-1"), "line 3: an anchor of tsc"),
    ];
    for (bytes, expected) in cases {
        let reason = read(&bytes).unwrap_err();
        assert!(reason.contains(expected), "{reason} is not {expected}");
        assert_eq!(reason.lines().count(), 1);
    }
}

#[test]
fn name_with_a_comma_is_rejected() {
    assert!(AnchorWriter::new(Vec::new(), "tsc,hpet", "").is_err());
    assert!(AnchorWriter::new(Vec::new(), "tsc", "a\nb").is_err());
}

/// Lines of numbers in columns, some of them extreme.
fn lines() -> impl Strategy<Value = String> {
    let extreme = prop::sample::select(vec![i64::MIN, -1, 0, 1, i64::MAX]);
    let value = || prop_oneof![any::<i64>(), 0..1_000_000_i64, extreme.clone()];
    let error = prop_oneof![0..100_i64, any::<i64>()];
    let rate = (prop_oneof![1.0..1e12_f64, any::<f64>()], prop_oneof![0.0..1e6_f64, any::<f64>()]);
    let row = (any::<u64>(), value(), value(), error, 0..3_u32, rate);
    (prop::collection::vec(row, 0..20), any::<bool>()).prop_map(|(mut rows, in_order)| {
        if in_order {
            rows.sort_by_key(|row| (row.2, row.0));
            rows.dedup_by_key(|row| row.2);
            rows.iter_mut().for_each(|row| (row.3, row.4) = (row.3.saturating_abs(), 0));
        }
        let line = |(raw, utc, monotonic, error, epoch, (hertz, ppm))| {
            format!("{raw},{utc},{monotonic},{error},{epoch},tsc,,7,{hertz},{ppm}\n")
        };
        format!("{HEADER}\n{}", rows.into_iter().map(line).collect::<String>())
    })
}

/// A timeline returns a result for every raw value.
fn convert(timeline: &Timeline, raw: &[u64]) {
    let mut stamps = Vec::new();
    timeline.convert_batch(raw, &mut stamps);
    let single: Vec<_> = raw.iter().map(|&raw| timeline.convert(raw)).collect();
    assert_eq!(stamps, single);
}

proptest! {
    #[test]
    fn written_anchors_are_read_back(
        (domain, clock) in prop::sample::select(vec![
            (Domain::Counter, "hpet"), (Domain::Monotonic, MONOTONIC), (Domain::Nic, "phc3"),
        ]),
        gaps in prop::collection::vec((1..20_000_u64, -3..=3_i64, 0..200_i64), 1..300),
    ) {
        let mut history = history(domain, anchor(0, 0));
        let mut file = Vec::new();
        let mut writer = AnchorWriter::new(&mut file, clock, "b").unwrap();
        let (mut millis, mut step, mut written) = (0, 0, Vec::new());
        for (gap, stepped, error) in gaps {
            millis += gap;
            step += (stepped / 3) * 5_000_000_000;
            history.push(Anchor { error: Span::from_nanos(error), ..anchor(millis, step) });
            let timeline = history.timeline();
            let last = written.last().map_or(-1, |last: &Anchor| last.monotonic_raw.as_nanos());
            written.extend(timeline.anchors().filter(|a| a.monotonic_raw.as_nanos() > last));
            writer.update(&timeline).unwrap();
        }
        let read = read(&file).unwrap();
        prop_assert_eq!(read.clock(), clock);
        prop_assert_eq!(read.timeline().domain(), domain);
        prop_assert_eq!(read.timeline().anchors().collect::<Vec<_>>(), written.clone());
        for anchor in written {
            let stamp = read.timeline().convert(anchor.raw);
            prop_assert_eq!(stamp.utc, anchor.utc);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        header in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let header = if header { format!("{HEADER}\n") } else { String::new() };
        let _ = read(&[header.as_bytes(), &bytes].concat());
    }

    #[test]
    fn arbitrary_numbers_do_not_panic(
        lines in lines(), raw in prop::collection::vec(any::<u64>(), 0..50),
    ) {
        if let Ok(file) = read(lines.as_bytes()) {
            let anchors = file.timeline().anchors().map(|anchor| anchor.raw);
            convert(file.timeline(), &anchors.chain(raw).collect::<Vec<_>>());
        }
    }
}

/// The kernel's lines of a clock of 2 GHz that is slewed, stepped and slewed again, and the anchors beside them.
fn lines_and_anchors() -> (LineHistory, Vec<Anchor>) {
    let line = |millis: u64, mult: u32, step: u64| KernelLine {
        cycle_last: anchor(millis, 0).raw,
        mult,
        shift: 24,
        seconds: START_UTC.unsigned_abs() / SECOND,
        shifted_nanos: (millis * 1_000_000 + step) << 24,
    };
    let nominal = 1 << 23;
    let mut history = LineHistory::default();
    for (line, millis) in [
        (line(0, nominal, 0), 10),
        (line(0, nominal, 0), 900),
        (line(1_000, nominal + 4_000, 0), 1_010),
        (line(2_000, nominal, 5_000_000), 2_010),
        (line(2_000, nominal, 5_000_000), 3_010),
    ] {
        history.observe(line, anchor(millis, 0).raw);
    }
    let anchors =
        (0..4).map(|second| anchor(1_000 * second, if second < 2 { 0 } else { 5_000_000 }));
    (history, anchors.collect())
}

#[test]
fn lines_of_the_kernel_convert_as_when_they_were_live() {
    let (lines, anchors) = lines_and_anchors();
    let mut history = history(Domain::Counter, anchors[0]);
    anchors[1..].iter().for_each(|&anchor| history.push(anchor));
    let live = history.timeline().with_kernel_lines(lines.lines().unwrap(), None);
    let mut file = Vec::new();
    let mut writer = AnchorWriter::new(&mut file, "tsc", "b-1").unwrap();
    writer.update(&live).unwrap();
    writer.update(&live).unwrap();
    writer.finish(&live).unwrap();
    assert_eq!(writer.written(), 4);
    let rows = file.iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!(rows, 1 + 4 + 5 + 1, "header, anchors, segments, end");

    let read = read(&file).unwrap();
    assert_eq!(read.covered(), anchor(0, 0).raw..=anchor(3_010, 0).raw);
    for millis in 10..3_010 {
        let (then, now) =
            (live.convert(anchor(millis, 0).raw), read.timeline().convert(anchor(millis, 0).raw));
        assert_eq!((then.utc, then.error), (now.utc, now.error), "at {millis} ms");
    }
    let error = |millis| read.timeline().convert(anchor(millis, 0).raw).error;
    assert_eq!(error(500), Span::from_nanos(2));
    assert!(error(1_500) > Span::from_millis(4), "the step");
    assert!(error(4_000) > Span::from_nanos(40), "beyond the last line");
}

#[test]
fn interrupted_lines_do_not_convert_the_time_between() {
    let (lines, anchors) = lines_and_anchors();
    let mut history = history(Domain::Counter, anchors[0]);
    anchors[1..].iter().for_each(|&anchor| history.push(anchor));
    let mut file = Vec::new();
    let mut writer = AnchorWriter::new(&mut file, "tsc", "b-1").unwrap();
    let mut first = LineHistory::default();
    let line = lines.lines().unwrap().newest().line();
    first.observe(line, anchor(100, 0).raw);
    writer.finish(&history.timeline().with_kernel_lines(first.lines().unwrap(), None)).unwrap();
    let mut second = LineHistory::default();
    second.observe(line, anchor(2_500, 0).raw);
    second.observe(line, anchor(2_600, 0).raw);
    writer.finish(&history.timeline().with_kernel_lines(second.lines().unwrap(), None)).unwrap();
    let timeline = read(&file).unwrap().timeline().clone();
    let error = |millis| timeline.convert(anchor(millis, 0).raw).error;
    assert_eq!([2_500, 2_600].map(error), [Span::from_nanos(2); 2]);
    assert!(error(300) > Span::from_nanos(40) && error(2_700) > Span::from_nanos(40));
}

#[test]
fn invalid_lines_are_refused() {
    let row = |end: &str| format!("{HEADER}\n1,1,1,40,0,tsc,b,1,1e9,0.1,{end}\n");
    assert!(read(row("anchor,1,2").as_bytes()).is_ok());
    for end in
        ["line,,", "line,0,2", "line,nan,2", "line,1,-1", "line,1,", "other,1,2", "anchor,,2"]
    {
        let error = read(row(end).as_bytes()).unwrap_err();
        assert!(error.starts_with("line 2: "), "{end}: {error}");
    }
    assert!(read(row("line,1,2").as_bytes()).unwrap_err().contains("no anchors"));
}
