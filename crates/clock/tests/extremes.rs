//! What happens at the ends of every range, and with clocks that show anything: a defined value, in
//! order, and no panic.

mod extreme;
