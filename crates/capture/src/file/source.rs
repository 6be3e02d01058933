//! Opens a capture file, and finds out what is in it.

use std::fs::File;
use std::io::{self, Chain, Cursor, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;

use crate::Error;

/// First bytes of a pcapng section header, the same in both byte orders.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// First bytes of a frame of zstd (RFC 8878, section 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// First bytes of classic pcap in one byte order or the other, with microseconds and with nanoseconds
/// (pcap-savefile(5)).
const CLASSIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
/// First bytes of a gzip member (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The memory that a frame of zstd may ask for as a power of two: the 8 MiB that every decoder is
/// to have (RFC 8878, section 3.1.1.1.2). A few bytes can ask for 128 MiB and more.
const WINDOW_LOG: u32 = 23;

/// How much of a file is read at once: as much as stays in a core's cache until it is used.
const CHUNK: usize = 256 * 1024;

/// A file in pieces of a good size, however large the buffer.
pub(super) struct Chunks<R>(pub(super) R);

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(CHUNK);
        self.0.read(&mut into[..most])
    }
}

/// What the first bytes of a file say of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pcapng,
    Zstd,
    Classic,
    Gzip,
    Other,
}

/// Opens the file at `path`, and looks at its first bytes.
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

/// The file at `path`, or standard input where that is `-`.
pub(super) fn file_or_input(path: &Path) -> Result<File, Error> {
    if path == Path::new("-") { input(path) } else { file(path) }
}

/// Standard input, which is called `path`.
pub(super) fn input(path: &Path) -> Result<File, Error> {
    let input = io::stdin().as_fd().try_clone_to_owned();
    Ok(input.map_err(|cause| Error::Read { path: path.to_owned(), cause })?.into())
}

/// The error for a file with nothing in it.
pub(super) fn empty(path: &Path) -> Error {
    Error::NotACapture { path: path.to_owned(), reason: "it is empty".into() }
}

/// Looks at the first bytes of what may be a pipe, and gives all of it back. None if it is empty.
pub(super) fn peek<R: Read>(mut bytes: R) -> io::Result<Option<(Whole<R>, Kind)>> {
    let magic = first_bytes(&mut bytes)?;
    let kind = kind(&magic);
    Ok((!magic.is_empty()).then(|| (Cursor::new(magic).chain(bytes), kind)))
}

/// First bytes that were read already, and the rest.
pub(super) type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// The bytes of what is compressed, and what they are.
pub(super) fn decompress(bytes: impl Read + Send) -> io::Result<(impl Read + Send, Kind)> {
    let mut bytes = zstd::Decoder::new(bytes)?;
    bytes.window_log_max(WINDOW_LOG)?;
    let magic = first_bytes(&mut bytes)?;
    let kind = kind(&magic);
    Ok((Cursor::new(magic).chain(bytes), kind))
}

fn first_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    from.take(4).read_to_end(&mut magic)?;
    Ok(magic)
}

/// Why what is in a file is no capture, if it is none.
pub(super) fn obstacle(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Gzip => Some("it is compressed: gunzip it first"),
        Kind::Other => Some("it begins with neither's magic number"),
        Kind::Pcapng | Kind::Zstd | Kind::Classic => None,
    }
}

fn kind(magic: &[u8]) -> Kind {
    match magic {
        _ if magic == PCAPNG => Kind::Pcapng,
        _ if magic == ZSTD => Kind::Zstd,
        _ if magic.starts_with(&GZIP) => Kind::Gzip,
        _ if CLASSIC.iter().any(|it| magic == it.to_be_bytes() || magic == it.to_le_bytes()) => {
            Kind::Classic
        }
        _ => Kind::Other,
    }
}
