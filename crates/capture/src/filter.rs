//! Filters in the syntax of pcap-filter(7), compiled by libpcap.
#![expect(unsafe_code, reason = "the program's instructions go to the kernel as its own type")]

use pcap::{BpfProgram, Capture, Linktype};

use crate::Error;

/// A compiled filter over Ethernet frames.
pub struct Filter {
    program: BpfProgram,
    tagged: bool,
}

impl Filter {
    /// Compiles `expression`.
    ///
    /// # Errors
    /// When libpcap does not understand it; the error carries its reason.
    pub fn compile(expression: &str) -> Result<Self, Error> {
        let refused = |error: pcap::Error| Error::Filter {
            expression: expression.to_owned(),
            reason: match error {
                pcap::Error::PcapError(reason) => reason,
                other => other.to_string(),
            },
        };
        let ethernet = Capture::dead(Linktype::ETHERNET).map_err(refused)?;
        let program = ethernet.compile(expression, true).map_err(refused)?;
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric());
        Ok(Self { program, tagged: words.into_iter().any(|word| word == "vlan") })
    }

    /// Whether it looks for VLAN tags, which the kernel takes out of a frame before a socket's
    /// filter sees it.
    pub(crate) fn looks_for_tags(&self) -> bool {
        self.tagged
    }

    /// Whether a frame passes.
    #[must_use]
    pub fn passes(&self, frame: &[u8]) -> bool {
        self.program.filter(frame)
    }

    /// The instructions in the form that `SO_ATTACH_FILTER` takes.
    pub(crate) fn instructions(&self) -> Vec<libc::sock_filter> {
        let instructions = self.program.get_instructions();
        // SAFETY: pcap's instruction is a transparent `struct bpf_insn`, which pcap/bpf.h and
        // linux/filter.h define alike: u16 code, u8 jt, u8 jf, u32 k.
        unsafe {
            std::slice::from_raw_parts(
                instructions.as_ptr().cast::<libc::sock_filter>(),
                instructions.len(),
            )
        }
        .to_vec()
    }
}

// The length is checked where it can be: pcap does not export its instruction's layout.
const _: () = assert!(size_of::<pcap::BpfInstruction>() == size_of::<libc::sock_filter>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_passes_what_it_names() {
        let udp = Filter::compile("udp port 5000").unwrap();
        let mut frame = vec![0_u8; 60];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[23] = 17;
        frame[36..38].copy_from_slice(&5000_u16.to_be_bytes());
        assert!(udp.passes(&frame));
        frame[23] = 6;
        assert!(!udp.passes(&frame));
        assert!(!udp.instructions().is_empty());
    }

    #[test]
    fn a_filter_that_makes_no_sense_says_why() {
        let error = Filter::compile("udp prot 5").err().unwrap().to_string();
        assert!(error.starts_with("filter 'udp prot 5': "), "{error}");
    }
}
