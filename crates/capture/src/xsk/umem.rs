//! The memory of AF_XDP frames.

use std::io;
use std::ptr::NonNull;

use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use wirestamp_sys::mmap::Mapping;

/// Bytes that the kernel keeps free before each frame in a chunk: `XDP_PACKET_HEADROOM` of linux/bpf.h. An XDP
/// program stores metadata there.
pub const HEADROOM: u32 = 256;

/// Memory in chunks of one size, shared with the kernel by its sockets.
///
/// A frame's *address* is the offset of its first byte in the memory.
#[derive(Debug)]
pub struct Umem {
    memory: Mapping,
    chunk_bytes: u32,
    chunks: u32,
}

impl Umem {
    /// Chunk sizes in bytes that every kernel supports: powers of two from 2048 up to a page (af_xdp.rst, "UMEM").
    pub const CHUNK_BYTES: [u32; 2] = [2048, 4096];

    /// Memory for `chunks` chunks of `chunk_bytes` each, populated.
    ///
    /// # Errors
    /// `InvalidInput` if a chunk has another size than [`Umem::CHUNK_BYTES`], and the errors of mmap(2).
    pub fn allocate(chunk_bytes: u32, chunks: u32) -> io::Result<Self> {
        let length = (chunk_bytes as usize).checked_mul(chunks as usize);
        let length = length.filter(|_| Self::CHUNK_BYTES.contains(&chunk_bytes));
        let memory = Mapping::anonymous(length.ok_or(io::ErrorKind::InvalidInput)?)?;
        Ok(Self { memory, chunk_bytes, chunks })
    }

    /// Number of chunks.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Chunk size in bytes.
    #[must_use]
    pub fn chunk_bytes(&self) -> u32 {
        self.chunk_bytes
    }

    /// Address of a chunk's first byte.
    #[must_use]
    pub fn address(&self, chunk: u32) -> u64 {
        u64::from(chunk) * u64::from(self.chunk_bytes)
    }

    /// The chunk of an address; none if it lies after the last.
    #[must_use]
    pub fn chunk(&self, address: u64) -> Option<u32> {
        let chunk = u32::try_from(address / u64::from(self.chunk_bytes)).ok()?;
        (chunk < self.chunks).then_some(chunk)
    }

    /// A pointer to `length` bytes at `address`, valid while this exists. Only the owner of the chunk may use them:
    /// the kernel until the chunk has come out of a ring, then this process until it is put into one.
    ///
    /// # Panics
    /// The bytes lie outside the memory: an invalid address must not be used.
    #[must_use]
    pub fn at(&self, address: u64, length: u32) -> NonNull<u8> {
        // An address beyond `usize` is outside too.
        self.memory.at(usize::try_from(address).unwrap_or(usize::MAX), length as usize)
    }

    /// The whole memory, for the kernel.
    pub(super) fn registration(&self) -> XdpUmemReg {
        XdpUmemReg {
            addr: self.at(0, 0).as_ptr() as u64,
            len: self.address(self.chunks),
            chunk_size: self.chunk_bytes,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        }
    }

    /// The memory, and the offset in it of `address`.
    pub(crate) fn place(&self, address: u64) -> (&Mapping, usize) {
        // An address beyond `usize` is outside too.
        (&self.memory, usize::try_from(address).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_lies_in_its_chunk() {
        let umem = Umem::allocate(2048, 3).unwrap();
        for chunk in 0..umem.chunks() {
            let address = umem.address(chunk);
            assert_eq!([address, address + 2047].map(|a| umem.chunk(a)), [Some(chunk); 2]);
        }
        assert_eq!(umem.chunk(3 * 2048), None);
        assert_eq!(umem.chunk(u64::MAX), None);
    }

    #[test]
    fn other_chunk_sizes_are_refused() {
        for bytes in [0, 1024, 3000, 8192] {
            let error = Umem::allocate(bytes, 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bytes}");
        }
    }
}
