//! Interface of the sources of raw stamps.

/// A counter that returns raw stamps.
pub(crate) trait RawSource: Copy {
    /// Name on the command line and in reports.
    const NAME: &'static str;

    /// Current value; the CPU may reorder the read with the instructions around it.
    fn read(self) -> u64;

    /// Value after all earlier and before all later instructions.
    fn read_ordered(self) -> u64;
}
