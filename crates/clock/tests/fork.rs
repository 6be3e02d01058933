//! A forked child has no calibrating thread; its clocks continue with growing bounds.

use std::time::SystemTime;

use wirestamp_clock::{ClockService, Counter, Span, Stamp, Time, Utc};

/// A relaxed read of the counter does not wait for earlier loads. The value can be early by this much: a load that
/// misses all caches takes about 100 ns.
const REORDERED: Span = Span::from_nanos(100);

fn system_time() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap()
}

/// True if a stamp taken now holds its bound against the system clock.
fn holds(take: impl Fn() -> Stamp) -> bool {
    let before = system_time();
    let stamp = take();
    let after = system_time();
    stamp.utc + stamp.error + REORDERED >= before && stamp.utc - stamp.error <= after
}

/// Checks in the child; the exit status is zero if all pass.
fn child(service: ClockService) -> i32 {
    let (clock, counter) = (service.wall_clock(), service.counter());
    let timeline = || service.timeline(counter.domain());
    for _ in 0..1_000 {
        if !holds(|| clock.now_with_error()) || !holds(|| timeline().convert(counter.read())) {
            return 1;
        }
    }
    let bound = |ahead: Span| {
        let ticks = timeline().difference().ticks(ahead);
        timeline().convert(counter.read() + ticks).error
    };
    if bound(Span::from_secs(60)) <= bound(Span::ZERO) {
        return 2; // There is no calibration, so the bound must grow.
    }
    drop(service);
    match ClockService::start(counter) {
        Ok(own) if holds(|| own.wall_clock().now_with_error()) => 0,
        _ => 3,
    }
}

#[test]
fn forked_child_keeps_time_and_can_restart_the_service() {
    let service = ClockService::start(Counter::select()).unwrap();
    // SAFETY: the child calls only the tested functions and `_exit`. Two threads of the parent could hold a lock: the
    // test's, which waits, and the service's, which takes none that the child needs. glibc makes its allocator usable
    // in the child of a process with threads.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let status = child(service);
        // SAFETY: always sound; it ends the child without running the parent's destructors.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid to write to.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0);
    assert!(holds(|| service.wall_clock().now_with_error()), "the parent's clock continues");
}
