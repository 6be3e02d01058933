//! Opens a capture file and detects its format.

use std::fs::File;
use std::io::{self, Chain, Cursor, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::Error;

/// First bytes of a pcapng section header, the same in both byte orders.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// First bytes of a frame of zstd (RFC 8878, section 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// First bytes of classic pcap in either byte order, with microseconds and with nanoseconds (pcap-savefile(5)).
const CLASSIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
/// First bytes of a gzip member (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// First bytes of an xz stream (The .xz File Format, section 2.1.1.1).
const XZ: [u8; 4] = [0xfd, b'7', b'z', b'X'];

/// Max memory of the decoder of xz: `xz -9` needs 65 MiB.
const XZ_MEMORY: u64 = 80 << 20;

/// Max window of a zstd frame as a power of two: the 8 MiB that every decoder should support (RFC 8878, section
/// 3.1.1.1.2). A few bytes can request 128 MiB and more.
const WINDOW_LOG: u32 = 23;

/// Bytes per read: they stay in a core's cache until they are used.
const CHUNK: usize = 256 * 1024;

/// Length of that header.
pub(super) const CLASSIC_HEADER: u64 = 24;
/// Places of the magic number and of the link type in it.
const MAGIC: std::ops::Range<usize> = 0..4;
const LINK_TYPE: std::ops::Range<usize> = 20..24;
/// Place and length of the snap length in the header of a classic file (pcap-savefile(5)).
const SNAP_LENGTH: std::ops::Range<usize> = 16..20;
/// The largest snap length of tcpdump (libpcap's `MAXIMUM_SNAPLEN`).
const MAX_SNAP_LENGTH: u32 = 262_144;

/// A file, decompressed if necessary. Both readers buffer at most 8 MB, even if the file states larger lengths.
pub(super) type Bytes = Box<dyn Read + Send>;

/// Limits the size of reads, whatever the size of the buffer.
pub(super) struct Chunks<R>(pub(super) R);

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let max = into.len().min(CHUNK);
        self.0.read(&mut into[..max])
    }
}

/// The format, according to the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pcapng,
    Zstd,
    Classic,
    Gzip,
    Xz,
    Other,
}

/// Opens the file at `path`, and reads its format.
pub(super) fn open(path: &Path) -> Result<(File, Kind), Error> {
    let failed = |cause| Error::Read { path: path.to_owned(), cause };
    let mut file = file(path)?;
    let magic = first_bytes(&mut file).map_err(failed)?;
    if magic.is_empty() {
        return Err(empty(path));
    }
    file.rewind().map_err(failed)?;
    Ok((file, kind(&magic)))
}

/// Opens the file at `path`.
pub(super) fn file(path: &Path) -> Result<File, Error> {
    let failed = |cause| Error::Read { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    Ok(file)
}

/// The file at `path`, or standard input for `-`.
pub(super) fn file_or_input(path: &Path) -> Result<File, Error> {
    if path == Path::new("-") { input(path) } else { file(path) }
}

/// Standard input; `path` is for errors.
pub(super) fn input(path: &Path) -> Result<File, Error> {
    let input = io::stdin().as_fd().try_clone_to_owned();
    Ok(input.map_err(|cause| Error::Read { path: path.to_owned(), cause })?.into())
}

/// The error for an empty file.
pub(super) fn empty(path: &Path) -> Error {
    Error::NotACapture { path: path.to_owned(), reason: "it is empty".into() }
}

/// Reads the format of a possible pipe without consuming it. None if it is empty.
pub(super) fn peek<R: Read>(mut bytes: R) -> io::Result<Option<(Whole<R>, Kind)>> {
    let magic = first_bytes(&mut bytes)?;
    let kind = kind(&magic);
    Ok((!magic.is_empty()).then(|| (Cursor::new(magic).chain(bytes), kind)))
}

/// The whole input: the first bytes, which were read already, then the rest.
pub(super) type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// The bytes, decompressed if they are compressed, and their format then.
pub(super) fn decompressed(bytes: Bytes, kind: Kind) -> io::Result<(Bytes, Kind)> {
    let mut bytes: Bytes = match kind {
        Kind::Zstd => {
            let mut bytes = zstd::Decoder::new(bytes)?;
            bytes.window_log_max(WINDOW_LOG)?;
            Box::new(bytes)
        }
        Kind::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Kind::Xz => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
            Box::new(XzDecoder::new_stream(bytes, stream))
        }
        Kind::Pcapng | Kind::Classic | Kind::Other => return Ok((bytes, kind)),
    };
    let magic = first_bytes(&mut bytes)?;
    let kind = self::kind(&magic);
    Ok((Box::new(Cursor::new(magic).chain(bytes)), kind))
}

/// A classic file whose header states the largest snap length. Some programs write longer packets than they state, which
/// tcpdump and tshark read.
pub(super) fn with_max_snap_length(mut bytes: Bytes) -> io::Result<Bytes> {
    let mut header = Vec::new();
    bytes.by_ref().take(CLASSIC_HEADER).read_to_end(&mut header)?;
    let is_little_endian = CLASSIC.iter().any(|it| header.starts_with(&it.to_le_bytes()));
    if let Some(stated) = header.get_mut(SNAP_LENGTH) {
        let max = MAX_SNAP_LENGTH;
        stated.copy_from_slice(&if is_little_endian {
            max.to_le_bytes()
        } else {
            max.to_be_bytes()
        });
    }
    Ok(Box::new(Cursor::new(header).chain(bytes)))
}

/// Whether packets behind one header of a classic file mean the same behind the other.
pub(super) fn are_alike(one: &[u8], other: &[u8]) -> bool {
    [MAGIC, LINK_TYPE].into_iter().all(|place| one.get(place.clone()) == other.get(place))
}

fn first_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    from.take(4).read_to_end(&mut magic)?;
    Ok(magic)
}

/// Why the format is not supported, if it is not.
pub(super) fn unsupported(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Zstd | Kind::Gzip | Kind::Xz => Some("it is compressed twice"),
        Kind::Other => Some("unknown magic number"),
        Kind::Pcapng | Kind::Classic => None,
    }
}

fn kind(magic: &[u8]) -> Kind {
    match magic {
        _ if magic == PCAPNG => Kind::Pcapng,
        _ if magic == ZSTD => Kind::Zstd,
        _ if magic.starts_with(&GZIP) => Kind::Gzip,
        _ if magic == XZ => Kind::Xz,
        _ if CLASSIC.iter().any(|it| magic == it.to_be_bytes() || magic == it.to_le_bytes()) => {
            Kind::Classic
        }
        _ => Kind::Other,
    }
}
