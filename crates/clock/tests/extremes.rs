//! Values at the ends of every range, and clocks with arbitrary values: the results are defined and ordered, without
//! a panic.

mod extreme;
