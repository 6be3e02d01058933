//! Edits programs in place.

use super::classic::Operation;

/// Replaces the instruction at `at` by `replacement`, whose jumps are already correct, and adjusts the jumps over
/// it. Jumps to it lead to the replacement's first instruction.
pub(super) fn splice(program: &mut Vec<Operation>, at: usize, replacement: &[Operation]) {
    let moved = |to: &mut usize| {
        if *to > at {
            *to = *to + replacement.len() - 1;
        }
    };
    program.remove(at);
    program.iter_mut().for_each(|operation| each_target(operation, moved));
    program.splice(at..at, replacement.iter().copied());
}

/// Appends an independent program.
pub(super) fn append(program: &mut Vec<Operation>, mut rest: Vec<Operation>) {
    let start = program.len();
    rest.iter_mut().for_each(|operation| each_target(operation, |to| *to += start));
    program.extend(rest);
}

fn each_target(operation: &mut Operation, change: impl Fn(&mut usize)) {
    match operation {
        Operation::Jump { to } => change(to),
        Operation::Branch { yes, no, .. } => {
            change(yes);
            change(no);
        }
        _ => {}
    }
}
