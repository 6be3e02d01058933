//! Offset of the clocks of both points, and delays that contradict it.

use super::*;
use crate::collector::NotSynchronised;

#[test]
fn window_contains_the_clock_offset() {
    let stored = collected(&batches(&[Fate::Comes(1000)].repeat(600)), &[]);
    let offset = |millis| stored.windows[&at(millis)].offset;
    let synchronised = Ok(Span::from_micros(100));
    // Packets of the adjacent windows may have passed while B's clock was not synchronised.
    assert_eq!([offset(600), offset(2100)], [synchronised; 2]);
    assert_eq!([offset(800), offset(1900)], [Err(NotSynchronised::Second); 2]);
    let window = &stored.windows[&at(600)];
    assert_eq!(window.error(), Ok(Span::from_nanos(100_020)));
    assert!(!window.contradicts_the_clocks());
}

#[test]
fn impossible_delay_contradicts_the_clocks() {
    let alarm = |delay| {
        let stored = collected(&batches(&[Fate::Comes(delay); 200]), &[]);
        stored.windows[&at(500)].contradicts_the_clocks()
    };
    assert_eq!([alarm(-100), alarm(-101)], [false, true]);
}
