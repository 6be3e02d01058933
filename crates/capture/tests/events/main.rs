//! Recorded events of real packets in a network namespace.

mod bed;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use bed::{HEADER, config, finish, length, link, now, send, with_instances};
use wirestamp_capture::Stop;
use wirestamp_capture::events::{
    Context, Error, Reading, Recorder, RecorderConfig, TraceClock, TraceEvent,
};
use wirestamp_clock::Counter;

const RX: &str = "net:netif_rx";
const RECEIVE: &str = "net:netif_receive_skb";

/// Clocks that user space can read, too.
fn clocks() -> impl Iterator<Item = TraceClock> {
    let all = [TraceClock::X86Tsc, TraceClock::Mono, TraceClock::Boot];
    all.into_iter().filter(|&it| it != TraceClock::X86Tsc || Counter::select().name() == "tsc")
}

#[test]
fn each_frame_is_recorded_between_readings_of_the_clock() {
    const FRAMES: u64 = 2_000;
    let Some(link) = link() else { return };
    for (clock, reading) in
        clocks().flat_map(|clock| [Reading::Mapped, Reading::Copied].map(|it| (clock, it)))
    {
        let recorder = Recorder::start(&config(&link, clock, reading, &[RX, RECEIVE])).unwrap();
        let facts = recorder.facts().clone();
        assert_eq!((facts.clock, facts.reading), (clock.name(), reading.into()), "{facts:?}");
        let mut readings = Vec::new();
        send(&link, FRAMES, || readings.push(now(clock)));
        let (events, ledger) = finish(recorder);
        let end = now(clock);
        assert_eq!((ledger.recorded, ledger.lost), (2 * FRAMES, 0), "{ledger:?}");
        let of = |name: &'static str| events.iter().filter(move |event| event.name == name);
        assert_eq!((of(RX).count(), of(RECEIVE).count()), (2_000, 2_000));
        let brackets = (0..).zip(readings.chunks(2)).zip(of(RX).zip(of(RECEIVE)));
        for ((number, around), (rx, receive)) in brackets {
            let (before, after) = (around[0], around[1]);
            let what = format!("{clock} {reading}: {before} {rx:?} {after} {receive:?}");
            assert!(before <= rx.raw && rx.raw <= after, "{what}");
            assert!(rx.raw <= receive.raw && receive.raw <= end, "{what}");
            assert_eq!((rx.length, receive.length), (length(number) - HEADER, rx.length), "{what}");
            assert_eq!((rx.skb, rx.interface.as_str()), (receive.skb, link.far.as_str()), "{what}");
            assert_eq!((rx.context, receive.context), (Context::Task, Context::SoftIrq), "{what}");
        }
    }
}

#[test]
fn full_ring_loses_counted_events() {
    const FRAMES: u64 = 20_000;
    let Some(link) = link() else { return };
    for reading in [Reading::Mapped, Reading::Copied] {
        let small = RecorderConfig {
            ring_bytes: 16 << 10,
            ..config(&link, TraceClock::Mono, reading, &[RECEIVE])
        };
        let recorder = Recorder::start(&small).unwrap();
        send(&link, FRAMES, || ());
        let (events, ledger) = finish(recorder);
        let delivered = u64::try_from(events.len()).unwrap();
        assert!(delivered > 100 && ledger.lost > FRAMES / 2, "{ledger:?}");
        assert_eq!((ledger.recorded, ledger.delivered), (FRAMES, delivered), "{ledger:?}");
        assert_eq!(delivered + ledger.lost, FRAMES, "{ledger:?}");
        let located: Option<u64> = events.iter().map(|event| event.lost_before).sum();
        assert!(located.is_none_or(|events| events == ledger.lost), "{located:?} {ledger:?}");
        assert!(events.iter().any(|event| event.lost_before != Some(0)), "a gap is visible");
        let newest: Vec<_> = (0..FRAMES).rev().map(|number| length(number) - HEADER).collect();
        let lengths = events.iter().rev().map(|event| event.length);
        assert!(lengths.eq(newest.into_iter().take(events.len())), "the newest events remain");
    }
}

#[test]
fn events_arrive_while_the_recorder_runs() {
    let Some(link) = link() else { return };
    let recorder =
        Recorder::start(&config(&link, TraceClock::Mono, Reading::Mapped, &[RX])).unwrap();
    let stop = Stop::new().unwrap();
    let mut received = 0;
    let (ledger, outcome) = std::thread::scope(|scope| {
        let recording = scope.spawn(|| {
            let mut count = |_: &TraceEvent<'_>| -> Result<(), Error> {
                received += 1;
                if received == 500 {
                    stop.request();
                }
                Ok(())
            };
            recorder.run(&stop, &mut count)
        });
        send(&link, 500, || ());
        recording.join().unwrap()
    });
    outcome.unwrap();
    assert_eq!((ledger.delivered, ledger.lost, received), (500, 0, 500), "{ledger:?}");
}

#[test]
fn failure_of_the_sink_ends_recording_with_complete_counts() {
    let Some(link) = link() else { return };
    let recorder =
        Recorder::start(&config(&link, TraceClock::Mono, Reading::Mapped, &[RX])).unwrap();
    send(&link, 50, || ());
    let mut left = 10;
    let mut fail = |_: &TraceEvent<'_>| -> Result<(), Error> {
        left -= 1;
        if left < 0 { Err(Error::Sink("the disk is full".into())) } else { Ok(()) }
    };
    let (ledger, outcome) = recorder.run(&Stop::new().unwrap(), &mut fail);
    assert_eq!(outcome.unwrap_err().to_string(), "the disk is full");
    assert_eq!((ledger.recorded, ledger.delivered, ledger.lost), (50, 10, 40), "{ledger:?}");
}

#[test]
fn unknown_events_are_refused_with_the_known_ones() {
    let Some(link) = link() else { return };
    let refused = |event: &str| {
        let config = config(&link, TraceClock::Mono, Reading::Mapped, &[event]);
        let error = Recorder::start(&config).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    let words = refused("net:netif_rxx");
    assert!(words.starts_with("cannot record net:netif_rxx: no such event; "), "{words}");
    assert!(words.contains("the system net has ") && words.contains("netif_rx_entry"), "{words}");
    let words = refused("netif_rx");
    assert!(words.contains("write SYSTEM:EVENT") && words.contains("napi"), "{words}");
    assert!(refused("../net:netif_rx").contains("write SYSTEM:EVENT"));
    assert!(refused("net:../irq").contains("the system net has "));
}

#[test]
fn default_events_and_whole_systems_are_recorded() {
    if link().is_none() {
        return;
    }
    let mut recorder = Recorder::start(&RecorderConfig::new(TraceClock::Mono)).unwrap();
    let facts = recorder.facts().clone();
    assert!(facts.events.len() > 10, "{facts:?}");
    let mut interrupts = 0;
    let stop = Stop::new().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while interrupts == 0 {
        assert!(Instant::now() < deadline, "no softIRQ in 10 s");
        recorder.wait(&stop, Duration::from_millis(20)).unwrap();
        let mut count = |event: &TraceEvent<'_>| -> Result<(), Error> {
            interrupts += u32::from(event.name() == "irq:softirq_entry");
            Ok(())
        };
        recorder.drain(&mut count).unwrap();
    }
    let mut ignore = |_: &TraceEvent<'_>| -> Result<(), Error> { Ok(()) };
    let (ledger, outcome) = recorder.finish(&mut ignore);
    outcome.unwrap();
    assert!(ledger.balances(), "{ledger:?}");
    let whole = RecorderConfig {
        events: Some(vec!["napi:*".into()]),
        ..RecorderConfig::new(TraceClock::Mono)
    };
    let recorder = Recorder::start(&whole).unwrap();
    assert!(recorder.facts().events.contains(&"napi:napi_poll".to_owned()));
}

#[test]
fn instance_of_a_dead_process_is_removed() {
    if link().is_none() {
        return;
    }
    let mut ended = Command::new("true").spawn().unwrap();
    let name = |process: u32| format!("wirestamp-{process}-0");
    let [dead, alive] = [ended.id(), 1].map(name);
    ended.wait().unwrap();
    with_instances(|instances| {
        fs::create_dir(instances.join(&dead)).unwrap();
        fs::create_dir(instances.join(&alive)).unwrap();
        let recorder = Recorder::start(&RecorderConfig::new(TraceClock::Mono)).unwrap();
        let left = [&dead, &alive].map(|name| fs::remove_dir(instances.join(name)).is_ok());
        assert_eq!(left, [false, true]);
        drop(recorder);
    });
}
