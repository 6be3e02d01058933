//! The memory that frames lie in.

use std::io;
use std::ptr::NonNull;

use wirestamp_sys::mmap::Mapping;

/// Bytes that the kernel keeps free in front of each frame it puts into a chunk:
/// `XDP_PACKET_HEADROOM` of linux/bpf.h. What an XDP program stores as metadata is there.
pub const HEADROOM: u32 = 256;

/// Memory in chunks of one size, shared with the kernel by the sockets that are opened on it.
///
/// A frame's *address* is its first byte's distance from the beginning of the memory.
#[derive(Debug)]
pub struct Umem {
    memory: Mapping,
    chunk_bytes: u32,
    chunks: u32,
}

impl Umem {
    /// The sizes of a chunk in bytes that every kernel takes: powers of two from 2048 up to a page
    /// (af_xdp.rst, "UMEM").
    pub const CHUNK_BYTES: [u32; 2] = [2048, 4096];

    /// Memory for `chunks` chunks of `chunk_bytes` each, all of it present.
    ///
    /// # Errors
    /// `InvalidInput` where a chunk has another size than [`Umem::CHUNK_BYTES`], and the reasons
    /// of mmap(2).
    pub fn allocate(chunk_bytes: u32, chunks: u32) -> io::Result<Self> {
        let length = (chunk_bytes as usize).checked_mul(chunks as usize);
        let length = length.filter(|_| Self::CHUNK_BYTES.contains(&chunk_bytes));
        let memory = Mapping::anonymous(length.ok_or(io::ErrorKind::InvalidInput)?)?;
        Ok(Self { memory, chunk_bytes, chunks })
    }

    /// The number of chunks.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// The size of a chunk in bytes.
    #[must_use]
    pub fn chunk_bytes(&self) -> u32 {
        self.chunk_bytes
    }

    /// The address at which a chunk begins.
    #[must_use]
    pub fn address(&self, chunk: u32) -> u64 {
        u64::from(chunk) * u64::from(self.chunk_bytes)
    }

    /// The chunk in which an address lies; none if it lies behind the last.
    #[must_use]
    pub fn chunk(&self, address: u64) -> Option<u32> {
        let chunk = u32::try_from(address / u64::from(self.chunk_bytes)).ok()?;
        (chunk < self.chunks).then_some(chunk)
    }

    /// A pointer to `length` bytes at `address`. They may be used for as long as this lives, by
    /// whoever owns the chunk: the kernel, until it has come out of a ring; we, until it is put
    /// into one.
    ///
    /// # Panics
    /// When they lie outside: an address from elsewhere must not be followed.
    #[must_use]
    pub fn at(&self, address: u64, length: u32) -> NonNull<u8> {
        // An address that does not fit is outside too.
        self.memory.at(usize::try_from(address).unwrap_or(usize::MAX), length as usize)
    }

    /// The whole memory, as the kernel is told of it.
    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        let length = self.address(self.chunks);
        libc::xdp_umem_reg {
            addr: self.at(0, 0).as_ptr() as u64,
            len: length,
            chunk_size: self.chunk_bytes,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_the_chunk_that_it_was_made_from() {
        let umem = Umem::allocate(2048, 3).unwrap();
        for chunk in 0..umem.chunks() {
            let address = umem.address(chunk);
            assert_eq!([address, address + 2047].map(|a| umem.chunk(a)), [Some(chunk); 2]);
        }
        assert_eq!(umem.chunk(3 * 2048), None);
        assert_eq!(umem.chunk(u64::MAX), None);
    }

    #[test]
    fn a_chunk_of_another_size_is_refused() {
        for bytes in [0, 1024, 3000, 8192] {
            let error = Umem::allocate(bytes, 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bytes}");
        }
    }
}
