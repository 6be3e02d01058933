//! Detection of the hypervisor, and of the sources that it emulates.

use core::arch::x86_64::{__cpuid, CpuidResult};

use super::hpet::Hpet;
use super::raw::RawSource;

/// QEMU's own CPU emulation, which executes no guest instruction natively.
const EMULATED_CPU: &str = "QEMU without KVM";

/// Name of the hypervisor; none on bare metal, or if the hypervisor does not identify itself.
///
/// CPUID leaf 1, ECX bit 31 is zero on every CPU and reserved for hypervisors; leaf `0x4000_0000` is theirs (kernel
/// documentation, virt/kvm/x86/cpuid.rst; AMD APM vol. 3, appendix E).
pub(crate) fn vendor() -> Option<String> {
    const FEATURES: u32 = 1;
    const HYPERVISOR: u32 = 0x4000_0000;
    const IS_GUEST: u32 = 1 << 31;
    (__cpuid(FEATURES).ecx & IS_GUEST != 0).then(|| name(__cpuid(HYPERVISOR)))
}

/// The emulator of a source, if any. An emulated CPU emulates all of them; any other hypervisor still emulates each
/// read of the HPET.
pub(crate) fn emulated_by(source: &str) -> Option<String> {
    vendor().filter(|vendor| is_emulated(vendor, source))
}

fn is_emulated(vendor: &str, source: &str) -> bool {
    vendor == EMULATED_CPU || source == Hpet::NAME
}

/// The twelve letters in EBX, ECX and EDX; some vendors leave the last ones empty.
fn name(leaf: CpuidResult) -> String {
    let letters = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes);
    let letters = letters.concat();
    let printable = letters.iter().filter(|letter| letter.is_ascii_graphic() || **letter == b' ');
    let name: String = printable.copied().map(char::from).collect();
    match name.trim() {
        "" => "unnamed".to_owned(),
        "KVMKVMKVM" => "KVM".to_owned(),
        "Microsoft Hv" => "Hyper-V".to_owned(),
        "VMwareVMware" => "VMware".to_owned(),
        "XenVMMXenVMM" => "Xen".to_owned(),
        "TCGTCGTCGTCG" => EMULATED_CPU.to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(letters: &[u8; 12]) -> CpuidResult {
        let word = |at: usize| u32::from_le_bytes(letters[at..at + 4].try_into().unwrap());
        CpuidResult { eax: 0x4000_0001, ebx: word(0), ecx: word(4), edx: word(8) }
    }

    #[test]
    fn hypervisor_is_named_by_its_signature() {
        assert_eq!(name(leaf(b"KVMKVMKVM\0\0\0")), "KVM");
        assert_eq!(name(leaf(b"Microsoft Hv")), "Hyper-V");
        assert_eq!(name(leaf(b"TCGTCGTCGTCG")), EMULATED_CPU);
        assert_eq!(name(leaf(b"bhyve bhyve ")), "bhyve bhyve");
        assert_eq!(name(leaf(b"\0\0\0\0\0\0\0\0\0\x1b\xff\n")), "unnamed");
    }

    #[test]
    fn emulated_sources_depend_on_the_hypervisor() {
        assert!(["tsc", "hpet", "os"].iter().all(|source| is_emulated(EMULATED_CPU, source)));
        assert_eq!(
            ["tsc", "hpet", "os"].map(|source| is_emulated("KVM", source)),
            [false, true, false]
        );
    }
}
