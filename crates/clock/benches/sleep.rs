//! Lateness of a sleeper, by the spun part of the wait.
//!
//! The contenders alternate after each sleep, so that the machine's load affects them equally. Prints one table, in
//! microseconds after the deadline, with the share of time that the thread kept a processor busy.

mod common;

use std::time::{Duration, Instant};

use common::{clock_ns, machine, quantile};
use wirestamp_clock::{
    ClockService, Counter, CounterSleep, Margin, Sleeper, Span, TickSpan, TickTime, Wake,
};
use wirestamp_sys::clock::ClockId;

const ROUNDS: u64 = 1_000;

/// The shortest sleep, and the range above it, in nanoseconds.
const SHORTEST: i64 = 500_000;
const SPREAD: u64 = 1_000_000;

struct Contender {
    name: &'static str,
    sleeper: Sleeper<CounterSleep>,
    late_nanos: Vec<i64>,
    overslept: u32,
    busy: Duration,
    elapsed: Duration,
}

impl Contender {
    fn new(name: &'static str, clock: CounterSleep, margin: Margin) -> Self {
        let sleeper = Sleeper::new(clock, margin);
        let (busy, elapsed) = (Duration::ZERO, Duration::ZERO);
        Self { name, sleeper, late_nanos: Vec::new(), overslept: 0, busy, elapsed }
    }

    fn sleep_once(&mut self, counter: Counter, span: Span) {
        let rate = *self.sleeper.clock().rate();
        let ticks = TickSpan::of(span, &rate).expect("the rate is the counter's");
        let (start, busy) = (Instant::now(), processor_time());
        let Wake::Due { late, overslept } =
            self.sleeper.sleep_until(TickTime::now(counter) + ticks)
        else {
            return; // There is no interrupter.
        };
        self.busy += processor_time() - busy;
        self.elapsed += start.elapsed();
        let late = late.to_span(&rate).expect("the rate is the counter's");
        self.late_nanos.push(late.as_nanos());
        self.overslept += u32::from(overslept);
    }

    fn report(&mut self) {
        self.late_nanos.sort_unstable();
        let late = |part| in_micros(quantile(&self.late_nanos, part));
        let [median, p99, max] = [0.5, 0.99, 1.0].map(late);
        let (name, overslept) = (self.name, self.overslept);
        let busy = 100.0 * self.busy.div_duration_f64(self.elapsed);
        println!("{name:<22} {median:>12} {p99:>12} {max:>12} {overslept:>10} {busy:>8.1}");
    }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    Duration::from_nanos(clock_ns(ClockId::ThreadCPUTime).unsigned_abs())
}

/// Nanoseconds, not negative, as microseconds with three decimals.
fn in_micros(nanos: i64) -> String {
    format!("{}.{:03}", nanos / 1_000, nanos % 1_000)
}

fn main() {
    let service = ClockService::start(Counter::select()).expect("a clock that runs");
    let counter = service.counter();
    // A tenth of a second of spinning gives the rate to a few ppm.
    let start = Instant::now();
    while start.elapsed().as_millis() < 100 {}
    let rate = service.timeline(counter.domain()).difference();
    let clock = CounterSleep::new(counter, rate).expect("the rate is the counter's");
    let mut contenders = [
        Contender::new("sleep only", clock, Margin::SLEEP_ONLY),
        Contender::new("sleep, then spin", clock, Margin::DEFAULT),
        Contender::new("sleep, spin 100 us", clock, Margin::Fixed(Span::from_micros(100))),
        Contender::new("spin only", clock, Margin::SPIN_ONLY),
    ];
    for round in 0..ROUNDS {
        // Pseudo-random lengths, so that they do not synchronise with periodic activity.
        let longer = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) % SPREAD;
        for contender in &mut contenders {
            let span = Span::from_nanos(SHORTEST.saturating_add_unsigned(longer));
            contender.sleep_once(counter, span);
        }
    }
    println!("{}", machine(counter));
    println!("Wake-up after the deadline over {ROUNDS} sleeps of 0.5 to 1.5 ms");
    println!(
        "{:<22} {:>12} {:>12} {:>12} {:>10} {:>8}",
        "", "median us", "p99 us", "max us", "overslept", "busy %"
    );
    for contender in &mut contenders {
        contender.report();
    }
}
