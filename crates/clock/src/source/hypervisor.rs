//! Which hypervisor the CPU says that it is run by, and what that emulates.

use core::arch::x86_64::{__cpuid, CpuidResult};

use super::RawSource;
use super::hpet::Hpet;

/// QEMU's own emulation of a CPU, which executes no instruction of the guest as it is.
const EMULATED_CPU: &str = "QEMU without KVM";

/// The hypervisor, by the name it gives itself; none on bare metal, or where it hides.
///
/// CPUID leaf 1, ECX bit 31 is zero on every CPU and kept for hypervisors to set; leaf
/// `0x4000_0000` is theirs (kernel documentation, virt/kvm/x86/cpuid.rst; AMD APM vol. 3,
/// appendix E).
pub(crate) fn vendor() -> Option<String> {
    const FEATURES: u32 = 1;
    const HYPERVISOR: u32 = 0x4000_0000;
    const IS_GUEST: u32 = 1 << 31;
    (__cpuid(FEATURES).ecx & IS_GUEST != 0).then(|| name(__cpuid(HYPERVISOR)))
}

/// What emulates a source, if anything does: with the CPU all of them are, and a hypervisor that
/// leaves the CPU alone still answers each read of the HPET itself.
pub(crate) fn emulated_by(source: &str) -> Option<String> {
    vendor().filter(|vendor| answers(vendor, source))
}

fn answers(vendor: &str, source: &str) -> bool {
    vendor == EMULATED_CPU || source == Hpet::NAME
}

/// The twelve letters in EBX, ECX and EDX, of which some vendors leave the last empty.
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
    fn a_hypervisor_is_known_by_its_letters() {
        assert_eq!(name(leaf(b"KVMKVMKVM\0\0\0")), "KVM");
        assert_eq!(name(leaf(b"Microsoft Hv")), "Hyper-V");
        assert_eq!(name(leaf(b"TCGTCGTCGTCG")), EMULATED_CPU);
        assert_eq!(name(leaf(b"bhyve bhyve ")), "bhyve bhyve");
        assert_eq!(name(leaf(b"\0\0\0\0\0\0\0\0\0\x1b\xff\n")), "unnamed");
    }

    #[test]
    fn an_emulated_cpu_emulates_every_source_and_any_other_hypervisor_the_hpet() {
        assert!(["tsc", "hpet", "os"].iter().all(|source| answers(EMULATED_CPU, source)));
        assert_eq!(
            ["tsc", "hpet", "os"].map(|source| answers("KVM", source)),
            [false, true, false]
        );
    }
}
