//! What is printed when a capture has begun.

use wirestamp_capture::{Facts, ThreadCores};
use wirestamp_clock::ClockService;

use crate::output::{Output, time};

/// Prints the capture's method and stamps, and with `--verbose` the clock's calibration.
pub(super) fn announce(facts: &Facts, clock: &ClockService, output: Output) {
    announce_with(facts, "; Ctrl-C ends it", output);
    show_calibration(output, clock);
}

/// Prints method and stamps of one of several interfaces.
pub(super) fn announce_one_of(facts: &Facts, output: Output) {
    announce_with(facts, "", output);
}

fn announce_with(facts: &Facts, end: &str, output: Output) {
    facts.notes.iter().for_each(|note| output.remark(note));
    output.remark(format_args!(
        "capturing on {} by {}, stamped with {} {}{end}",
        facts.interface, facts.method, facts.clock, facts.taken
    ));
    for lane in &facts.cores {
        let ThreadCores { acquire, convert, consume } = lane;
        let [acquire, convert, consume] = [acquire, convert, consume].map(|list| cores_text(list));
        output
            .detail(format_args!("cores: acquire {acquire}, convert {convert}, consume {consume}"));
    }
}

/// A list of cores, such as `1,2`; an empty list means all.
fn cores_text(cores: &[usize]) -> String {
    let text: Vec<_> = cores.iter().map(ToString::to_string).collect();
    if text.is_empty() { "any".to_owned() } else { text.join(",") }
}

/// Prints the clock's calibration with `--verbose`.
pub(crate) fn show_calibration(output: Output, clock: &ClockService) {
    let status = clock.status();
    output.detail(format_args!(
        "clock {}: {:.6} MHz ± {:.3} ppm, steps of {}, system time ±{}",
        status.selected,
        status.frequency_hz / 1e6,
        status.rate_error_ppm,
        time(status.granularity_ns),
        time(status.error_ns)
    ));
}
