//! Names of the running kernel's drop reasons.

use std::collections::BTreeMap;

use libbpf_rs::btf::{Btf, types};

/// The names of `enum skb_drop_reason` (include/net/dropreason-core.h), whose numbers differ between kernels.
#[derive(Clone, Debug, Default)]
pub struct Reasons(BTreeMap<u32, String>);

impl Reasons {
    /// The names in these types of the kernel; empty if it has none.
    pub(super) fn of(kernel: &Btf<'_>) -> Self {
        let Some(reasons) = kernel.type_by_name::<types::Enum<'_>>("skb_drop_reason") else {
            return Self::default();
        };
        let name = |member: types::EnumMember<'_>| {
            let name = member.name?.to_str()?;
            let short = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name);
            Some((u32::try_from(member.value).ok()?, short.to_owned()))
        };
        Self(reasons.iter().filter_map(name).collect())
    }

    /// The kernel's name of a reason, such as `SOCKET_RCVBUFF`; its number if it has no name, as is the case for
    /// reasons of subsystems (`SKB_DROP_REASON_SUBSYS_SHIFT`).
    #[must_use]
    pub fn name(&self, reason: u32) -> String {
        self.0.get(&reason).cloned().unwrap_or_else(|| format!("{reason:#x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_kernel_has_reason_names() {
        let reasons = Reasons::of(&Btf::from_vmlinux().unwrap());
        assert!(reasons.0.values().any(|name| name == "SOCKET_RCVBUFF"), "{reasons:?}");
        assert_eq!(reasons.name(0x3_0001), "0x30001");
    }
}
