//! A kernel function that reads the CPU's counter for XDP and tc programs. Linux itself has no such function:
//! `bpf/clocks.h` describes its source.

use std::fs;
use std::sync::LazyLock;

/// BTF of the kernel, and of the module while it is loaded: types and functions.
const OF_KERNEL: &str = "/sys/kernel/btf/vmlinux";
const OF_MODULE: &str = "/sys/kernel/btf/wirestamp";

/// Provider of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterFunction {
    /// The kernel.
    Kernel,
    /// The module wirestamp (`kmod/README.md`). Calling it requires `CAP_SYS_ADMIN`, without which the kernel does
    /// not list the functions of modules (`BPF_BTF_GET_NEXT_ID` of bpf(2)).
    Module,
}

impl CounterFunction {
    /// The function that is available now; the kernel's own has precedence over the module's.
    #[must_use]
    pub fn find() -> Option<Self> {
        // Constant while the kernel runs, and the search takes some milliseconds.
        static KERNEL: LazyLock<bool> =
            LazyLock::new(|| has(OF_KERNEL, CounterFunction::Kernel.name()));
        if *KERNEL {
            Some(Self::Kernel)
        } else {
            has(OF_MODULE, Self::Module.name()).then_some(Self::Module)
        }
    }

    /// Name of the function.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "bpf_get_cpu_time_counter",
            Self::Module => "bpf_wirestamp_counter",
        }
    }
}

/// Whether the BTF file at `path` has the name `name`. Its names are separated by zero bytes
/// (`Documentation/bpf/btf.rst` in the kernel's source, "String Section").
fn has(path: &str, name: &str) -> bool {
    let types = fs::read(path).unwrap_or_default();
    types.split(|&byte| byte == 0).any(|word| word == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_is_found_by_its_whole_name() {
        assert!(has(OF_KERNEL, "bpf_ktime_get_ns"));
        assert!(!has(OF_KERNEL, "bpf_ktime_get_n") && !has(OF_KERNEL, "pf_ktime_get_ns"));
        assert!(!has("/sys/kernel/btf/no-such-module", "bpf_ktime_get_ns"));
    }
}
