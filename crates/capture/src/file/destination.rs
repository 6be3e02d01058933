//! Where packets are written to, and in which form.

use std::path::{Path, PathBuf};

use super::Format;

/// Where a capture is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The file, which may be a FIFO; `-` is standard output. Other files of a set have names that
    /// are made of it ([`Rotation`]).
    pub path: PathBuf,
    /// The file format.
    pub format: Format,
    /// Whether it is compressed, in frames of zstd (RFC 8878) that can be read one by one: of a
    /// capture that crashes all but the last one can. A frame ends after 256 KiB, or when no packet
    /// waits and the last one ended a second ago.
    pub zstd: bool,
    /// When the capture goes on in another file.
    pub rotation: Rotation,
}

/// When a capture goes on in another file, and how that is called, as tcpdump does it with -C, -G
/// and -W (tcpdump(8)). Every file is complete in itself; the counts in its statistics are those
/// since the capture began, and only the last one has the whole ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// The next packet goes to another file when a file has more bytes than this, before
    /// compression. The names of the files after the first end in a number.
    pub bytes: Option<u64>,
    /// A packet that was stamped so many seconds after the file was begun goes to another file. The
    /// name may contain conversions of strftime(3), which become the time when the file was begun;
    /// a file whose name comes again is overwritten.
    pub seconds: Option<u32>,
    /// With `bytes`, the files to which the set is limited: the oldest is overwritten, and the
    /// numbers have leading zeroes. With `seconds` alone, no file is begun after so many.
    pub files: Option<u32>,
}

impl Destination {
    /// One pcapng file.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            format: Format::Pcapng,
            zstd: false,
            rotation: Rotation::default(),
        }
    }
}
