//! A function of the kernel's that reads the CPU's counter for XDP and tc programs, of which Linux
//! has none by itself: `bpf/clocks.h` says where it comes from.

use std::fs;
use std::sync::LazyLock;

/// The types and functions of the kernel and of a module, in BTF: there while the module is loaded.
const OF_KERNEL: &str = "/sys/kernel/btf/vmlinux";
const OF_MODULE: &str = "/sys/kernel/btf/wirestamp";

/// Whose function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterFunction {
    /// The kernel's own.
    Kernel,
    /// That of the module wirestamp (`kmod/README.md`). To call it takes `CAP_SYS_ADMIN`, without
    /// which the kernel does not list its modules' functions (`BPF_BTF_GET_NEXT_ID` of bpf(2)).
    Module,
}

impl CounterFunction {
    /// The one that the running kernel has, at this moment; its own before the module's.
    #[must_use]
    pub fn find() -> Option<Self> {
        // It cannot come or go while the kernel runs, and takes some milliseconds to look for.
        static KERNEL: LazyLock<bool> =
            LazyLock::new(|| has(OF_KERNEL, CounterFunction::Kernel.name()));
        if *KERNEL {
            Some(Self::Kernel)
        } else {
            has(OF_MODULE, Self::Module.name()).then_some(Self::Module)
        }
    }

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "bpf_get_cpu_time_counter",
            Self::Module => "bpf_wirestamp_counter",
        }
    }
}

/// Whether something is called `name` in the BTF file at `path`. Its names stand between zero bytes
/// (`Documentation/bpf/btf.rst` in the kernel's source, "String Section").
fn has(path: &str, name: &str) -> bool {
    let types = fs::read(path).unwrap_or_default();
    types.split(|&byte| byte == 0).any(|word| word == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_its_whole_name_in_a_file_that_is_there() {
        assert!(has(OF_KERNEL, "bpf_ktime_get_ns"));
        assert!(!has(OF_KERNEL, "bpf_ktime_get_n") && !has(OF_KERNEL, "pf_ktime_get_ns"));
        assert!(!has("/sys/kernel/btf/no-such-module", "bpf_ktime_get_ns"));
    }
}
