//! Limits of live frames: checked where frames are prepared, and named in errors.

/// Max frame size in bytes, without check sequence. A frame shares a page of 4096 bytes with headroom
/// and kernel data, which leaves about 3300 bytes, depending on the kernel version. A test sends a
/// frame of this size.
pub(super) const MAX_FRAME_BYTES: u16 = 3072;

/// Max rate in frames per second. No machine reaches it, and arithmetic does not overflow.
pub(super) const MAX_RATE: u64 = 1_000_000_000;

/// Max frames of a burst. At the lowest measured rate of live frames (0.5 million per second into a
/// network stack) a burst takes 8 ms; a stop request waits that long.
pub(super) const MAX_BURST: u32 = 4096;
