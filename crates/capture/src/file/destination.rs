//! Destination and format of a capture's packets.

use std::path::{Path, PathBuf};

use super::Format;

/// Where a capture is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// File, which may be a FIFO; `-` is standard output. Names of a set's other files are derived from it
    /// ([`Rotation`]).
    pub path: PathBuf,
    /// The file format.
    pub format: Format,
    /// Whether it is compressed, in independent zstd frames (RFC 8878). After a crash, all but the last frame can
    /// be read. A frame ends after 256 KiB, or when no packet waits and the last frame ended a second ago.
    pub zstd: bool,
    /// When the capture continues in another file.
    pub rotation: Rotation,
}

/// When a capture continues in another file, and its name, as in tcpdump with -C, -G and -W (tcpdump(8)). Every
/// file is complete. The counts in its statistics are since the start of the capture; only the last file has the
/// whole ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Max size of a file in bytes, before compression. The next packet after it goes to another file. Names of the
    /// files after the first end with a number.
    pub bytes: Option<u64>,
    /// Max age of a file in seconds: a packet stamped later goes to another file. The name may contain conversions
    /// of strftime(3), for the file's start time. Without one, names after the first end with a number, unlike those
    /// of tcpdump, which overwrites its file.
    pub seconds: Option<u32>,
    /// With `bytes`, max number of files: the oldest is overwritten, and the numbers have leading zeroes. With
    /// `seconds` alone, no file is begun after this number.
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
