//! Layouts of the vDSO's data page (include/vdso/datapage.h), which changes between kernel versions.

use super::btf::Struct;
use super::kernel_clock::KernelClock;
use super::line::KernelLine;

/// Words of the page by offset in bytes; none outside.
pub(super) type Page<'a> = &'a dyn Fn(usize) -> Option<u64>;

/// Offsets of the fields of a `struct vdso_clock`, called `vdso_data` or `vdso_time_data` in older kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Offset in the page of the data of all clocks but `CLOCK_MONOTONIC_RAW`, whose data is `stride` bytes further.
    pub(super) start: usize,
    pub(super) stride: usize,
    pub(super) clock_mode: usize,
    pub(super) cycle_last: usize,
    pub(super) mult: usize,
    pub(super) shift: usize,
    pub(super) basetime: usize,
    /// Whether the kernel's type information describes it.
    pub(super) is_described: bool,
}

/// Offset of the data in its page on x86-64 in older kernels (`DECLARE_VVAR` of asm/vvar.h).
const START_OF_VVAR: usize = 128;

/// Bytes of a `struct vdso_timestamp`: seconds and shifted nanoseconds.
const TIMESTAMP_BYTES: usize = 16;

/// Largest shift: the kernel's `mult` has 32 bits.
const MAX_SHIFT: u32 = 32;

impl Layout {
    /// Layouts of known kernels.
    pub(super) const KNOWN: [Self; 5] = [
        Self::known(true, 232, 0),
        Self::known(true, 248, 0),
        Self::known(true, 248, START_OF_VVAR),
        Self::known(false, 240, 0),
        Self::known(false, 240, START_OF_VVAR),
    ];

    /// The layout by the kernel's type information, at each place where the data may begin.
    pub(super) fn described(btf: &[u8]) -> Vec<Self> {
        let in_array = || {
            let page = Struct::find(btf, "vdso_time_data")?;
            Self::of(&Struct::find(btf, "vdso_clock")?, page.offset("clock_data")?)
        };
        if let Some(layout) = in_array() {
            return vec![layout];
        }
        let names = ["vdso_time_data", "vdso_data"];
        let clock = names.iter().find_map(|name| Struct::find(btf, name));
        let at = |start| clock.as_ref().and_then(|clock| Self::of(clock, start));
        [0, START_OF_VVAR].into_iter().filter_map(at).collect()
    }

    fn of(clock: &Struct, start: usize) -> Option<Self> {
        (clock.offset("seq")? == 0).then_some(())?;
        Some(Self {
            start,
            stride: clock.size,
            clock_mode: clock.offset("clock_mode")?,
            cycle_last: clock.offset("cycle_last")?,
            mult: clock.offset("mult")?,
            shift: clock.offset("shift")?,
            // The unnamed union with the offsets of time namespaces.
            basetime: clock.offset("basetime").or_else(|| clock.offset(""))?,
            is_described: true,
        })
    }

    /// A layout of x86-64 and aarch64, with or without `max_cycles` (`CONFIG_GENERIC_VDSO_OVERFLOW_PROTECT`).
    const fn known(has_max_cycles: bool, stride: usize, start: usize) -> Self {
        let after_mask = if has_max_cycles { 32 } else { 24 };
        Self {
            start,
            stride,
            clock_mode: 4,
            cycle_last: 8,
            mult: after_mask,
            shift: after_mask + 4,
            basetime: after_mask + 8,
            is_described: false,
        }
    }

    /// The sequence number: odd during an update, and different after it.
    pub(super) fn sequence(&self, page: Page<'_>) -> Option<u32> {
        half(page, self.start)
    }

    /// How user space reads the counter (`enum vdso_clock_mode`).
    pub(super) fn clock_mode(&self, page: Page<'_>) -> Option<u32> {
        half(page, self.start + self.clock_mode)
    }

    /// The line of a clock; none if it cannot be one. Consistent if the sequence number was even before and is the same
    /// after.
    pub(super) fn line(&self, page: Page<'_>, clock: KernelClock) -> Option<KernelLine> {
        let is_raw = clock == KernelClock::MonotonicRaw;
        let start = self.start + if is_raw { self.stride } else { 0 };
        let time = start + self.basetime + usize::from(clock.number()) * TIMESTAMP_BYTES;
        let line = KernelLine {
            cycle_last: page(start + self.cycle_last)?,
            mult: half(page, start + self.mult)?,
            shift: half(page, start + self.shift)?,
            seconds: page(time)?,
            shifted_nanos: page(time + 8)?,
        };
        (line.mult > 0 && line.shift <= MAX_SHIFT).then_some(line)
    }
}

/// The 32-bit number at an offset, which is a multiple of 4.
fn half(page: Page<'_>, offset: usize) -> Option<u32> {
    let [a, b, c, d, e, f, g, h] = page(offset / 8 * 8)?.to_ne_bytes();
    Some(u32::from_ne_bytes(if offset.is_multiple_of(8) { [a, b, c, d] } else { [e, f, g, h] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_read_at_the_offsets_of_a_layout() {
        let layout = Layout::known(true, 232, 0);
        let mut words = [0_u64; 512];
        let of_raw = 232 / 8;
        words[0] = u64::from_ne_bytes([6, 0, 0, 0, 1, 0, 0, 0]);
        words[of_raw + 1] = 1_000;
        words[of_raw + 4] = u64::from_ne_bytes([9, 0, 0, 0, 3, 0, 0, 0]);
        words[of_raw + 5 + 8] = 7;
        words[of_raw + 5 + 9] = 80;
        let page = |offset: usize| words.get(offset / 8).copied();
        assert_eq!((layout.sequence(&page), layout.clock_mode(&page)), (Some(6), Some(1)));
        let line =
            KernelLine { cycle_last: 1_000, mult: 9, shift: 3, seconds: 7, shifted_nanos: 80 };
        assert_eq!(layout.line(&page, KernelClock::MonotonicRaw), Some(line));
        assert_eq!(layout.line(&page, KernelClock::Realtime), None, "a factor of 0");
    }

    #[test]
    fn type_information_describes_a_known_layout() {
        let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            return println!("skipped here: no type information");
        };
        for layout in Layout::described(&btf) {
            let known = Layout { is_described: false, ..layout };
            assert!(Layout::KNOWN.contains(&known), "a new layout, for the table: {layout:?}");
        }
    }
}
