//! Compression in frames of zstd (RFC 8878), each of which can be read without the others.

use std::io;

use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::buffer::PENDING_BYTES;

/// The fastest of the levels that compress well: a capture must keep up with its packets.
const LEVEL: i32 = 1;

/// Makes frames.
pub(super) struct Frames {
    compressor: Compressor<'static>,
    frame: Vec<u8>,
}

impl Frames {
    pub(super) fn new() -> io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Self { compressor, frame: Vec::with_capacity(compress_bound(PENDING_BYTES)) })
    }

    /// A frame that holds `bytes`.
    pub(super) fn compress(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        self.frame.clear();
        self.frame.reserve(compress_bound(bytes.len()));
        self.compressor.compress_to_buffer(bytes, &mut self.frame)?;
        Ok(&self.frame)
    }
}
