//! How a run ends, and what it survives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::TAP_B;
use wirestamp_traffic::live::{Direction, Limit, LiveFrames, Pace};
use wirestamp_traffic::{Payload, ServiceClock};

use crate::{RUNNING, frames, incoming, lab, receiver, tool};

/// Never reached, unless a test has failed and nobody ends the run.
const LONG: Limit = Limit { frames: None, duration: Some(Span::from_secs(60)) };

#[test]
fn signals_neither_lose_frames_nor_repeat_them() {
    /// Interrupts system calls, and does nothing else.
    extern "C" fn handle(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = handle;
    // SAFETY: the handler touches nothing; nobody else in this process uses the signal.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let Some(lab) = lab() else { return };
    let service = ClockService::start(Counter::select()).unwrap();
    let (tell, told) = mpsc::channel();
    let send = || {
        let template = incoming(false, 100);
        let mut live = LiveFrames::open(TAP_B, template, Direction::Receive).unwrap();
        let clock = ServiceClock::new(&service);
        // Only now: the kernel gives up loading a program when a signal comes.
        // SAFETY: takes nothing and cannot fail.
        tell.send(unsafe { libc::gettid() }).unwrap();
        live.run(&clock, Pace::full_speed(), frames(100_001), &RUNNING).unwrap()
    };
    let (report, interruptions) = thread::scope(|scope| {
        let sending = scope.spawn(|| lab.sink().run(send).unwrap());
        let thread = told.recv().unwrap();
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
fn an_interface_that_goes_down_ends_the_run_with_an_error() {
    let Some(lab) = lab() else { return };
    let service = ClockService::start(Counter::select()).unwrap();
    // One that is deleted is taken down first, and may be seen so.
    for (change, said) in [
        ("ip link set tap-b down", &["tap-b is down"][..]),
        ("ip link del tap-b", &["tap-b is down", "tap-b has disappeared"]),
    ] {
        tool(lab.sink(), "ip link set tap-b up");
        let socket = receiver(&lab); // a new one, which has nothing from the run before
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
        assert!(said.iter().any(|said| error.contains(said)), "{error}");
    }
}

#[test]
fn a_request_to_stop_ends_a_run_and_the_next_goes_on_with_its_numbers() {
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
