//! End of a run: limits, signals, interface changes and stop requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::TAP_B;
use wirestamp_traffic::live::{Direction, Limit, LiveFrames, Pace};
use wirestamp_traffic::{Payload, ServiceClock};

use crate::{RUNNING, frames, incoming, lab, receiver, tool};

/// Reached only if a test has failed and the run was not stopped.
const LONG: Limit = Limit { frames: None, duration: Some(Span::from_secs(60)) };

#[test]
fn signals_neither_lose_nor_repeat_frames() {
    /// Interrupts system calls, and does nothing else.
    extern "C" fn handle(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = handle;
    // SAFETY: the handler accesses nothing; nothing else in this process uses the signal.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let Some(lab) = lab() else { return };
    let service = ClockService::start(Counter::select()).unwrap();
    let (thread_ids, received_ids) = mpsc::channel();
    let send = || {
        let template = incoming(false, 100);
        let mut live = LiveFrames::open(TAP_B, template, Direction::Receive).unwrap();
        let clock = ServiceClock::new(&service);
        // Sent after loading, because a signal makes the kernel abort loading a program.
        // SAFETY: takes nothing and cannot fail.
        thread_ids.send(unsafe { libc::gettid() }).unwrap();
        live.run(&clock, Pace::full_speed(), frames(100_001), &RUNNING).unwrap()
    };
    let (report, interruptions) = thread::scope(|scope| {
        let sending = scope.spawn(|| lab.sink().run(send).unwrap());
        let thread = received_ids.recv().unwrap();
        let mut interruptions = 0;
        while !sending.is_finished() {
            // SAFETY: takes numbers. A thread that has ended is no longer in this process.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
            interruptions += 1;
            thread::yield_now();
        }
        (sending.join().unwrap(), interruptions)
    });
    assert!(interruptions > 10, "{interruptions}");
    assert_eq!((report.sent, report.stopped), (100_001, false));
}

#[test]
fn interface_going_down_ends_the_run_with_an_error() {
    let Some(lab) = lab() else { return };
    let service = ClockService::start(Counter::select()).unwrap();
    // A deleted interface is down first, and may be reported as down.
    for (change, messages) in [
        ("ip link set tap-b down", &["tap-b is down"][..]),
        ("ip link del tap-b", &["tap-b is down", "tap-b has disappeared"]),
    ] {
        tool(lab.sink(), "ip link set tap-b up");
        let socket = receiver(&lab); // new, so that it has no frames of the previous run
        let send = || {
            let template = incoming(false, 100);
            let mut live = LiveFrames::open(TAP_B, template, Direction::Receive).unwrap();
            let (clock, pace) = (ServiceClock::new(&service), Pace::rate(1_000).unwrap());
            live.run(&clock, pace, LONG, &RUNNING).unwrap_err()
        };
        let error = thread::scope(|scope| {
            let sending = scope.spawn(|| lab.sink().run(send).unwrap());
            socket.recv(&mut [0; 100]).unwrap();
            tool(lab.sink(), change);
            sending.join().unwrap()
        });
        let error = error.to_string();
        assert!(messages.iter().any(|message| error.contains(message)), "{error}");
    }
}

#[test]
fn next_run_continues_the_sequence_numbers_after_stop() {
    let Some(lab) = lab() else { return };
    let service = ClockService::start(Counter::select()).unwrap();
    let socket = receiver(&lab);
    let next = || {
        let mut buffer = [0; 100];
        let length = socket.recv(&mut buffer).unwrap();
        Payload::decode(&buffer[..length]).unwrap().sequence
    };
    let stop = AtomicBool::new(false);
    let send = || {
        let mut live = LiveFrames::open(TAP_B, incoming(false, 100), Direction::Receive).unwrap();
        let (clock, pace) = (ServiceClock::new(&service), Pace::rate(1_000).unwrap());
        let first = live.run(&clock, pace, LONG, &stop).unwrap();
        (first, live.run(&clock, pace, frames(10), &RUNNING).unwrap())
    };
    let (first, second) = thread::scope(|scope| {
        let sending = scope.spawn(|| lab.sink().run(send).unwrap());
        assert_eq!(next(), 0);
        stop.store(true, Ordering::Relaxed);
        sending.join().unwrap()
    });
    assert!(first.stopped && first.sent > 0, "{first:?}");
    assert_eq!((second.sent, second.stopped), (10, false));
    let rest: Vec<_> = (1..first.sent + 10).map(|_| next()).collect();
    assert!(rest.into_iter().eq(1..first.sent + 10));
}
